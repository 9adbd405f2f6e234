"""Reductions over sliding windows, and powers with constant exponents."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw

REDUCTIONS = ["sum", "mean", "min", "max", "std", "var", "prod", "argmax"]


def windows(x, length, axis):
    return np.lib.stride_tricks.sliding_window_view(x, length, axis)


@given(
    st.integers(0, 10**6),
    st.sampled_from(REDUCTIONS),
    st.sampled_from(["float64", "float32", "int32", "int64", "uint8"]),
    st.integers(1, 90),
    st.sampled_from([0, 1]),
    st.sampled_from([None, 7, (50, 3)]),
)
def test_windows(seed, name, dtype, length, axis, chunk):
    rng = np.random.default_rng(seed)
    shape = (130, 5) if axis == 0 else (4, 131)
    x = (rng.standard_normal(shape) * 4 + 1).astype(dtype)
    ours = tw.asarray(x) if chunk is None else tw.asarray(x).rechunk(chunk)
    found = getattr(tw.sliding_window_view(ours, length, axis), name)(axis=-1).compute()
    given = windows(x, length, axis)
    expected = getattr(np, name)(given.astype("f8") if dtype == "float32" else given, axis=-1)
    if dtype == "float32":
        assert found.dtype == getattr(np, name)(given, axis=-1).dtype
    assert found.shape == expected.shape
    tolerance = 2e-4 if dtype == "float32" else 1e-10
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("length", [15, 16, 17, 64, 100, 1000, 4096])
@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "std"])
def test_long_windows(length, name):
    x = np.random.default_rng(1).standard_normal(20_000) + 1000
    found = getattr(tw.sliding_window_view(tw.asarray(x), length), name)(axis=-1).compute()
    given = windows(x, length, 0)[::97]
    np.testing.assert_allclose(found[::97], getattr(np, name)(given, axis=-1), rtol=1e-10)
    columns = np.random.default_rng(2).standard_normal((length + 50, 70))
    found = getattr(tw.sliding_window_view(tw.asarray(columns), length, axis=0), name)(axis=-1).compute()
    np.testing.assert_allclose(found, getattr(np, name)(windows(columns, length, 0), axis=-1), rtol=1e-9, atol=1e-12)


def test_sums_are_not_made_by_subtracting():
    """A large number that has left the window leaves no trace."""
    x = np.ones(3000)
    x[100] = 1e17
    found = tw.sliding_window_view(tw.asarray(x), 64).sum(axis=-1).compute()
    np.testing.assert_array_equal(found[101:], np.full(len(found) - 101, 64.0))
    np.testing.assert_array_equal(found[:37], np.full(37, 64.0))


def test_special_numbers_in_windows():
    x = np.random.default_rng(3).standard_normal(500)
    x[[50, 200, 201, 400]] = [np.nan, np.inf, -np.inf, -0.0]
    for name in ("sum", "max", "min", "std"):
        with np.errstate(invalid="ignore"):
            expected = getattr(np, name)(windows(x, 33, 0), axis=-1)
        found = getattr(tw.sliding_window_view(tw.asarray(x), 33), name)(axis=-1).compute()
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_threads_do_not_show():
    x = np.random.default_rng(4).standard_normal((300, 4000))
    found = []
    for threads in (1, 3):
        with tw.Session(threads=threads):
            ours = tw.asarray(x).rechunk((64, 700))
            found.append([tw.sliding_window_view(ours, 129, axis).std(axis=-1).compute() for axis in (0, 1)])
    for one, three in zip(*found, strict=True):
        np.testing.assert_array_equal(one, three)


EXPONENTS = [2, 3, 4, 5, 0, 1, -1, -2, 0.5, 2.0, 1.5, np.float64(2), np.int64(3)]


@pytest.mark.parametrize("exponent", EXPONENTS, ids=repr)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "complex128"])
def test_powers_of_floats(exponent, dtype):
    x = np.array([0.0, -0.0, 1.0, -1.5, 3.25, 1e-3, 1e4, -7.0, np.inf, -np.inf, np.nan]).astype(dtype)
    if dtype == "complex128":
        x = x[:8] + 1j
    with np.errstate(all="ignore"):
        expected = x**exponent
    found = (tw.asarray(x) ** exponent).compute()
    assert found.dtype == expected.dtype
    if exponent in (2, 0.5, -1, 0, 1) and dtype != "complex128":
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
    else:
        # Exponents that are scalars of NumPy are no constants to a plan; complex powers of those go by logarithms.
        units = 32 if dtype == "complex128" and isinstance(exponent, np.generic) else 4
        np.testing.assert_allclose(found, expected, rtol=units * np.finfo(x.dtype).eps)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 7, 13, np.int64(2)], ids=repr)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_powers_of_integers(exponent, dtype):
    if dtype == "uint64" and isinstance(exponent, np.int64):
        pytest.skip("NumPy makes floats of these")
    x = np.array([0, 1, 2, 3, 5, 11]).astype(dtype)
    expected = x**exponent
    found = (tw.asarray(x) ** exponent).compute()
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_powers_at_the_ends_of_the_range():
    x = np.array([1e155, 1e-160, 1e100, 1e-110, 5e-324])
    for exponent in (-2, 3, 4):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose((tw.asarray(x) ** exponent).compute(), x**exponent, rtol=1e-15)
