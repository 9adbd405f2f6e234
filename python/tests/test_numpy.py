"""NumPy's functions called on our arrays."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import same

import tilewright as tw

X = np.arange(6.0).reshape(2, 3)


def test_arguments_by_position():
    x = tw.asarray(X)
    same(np.sum(x, 1, np.float32), np.sum(X, 1, np.float32))
    same(np.std(x, 0, ddof=1), np.std(X, 0, ddof=1))
    same(np.clip(x, 1, 3), np.clip(X, 1, 3))
    same(np.clip(x, a_min=None, a_max=3), np.clip(X, None, 3))
    same(np.roll(x, 1, 1), np.roll(X, 1, 1))
    same(np.reshape(x, (3, 2)), np.reshape(X, (3, 2)))
    same(np.take(x, [1, 0], 1), np.take(X, [1, 0], 1))
    same(np.diff(x, 1, 0), np.diff(X, 1, 0))
    same(np.concatenate([x, X], 1), np.concatenate([X, X], 1))
    same(np.argsort(x, 0, kind="stable"), np.argsort(X, 0, kind="stable"))
    same(np.tensordot(x, x, ([1], [1])), np.tensordot(X, X, ([1], [1])))
    same(np.linalg.vecdot(x, x, axis=0), np.linalg.vecdot(X, X, axis=0))
    same(np.round(x / 7, 2), np.round(X / 7, 2))
    same(np.isin(x, [1, 2], assume_unique=True), np.isin(X, [1, 2]))
    same(np.transpose(x), X.T)
    same(np.squeeze(x[:1]), X[0])
    same(np.where(x)[0], np.where(X)[0])
    same(np.where(x > 2, x, 0), np.where(X > 2, X, 0))


def test_ufuncs():
    x = tw.asarray(X)
    same(np.add(x, X), X + X)
    same(np.add.reduce(x), np.add.reduce(X))
    same(np.maximum.reduce(x, axis=1, keepdims=True), np.maximum.reduce(X, axis=1, keepdims=True))
    same(np.logical_and.reduce(x, axis=None), np.logical_and.reduce(X, axis=None))
    same(np.add.accumulate(x, 1), np.add.accumulate(X, 1))
    same(np.multiply.outer(x, x), np.multiply.outer(X, X))
    same(np.multiply.outer(X, x[0]), np.multiply.outer(X, X[0]))


def test_what_is_not_there_is_refused():
    x = tw.asarray(X)
    for call in (
        lambda: np.polyfit(x[0], x[1], 1),
        lambda: np.sum(x, out=np.zeros(())),
        lambda: np.add(x, x, out=np.zeros((2, 3))),
        lambda: np.add.reduceat(x, [0, 1]),
    ):
        with pytest.raises(TypeError):
            call()


@pytest.mark.parametrize("name", ["StandardScaler", "MinMaxScaler", "RobustScaler", "KMeans"])
def test_scikit_learn_takes_arrays_as_it_comes(name):
    pytest.importorskip("sklearn")
    from sklearn import cluster, preprocessing

    values = np.random.default_rng(0).normal(size=(40, 3))
    make = getattr(preprocessing, name, None) or (lambda: cluster.KMeans(3, n_init=1, random_state=0))
    before = tw.asarray(values)
    assert np.allclose(make().fit_transform(before), make().fit_transform(values))
    assert np.array_equal(before.compute(), values)


DTYPES = ["?", "i1", "u1", "i8", "f4", "f8", "c16"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "minimum"])
def test_ufuncs_write_at_places(name, dtype):
    function = getattr(np, name)
    start = np.arange(24).reshape(6, 4).astype(dtype)
    for key, values in [([0, 2, 0, -1], 2), (([0, 1, 0], [3, 3, 3]), [5, 6, 7]), (slice(1, 3), np.arange(4)), (np.array([[1, 1], [1, 5]]), 3), ([], 1)]:
        for cut in (None, 2):
            ours, theirs = tw.asarray(start, chunks=cut), start.copy()
            values = np.asarray(values).astype(dtype)
            if dtype == "?" and name == "subtract":
                with pytest.raises(TypeError):
                    function.at(ours, key, values)
                continue
            view = ours.T
            function.at(theirs, key, values)
            assert function.at(ours, key, tw.asarray(values)) is None
            same(ours, theirs)
            same(view, theirs.T)
    # Through a view into the whole.
    if dtype != "?":
        ours, theirs = tw.asarray(start), start.copy()
        function.at(ours[1:, ::2], [0, 0], 3)
        function.at(theirs[1:, ::2], [0, 0], 3)
        same(ours, theirs)


def test_ufuncs_write_at_places_what_fits():
    with pytest.raises(TypeError, match="same_kind"):
        np.add.at(tw.arange(3), [0], 0.5)
    with pytest.raises(TypeError, match="array of tilewright"):
        np.add.at(np.arange(3), tw.asarray([0]), 1)
    with pytest.raises(IndexError):
        np.add.at(tw.arange(3), [5], 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["maximum", "minimum", "logical_and", "logical_or", "add", "multiply"])
def test_ufuncs_accumulate(name, dtype):
    x = np.random.default_rng(0).integers(0, 3, (5, 4)).astype(dtype)
    for axis in (0, 1):
        same(getattr(np, name).accumulate(tw.asarray(x, chunks=2), axis=axis), getattr(np, name).accumulate(x, axis=axis))


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i4", "u8", "i8"])
@pytest.mark.parametrize("name", ["bitwise_or", "bitwise_and", "bitwise_xor", "logical_xor"])
def test_ufuncs_reduce_bits(name, dtype):
    function = getattr(np, name)
    x = np.random.default_rng(0).integers(-(2**62), 2**62, (3, 4)).astype(dtype)
    for axis in (0, 1, -1, None, (0, 1)):
        for keepdims in (False, True):
            same(function.reduce(tw.asarray(x, chunks=2), axis=axis, keepdims=keepdims), np.asarray(function.reduce(x, axis=axis, keepdims=keepdims)))
    same(function.reduce(tw.asarray(x)), function.reduce(x))
    same(function.reduce(tw.asarray(x[:0])), function.reduce(x[:0]))
    with pytest.raises(TypeError):
        np.bitwise_or.reduce(tw.ones(3))


@pytest.mark.parametrize("name, method", [("add", "reduceat"), ("hypot", "reduce"), ("fmax", "accumulate"), ("negative", "at"), ("power", "at")])
def test_methods_of_ufuncs_that_are_not_there_say_so(name, method):
    args = {"reduceat": ([0, 2],), "at": ([0], 1) if name == "power" else ([0],)}.get(method, ())
    with pytest.raises(TypeError, match=rf"{name}\.{method} does not take lazy arrays: .*x\.compute\(\)"):
        getattr(getattr(np, name), method)(tw.arange(4.0), *args)
