"""Convolutions, interpolation and windows against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import agree, same
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from strategies import FLOATS, arrays, chunks, ours

import tilewright as tw

small = st.integers(-5, 5)
vectors = st.sampled_from(["int64", "float64", "complex128", "bool"]).flatmap(
    lambda dtype: hnp.arrays(dtype, st.integers(0, 9), elements=st.booleans() if dtype == "bool" else small)
)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@given(a=vectors, v=vectors, chunk=chunks)
def test_convolutions(mode, a, v, chunk):
    agree("convolve", a, v, mode, chunk=chunk)
    if a.size and v.size:
        agree("correlate", a, v, mode, chunk=chunk)


def test_what_is_not_finite_stays_where_it_is():
    a = np.array([1.0, 2.0, np.inf, 3.0, 4.0, np.nan, 5.0, 6.0])
    for mode in ("full", "same", "valid"):
        agree("convolve", a, np.array([1.0, 2.0]), mode, chunk=3)
        agree("convolve", a, np.array([1.0, np.inf, np.nan]), mode, chunk=3)
    agree("convolve", a, np.array([1.0, 2.0]), "other")
    agree("convolve", np.ones((2, 2)), np.ones(2))


@given(data=st.data(), n=st.integers(1, 6), chunk=chunks)
def test_interp(data, n, chunk):
    xp = np.cumsum(data.draw(hnp.arrays("float64", n, elements=st.integers(1, 4))))
    fp = data.draw(hnp.arrays(data.draw(st.sampled_from(["float64", "int64", "complex128"])), n, elements=small))
    x = data.draw(arrays(["float64", "int32"]))
    agree("interp", x, xp, fp, chunk=chunk)
    agree("interp", x, xp, fp, left=-7, right=9, chunk=chunk)
    finite = np.nan_to_num(np.asarray(x, dtype=float), posinf=3, neginf=-3)
    # Places that meet modulo the period have no order.
    agree("interp", finite, xp, fp, period=25, chunk=chunk)


def test_interp_refused():
    agree("interp", np.ones(2), np.arange(3.0), np.arange(2.0))
    agree("interp", np.ones(2), np.zeros(0), np.zeros(0))
    agree("interp", np.ones(2), np.arange(3.0), np.arange(3.0), period=0)


@given(data=st.data(), x=arrays(FLOATS, min_dims=1, min_side=1), chunk=chunks)
def test_windows(data, x, chunk):
    theirs = np.lib.stride_tricks.sliding_window_view
    shape = tuple(data.draw(st.integers(0, n)) for n in x.shape)
    for function in (tw.sliding_window_view, theirs):
        same(function(ours(x, chunk), shape), theirs(x, shape))
        same(function(ours(x, chunk), 1, axis=0), theirs(x, 1, axis=0))
    same(tw.sliding_window_view(ours(x, chunk), (1, 1), axis=(0, 0)), theirs(x, (1, 1), axis=(0, 0)))


def test_windows_refused():
    for window, axis in ((5, None), (-1, None), ((1, 2), None), (2, (0, 0))):
        with pytest.raises(ValueError):
            tw.sliding_window_view(tw.ones(3), window, axis)


@given(x=arrays(["int64", "float64"], min_dims=2, max_dims=2, finite=True), chunk=chunks)
def test_groups_of_neighbours(x, chunk):
    rows = x[: x.shape[0] // 2 * 2]
    expected = rows.reshape(rows.shape[0] // 2, 2, rows.shape[1]).sum(axis=1)
    for reduction in (tw.sum, np.sum):
        same(tw.coarsen(reduction, ours(x, chunk), {0: 2}, trim_excess=True), expected)
    if x.shape[0] % 2:
        with pytest.raises(ValueError):
            tw.coarsen(tw.sum, ours(x), {0: 2})
    agree("apply_over_axes", np.sum, x, (0, 1), chunk=chunk)
