"""Shapes that depend on elements: nothing is computed before it is asked for."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw


def same(found: np.ndarray, expected: np.ndarray) -> None:
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def runs(session: tw.Session) -> int:
    return session.report()["segments"]


@pytest.fixture
def session():
    with tw.Session(threads=2) as session:
        yield session


DATA = np.arange(24.0).reshape(4, 6) - 9.5

LAZY = {
    "sum": lambda np, x, y, m: x[m].sum(),
    "scaled mean": lambda np, x, y, m: (x[m] * 2).mean(),
    "two under one mask": lambda np, x, y, m: x[m] + y[m],
    "a mask written twice": lambda np, x, y, m: x[(x > 1) & (y < 9)] - y[(x > 1) & (y < 9)],
    "broadcast": lambda np, x, y, m: x[m][:, None] * y[m],
    "positions": lambda np, x, y, m: np.nonzero(x > 0)[1].max(),
    "mask twice": lambda np, x, y, m: x[m][y[m] > 3],
    "cast": lambda np, x, y, m: x[m].astype("int32"),
    "stack": lambda np, x, y, m: np.stack([x[m], y[m]], axis=1),
    "running": lambda np, x, y, m: np.cumsum(x[m]),
    "sorted": lambda np, x, y, m: np.sort(-x[m]),
    "rows": lambda np, x, y, m: x[x[:, 0] > 0] - 1,
    "chosen": lambda np, x, y, m: np.where(x[m] > 2, x[m], y[m]),
    "scalar product": lambda np, x, y, m: x[m] @ y[m],
    "argwhere": lambda np, x, y, m: np.argwhere(m),
    "unique": lambda np, x, y, m: np.unique(x % 3),
    "counts": lambda np, x, y, m: np.unique(x // 4, return_counts=True)[1],
}


@pytest.mark.parametrize("name", LAZY)
def test_one_run_without_an_earlier_count(session, name):
    function = LAZY[name]
    x, y = tw.asarray(DATA), tw.asarray(DATA[::-1].copy() + 1)
    lazy = function(tw, x, y, x > 1)
    assert runs(session) == 0, "something was computed before anybody asked"
    repr(lazy)
    lazy._repr_html_()
    assert runs(session) == 0, "looking at an array computes nothing"
    expected = np.asarray(function(np, DATA, DATA[::-1] + 1, DATA > 1))
    same(lazy.compute(), expected)
    after = runs(session)
    assert after > 0
    assert lazy.shape == expected.shape
    assert runs(session) == after, "the shape is known after computing"


def test_a_shape_computes_the_count_alone(session):
    x = tw.asarray(DATA)
    lazy = x[x > 1] * 2
    assert lazy.ndim == 1 and runs(session) == 0
    assert lazy.shape == ((DATA > 1).sum(),)
    assert runs(session) == 1 and not lazy._tensor.is_computed
    assert len(lazy) == lazy.size and runs(session) == 1, "it is remembered"
    same(lazy.compute(), DATA[DATA > 1] * 2)


def test_repr_shows_what_is_known(session):
    x = tw.asarray(DATA)
    assert "shape=(?,)" in repr(x[x > 0])
    assert "shape=(?, 6)" in repr(x[x[:, 0] > 0])
    assert runs(session) == 0


NEEDS_THE_NUMBER = {
    "reshape": lambda np, x, y: np.reshape(x[x > 1], (-1, 1)),
    "concat": lambda np, x, y: np.concat((x[x > 1], y[y > 2])),
    "other masks": lambda np, x, y: x[x > 1] + y[x >= 1.5],
    "last": lambda np, x, y: x[x > 1][-1],
    "first": lambda np, x, y: x[x > 1][0],
    "slice": lambda np, x, y: x[x > 1][2:-1],
    "reversed": lambda np, x, y: np.flip(x[x > 1]),
    "take": lambda np, x, y: np.take(x[x > 1], np.asarray([-1, 0])),
    "number": lambda np, x, y: x[x > 1] + np.ones((int((DATA > 1).sum()),)),
    "one broadcasts": lambda np, x, y: x[x == x.max()] + np.arange(3),
}


@pytest.mark.parametrize("name", NEEDS_THE_NUMBER)
def test_what_needs_the_number_computes_it_and_goes_on(session, name):
    function = NEEDS_THE_NUMBER[name]
    expected = np.asarray(function(np, DATA, -DATA[::-1]))
    got = function(tw, tw.asarray(DATA), tw.asarray(-DATA[::-1]))
    same(got.compute(), expected)


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (lambda x: x[x > 1][99], IndexError),
        (lambda x: x[x > 1] + tw.ones(3), ValueError),
        (lambda x: x[x > 1].reshape((5, 5)), ValueError),
        (lambda x: tw.matmul(x[x > 1], x[x > 2]), ValueError),
        (lambda x: x[tw.ones(3) > 0], IndexError),
        (lambda x: x[x > 1e9].max().compute(), ValueError),
        (lambda x: float(x[x > 1]), TypeError),
        (lambda x: bool(x[x > 1]), ValueError),
        (lambda x: x[x > 1].item(), ValueError),
    ],
)
def test_errors_are_those_of_known_shapes(session, wrong, kind):
    with pytest.raises(kind) as caught:
        wrong(tw.asarray(DATA))
    assert "%" not in str(caught.value)


WRONG_WHATEVER_THE_NUMBER = {
    "types": (lambda x, z, t: x[x > 1] & 1, TypeError),
    "types of other lengths": (lambda x, z, t: x[x > 1] & x[x > 2], TypeError),
    "times and numbers": (lambda x, z, t: x[x > 1] + t[x > 2], TypeError),
    "concat of times and numbers": (lambda x, z, t: tw.concat((x[x > 1], t[x > 2])), TypeError),
    "bits of complex numbers": (lambda x, z, t: ~z[x > 1], TypeError),
    "product of times": (lambda x, z, t: x[x > 1] @ t[x > 2], TypeError),
    "indices of floats": (lambda x, z, t: tw.take(x[x > 1], x[x > 2]), IndexError),
    "too many indices": (lambda x, z, t: x[x > 1][0, 0], IndexError),
    "two open extents": (lambda x, z, t: x[x > 1].reshape((-1, -1)), ValueError),
    "columns": (lambda x, z, t: x[x[:, 0] > 0] + tw.ones(5), ValueError),
}


@pytest.mark.parametrize("name", WRONG_WHATEVER_THE_NUMBER)
def test_mistakes_that_no_number_excuses_compute_nothing(session, name):
    wrong, kind = WRONG_WHATEVER_THE_NUMBER[name]
    times = DATA.astype("int64").astype("datetime64[s]")
    with pytest.raises(kind) as caught:
        wrong(tw.asarray(DATA), tw.asarray(DATA + 1j), tw.asarray(times))
    assert runs(session) == 0, "something was computed before the mistake was reported"
    assert "%" not in str(caught.value)


def test_only_the_extent_that_is_needed_is_computed(session):
    x = tw.asarray(DATA)
    table = x[x > 1][:, None] * x[x > 5]
    half = table[:3]
    assert runs(session) == 1 and "shape=(3, ?)" in repr(half)
    same(half.compute(), (DATA[DATA > 1][:, None] * DATA[DATA > 5])[:3])


@given(
    st.lists(st.integers(-3, 3), max_size=30),
    st.integers(1, 7),
    st.integers(-4, 4),
)
def test_any_mask_and_any_blocks(values, chunk, limit):
    data = np.array(values, dtype="int64")
    x = tw.asarray(data).rechunk(chunk)
    mask, kept = x > limit, data > limit
    total, doubled = tw.compute(x[mask].sum(), x[mask] + 2 * x[mask])
    same(total, np.asarray(data[kept].sum()))
    same(doubled, 3 * data[kept])
    same(tw.nonzero(x)[0].compute(), np.nonzero(data)[0])
    found, expected = tw.unique(x, return_counts=True), np.unique(data, return_counts=True)
    for ours, theirs in zip(found, expected, strict=True):
        same(ours.compute(), theirs)


def test_a_loop_of_masks_neither_grows_nor_slows(session):
    x = tw.asarray(np.linspace(0, 1, 1000))
    held = []
    for step in range(200):
        x = x[x >= x.min()] * 1.0
        if step % 20 == 0:
            x.persist()
        held.append(session.report()["held_bytes"])
    x.compute()
    del x
    gc.collect()
    assert session.report()["held_bytes"] == 0
    assert max(held) <= 2 * 8 * 1000


def test_a_long_chain_of_masks_is_let_go_without_recursion(session):
    x = tw.asarray(np.ones(4))
    for _ in range(20000):
        x = x[x > 0]
    assert runs(session) == 0
    del x


def test_several_threads_ask_for_one_shape(session):
    x = tw.asarray(DATA)
    for _ in range(20):
        lazy = x[x > 1] * 2
        results = []

        def ask(lazy=lazy, results=results):
            results.append((lazy.shape, float(lazy.sum()), (lazy + lazy).compute().tolist()))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        kept = DATA[DATA > 1] * 2
        assert results == [(kept.shape, kept.sum(), (2 * kept).tolist())] * 4
