"""NumPy's functions that write into arrays, on views as well, and some that it has been missed for."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import same

import tilewright as tw

VIEWS = [lambda x: x, lambda x: x[1:], lambda x: x.T, lambda x: x[:, ::2], lambda x: x[::-1], lambda x: x.reshape(-1)[3:15].reshape(3, 4)]

WRITERS = {
    "fill": lambda x: x.fill(7),
    "fill with a fraction": lambda x: x.fill(2.5),
    "copyto": lambda x: np.copyto(x, 3),
    "copyto a row": lambda x: np.copyto(x, np.arange(x.shape[1], dtype=x.dtype)),
    "copyto where": lambda x: np.copyto(x, 9, where=np.arange(x.shape[1]) % 2 == 0),
    "copyto by force": lambda x: np.copyto(x, 1.5, casting="unsafe"),
    "put": lambda x: np.put(x, [0, -1, 2, 0], [5, 6]),
    "put one": lambda x: x.put([1, 3], 8),
    "put clipped": lambda x: np.put(x, [[0, 100], [-100, 1]], [1, 2, 3, 4], mode="clip"),
    "put around": lambda x: np.put(x, [100, -100], 7, mode="wrap"),
    "put nothing": lambda x: np.put(x, [], 7),
    "putmask": lambda x: np.putmask(x, np.arange(x.size).reshape(x.shape) % 3 == 0, [5, 6, 7, 8]),
    "putmask of all": lambda x: np.putmask(x, np.ones(x.shape), np.arange(x.size, dtype=x.dtype).reshape(x.shape)),
    "place": lambda x: np.place(x, np.arange(x.size).reshape(x.shape) % 3 == 0, [5, 6]),
    "place nothing": lambda x: np.place(x, np.zeros(x.shape, bool), []),
    "fill_diagonal": lambda x: np.fill_diagonal(x, 5),
    "fill_diagonal with several": lambda x: np.fill_diagonal(x, [5, 6]),
    "fill_diagonal around": lambda x: np.fill_diagonal(x, [5, 6, 7], wrap=True),
    "put_along_axis": lambda x: np.put_along_axis(x, np.array([[0, 1, 0]]), 9, axis=0) if x.shape[1] == 3 else np.put_along_axis(x, np.zeros((x.shape[0], 1), int), 9, axis=1),
    "put_along_axis in a row": lambda x: np.put_along_axis(x, np.array([0, 2]), np.array([7, 8]), axis=None),
    "partition": lambda x: x.partition(1),
}


@pytest.mark.parametrize("view", range(len(VIEWS)))
@pytest.mark.parametrize("dtype", ["i4", "u1", "f8"])
@pytest.mark.parametrize("name", WRITERS)
def test_writers(name, dtype, view):
    values = np.arange(20).reshape(5, 4).astype(dtype)
    if name == "put_along_axis in a row" and view not in (0, 1, 5):
        pytest.skip("NumPy writes into a copy")
    if name == "partition":
        # How NumPy leaves the others is its own affair.
        values = np.sort(values, axis=0)
        values = values if view in (0, 1) else np.zeros_like(values)
    for cut in (None, 2):
        ours, theirs = tw.asarray(values, chunks=cut), values.copy()
        assert WRITERS[name](VIEWS[view](ours)) is None
        WRITERS[name](VIEWS[view](theirs))
        same(ours, theirs)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.copyto(x, 0.5), lambda x: np.copyto(x, np.zeros(3)), lambda x: np.copyto(x, 1, where=np.ones(x.shape, int)), lambda x: np.put(x, [100], 1), lambda x: np.putmask(x, [True], 1), lambda x: np.putmask(x, np.ones(x.shape), np.ones(1)), lambda x: np.place(x, x > 1, np.ones(1)),
        lambda x: np.place(x, np.ones(x.shape, bool), []), lambda x: np.fill_diagonal(x[0], 1), lambda x: np.fill_diagonal(x[None], 1), lambda x: np.put_along_axis(x, np.array([0]), 1, axis=0), lambda x: np.copyto(x, np.zeros((9, 9), int)),
    ],
)  # fmt: skip
def test_writers_refuse_what_numpy_refuses(call):
    values = np.arange(20).reshape(5, 4)
    with pytest.raises((TypeError, ValueError, IndexError)) as theirs:
        call(values.copy())
    x = tw.asarray(values)
    with pytest.raises(theirs.type):
        call(x)
        x.compute()


def test_writers_do_not_write_into_arrays_of_numpy():
    with pytest.raises(TypeError, match="store"):
        np.copyto(np.zeros(3), tw.ones(3))
    with pytest.raises(TypeError, match="store"):
        np.put(np.zeros(3), tw.asarray([0]), 1)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8"])
def test_unwrap(dtype):
    x = np.random.default_rng(0).integers(-20, 20, (4, 9)).astype(dtype)
    for options in ({}, {"axis": 0}, {"discont": 5}, {"period": 4}, {"period": 7, "axis": 0}, {"period": 7.5}):
        found, expected = np.unwrap(tw.asarray(x, chunks=3), **options), np.unwrap(x, **options)
        assert found.dtype == expected.dtype and np.allclose(found.compute(), expected), options
    assert np.unwrap(tw.asarray(x, chunks=3)).chunks == ((3, 1), (3, 3, 3))


def test_piecewise():
    for values in (np.linspace(-2, 3, 11), np.arange(-3, 4), np.arange(6).reshape(2, 3) - 2.5):
        for conditions, functions in [
            (lambda x: [x < 0, x >= 0], [-1, 1]),
            (lambda x: [x < 0, x >= 0], [lambda part: -part, lambda part: part * 2]),
            (lambda x: [x < 0], [lambda part: part * 3, 7]),
            (lambda x: x > 100 if x.ndim == 1 else [x > 100], [lambda part: part.max(), 3]),
            (lambda x: [x < 0, x < 1], [1, 2, lambda part: part + 1]),
        ]:
            same(np.piecewise(tw.asarray(values), conditions(tw.asarray(values)), functions), np.piecewise(values, conditions(values), functions))
    with pytest.raises(ValueError, match="2 condition"):
        tw.piecewise(tw.ones(2), [tw.ones(2) > 0, tw.ones(2) > 0], [1])


def test_trim_zeros():
    for values in ([0, 0, 1, 2, 0, 3, 0], [0, 0], [], [1, 2], [[0, 0, 0], [0, 1, 0], [0, 2, 0]]):
        for trim in ("fb", "f", "B"):
            for axis in (None, 0, -1):
                values = np.asarray(values)
                same(np.trim_zeros(tw.asarray(values), trim, axis), np.trim_zeros(values, trim, axis))
    with pytest.raises(ValueError, match="unexpected"):
        tw.trim_zeros(tw.ones(2), "x")


def test_methods():
    values = np.array([[3.25, 1.5], [2.125, 0.0]])
    x = tw.asarray(values)
    assert x.tobytes() == values.tobytes() and x.tobytes("F") == values.tobytes("F")
    same(np.take_along_axis(x, x.argpartition(0), -1), np.sort(values))
    same(round(x, 1), np.round(values, 1))
    same(round(x), np.round(values))
    assert round(tw.asarray(2.5)) == 2 and type(round(tw.asarray(2.5))) is int
    assert float(round(x.sum(), 1)) == 6.9
