"""Sets and positions against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import agree, same
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from strategies import ALL, REALS, arrays, chunks

import tilewright as tw

few = st.integers(-2, 2)


@given(x=arrays(["bool", *REALS]), equal_nan=st.booleans(), chunk=chunks)
def test_unique(x, equal_nan, chunk):
    agree("unique", x, equal_nan=equal_nan, chunk=chunk)
    agree("unique", x, True, True, True, equal_nan=equal_nan, chunk=chunk)


@given(shape=hnp.array_shapes(min_dims=1, max_dims=3, max_side=4), data=st.data(), chunk=chunks)
def test_unique_along_an_axis(shape, data, chunk):
    x = data.draw(hnp.arrays("int8", shape, elements=few))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    agree("unique", x, axis=axis, chunk=chunk)
    agree("unique", x, True, True, True, axis=axis, chunk=chunk)


@given(x=hnp.arrays("complex128", 6, elements=st.builds(complex, few, few)), chunk=chunks)
def test_unique_complex(x, chunk):
    agree("unique", x, True, True, True, chunk=chunk)
    # NumPy's own unique_values promises no order.
    same(tw.unique_values(tw.asarray(x)), np.unique(x))


@pytest.mark.parametrize("name", ["intersect1d", "union1d", "setdiff1d", "setxor1d"])
@given(data=st.data(), chunk=chunks)
def test_two_sets(name, data, chunk):
    first, second = (data.draw(arrays(["int8", "float64", "uint32"], max_dims=2)) for _ in range(2))
    agree(name, first, second, chunk=chunk)
    a, b = (np.asarray(data.draw(st.permutations(range(9)))[:5]) for _ in range(2))
    if name != "union1d":
        agree(name, a, b, assume_unique=True, chunk=chunk)


@given(data=st.data(), chunk=chunks)
def test_intersection_with_indices(data, chunk):
    first, second = (data.draw(hnp.arrays("int8", st.integers(0, 6), elements=few)) for _ in range(2))
    agree("intersect1d", first, second, return_indices=True, chunk=chunk)


@given(x=arrays(ALL), chunk=chunks)
def test_where_elements_are(x, chunk):
    agree("argwhere", x, chunk=chunk)
    agree("flatnonzero", x, chunk=chunk)


@given(data=st.data(), axis=st.sampled_from([0, -1]), chunk=chunks)
def test_lexsort(data, axis, chunk):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=5))
    keys = tuple(data.draw(hnp.arrays("int8", shape, elements=few)) for _ in range(data.draw(st.integers(1, 3))))
    agree("lexsort", keys, axis=axis, chunk=chunk)


@given(data=st.data(), side=st.sampled_from(["left", "right"]), chunk=chunks)
def test_searchsorted(data, side, chunk):
    known = data.draw(arrays(REALS, min_dims=1, max_dims=1))
    wanted = data.draw(arrays(REALS, max_dims=2))
    if {known.dtype.kind, wanted.dtype.kind} <= set("iu") or known.dtype == wanted.dtype:
        agree("searchsorted", np.sort(known), wanted, side=side, chunk=chunk)
        agree("searchsorted", known, wanted, side=side, sorter=np.argsort(known), chunk=chunk)


def test_searching_is_lazy_and_not_quadratic():
    known, wanted = tw.arange(100_000), tw.arange(100_000)
    report = tw.searchsorted(known, wanted).explain().to_dict()
    assert report["peak_bytes_max_rank"] < 20 * 800_000, report
    same(tw.searchsorted(known, wanted), np.arange(100_000))


@pytest.mark.parametrize("values", [np.array([-(2**63), 0, 4, -(2**63), 1]).view("m8[s]"), np.array([np.nan, 1, np.nan, 0])])
def test_the_axis_of_a_vector(values):
    agree("unique", values, axis=-1)
    agree("unique", values, axis=0, return_index=True, return_inverse=True, return_counts=True)
    agree("unique", values, axis=0, equal_nan=False)
    agree("unique", values, axis=1)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "uint64", "datetime64[s]"])
@pytest.mark.parametrize("n", [1, 16, 17, 40])
def test_members_of_few_and_of_many(dtype, n):
    rng = np.random.default_rng(8)
    x, known = rng.integers(0, 60, (20, 9)).astype(dtype), rng.integers(0, 60, n).astype(dtype)
    if x.dtype.kind in "fcM":
        x[0, 0] = known[0] = "NaT" if x.dtype.kind == "M" else np.nan
    for invert in (False, True):
        same(tw.isin(tw.asarray(x), tw.asarray(known), invert=invert), np.isin(x, known, invert=invert))


def test_few_elements_are_not_searched():
    x = tw.asarray(np.arange(100.0))
    assert "sort" not in str(tw.isin(x, [3.0, 5.0]).explain("tree"))
    assert "sort" in str(tw.isin(x, np.arange(40.0)).explain("tree"))
