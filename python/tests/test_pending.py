"""Computing while Python goes on."""

from __future__ import annotations

import threading
import time
from concurrent.futures import CancelledError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw


@pytest.fixture
def session():
    with tw.Session(threads=2) as session:
        yield session


def slow(rows: int = 3000) -> tw.Array:
    """Many seconds of small tasks: nobody waits for the end."""
    x = tw.random.default_rng(1).normal(size=(rows, 500)).rechunk(100)
    for _ in range(40):
        x = tw.sort(tw.sin(x) + 1, axis=0)
    return x


def until(condition, seconds: float = 10.0) -> None:
    begin = time.monotonic()
    while not condition():
        assert time.monotonic() - begin < seconds, "it never came true"
        time.sleep(0.002)


@given(st.lists(st.floats(-9, 9), max_size=20))
def test_results_are_those_of_compute(values):
    x = tw.asarray(np.array(values, dtype="float64"))
    assert np.array_equal((x + 1).compute(block=False).result(), x.compute() + 1)
    total, same, positive = tw.compute(x.sum(), "as it is", x[x > 0], block=False).result()
    np.testing.assert_allclose(total, np.sum(values), atol=1e-12)
    assert same == "as it is"
    np.testing.assert_array_equal(positive, [v for v in values if v > 0])


def test_a_result_can_be_asked_for_twice_and_is_kept(session):
    x = tw.ones((100, 100)) * 2
    pending = x.compute(block=False)
    first = pending.result()
    tasks = session.report()["tasks"]
    assert pending.done() and np.array_equal(first, pending.result()) and "done" in repr(pending)
    assert session.report()["tasks"] == tasks


def test_cancelling_stops_soon_and_leaves_nothing_behind(session):
    x = slow()
    before = session.report()["held_bytes"]
    pending = x.compute(block=False)
    with pytest.raises(TimeoutError):
        pending.result(timeout=0.3)
    assert not pending.done() and "running" in repr(pending)
    begin = time.monotonic()
    pending.cancel()
    until(pending.done)
    assert time.monotonic() - begin < 0.2
    with pytest.raises(CancelledError):
        pending.result()
    until(lambda: session.report()["held_bytes"] == before, 1.0)
    assert not x._tensor.is_computed
    # The session, and what was not cancelled, go on.
    assert float(tw.ones(10).sum()) == 10.0


def test_cancelling_one_leaves_the_others_alone(session):
    stopped, kept = slow().compute(block=False), tw.sort(tw.random.default_rng(2).normal(size=(200000,))).compute(block=False)
    stopped.cancel()
    assert kept.result(timeout=60).shape == (200000,)
    with pytest.raises(CancelledError):
        stopped.result(timeout=60)


def test_a_session_cancels_all_of_its_runs(session):
    runs = [slow().compute(block=False), slow().compute(block=False)]
    time.sleep(0.1)
    session.cancel()
    for run in runs:
        with pytest.raises(CancelledError):
            run.result(timeout=60)
    assert float(tw.ones(3).sum()) == 3.0


def test_errors_come_with_the_result(session):
    x = tw.asarray(np.arange(5.0))
    pending = tw.take(x, tw.asarray([7])).compute(block=False)
    with pytest.raises(IndexError):
        pending.result()
    assert pending.done()


def test_several_threads_compute_at_once(session):
    found = []

    def work(k: int) -> None:
        runs = [(tw.arange(1000) * k + j).sum().compute(block=False) for j in range(5)]
        found.append((k, [int(run.result()) for run in runs]))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [(k, [499500 * k + 1000 * j for j in range(5)]) for k in range(6)]
