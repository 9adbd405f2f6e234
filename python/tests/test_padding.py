"""Padding against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import agree
from hypothesis import given
from hypothesis import strategies as st
from strategies import arrays, chunks

widths = st.integers(0, 7) | st.tuples(st.integers(0, 7), st.integers(0, 7))
MODES = ["constant", "edge", "linear_ramp", "maximum", "mean", "minimum", "reflect", "symmetric", "wrap"]


@pytest.mark.parametrize("mode", MODES)
@given(data=st.data(), x=arrays(["int64", "float64"], min_dims=1, max_dims=2, finite=True, min_side=1), chunk=chunks)
def test_modes(mode, data, x, chunk):
    agree("pad", x, data.draw(widths), mode, chunk=chunk)
    each = [data.draw(st.tuples(st.integers(0, 4), st.integers(0, 4))) for _ in range(x.ndim)]
    agree("pad", x, each, mode=mode, chunk=chunk)


@given(data=st.data(), x=arrays(["int64", "float64"], min_dims=1, max_dims=2, finite=True, min_side=1), chunk=chunks)
def test_options(data, x, chunk):
    width = data.draw(widths)
    agree("pad", x, width, "constant", constant_values=(3, -4), chunk=chunk)
    agree("pad", x, width, "linear_ramp", end_values=((5, -5),), chunk=chunk)
    for mode in ("reflect", "symmetric"):
        agree("pad", x, width, mode, reflect_type="odd", chunk=chunk)
    for mode in ("maximum", "mean", "minimum"):
        agree("pad", x, width, mode, stat_length=data.draw(st.integers(1, 4)), chunk=chunk)


def test_refused():
    x = np.arange(3.0)
    agree("pad", x, -1)
    agree("pad", x, 1.5)
    agree("pad", x, 1, "nonsense")
    agree("pad", x, 1, "edge", constant_values=3)
    agree("pad", x, (1, 2, 3))
    agree("pad", np.zeros((0, 2)), 1, "edge")
    agree("pad", np.zeros((0, 2)), 1)
    agree("pad", np.ones((2, 3)), {1: (1, 2)})


@pytest.mark.parametrize("dtype", ["int32", "float64", "complex128", "uint8"])
def test_medians(dtype):
    x = np.array([[5, 1, 8, 2], [7, 0, 3, 4]]).astype(dtype)
    agree("pad", x, (1, 2), "median")
    agree("pad", x, 2, "median", stat_length=(3, 2))


def test_truth_values_mirrored_at_points():
    x = np.array([[False, False, True, False], [False, True, False, True]])
    for mode in ("reflect", "symmetric"):
        agree("pad", x, (1, 2), mode, reflect_type="odd")
