"""Histograms against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import agree, same
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from strategies import REALS, arrays, chunks

import tilewright as tw

numbers = st.integers(1, 12)
edges = st.lists(st.integers(-9, 9), min_size=1, max_size=6).map(sorted)
WEIGHTS = ["int64", "float32", "float64", "complex128"]


@given(x=arrays(REALS, finite=True), bins=numbers, density=st.booleans(), chunk=chunks)
def test_bins_by_number(x, bins, density, chunk):
    agree("histogram", x, bins, density=density, chunk=chunk, rtol=1e-9)
    agree("histogram", x, bins, (-3, 4.5), density=density, chunk=chunk, rtol=1e-9)
    agree("histogram_bin_edges", x, bins, chunk=chunk, rtol=1e-9)
    agree("histogram", x.astype("float64"), bins, range=(1, 1), chunk=chunk, rtol=1e-9)


@given(x=arrays(REALS), bins=edges, density=st.booleans(), chunk=chunks)
def test_bins_by_edges(x, bins, density, chunk):
    agree("histogram", x, bins, density=density, chunk=chunk)
    agree("histogram", x, np.asarray(bins, dtype=float), density=density, chunk=chunk)


@given(data=st.data(), x=arrays(["float64", "int8"], finite=True), bins=numbers | edges, chunk=chunks)
def test_weights(data, x, bins, chunk):
    dtype = data.draw(st.sampled_from(WEIGHTS))
    weights = data.draw(hnp.arrays(dtype, x.shape, elements=st.integers(0, 1)))
    agree("histogram", x, bins, weights=weights, chunk=chunk)


@given(data=st.data(), n=st.integers(0, 8), density=st.booleans(), chunk=chunks)
def test_planes_and_grids(data, n, density, chunk):
    x, y = (data.draw(hnp.arrays("float64", n, elements=st.integers(-5, 5))) for _ in range(2))
    agree("histogram2d", x, y, 4, density=density, chunk=chunk)
    agree("histogram2d", x, y, [3, 5], [(-4, 4), (0, 2)], density=density, chunk=chunk)
    agree("histogram2d", x, y, [np.arange(4.0), 5], weights=x, chunk=chunk)
    agree("histogram2d", x, y, np.arange(4.0), chunk=chunk)
    agree("histogramdd", np.stack([x, y, x], axis=1), (2, 3, 4), density=density, chunk=chunk)
    agree("histogramdd", (x, y), bins=(np.arange(4.0), np.arange(3.0)), chunk=chunk)


def test_elements_on_edges():
    x = np.linspace(0, 1, 1001)
    for bins in (3, 7, 10, 49, 100):
        agree("histogram", x, bins, chunk=100)
        agree("histogram", x.astype("float32"), bins, (0, 1), chunk=100)
        agree("histogram", x, np.linspace(0, 1, bins + 1), chunk=100)


def test_what_is_not_finite_does_not_count():
    x = np.array([np.nan, 1.0, np.inf, -np.inf, 2.0])
    agree("histogram", x, 4, (0, 3))
    agree("histogram", x, np.array([0.0, 1.5, 3.0]))


def test_refused():
    x = np.arange(4.0)
    agree("histogram", x, 0)
    agree("histogram", x, [3, 1])
    agree("histogram", x, np.ones((2, 2)))
    agree("histogram", x, 4, (3, 1))
    agree("histogram", x, 4, (0, np.inf))
    agree("histogram", x, 1.5)
    agree("histogram", x, 4, weights=np.ones(3))
    agree("histogram2d", x, x[:2])
    agree("histogramdd", np.ones((3, 2)), (1, 2, 3))
    with pytest.raises(TypeError):
        tw.histogram(tw.asarray(x), "auto")


@given(data=st.data(), minlength=st.integers(0, 9), chunk=chunks)
def test_bincount(data, minlength, chunk):
    dtype = data.draw(st.sampled_from(["int8", "uint8", "int64", "bool"]))
    x = data.draw(hnp.arrays(dtype, st.integers(0, 8), elements=st.integers(0, 1)))
    x = x * data.draw(st.integers(0, 7)) if x.dtype.kind != "b" else x
    agree("bincount", x, minlength=minlength, chunk=chunk)
    agree("bincount", x, np.arange(x.size) / 2, minlength, chunk=chunk)


def test_bincount_refused():
    agree("bincount", np.array([1, -1]))
    agree("bincount", np.array([1.0]))
    agree("bincount", np.array([[1]]))
    agree("bincount", np.array([1]), minlength=-1)
    agree("bincount", np.array([1]), np.ones(2))


@given(x=arrays(REALS), bins=edges, right=st.booleans(), chunk=chunks)
def test_digitize(x, bins, right, chunk):
    for own in (bins, bins[::-1], np.asarray(bins, dtype=float), np.asarray(bins, dtype=float)[::-1]):
        agree("digitize", x, own, right, chunk=chunk)


def test_digitize_refused():
    agree("digitize", np.ones(3), [1, 3, 2])
    agree("digitize", np.ones(3) * 1j, [1, 2])
    same(tw.digitize(tw.asarray([0.5]), []), np.digitize(np.asarray([0.5]), []))


def test_counts_of_unsigned_numbers():
    x = np.array([8, 7, 9, 4], "u8")
    agree("bincount", x)
    agree("bincount", x, weights=np.arange(4.0))
