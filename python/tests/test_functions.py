"""Functions against NumPy's, over types, shapes, cuts into blocks, empty arrays and NaN."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import same
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from strategies import ALL, FLOATS, NUMBERS, REALS, arrays, chunks, elements, ours

import tilewright as tw

UNARY = {
    "abs": NUMBERS, "negative": NUMBERS, "positive": NUMBERS, "square": NUMBERS, "sign": REALS, "sqrt": FLOATS, "exp": FLOATS,
    "exp2": FLOATS, "expm1": FLOATS, "log": FLOATS, "log1p": FLOATS, "log2": FLOATS, "log10": FLOATS, "sin": FLOATS,
    "cos": FLOATS, "tan": FLOATS, "asin": FLOATS, "acos": FLOATS, "atan": FLOATS, "sinh": FLOATS, "cosh": FLOATS,
    "tanh": FLOATS, "asinh": FLOATS, "acosh": FLOATS, "atanh": FLOATS, "cbrt": FLOATS, "floor": REALS, "ceil": REALS,
    "trunc": REALS, "round": REALS, "isnan": REALS, "isinf": REALS, "isfinite": REALS, "signbit": FLOATS, "logical_not": ALL,
    "bitwise_invert": ["bool", "int8", "int64", "uint8"], "real": NUMBERS, "imag": NUMBERS, "conj": NUMBERS,
    "reciprocal": FLOATS,
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
@given(data=st.data())
def test_unary(name, data):
    x = data.draw(arrays(UNARY[name]))
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x)
    same(getattr(tw, name)(ours(x, data.draw(chunks))), expected, rtol=1e-11)


INTEGERS = ["int8", "int32", "int64", "uint8", "uint32"]
BINARY = {
    "add": ALL, "subtract": NUMBERS, "multiply": ALL, "divide": NUMBERS, "floor_divide": REALS, "remainder": REALS,
    "maximum": REALS, "minimum": REALS, "atan2": FLOATS, "hypot": FLOATS, "copysign": FLOATS, "nextafter": FLOATS,
    "equal": ALL, "not_equal": ALL, "less": REALS, "less_equal": REALS, "greater": REALS, "greater_equal": REALS,
    "bitwise_and": ["bool", *INTEGERS], "bitwise_or": ["bool", *INTEGERS], "bitwise_xor": ["bool", *INTEGERS],
    "logical_and": ALL, "logical_or": ALL, "logical_xor": ALL, "logaddexp": FLOATS,
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
@given(data=st.data())
def test_binary(name, data):
    x = data.draw(arrays(BINARY[name]))
    y = data.draw(arrays(BINARY[name], max_dims=0))
    y = np.broadcast_to(y, x.shape[data.draw(st.integers(0, x.ndim)) :]) if x.ndim else y
    division = name in ("floor_divide", "remainder", "divide")
    if division and y.dtype.kind in "iu":
        # What integers give when divided by zero is ours to say.
        y = np.where(y == 0, np.ones((), y.dtype), y)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x, y)
    same(getattr(tw, name)(ours(x, data.draw(chunks)), ours(y)), expected, rtol=1e-11)


@given(data=st.data(), name=st.sampled_from(["sum", "prod", "mean", "var", "std", "max", "min", "any", "all", "argmax", "argmin", "count_nonzero"]))
def test_reductions(data, name):
    dtypes = ALL if name in ("any", "all", "count_nonzero") else NUMBERS if name in ("sum", "prod", "mean") else REALS
    x = data.draw(arrays(dtypes, min_side=1, finite=True))
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1)) if x.ndim else None
    keepdims = data.draw(st.booleans())
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x, axis=axis, keepdims=keepdims)
    same(getattr(tw, name)(ours(x, data.draw(chunks)), axis=axis, keepdims=keepdims), expected, rtol=1e-9)


@given(data=st.data())
def test_basic_indexing(data):
    x = data.draw(arrays(["int64", "float64"], min_dims=1))
    key = data.draw(hnp.basic_indices(x.shape, allow_newaxis=True, allow_ellipsis=True))
    same(ours(x, data.draw(chunks))[key], x[key])


@given(data=st.data())
def test_integer_indexing(data):
    x = data.draw(arrays(["int64"], min_dims=1, min_side=1))
    key = data.draw(hnp.integer_array_indices(x.shape, result_shape=hnp.array_shapes(max_dims=2, max_side=4)))
    same(ours(x, data.draw(chunks))[tuple(tw.asarray(part) for part in key)], x[key])


@given(data=st.data())
def test_mixed_indexing(data):
    x = data.draw(arrays(["int64"], min_dims=2, min_side=1))
    key = []
    for n in x.shape:
        key.append(data.draw(st.sampled_from(["all", "part", "list", "one"])))
        key[-1] = {
            "all": slice(None), "part": slice(None, None, -1), "one": data.draw(st.integers(-n, n - 1)),
            "list": data.draw(st.lists(st.integers(-n, n - 1), min_size=2, max_size=2)),
        }[key[-1]]  # fmt: skip
    same(ours(x, data.draw(chunks))[tuple(key)], x[tuple(key)])


@given(data=st.data())
def test_masks(data):
    x = data.draw(arrays(["int64", "float64"], min_dims=1))
    mask = data.draw(hnp.arrays(bool, x.shape))
    same(ours(x, data.draw(chunks))[tw.asarray(mask)], x[mask])
    along = data.draw(hnp.arrays(bool, x.shape[:1]))
    same(ours(x)[tw.asarray(along)], x[along])


@given(data=st.data())
def test_setitem(data):
    x = data.draw(arrays(["int64", "float64"], min_dims=1))
    array, expected = ours(x, data.draw(chunks)), x.copy()
    before = array
    key = data.draw(
        hnp.basic_indices(x.shape) | hnp.arrays(bool, st.just(x.shape))
        | hnp.arrays(np.int64, st.integers(1, 4), elements=st.integers(-x.shape[0], x.shape[0] - 1)) if x.shape[0] else hnp.basic_indices(x.shape)
    )  # fmt: skip
    expected[key] = 7
    array[tw.asarray(key) if isinstance(key, np.ndarray) else key] = 7
    same(array, expected)
    assert before is array


@given(data=st.data())
def test_shapes(data):
    x = data.draw(arrays(["int64"], min_dims=1))
    array = ours(x, data.draw(chunks))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    same(tw.flip(array, axis=axis), np.flip(x, axis=axis))
    shift = data.draw(st.integers(-7, 7))
    same(tw.roll(array, shift, axis=axis), np.roll(x, shift, axis=axis))
    same(tw.roll(array, shift), np.roll(x, shift))
    same(tw.expand_dims(array, axis=axis), np.expand_dims(x, axis))
    same(tw.moveaxis(array, axis, 0), np.moveaxis(x, axis, 0))
    same(tw.concat((array, array), axis=axis), np.concatenate((x, x), axis=axis))
    same(tw.concat((array, array), axis=None), np.concatenate((x, x), axis=None))
    same(tw.stack((array, array), axis=axis), np.stack((x, x), axis=axis))
    same(tw.repeat(array, 2, axis=axis), np.repeat(x, 2, axis=axis))
    same(tw.tile(array, (2, 1)), np.tile(x, (2, 1)))
    same(tw.reshape(array, (-1,)), x.reshape(-1))
    same(array.T, x.T)
    same(tw.cumulative_sum(array, axis=axis), np.cumsum(x, axis=axis))
    same(tw.diff(array, axis=axis), np.diff(x, axis=axis))


@given(data=st.data())
def test_sorting(data):
    x = data.draw(arrays(REALS, min_dims=1, max_dims=2))
    array = ours(x, data.draw(chunks))
    same(tw.sort(array), np.sort(x))
    same(tw.argsort(array), np.argsort(x, kind="stable"))
    same(tw.sort(array, axis=None), np.sort(x, axis=None))
    same(np.argsort(array, None), np.argsort(x, None, kind="stable"))
    wanted = data.draw(hnp.arrays(x.dtype, 4, elements=elements(x.dtype.name)))
    known = np.sort(x.reshape(-1))
    for side in ("left", "right"):
        same(tw.searchsorted(tw.asarray(known), tw.asarray(wanted), side=side), np.searchsorted(known, wanted, side=side))
    same(tw.isin(array, tw.asarray(wanted)), np.isin(x, wanted))
    for theirs, found in zip(np.unique_all(x), tw.unique_all(array), strict=True):
        same(found, theirs)


@given(data=st.data())
def test_products(data):
    n, k, m = (data.draw(st.integers(0, 5)) for _ in range(3))
    dtype = data.draw(st.sampled_from(["int64", "float64", "complex128"]))
    a = data.draw(hnp.arrays(dtype, (n, k), elements=st.integers(-5, 5)))
    b = data.draw(hnp.arrays(dtype, (k, m), elements=st.integers(-5, 5)))
    x, y = ours(a, data.draw(chunks)), ours(b)
    same(x @ y, a @ b)
    same(tw.tensordot(x, y, axes=1), np.tensordot(a, b, axes=1))
    same(tw.einsum("ij,jk->ki", x, y), np.einsum("ij,jk->ki", a, b))
    same(tw.vecdot(x, x), np.vecdot(a, a))


@pytest.mark.parametrize("dtype", ALL)
def test_creation(dtype):
    same(tw.zeros((2, 3), dtype=dtype), np.zeros((2, 3), dtype))
    same(tw.ones(4, dtype=dtype), np.ones(4, dtype))
    same(tw.eye(3, 4, k=1, dtype=dtype), np.eye(3, 4, 1, dtype))
    same(tw.full((), 1, dtype=dtype), np.full((), 1, dtype))
    if dtype != "bool" and np.dtype(dtype).kind != "c":
        same(tw.arange(1, 9, 2, dtype=dtype), np.arange(1, 9, 2, dtype))
        same(tw.linspace(0, 8, 5, dtype=dtype), np.linspace(0, 8, 5, dtype=dtype))


def test_grids():
    a, b = np.arange(3), np.arange(4.0)
    for indexing in ("xy", "ij"):
        for found, expected in zip(tw.meshgrid(tw.asarray(a), tw.asarray(b), indexing=indexing), np.meshgrid(a, b, indexing=indexing), strict=True):
            same(found, expected)
