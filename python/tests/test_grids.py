"""Spacings and indices of grids against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import agree, same
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw


@given(
    start=st.floats(-3, 3), stop=st.floats(-3, 3), num=st.integers(0, 9), endpoint=st.booleans(),
    base=st.sampled_from([2.0, 10.0, 0.5]),
)  # fmt: skip
def test_spacings(start, stop, num, endpoint, base):
    same(tw.logspace(start, stop, num, endpoint, base), np.logspace(start, stop, num, endpoint, base), rtol=1e-11)
    first, last = 10.0**start, 10.0**stop
    same(tw.geomspace(first, last, num, endpoint), np.geomspace(first, last, num, endpoint), rtol=1e-11)
    same(tw.geomspace(-first, -last, num, endpoint), np.geomspace(-first, -last, num, endpoint), rtol=1e-11)


def test_spacings_that_do_not_exist():
    for call in (lambda: tw.geomspace(0, 1), lambda: tw.geomspace(-1, 1), lambda: tw.logspace(0, 1, -1)):
        with pytest.raises(ValueError):
            call()
    same(tw.logspace(0, 2, 3, dtype="int64"), np.logspace(0, 2, 3, dtype="int64"))


@given(shape=st.lists(st.integers(0, 4), min_size=1, max_size=3))
def test_indices(shape):
    same(tw.indices(shape), np.indices(shape))
    for found, expected in zip(tw.indices(shape, sparse=True), np.indices(shape, sparse=True), strict=True):
        same(found, expected)
    same(tw.fromfunction(lambda *k: k[0] * 2, shape), np.fromfunction(lambda *k: k[0] * 2, shape))


@given(n=st.integers(0, 4), m=st.none() | st.integers(0, 4), k=st.integers(-3, 3))
def test_triangles(n, m, k):
    same(tw.tri(n, m, k), np.tri(n, m, k))
    for name in ("tril_indices", "triu_indices"):
        found, expected = getattr(tw, name)(n, k, m), getattr(np, name)(n, k, m)
        for each, other in zip(found, expected, strict=True):
            same(each, other)
    square = np.ones((n, n))
    for name in ("tril_indices_from", "triu_indices_from"):
        found, expected = getattr(tw, name)(tw.asarray(square), k), getattr(np, name)(square, k)
        for each, other in zip(found, expected, strict=True):
            same(each, other)
    agree("diag_indices_from", square)
    agree("diag_indices_from", np.ones((n, n + 1)))
    for each, other in zip(tw.diag_indices(n, 3), np.diag_indices(n, 3), strict=True):
        same(each, other)


def test_parts_where_indices_meet():
    agree("ix_", np.array([0, 2]), np.array([True, False, True]), np.array([1]))
    agree("ix_", np.ones((2, 2), int))
    x = np.arange(12).reshape(3, 4)
    same(tw.asarray(x)[tw.ix_([0, 2], [1, 3])], x[np.ix_([0, 2], [1, 3])])


def test_all_of_them_take_chunks():
    same(tw.fromfunction(lambda i, j: i + 2 * j, (4, 6), chunks=(2, 3)), np.fromfunction(lambda i, j: i + 2 * j, (4, 6)))
    assert tw.fromfunction(lambda i, j: i + j, (4, 6), chunks=(2, 3)).chunks == ((2, 2), (3, 3))
    same(tw.indices((4, 6), chunks=2), np.indices((4, 6)))
    assert tw.indices((4, 6), chunks=(2, 3)).chunks == ((1, 1), (2, 2), (3, 3))
    assert [each.chunks for each in tw.indices((4, 6), sparse=True, chunks=(2, 3))] == [((2, 2), (1,)), ((1,), (3, 3))]
    same(tw.logspace(0, 2, 5, chunks=2), np.logspace(0, 2, 5))
    same(tw.geomspace(1, 100, 5, chunks=2), np.geomspace(1, 100, 5))
    assert tw.logspace(0, 2, 5, chunks=2).chunks == tw.geomspace(1, 100, 5, chunks=2).chunks == ((2, 2, 1),)
    same(tw.tri(5, 4, chunks=2), np.tri(5, 4))
    assert tw.tri(5, 4, chunks=2).chunks == ((2, 2, 1), (2, 2))
