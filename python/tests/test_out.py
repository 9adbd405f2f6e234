"""NumPy's arguments out=, where=, order= and dtype=, and ufuncs of other libraries: what xarray, scikit-learn and scipy call."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import same
from hypothesis import given
from hypothesis import strategies as st
from strategies import arrays, chunks, ours

import tilewright as tw

X = np.arange(12.0).reshape(3, 4)
REDUCTIONS = ["sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmax", "argmin", "ptp", "median", "nansum", "nanmax", "nanmean", "nanargmin", "nanmedian"]


# out=


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_reductions_into_an_array(name, axis):
    expected = np.asarray(getattr(np, name)(X, axis=axis))
    for call in (getattr(tw, name), getattr(np, name)):
        out = tw.zeros(expected.shape, dtype=expected.dtype)
        other_name = out
        assert call(tw.asarray(X), axis=axis, out=out) is out
        same(other_name, expected)
        wider = tw.zeros(expected.shape, dtype="complex128")
        call(tw.asarray(X), axis=axis, out=wider)
        same(wider, expected.astype("complex128"))
        with pytest.raises(ValueError):
            call(tw.asarray(X), axis=axis, out=tw.zeros((9, 9), dtype=expected.dtype))
        with pytest.raises(TypeError, match="store"):
            call(tw.asarray(X), axis=axis, out=np.zeros(expected.shape))


def test_methods_and_others_into_an_array():
    x, calls = tw.asarray(X), []
    for method, args in (("any", (0,)), ("all", ()), ("sum", (1,)), ("max", (0,)), ("cumsum", (0,)), ("clip", (2, 7)), ("round", (1,)), ("trace", ()), ("take", ([1, 0], 0))):
        expected = np.asarray(getattr(X, method)(*args))
        out = tw.zeros(expected.shape, dtype=expected.dtype)
        assert getattr(x, method)(*args, out=out) is out
        assert getattr(x, method)(*args, out=None) is not out
        same(out, expected)
        calls.append(method)
    assert len(calls) == 9
    for call in (
        lambda xp, x, out: xp.matmul(x, x.T, out=out), lambda xp, x, out: xp.dot(x, x.T, out=out), lambda xp, x, out: xp.einsum("ij,kj->ik", x, x, out=out),
        lambda xp, x, out: xp.concatenate((x[:, :1], x[:, :2]), axis=1, out=out), lambda xp, x, out: xp.outer(x[:, 0], x[:, 1], out=out),
        lambda xp, x, out: xp.quantile(x, [0.1, 0.5, 0.9], axis=1, out=out), lambda xp, x, out: xp.cumsum(x[:, :3], axis=0, out=out), lambda xp, x, out: xp.stack([x[0, :3]] * 3, out=out),
        lambda xp, x, out: xp.add.reduce(xp.multiply.outer(x, x[:, 0]), axis=1, out=out) if xp is np else xp.matmul(x, x.T, out=out),
    ):  # fmt: skip
        expected = np.zeros((3, 3))
        call(np, X, expected)
        for xp in (tw, np):
            out = tw.zeros((3, 3))
            assert call(xp, x, out) is out
            if xp is np or "reduce" not in call.__code__.co_names:
                same(out, expected)


def test_arrays_by_position():
    x, out = tw.asarray(X), tw.zeros(4)
    assert x.sum(0, None, out) is out and x.max(0, out) is out and np.std(x, 0, None, out) is out
    same(out, X.std(0))
    wide = tw.zeros((3, 4))
    assert tw.add(x, 1, wide) is wide and np.add(x, 2, wide) is wide
    same(wide, X + 2)
    with pytest.raises(TypeError):
        x.sum(0, None, out, out)


def test_types_of_what_goes_into_an_array():
    x = tw.asarray(X)
    with pytest.raises(TypeError, match="same_kind"):
        np.sum(x, out=tw.zeros((), dtype="int64"))
    with pytest.raises(TypeError, match="same_kind"):
        np.add(x, 0.5, out=tw.zeros((3, 4), dtype="int64"))
    narrow = tw.zeros((3, 4), dtype="float32")
    np.add(x, 0.5, out=narrow)
    same(narrow, (X + 0.5).astype("float32"))
    forced = tw.zeros((3, 4), dtype="int64")
    np.add(x, 0.5, out=forced, casting="unsafe")
    same(forced, (X + 0.5).astype("int64"))


@given(data=st.data(), chunk=chunks)
def test_ufuncs_into_an_array_and_under_a_mask(data, chunk):
    a = data.draw(arrays(["float64", "int32"], min_dims=1, finite=True))
    b = data.draw(st.sampled_from([a[::-1], a[:1], a * 0 + 2, 3]))
    mask = np.random.default_rng(a.size).random(a.shape) < 0.5
    mask = data.draw(st.sampled_from([True, mask, mask[:1], False]))
    name = data.draw(st.sampled_from(["add", "multiply", "maximum", "less", "subtract", "true_divide", "hypot", "logical_and"]))
    theirs, own = getattr(np, name), getattr(tw, name)
    with np.errstate(all="ignore"):
        dtype = theirs(a, b).dtype
        expected = np.full((2, *a.shape), 7).astype(dtype)
        theirs(a, b, out=expected, where=mask)
        other = ours(b, chunk) if isinstance(b, np.ndarray) else b
        for call in (theirs, own):
            out = tw.asarray(np.full((2, *a.shape), 7).astype(dtype))
            found = call(ours(a, chunk), other, out=out, where=tw.asarray(mask) if isinstance(mask, np.ndarray) else mask)
            assert found is out
            same(out, expected)
        fresh = theirs(ours(a, chunk), other, where=mask).compute()
        chosen = np.broadcast_to(mask, fresh.shape)
        np.testing.assert_array_equal(fresh[chosen], theirs(a, b)[chosen])
        assert not fresh[~chosen].any()


def test_shapes_and_masks_that_do_not_fit():
    x = tw.asarray(X)
    for out in (tw.zeros(4), tw.zeros((3, 1)), tw.zeros((2, 3, 5))):
        with pytest.raises(ValueError):
            np.add(x, 1, out=out)
    with pytest.raises(TypeError, match="bools"):
        np.add(x, 1, where=np.ones((3, 4), dtype=int))
    with pytest.raises(ValueError):
        np.add(x, 1, where=np.ones((2, 5), dtype=bool))
    array = X.copy()
    with pytest.raises(TypeError, match="store"):
        array += x
    np.testing.assert_array_equal(array, X)


def test_results_that_come_in_pairs():
    x = tw.asarray(X + 0.25)
    for function in (np.modf, tw.modf):
        first, second = tw.zeros((3, 4)), tw.zeros((3, 4))
        assert function(x, out=(first, second))[1] is second
        same(first, np.modf(X + 0.25)[0])
        same(second, np.modf(X + 0.25)[1])
    whole = tw.zeros((3, 4))
    np.divmod(x, 2, out=(whole, None))
    same(whole, (X + 0.25) // 2)
    with pytest.raises(ValueError):
        tw.modf(x, out=(tw.zeros((3, 4)),))


def test_an_array_may_be_operand_and_result():
    x = tw.asarray(X)
    before = x + 0
    np.add(x, x, out=x)
    np.multiply(x, 2, out=x, where=X > 3)
    same(x, np.where(X > 3, X * 4, X * 2))
    same(before, X)
    np.cumsum(x, axis=0, out=x)
    same(x, np.cumsum(np.where(X > 3, X * 4, X * 2), axis=0))


def test_types_that_ufuncs_compute_in():
    x = np.arange(5)
    own = tw.asarray(x)
    same(np.add(own, 1, dtype="float32"), np.add(x, 1, dtype="float32"))
    same(np.multiply(own, own, dtype="int8", casting="unsafe"), np.multiply(x, x, dtype="int8", casting="unsafe"))
    same(np.true_divide(own, 2, dtype=np.float32), np.true_divide(x, 2, dtype=np.float32))
    same(np.less(own, 2, dtype=bool), np.less(x, 2, dtype=bool))
    same(np.add(own, 1, signature="dd->d"), np.add(x, 1, signature="dd->d"))
    with pytest.raises(TypeError):
        np.add(own * 0.5, 1, dtype="int64")


# order=


@given(x=arrays(min_dims=1, max_dims=3), chunk=chunks, order=st.sampled_from(["C", "F", "A"]), data=st.data())
def test_orders(x, chunk, order, data):
    own = ours(x, chunk)
    n = x.size
    shapes = [(-1,), (n,), (1, n), (n, 1, 1)] + [(k, n // k) for k in (2, 3, 4) if n and n % k == 0]
    shape = data.draw(st.sampled_from([each for each in shapes if n or -1 not in each]))
    for found in (own.reshape(shape, order=order), own.reshape(*shape, order=order), tw.reshape(own, shape, order), np.reshape(own, shape, order=order)):
        same(found, x.reshape(shape, order=order))
    for found in (own.ravel(order), own.flatten(order=order), tw.ravel(own, order=order), np.ravel(own, order)):
        same(found, x.ravel(order))


def test_orders_that_are_none():
    for call in (lambda x: x.reshape(12, order="K"), lambda x: x.ravel("B"), lambda x: x.ravel(None), lambda x: x.astype(int, order="Q")):
        with pytest.raises(ValueError):
            call(tw.asarray(X))
    same(tw.asarray(X).ravel("f"), X.ravel("F"))
    same(np.copy(tw.asarray(X), order="F"), X)
    same(np.zeros_like(tw.asarray(X), order="F"), np.zeros_like(X))


def test_astype():
    same(tw.astype(X, "int32"), X.astype("int32"))
    same(tw.astype([1.5, 2], np.float32), np.float32([1.5, 2]))
    same(tw.asarray(X).astype(np.int8, order="C", casting="unsafe", subok=False, copy=False), X.astype(np.int8))
    same(np.astype(tw.asarray(X), np.int8), X.astype(np.int8))
    with pytest.raises(TypeError):
        tw.asarray(X).astype(np.int8, casting="safe")


def test_windows_where_numpy_has_them():
    for function in (np.lib.stride_tricks.sliding_window_view, tw.lib.stride_tricks.sliding_window_view):
        same(function(tw.asarray(X), (2,), axis=-1), np.lib.stride_tricks.sliding_window_view(X, (2,), axis=-1))
        same(function(tw.asarray(X), (2, 3), subok=True), np.lib.stride_tricks.sliding_window_view(X, (2, 3)))
        with pytest.raises(ValueError, match="overlap"):
            function(tw.asarray(X), (2, 3), writeable=True)


# Ufuncs of other libraries


@given(x=arrays(["float64", "float32", "int32"], min_dims=0, finite=True), chunk=chunks)
def test_scipy_special(x, chunk):
    special = pytest.importorskip("scipy.special")
    own = ours(x, chunk)
    with np.errstate(all="ignore"):
        for name in ("erf", "gamma", "expit", "round", "exp10"):
            same(getattr(special, name)(own), getattr(special, name)(x))
        same(special.jv(2, own), special.jv(2, x))
        same(special.xlogy(own, own[..., :1] if x.ndim else own), special.xlogy(x, x[..., :1] if x.ndim else x))
        for found, expected in zip(special.sici(own), special.sici(x), strict=True):
            same(found, expected)
        out = tw.zeros(x.shape)
        assert special.erf(own, out=out) is out
        same(out, special.erf(x).astype("float64"), rtol=1e-6)


def test_ufuncs_are_called_block_by_block_and_lazily():
    special = pytest.importorskip("scipy.special")
    x = tw.asarray(X).rechunk((2, 2))
    found = special.erf(x)
    assert found.chunks == x.chunks and "lazy" in repr(found)
    same(special.erf(x, where=X > 3), np.where(X > 3, special.erf(X), 0))
    same(special.xlogy.outer(x[0], x[1]), special.xlogy.outer(X[0], X[1]))
    same(special.erf(x, dtype="float32"), special.erf(X, dtype="float32"))
    with pytest.raises(TypeError):
        special.xlogy.reduce(x)
    same(np.spacing(x), np.spacing(X))
    if hasattr(np, "matvec"):
        same(np.matvec(x, x[0]), np.matvec(X, X[0]))


def test_ufuncs_of_numba():
    numba = pytest.importorskip("numba")
    x = tw.asarray(X).rechunk((2, 2))
    lazily = numba.vectorize(lambda a, b: a * a + b)
    eagerly = numba.vectorize(["float64(float64, float64)"])(lambda a, b: a * a + b)
    for function in (lazily, eagerly):
        same(function(x, 2.0), X * X + 2)
        same(function(x, x[0]), X * X + X[0])
