"""What is too large, for the machine or a budget, is refused in words; long plans can be interrupted."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import tilewright as tw


def in_another_process(text: str) -> str:
    found = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell what is left")
def test_results_larger_than_memory_are_refused():
    started = time.monotonic()
    for make in (lambda: tw.ones((10**6, 10**6)), lambda: tw.broadcast_to(tw.ones(1), (10**6, 10**7)) * 2):
        with pytest.raises(MemoryError, match=r"need 80*0 bytes, but only \d+ bytes of memory are available"):
            make().compute()
    assert time.monotonic() - started < 5
    # What is large on the way only is no matter.
    assert float(tw.ones((10**4, 10**5)).sum()) == 10**9


def test_too_many_blocks_are_refused():
    for array in (tw.zeros(10**12), tw.zeros(10**18).reshape((10**9, 10**9))):
        with pytest.raises(MemoryError, match=r"\d+ blocks of length 1 .* longer chunks"):
            array.rechunk(1)
        assert repr(array) and array._repr_html_() and len(array.chunks[0]) <= 2**21


def test_what_has_run_is_not_run_again_where_the_rest_is_refused():
    calls = []

    def counted(block):
        if block.size:
            calls.append(block.shape)
        return block

    with tw.Session(memory=200_000, threads=1):
        x = tw.map_blocks(counted, tw.arange(1000, dtype="float64"), dtype="float64")
        calls.clear()
        y = x[x > 3]
        with pytest.raises(MemoryError):
            (y[:, None] * y[None, :]).compute()
    assert len(calls) == 1


BUDGETED = {
    "masks": lambda: (lambda y: tw.sort(tw.concat([y, y, y])).sum())((lambda x: x[x > 10])(tw.arange(10**4, dtype="float64"))),
    "masks of masks": lambda: (lambda y: tw.sort(y[y % 2 == 0]))((lambda x: x[x > 10])(tw.arange(10**4, dtype="float64"))),
    "products": lambda: (lambda u: tw.sort(u)[:, None] * u[None, :])((lambda u: u[u > 3])(tw.unique_values(tw.arange(10**4) % 300))),
}


@pytest.mark.parametrize("case", BUDGETED)
def test_the_smallest_budget_is_true_for_open_shapes(case):
    budget, advice = 10, ""
    while True:
        try:
            with tw.Session(memory=budget, threads=1):
                BUDGETED[case]().compute()
            break
        except MemoryError as error:
            # What was said to work does.
            assert "works" not in advice, (advice, str(error))
            advice = str(error)
            needed = re.search(r"budget that works is (\d+)|budget of (\d+) bytes works|at least (\d+) bytes are needed", advice)
            assert needed, advice
            larger = int(next(filter(None, needed.groups())))
            assert larger > budget
            budget = larger


def test_plans_of_long_sorts_grow_with_their_length():
    def seconds(n):
        x = tw.random.default_rng(1).standard_normal(n)
        started = time.monotonic()
        tw.sort(x).explain()
        return time.monotonic() - started

    seconds(10**7)
    assert seconds(16 * 10**8) < 40 * max(seconds(10**8), 0.02)


def test_sorts_of_many_blocks():
    x = np.random.default_rng(2).integers(0, 1000, 3000)
    array = tw.asarray(x).rechunk(7)
    np.testing.assert_array_equal(tw.sort(array).compute(), np.sort(x))
    np.testing.assert_array_equal(tw.argsort(array).compute(), np.argsort(x, stable=True))
    rows = np.stack([x, x[::-1]])
    array = tw.asarray(rows).rechunk((1, 7))
    np.testing.assert_array_equal(tw.sort(array, axis=1).compute(), np.sort(rows, axis=1))
    np.testing.assert_array_equal(tw.sort(tw.asarray(rows.T).rechunk((7, 1)), axis=0).compute(), np.sort(rows.T, axis=0))


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent as POSIX has them")
def test_planning_can_be_interrupted():
    printed = in_another_process(
        """
        import os, signal, threading, time
        import tilewright as tw

        def sum_of_blocks(n):
            return tw.ones(n).rechunk(1) + tw.ones(n).rechunk(1)

        started = time.process_time()
        sum_of_blocks(2**18).explain()
        print(time.process_time() - started)

        x = sum_of_blocks(2**22)
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            x.explain()
        except KeyboardInterrupt:
            interrupted = time.process_time()
            busy = 1.0
            while busy > 0.5:
                before = time.process_time()
                time.sleep(1.0)
                busy = time.process_time() - before
            print(time.process_time() - interrupted)
        """
    )
    # A plan of sixteen times as many blocks that goes on in the background takes far longer than the small one.
    small, *rest = map(float, printed.split())
    assert len(rest) == 1, "no KeyboardInterrupt"
    assert rest[0] < 2 * small


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_a_thread_that_the_system_refuses_is_an_error():
    printed = in_another_process(
        """
        import resource
        import tilewright as tw

        session = tw.Session(threads=1)
        with session:
            x = tw.ones(10**8).sum()
            float(tw.ones(3).sum())
            used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            # No room for the stack of a thread.
            resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 20), resource.RLIM_INFINITY))
            for work in (x.persist, lambda: x.compute(block=False)):
                try:
                    work()
                except RuntimeError as error:
                    print(error)
        """
    )
    assert printed.count("refuses to start a thread") == 2


def test_notes_are_added_once():
    failure = ValueError("no")

    def fail(block):
        raise failure

    x = tw.map_blocks(fail, tw.ones(3), dtype="float64")
    for _ in range(3):
        with pytest.raises(ValueError, match="no"):
            x.compute()
    pending = x.compute(block=False)
    for _ in range(3):
        with pytest.raises(ValueError, match="no"):
            pending.result()
    assert len(failure.__notes__) == len(set(failure.__notes__)) <= 2
