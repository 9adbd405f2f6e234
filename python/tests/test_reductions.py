"""Reductions with masks, first values and NaN, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import agree, same
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from strategies import ALL, NUMBERS, REALS, arrays, chunks

import tilewright as tw

axes = st.sampled_from([None, 0, -1, (0, 1)])


def axis_of(x, axis):
    return axis if x.ndim >= 2 else None if x.ndim == 0 else 0 if isinstance(axis, tuple) else axis


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "any", "all"])
@given(data=st.data(), axis=axes, keepdims=st.booleans(), chunk=chunks)
def test_masks(name, data, axis, keepdims, chunk):
    x = data.draw(arrays(ALL if name in ("any", "all") else NUMBERS, finite=True))
    where = data.draw(hnp.arrays(bool, x.shape[data.draw(st.integers(0, x.ndim)) :]))
    agree(name, x, axis=axis_of(x, axis), keepdims=keepdims, where=where, chunk=chunk, rtol=1e-9)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
@given(data=st.data(), axis=axes, initial=st.integers(0, 9), chunk=chunks)
def test_first_values(name, data, axis, initial, chunk):
    x = data.draw(arrays(REALS))
    axis = axis_of(x, axis)
    agree(name, x, axis=axis, initial=initial, chunk=chunk, rtol=1e-6)
    where = data.draw(hnp.arrays(bool, x.shape))
    agree(name, x, axis=axis, initial=initial, where=where, chunk=chunk, rtol=1e-6)


def test_masks_that_do_not_fit():
    x = np.arange(3.0)
    agree("max", x, where=np.array([True, False, True]))
    agree("sum", x, where=np.array([1, 0, 1]))
    agree("sum", x, where=np.ones((2, 3), bool))
    agree("max", np.zeros((0, 2)), axis=0)


@pytest.mark.parametrize("name", ["nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin"])
@given(data=st.data(), axis=axes, keepdims=st.booleans(), chunk=chunks)
def test_nan_left_out(name, data, axis, keepdims, chunk):
    # What the largest of nothing is, NumPy decides differently by the shape of the result.
    x = data.draw(arrays(["float32", "float64", "int8"], finite=True, min_side=int(name in ("nanmax", "nanmin"))))
    if x.dtype.kind == "f":
        x = np.where(data.draw(hnp.arrays(bool, x.shape)), x.dtype.type("nan"), x)
    agree(name, x, axis=axis_of(x, axis), keepdims=keepdims, chunk=chunk, rtol=1e-6)


@pytest.mark.parametrize("name", ["nanargmax", "nanargmin"])
@given(x=arrays(["float64", "int8"], min_side=1), axis=st.sampled_from([None, 0, -1]), chunk=chunks)
def test_positions_beside_nan(name, x, axis, chunk):
    # NumPy documents that its positions among infinities and NaN alone are not to be trusted.
    assume(not np.isinf(x).any())
    agree(name, x, axis=axis_of(x, axis), chunk=chunk)


def test_infinities_beside_nan():
    x = np.array([np.nan, -np.inf, np.nan])
    # NumPy documents that its positions are not to be trusted here.
    same(tw.nanargmax(tw.asarray(x)), np.asarray(1))
    same(tw.nanargmin(tw.asarray(-x)), np.asarray(1))
    agree("nanmax", np.array([np.nan, np.nan]))
    agree("nanargmax", np.array([np.nan, np.nan]))
    agree("nanvar", np.array([np.nan, 1.0]), ddof=1)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod"])
@given(x=arrays(["float64", "int8", "complex128", "bool"]), axis=st.sampled_from([None, 0, -1]), chunk=chunks)
def test_running(name, x, axis, chunk):
    agree(name, x, axis=axis_of(x, axis), chunk=chunk)


def test_methods():
    x = np.arange(6.0).reshape(2, 3)
    array = tw.asarray(x)
    for name in ("sum", "max", "mean", "cumsum"):
        same(getattr(array, name)(1), getattr(x, name)(1))
    same(array.sum(0, where=array > 1), x.sum(0, where=x > 1))
    same(array.std(0, ddof=1), x.std(0, ddof=1))
    same(array.round(1), x.round(1))
    same(array.trace(), x.trace())
    same(array.diagonal(1), x.diagonal(1))
    same(array.swapaxes(0, 1), x.swapaxes(0, 1))
    same(array[0].searchsorted([1.5]), x[0].searchsorted([1.5]))


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_real_reductions_do_not_start_from_complex_numbers(name):
    for x in (np.arange(3.0), np.arange(3), np.arange(3) > 1):
        agree(name, x, initial=2j)
        agree(name, x, initial=2j, where=np.array([True, False, True]))
    agree(name, np.arange(3) * 1j, initial=2j)


@pytest.mark.parametrize("dtype", ["m8[s]", "M8[D]"])
def test_truth_of_times(dtype):
    x = np.array([[0, 1, 2], [0, 0, 0]]).astype(dtype)
    for name in ("any", "all"):
        agree(name, x, axis=1)
        agree(name, x, axis=1, where=np.array([True, False, True]))
    for each in (x[0, 0], x[0, 1]):
        same(tw.argwhere(tw.asarray(each)), np.argwhere(each))


def test_variances_of_a_complex_type():
    x = np.arange(6.0).reshape(2, 3)
    for name in ("var", "std"):
        agree(name, x, axis=0, dtype="c16")
        agree(name, x, axis=0, dtype="c16", where=np.array([True, False, True]))


@pytest.mark.parametrize("name", ["nanmean", "nanvar", "nanstd"])
def test_means_without_nan_are_floats(name):
    agree(name, np.arange(3.0), dtype="i8")
    agree(name, np.arange(3.0), dtype="f4", rtol=1e-6)
