"""Choosing and the arithmetic of indices against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import agree
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from strategies import arrays, chunks


@given(data=st.data(), x=arrays(["int8", "float64"], finite=True), chunk=chunks)
def test_select(data, x, chunk):
    conditions = [data.draw(hnp.arrays(bool, x.shape)) for _ in range(3)]
    agree("select", conditions, [x, x + x.dtype.type(1), np.zeros(x.shape, "float32")], chunk=chunk)
    agree("select", conditions, [x, x, x], 7, chunk=chunk)


def test_select_refused():
    x = np.ones(2)
    agree("select", [x > 1], [x, x])
    agree("select", [x], [x])


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
@given(data=st.data(), chunk=chunks)
def test_choose(mode, data, chunk):
    a = data.draw(hnp.arrays("int64", (2, 3), elements=st.integers(-4, 4)))
    agree("choose", a, [np.arange(3), np.ones((2, 1)), np.zeros((2, 3))], mode=mode, chunk=chunk)
    agree("choose", np.abs(a) % 2, [np.arange(3), np.ones((2, 1), int)], chunk=chunk)


@given(data=st.data(), x=arrays(["int64", "float64"], min_dims=1), chunk=chunks)
def test_compress(data, x, chunk):
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    n = x.size if axis is None else x.shape[axis]
    condition = data.draw(hnp.arrays(bool, st.integers(0, n)))
    agree("compress", condition, x, axis=axis, chunk=chunk)
    agree("extract", data.draw(hnp.arrays(bool, x.shape)), x, chunk=chunk)
    agree("compress", np.ones((1, 1), bool), x)


@given(data=st.data(), order=st.sampled_from(["C", "F"]), chunk=chunks)
def test_indices_in_a_row(data, order, chunk):
    dims = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    shape = data.draw(st.sampled_from([(), (3,), (2, 2)]))
    places = data.draw(hnp.arrays("int64", shape, elements=st.integers(-1, int(np.prod(dims)))))
    agree("unravel_index", places, dims, order=order, chunk=chunk)
    each = tuple(data.draw(hnp.arrays("int64", 3, elements=st.integers(-1, n))) for n in dims)
    agree("ravel_multi_index", each, dims, order=order, chunk=chunk)
    for mode in ("wrap", "clip"):
        agree("ravel_multi_index", each, dims, mode=mode, order=order, chunk=chunk)


def test_indices_refused():
    agree("unravel_index", np.array([1.0]), (2,))
    agree("unravel_index", np.array([1]), (2,), order="K")
    agree("ravel_multi_index", (np.array([0]),), (2, 2))


def test_dates_have_no_number_as_default():
    days = np.array([1, 2, 3], "M8[D]")
    mask = days > days[0]
    agree("select", [mask], [days])
    agree("select", [mask], [days], days[0])
    agree("select", [mask], [days.view("m8[D]")])
