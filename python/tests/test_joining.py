"""Taking apart, putting together and turning around, against NumPy's."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from conftest import agree
from hypothesis import given
from hypothesis import strategies as st
from strategies import arrays, chunks

import tilewright as tw

SOME = ["int64", "float32"]


@pytest.mark.parametrize("name", ["split", "array_split"])
@given(data=st.data(), x=arrays(SOME, min_dims=1), chunk=chunks)
def test_split(name, data, x, chunk):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    agree(name, x, data.draw(st.integers(1, 4)), axis, chunk=chunk)
    agree(name, x, data.draw(st.lists(st.integers(-6, 6), max_size=3)), axis=axis, chunk=chunk)


@given(x=arrays(SOME), sections=st.integers(1, 3), chunk=chunks)
def test_split_of_named_axes(x, sections, chunk):
    for name in ("hsplit", "vsplit", "dsplit"):
        agree(name, x, sections, chunk=chunk)


@pytest.mark.parametrize("name", ["hstack", "vstack", "dstack", "column_stack"])
@given(x=arrays(SOME), chunk=chunks)
def test_stacks(name, x, chunk):
    agree(name, [x, x], chunk=chunk)
    agree(name, (x, x.astype("float64")), chunk=chunk)


@given(x=arrays(SOME), chunk=chunks)
def test_ranks(x, chunk):
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        agree(name, x, chunk=chunk)
        agree(name, x, x, chunk=chunk)
    for name in ("ravel", "ndim", "shape", "size", "copy", "diagflat", "diag", "fliplr", "flipud", "diagonal", "trace"):
        agree(name, x, chunk=chunk)


def test_block():
    a, b = np.ones((2, 2)), np.zeros((2, 1))
    agree("block", [[a, b], [b.T, np.ones((1, 1))]])
    agree("block", [a, b])
    agree("block", [np.arange(3), 7])
    agree("block", [[a], b])
    agree("block", [])
    agree("block", [[np.arange(2)], [np.arange(2)]])


@given(data=st.data(), x=arrays(SOME, min_dims=1), chunk=chunks)
def test_append(data, x, chunk):
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    agree("append", x, x, axis, chunk=chunk)
    agree("append", x, 7, chunk=chunk)
    agree("append", x, 7, axis=0, chunk=chunk)


def places(n):
    one = st.integers(-n - 1, n)
    several = st.lists(st.integers(-n, n), max_size=4)
    return one | several | st.builds(slice, st.none() | one, st.none() | one, st.sampled_from([None, 2, -1]))


@given(data=st.data(), x=arrays(SOME, min_dims=1, max_dims=2), chunk=chunks)
def test_delete(data, x, chunk):
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    n = x.size if axis is None else x.shape[axis]
    agree("delete", x, data.draw(places(n)), axis, chunk=chunk)
    agree("delete", x, np.arange(n) % 2 == 0, axis, chunk=chunk)


@given(data=st.data(), x=arrays(SOME, min_dims=1, max_dims=2), chunk=chunks)
def test_insert(data, x, chunk):
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    n = x.size if axis is None else x.shape[axis]
    agree("insert", x, data.draw(places(n)), 7, axis, chunk=chunk)
    agree("insert", x.reshape(-1), data.draw(places(x.size)), np.arange(2), chunk=chunk)


def test_insert_several_into_rows():
    x = np.arange(6).reshape(2, 3)
    agree("insert", x, 1, np.array([7, 8]), axis=1)
    agree("insert", x, [1], np.array([7, 8]), axis=1)
    agree("insert", x, [1], np.array([[7], [8]]), axis=1)
    agree("insert", x, 1, np.ones((2, 3)), axis=0)
    agree("insert", x, [0, 2, 2], np.array([7, 8, 9]), axis=1)
    agree("insert", x, 0, np.ones(4), axis=1)


@given(data=st.data(), x=arrays(SOME, min_dims=1), chunk=chunks)
def test_axes(data, x, chunk):
    first, second = (data.draw(st.integers(-x.ndim, x.ndim - 1)) for _ in range(2))
    agree("swapaxes", x, first, second, chunk=chunk)
    agree("rollaxis", x, first, data.draw(st.integers(-x.ndim, x.ndim)), chunk=chunk)
    agree("rot90", x, data.draw(st.integers(-4, 4)), (first, second), chunk=chunk)
    agree("size", x, first, chunk=chunk)
    agree("concatenate", [x, x], first, chunk=chunk)
    agree("concatenate", (x, x[:1]), None, chunk=chunk)
    agree("transpose", x, chunk=chunk)
    agree("transpose", x, tuple(np.roll(range(x.ndim), first)), chunk=chunk)
    agree("squeeze", x, chunk=chunk)
    agree("squeeze", x, first, chunk=chunk)
    agree("resize", x, data.draw(st.tuples(st.integers(0, 4), st.integers(0, 4))), chunk=chunk)
    k = data.draw(st.integers(-3, 3))
    agree("diag", x, k, chunk=chunk)
    agree("diagonal", x, k, first, second, chunk=chunk)
    agree("trace", x, k, first, second, chunk=chunk)


def test_axes_that_are_not_there():
    x = np.ones((2, 3))
    agree("swapaxes", x, 0, 2)
    agree("rollaxis", x, 3)
    agree("rot90", x, 1, (0, 0))
    agree("split", x, 2, 5)
    agree("split", x, 2, axis=1)
    agree("array_split", x, 0)
    agree("diag", np.ones((2, 2, 2)))
    agree("resize", x, (-1, 2))


def test_three_types_meet_at_once():
    """Two by two, uint16 and int16 would meet in int32, and that and float32 in float64."""
    for dtypes in itertools.permutations(["bool", "uint16", "int16", "uint64", "float16", "float32", "complex64"], 3):
        arrays = [np.ones(2, dtype) for dtype in dtypes]
        expected = np.result_type(*dtypes)
        own = [tw.asarray(x) for x in arrays]
        assert tw.result_type(*own) == tw.result_type(*dtypes) == expected, dtypes
        assert tw.concatenate(own).dtype == tw.stack(own).dtype == tw.column_stack(own).dtype == expected, dtypes
        assert tw.einsum("i,i,i", *own).dtype == np.einsum("i,i,i", *arrays).dtype, dtypes
        selected = tw.select([own[0] > 0, own[0] > 1], own[:2], default=own[2])
        assert tw.choose(tw.asarray([0, 1]), own).dtype == selected.dtype == expected, dtypes
