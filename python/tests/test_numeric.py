"""NumPy's other functions of elements, and questions about arrays, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import agree, same
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from strategies import ALL, FLOATS, NUMBERS, REALS, arrays, chunks

import tilewright as tw

UNARY = {
    "fix": FLOATS, "fabs": FLOATS, "sinc": [*FLOATS, "int32"], "deg2rad": FLOATS, "rad2deg": FLOATS, "degrees": FLOATS,
    "radians": FLOATS, "modf": FLOATS, "frexp": FLOATS, "angle": [*FLOATS, "complex64", "complex128", "int64"],
    "isposinf": REALS, "isneginf": REALS, "iscomplex": ALL, "isreal": ALL, "iscomplexobj": ALL, "isrealobj": ALL,
    "nan_to_num": ALL,
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
@given(data=st.data(), chunk=chunks)
def test_unary(name, data, chunk):
    agree(name, data.draw(arrays(UNARY[name])), chunk=chunk, rtol=1e-11)


WHOLE = ["int8", "int32", "int64", "uint8"]
BINARY = {
    "logaddexp2": FLOATS, "fmax": REALS, "fmin": REALS, "fmod": REALS, "float_power": NUMBERS, "heaviside": FLOATS, "gcd": WHOLE, "lcm": WHOLE,
    "divmod": REALS,
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
@given(data=st.data(), chunk=chunks)
def test_binary(name, data, chunk):
    dtypes = BINARY[name] if name != "float_power" else ["float64", "int32"]
    x = data.draw(arrays(dtypes))
    other = x.dtype if name in ("gcd", "lcm", "heaviside") else data.draw(st.sampled_from(dtypes))
    y = data.draw(hnp.arrays(other, (), elements=st.integers(1, 20)))
    agree(name, x, y, chunk=chunk, rtol=1e-11)
    agree(name, y, np.where(x == 0, np.ones((), x.dtype), x), chunk=chunk, rtol=1e-11)


@given(x=st.floats(width=64) | st.sampled_from([5e-324, -1e-310, 2.0**1023, 0.5, -0.0]))
def test_parts_of_every_number(x):
    agree("frexp", np.asarray([x]))
    agree("modf", np.asarray([x]))


@given(x=hnp.arrays("float64", 3, elements=st.floats(-8, 8)), n=hnp.arrays("int64", 3, elements=st.integers(-1000, 1000)))
def test_ldexp(x, n):
    agree("ldexp", x, n)
    agree("ldexp", x.astype("float32"), n.astype("int32") // 20)


def test_numbers_in_place_of_what_is_none():
    x = np.array([np.nan, np.inf, -np.inf, 1.0])
    agree("nan_to_num", x, nan=7, posinf=8, neginf=9)
    agree("angle", x, deg=True)
    agree("nan_to_num", np.array([complex(np.nan, 1), complex(2, -np.inf)]))


@given(data=st.data(), chunk=chunks, equal_nan=st.booleans())
def test_equality(data, chunk, equal_nan):
    x = data.draw(arrays(ALL))
    y = x.copy() if data.draw(st.booleans()) or x.dtype.kind == "b" else x + x.dtype.type(1)
    for name in ("array_equal", "isclose", "allclose"):
        agree(name, x, y, equal_nan=equal_nan, chunk=chunk)
    agree("array_equiv", x, y, chunk=chunk)
    agree("array_equiv", x, np.stack([x, x]), chunk=chunk)
    agree("array_equal", x, np.stack([x, x]), chunk=chunk)


def test_shapes_that_do_not_meet():
    agree("array_equiv", np.ones(2), np.ones(3))
    agree("isclose", np.ones(2), np.ones(3))
    agree("isclose", np.array([1.0, 1.1]), np.array([1.05, 1.1]), rtol=0.1, atol=0)


def test_answers_are_lazy_and_true():
    answer = tw.allclose(tw.ones(3), tw.ones(3))
    assert isinstance(answer, tw.Array) and answer


def test_dates():
    x = np.array(["2020-01-01", "NaT"], dtype="datetime64[D]")
    agree("isnat", x)
    agree("isnat", x - x)
    agree("isnat", np.ones(2))


def test_refused():
    z = np.array([1j])
    for name in ("fix", "deg2rad", "modf", "frexp", "isposinf", "fabs"):
        with pytest.raises(TypeError):
            getattr(tw, name)(tw.asarray(z))
    agree("gcd", np.array([1.0]), np.array([2.0]))
    agree("ldexp", np.array([1.0]), np.array([2.0]))


@given(x=arrays(["float64", "int32", "complex128"]), decimals=st.integers(-2, 4), chunk=chunks)
def test_round(x, decimals, chunk):
    array = tw.asarray(x) if chunk is None or x.ndim == 0 else tw.asarray(x).rechunk(chunk)
    same(tw.round(array, decimals=decimals), np.round(x, decimals))


def test_bools_are_not_rounded_to_tens():
    for flags in (np.array(True), np.array([True, False])):
        agree("round", flags, -1)
        with pytest.raises(TypeError, match="bools are not rounded to tens"):
            tw.asarray(flags).round(-2)
        # A bool has no decimals that could be cut.
        same(tw.round(tw.asarray(flags), 1), flags)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_common_divisors_of_the_smallest_integer(dtype):
    least = np.iinfo(dtype).min
    x, y = np.full(5, least, dtype), np.array([least, 0, 64, 3, -1], dtype)
    for name in ("gcd", "lcm"):
        agree(name, x, y)
        agree(name, y, x)


@pytest.mark.parametrize("unit", ["M8[D]", "m8[s]"])
def test_extremes_beside_nat(unit):
    x, y = (np.array(each).view(unit) for each in ([5, -(2**63), 7, -(2**63)], [-(2**63), -(2**63), 3, 4]))
    for name in ("fmax", "fmin", "maximum", "minimum"):
        agree(name, x, y)
    for name in ("nanmax", "nanmin"):
        agree(name, x)
        agree(name, x[1:2])
        agree(name, np.stack((x, y)), axis=0, chunk=1)
