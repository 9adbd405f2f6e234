"""Python numbers beside arrays: whatever their size, they mean what they mean to NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import agree
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
NUMBERS = [*INTEGERS, "bool", "float32", "float64", "complex128"]

#: Next to the ends of the types, and far beyond them.
integers = st.builds(
    lambda sign, power, step: sign * 2**power + step,
    st.sampled_from([-1, 1]),
    st.sampled_from([0, 7, 8, 15, 16, 31, 32, 63, 64, 70, 200, 1023, 1100]),
    st.integers(-1, 1),
)


def outcome(call):
    """What a call gives: an array or the class of the exception."""
    with np.errstate(all="ignore"):
        try:
            return np.asarray(call())
        except (OverflowError, TypeError) as error:
            return type(error)


def same_outcome(ours, theirs):
    if isinstance(theirs, type) or isinstance(ours, type):
        assert ours is theirs, (ours, theirs)
    else:
        assert ours.dtype == theirs.dtype, (ours.dtype, theirs.dtype)
        np.testing.assert_allclose(ours, theirs, rtol=1e-6 if ours.dtype.itemsize == 4 else 1e-14)


@given(st.sampled_from(NUMBERS), integers, st.sampled_from(["add", "multiply", "divide", "equal", "less"]), st.booleans())
def test_integers_of_any_size(dtype, number, name, first):
    if name in ("equal", "less") and dtype == "bool":
        # NumPy refuses some of these; to us the answer is known, as beside any other integer.
        name = "add"
    if name == "less" and dtype == "complex128":
        name = "not_equal"
    x = np.array([0, 1, 100], dtype=dtype)
    args = (number, x) if first else (x, number)
    own = [tw.asarray(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
    same_outcome(outcome(lambda: getattr(tw, name)(*own)), outcome(lambda: getattr(np, name)(*args)))


@given(st.sampled_from(["int32", "int64", "uint64", "float32", "float64"]), integers, st.sampled_from(["hypot", "arctan2", "copysign", "nextafter"]))
def test_functions_of_floats_take_any_integer(dtype, number, name):
    x = np.array([0, 1, 100], dtype=dtype)
    same_outcome(outcome(lambda: getattr(tw, name)(tw.asarray(x), number)), outcome(lambda: getattr(np, name)(x, number)))


@pytest.mark.parametrize("number", [-1, 300])
@pytest.mark.parametrize("name", ["hypot", "arctan2", "copysign", "logaddexp"])
def test_small_integers_are_taken_as_doubles(name, number):
    """NumPy takes them as halves, which is the documented difference."""
    x = np.array([0, 1, 255], dtype="uint8")
    expected = getattr(np, name)(x.astype("float64"), float(number))
    np.testing.assert_allclose(getattr(tw, name)(tw.asarray(x), number).compute(), expected, rtol=1e-14)


@given(st.sampled_from(INTEGERS), st.none() | integers, st.none() | integers)
def test_clip(dtype, low, high):
    x = np.array([0, 1, 100], dtype=dtype)
    same_outcome(outcome(lambda: tw.clip(tw.asarray(x), low, high)), outcome(lambda: np.clip(x, low, high)))


@given(st.sampled_from([*INTEGERS, "float32", "float64"]), integers)
def test_assigned_and_filled_integers(dtype, number):
    def assigned(module):
        x = module.zeros(3, dtype=dtype)
        x[1] = number
        return x

    same_outcome(outcome(lambda: tw.full(3, number, dtype=dtype)), outcome(lambda: np.full(3, number, dtype=dtype)))
    same_outcome(outcome(lambda: assigned(tw)), outcome(lambda: assigned(np)))


def test_choices_take_integers_as_floats():
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(tw.where(tw.asarray(x) > 1, tw.asarray(x), 2**70).compute(), [2.0**70, 2.0])
    with pytest.raises(OverflowError, match="beyond 64 bits"):
        tw.where(tw.asarray(x) > 1, tw.asarray([1, 2]), 2**70)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64", "uint64", "float16", "float32", "float64"])
def test_logaddexp(dtype):
    x, y = np.array([0, 1, 1, 0], dtype=dtype), np.array([1, 0, 1, 0], dtype=dtype)
    expected = np.logaddexp(x.astype("float64"), y.astype("float64"))
    found = tw.logaddexp(tw.asarray(x), tw.asarray(y))
    assert found.dtype == (dtype if dtype.startswith("float") else "float64")
    np.testing.assert_allclose(found.compute(), expected, rtol=1e-3 if dtype == "float16" else 1e-6)
    with pytest.raises(TypeError):
        tw.logaddexp(tw.asarray(x), 1j)


def test_neighbours_of_halves():
    bits = np.arange(2**16, dtype="uint16")
    x = bits.view("float16")
    rng = np.random.default_rng(1)
    for y in (rng.permutation(x), x, np.float16(np.inf), np.float16(-np.inf), np.float16(0), np.float16(np.nan)):
        y = np.broadcast_to(y, x.shape)
        found = tw.nextafter(tw.asarray(x), tw.asarray(y)).compute()
        with np.errstate(all="ignore"):
            expected = np.nextafter(x, y)
        assert found.dtype == "float16"
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        number = ~np.isnan(expected)
        np.testing.assert_array_equal(found[number].view("uint16"), expected[number].view("uint16"))
    agree("nextafter", np.array([1.0, 2.0], dtype="float16"), 5)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("power", [0, 1, 2, 2.0, 3, 5, -1, -2, 0.5, 2 + 0j])
def test_complex_powers(dtype, power):
    rng = np.random.default_rng(2)
    z = (rng.standard_normal(2000) + 1j * rng.standard_normal(2000)).astype(dtype)
    found = (tw.asarray(z) ** power).compute()
    exact = z.astype(np.clongdouble) ** power

    def error(x):
        return np.max(np.abs(x - exact) / np.abs(exact))

    assert found.dtype == dtype and error(found) <= 2 * error(z**power) + np.finfo(dtype).eps
    if power == 2:
        np.testing.assert_array_equal(found, (tw.asarray(z) * tw.asarray(z)).compute())


@pytest.mark.parametrize("number", [2**63, 2**70, -(2**70)])
def test_times_count_in_64_bits(number):
    x = tw.asarray(np.array([1, 2], dtype="m8[s]"))
    mask = tw.asarray(np.array([True, False]))
    for make in (lambda: x * number, lambda: tw.where(mask, x, number), lambda: tw.full(2, number, dtype="m8[s]")):
        with pytest.raises(OverflowError):
            make().compute()
