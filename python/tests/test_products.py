"""Products and polynomials against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import agree, same
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from strategies import chunks

import tilewright as tw

small = st.integers(-5, 5)
DTYPES = st.sampled_from(["int64", "float64", "complex128"])


def draw(data, *shape):
    return data.draw(hnp.arrays(data.draw(DTYPES), shape, elements=small))


@given(data=st.data(), n=st.integers(0, 4), chunk=chunks)
def test_dot_inner_outer(data, n, chunk):
    for first, second in (((n,), (n,)), ((2, n), (n,)), ((n,), (n, 3)), ((2, n), (n, 3)), ((2, 1, n), (2, n, 3)), ((), (n,))):
        agree("dot", draw(data, *first), draw(data, *second), chunk=chunk)
    for first, second in (((n,), (n,)), ((2, n), (3, n)), ((2, n), ()), ((2, 1, n), (n,))):
        agree("inner", draw(data, *first), draw(data, *second), chunk=chunk)
    agree("vdot", draw(data, 2, n), draw(data, n, 2), chunk=chunk)
    agree("outer", draw(data, 2, n), draw(data, n), chunk=chunk)


@given(data=st.data(), chunk=chunks)
def test_kron(data, chunk):
    for first, second in (((2,), (3,)), ((2, 2), (3,)), ((2,), (1, 3, 2)), ((), (2,)), ((0,), (2,)), ((2, 1), (2, 3))):
        agree("kron", draw(data, *first), draw(data, *second), chunk=chunk)


@given(data=st.data(), chunk=chunks)
def test_cross(data, chunk):
    a, b = draw(data, 2, 3), draw(data, 2, 3)
    agree("cross", a, b, chunk=chunk)
    agree("cross", a.T, b.T, axis=0, chunk=chunk)
    agree("cross", a.T, b, axisa=0, axisc=0, chunk=chunk)


def test_refused():
    agree("dot", np.ones((2, 3)), np.ones((2, 3)))
    agree("inner", np.ones((2, 3)), np.ones((3, 2)))
    agree("vdot", np.ones(2), np.ones(3))
    agree("vander", np.ones((2, 2)))
    with pytest.raises(ValueError):
        tw.cross(tw.ones(4), tw.ones(4))


@given(data=st.data(), n=st.integers(0, 5), increasing=st.booleans(), chunk=chunks)
def test_polynomials(data, n, increasing, chunk):
    x = draw(data, n)
    agree("vander", x, chunk=chunk)
    agree("vander", x, 3, increasing=increasing, chunk=chunk)
    agree("polyval", draw(data, 4), x, chunk=chunk)


def test_methods():
    x = np.arange(4).reshape(2, 2)
    array = tw.asarray(x)
    same(array.dot(array), x.dot(x))
    same(array.choose([7, 8, 9, 10]), x.choose([7, 8, 9, 10]))
    same(array.compress([False, True], 0), x.compress([False, True], 0))
