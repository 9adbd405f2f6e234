"""Averages, covariances, derivatives and integrals against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import agree, same
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from strategies import NUMBERS, REALS, arrays, chunks

import tilewright as tw

SOME = ["float32", "float64", "int16", "complex128"]


@given(x=arrays(REALS, min_side=1), axis=st.sampled_from([None, 0, -1]), chunk=chunks)
def test_ptp(x, axis, chunk):
    agree("ptp", x, axis=axis if x.ndim else None, chunk=chunk)


@given(data=st.data(), x=arrays(SOME, min_dims=1, min_side=1, finite=True), returned=st.booleans(), chunk=chunks)
def test_average(data, x, returned, chunk):
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    agree("average", x, axis=axis, returned=returned, chunk=chunk, rtol=1e-6)
    n = x.size if axis is None else x.shape[axis]
    weights = data.draw(hnp.arrays(data.draw(st.sampled_from(["int64", "float32"])), n, elements=st.integers(1, 9)))
    weights = weights.reshape(x.shape) if axis is None else weights
    agree("average", x, axis=axis, weights=weights, returned=returned, chunk=chunk, rtol=1e-6)


def test_weights_that_do_not_fit():
    x = np.ones((2, 3))
    agree("average", x, weights=np.ones(3))
    agree("average", x, axis=0, weights=np.ones(3))
    agree("average", np.ones((2, 3, 4)), axis=(2, 0), weights=np.arange(8.0).reshape(4, 2))


@given(
    x=hnp.arrays("float64", st.tuples(st.integers(1, 4), st.integers(2, 6)), elements=st.integers(-9, 9)),
    rowvar=st.booleans(), bias=st.booleans(), ddof=st.sampled_from([None, 0, 2]), chunk=chunks,
)  # fmt: skip
def test_cov(x, rowvar, bias, ddof, chunk):
    agree("cov", x, rowvar=rowvar, bias=bias, ddof=ddof, chunk=chunk)
    agree("cov", x[0], x[0] + 1, chunk=chunk)
    agree("cov", x.astype(complex) * 1j, chunk=chunk)
    agree("corrcoef", x, rowvar=rowvar, chunk=chunk)
    weights = np.arange(1, x.shape[1] + 1)
    agree("cov", x, fweights=weights, chunk=chunk)
    agree("cov", x, aweights=weights / 2, chunk=chunk)
    agree("cov", x, fweights=weights, aweights=weights / 2, chunk=chunk)


def test_cov_of_what_has_none():
    agree("cov", np.ones((2, 2, 2)))
    with pytest.raises(ValueError):
        tw.cov(tw.ones((2, 3)), fweights=tw.ones(2, dtype=int))
    # NumPy looks whether they happen to be whole.
    with pytest.raises(TypeError):
        tw.cov(tw.ones((2, 3)), fweights=tw.ones(3))
    agree("cov", np.ones((0, 3)))


@given(data=st.data(), x=arrays(NUMBERS, min_dims=1, finite=True), chunk=chunks)
def test_integrals_and_differences(data, x, chunk):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    agree("trapezoid", x, dx=0.5, axis=axis, chunk=chunk, rtol=1e-5)
    agree("trapezoid", x, np.arange(x.shape[axis]) ** 2.0, axis=axis, chunk=chunk, rtol=1e-5)
    agree("ediff1d", x, chunk=chunk)
    agree("ediff1d", x.astype("int64") if x.dtype.kind != "c" else x, to_end=np.array([1, 2]), to_begin=7, chunk=chunk)


@pytest.mark.parametrize("edge_order", [1, 2])
@given(data=st.data(), x=arrays(SOME, min_dims=1, min_side=1, max_dims=2, finite=True), chunk=chunks)
def test_gradient(edge_order, data, x, chunk):
    agree("gradient", x, edge_order=edge_order, chunk=chunk, rtol=1e-5)
    agree("gradient", x, 0.5, edge_order=edge_order, chunk=chunk, rtol=1e-5)
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    places = np.cumsum(data.draw(hnp.arrays("float64", x.shape[axis], elements=st.integers(1, 5))))
    agree("gradient", x, places, axis=axis, edge_order=edge_order, chunk=chunk, rtol=1e-5)


def test_gradient_of_wrong_places():
    agree("gradient", np.ones(4), np.ones(3))
    agree("gradient", np.ones(4), 1, 2)
    agree("gradient", np.ones((3, 3)), edge_order=3)


def test_a_single_row_is_one_variable():
    x, y = np.array([[6.0, 7, 5, 0]]), np.array([[3.0, 8, 2, 1]])
    agree("cov", x.T, y, rowvar=False)
    agree("cov", x, y, rowvar=False)
    agree("cov", x, y)


def test_truth_values_have_no_differences():
    agree("ediff1d", np.array([True, False, True]))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["var", "std"])
def test_spreads_beside_infinities_are_nan(name, dtype):
    x = np.array([[-3.5, 1.0, np.inf], [4.5, 2.0, 1.0], [np.inf, 3.0, -np.inf]] * 5, dtype=dtype)
    with np.errstate(invalid="ignore"):
        for axis in (None, 0, 1):
            for chunks in ((15, 3), (4, 2), (1, 1)):
                same(getattr(tw, name)(tw.asarray(x, chunks=chunks), axis=axis), getattr(np, name)(x, axis=axis))
