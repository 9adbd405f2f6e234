"""NumPy's other functions of every element."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ._array import Array
from ._creation import asarray
from ._dtypes import astype, complex128, converted, float64, floating, result_type
from ._elementwise import (
    abs, atan2, copysign, exp2, floor, floor_divide, imag, isinf, isnan, log2, logaddexp, maximum, minimum, multiply, pow,
    real, remainder, sin, trunc,
)  # fmt: skip
from ._out import like_ufunc, takes_out
from ._searching import where
from ._views import assign


def _pair(x1: Any, x2: Any) -> tuple[Array, Array]:
    """Two arguments in the type in which they meet; Python numbers take the type of the other."""
    dtype = result_type(*(x if type(x) in (bool, int, float, complex) else asarray(x) for x in (x1, x2)))
    return converted(x1, dtype), converted(x2, dtype)


def _floating_pair(x1: Any, x2: Any, name: str) -> tuple[Array, Array]:
    """The same in a floating point type, into which every Python integer fits."""
    x1, x2 = _pair(*(float(x) if type(x) is int else x for x in (x1, x2)))
    return _real(floating(x1), name), _real(floating(x2), name)


def _real(x: Array, name: str) -> Array:
    if x.dtype.kind in "cMm":
        raise TypeError(f"{name} of {x.dtype} is not defined")
    return x


@takes_out
def fix(x: Array, /) -> Array:
    """Rounded towards zero."""
    return trunc(_real(asarray(x), "fix"))


@like_ufunc
def fabs(x: Array, /) -> Array:
    """Magnitudes, as floating point numbers."""
    return abs(floating(_real(asarray(x), "fabs")))


def sinc(x: Array) -> Array:
    """``sin(pi x) / (pi x)``, which is 1 at 0."""
    angle = floating(asarray(x)) * math.pi
    return where(angle == 0, 1, sin(angle) / where(angle == 0, 1, angle))


@like_ufunc
def deg2rad(x: Array, /) -> Array:
    """Angles in radians of those in degrees."""
    return _real(floating(asarray(x)), "deg2rad") * (math.pi / 180)


@like_ufunc
def rad2deg(x: Array, /) -> Array:
    """Angles in degrees of those in radians."""
    return _real(floating(asarray(x)), "rad2deg") * (180 / math.pi)


radians, degrees = deg2rad, rad2deg


@like_ufunc
def logaddexp2(x1: Any, x2: Any, /) -> Array:
    """``log2(2**x1 + 2**x2)`` without overflow on the way."""
    x1, x2 = _floating_pair(x1, x2, "logaddexp2")
    return logaddexp(x1 * math.log(2), x2 * math.log(2)) / math.log(2)


@like_ufunc
def float_power(x1: Any, x2: Any, /) -> Array:
    """Powers as float64, or as complex128."""
    base, exponent = asarray(x1), asarray(x2)
    if base.dtype.kind in "Mm" or exponent.dtype.kind in "Mm":
        raise TypeError("float_power of times is not defined")
    dtype = complex128 if "c" in (base.dtype.kind, exponent.dtype.kind) else float64
    return pow(astype(base, dtype, copy=False), astype(exponent, dtype, copy=False))


@like_ufunc
def fmax(x1: Any, x2: Any, /) -> Array:
    """The larger of two; a number wins over NaN, a time over NaT."""
    return _known_extreme(maximum, *_pair(x1, x2))


@like_ufunc
def fmin(x1: Any, x2: Any, /) -> Array:
    """The smaller of two; a number wins over NaN, a time over NaT."""
    return _known_extreme(minimum, *_pair(x1, x2))


def _known_extreme(extreme: Any, x1: Array, x2: Array) -> Array:
    if x1.dtype.kind not in "fcmM":
        return extreme(x1, x2)
    return where(x1 != x1, x2, where(x2 != x2, x1, extreme(x1, x2)))


@like_ufunc
def fmod(x1: Any, x2: Any, /) -> Array:
    """Remainders, with the sign of the dividend."""
    x1, x2 = _pair(x1, x2)
    if x1.dtype.kind == "b":
        # As NumPy divides truth values: as the smallest integers.
        x1, x2 = astype(x1, "int8"), astype(x2, "int8")
    if _real(x1, "fmod").dtype.kind == "f":
        return copysign(remainder(abs(x1), abs(x2)), x1)
    rest = remainder(x1, x2)
    return where((rest != 0) & ((x1 < 0) != (x2 < 0)), rest - x2, rest)


@like_ufunc
def divmod(x1: Any, x2: Any, /) -> tuple[Array, Array]:
    """Quotients rounded down, and remainders."""
    return floor_divide(x1, x2), remainder(x1, x2)


@like_ufunc
def heaviside(x1: Any, x2: Any, /) -> Array:
    """0 for negative elements of ``x1``, 1 for positive ones, and ``x2`` for zeros."""
    x1, x2 = _floating_pair(x1, x2, "heaviside")
    return where(isnan(x1), x1, where(x1 < 0, 0, where(x1 == 0, x2, 1)))


@like_ufunc
def ldexp(x1: Any, x2: Any, /) -> Array:
    """``x1 * 2**x2``, for whole ``x2``."""
    x1, x2 = floating(asarray(x1)), asarray(x2)
    if x2.dtype.kind not in "iub":
        raise TypeError(f"exponents are whole numbers, not {x2.dtype}")
    # In steps that a factor can take, beyond which everything is zero or infinite.
    power = maximum(minimum(astype(x2, float64), 2200.0), -2200.0)
    wide = astype(_real(x1, "ldexp"), float64, copy=False)
    for share in (4, 3, 2, 1):
        step = trunc(power / share)
        wide = wide * exp2(step)
        power = power - step
    return astype(wide, x1.dtype, copy=False)


@like_ufunc
def frexp(x: Array, /) -> tuple[Array, Array]:
    """Mantissas in [0.5, 1) and exponents of two, whose product is the array."""
    x = _real(floating(asarray(x)), "frexp")
    plain = ~(isnan(x) | isinf(x) | (x == 0))
    size = where(plain, abs(astype(x, float64, copy=False)), 1.0)
    # Subnormal numbers are scaled first, to where logarithms are exact enough.
    tiny = size < 2.0**-900
    size = where(tiny, size * 2.0**200, size)
    exponent = floor(log2(size)) + 1
    mantissa = size * exp2(-exponent)
    # The logarithm may be rounded across a power of two.
    up, down = mantissa >= 1, mantissa < 0.5
    mantissa = where(up, mantissa / 2, where(down, mantissa * 2, mantissa))
    exponent = where(up, exponent + 1, where(down, exponent - 1, exponent))
    exponent = where(tiny, exponent - 200, exponent)
    found = copysign(astype(mantissa, x.dtype, copy=False), x)
    return where(plain, found, x), astype(where(plain, exponent, 0), "int32")


@like_ufunc
def modf(x: Array, /) -> tuple[Array, Array]:
    """Fractions and whole parts, both with the sign of the element."""
    x = _real(floating(asarray(x)), "modf")
    whole = trunc(x)
    return copysign(where(isinf(x), 0, x - whole), x), whole


#: Steps of Euclid's algorithm that always suffice, by bytes of an element.
_EUCLID = {1: 12, 2: 24, 4: 47, 8: 93}


def _magnitudes(x1: Any, x2: Any) -> tuple[Array, Array, np.dtype]:
    """Magnitudes of whole numbers in the unsigned type of their width, which holds that of the smallest number, too."""
    x1, x2 = _pair(x1, x2)
    if x1.dtype.kind not in "iu":
        raise TypeError(f"common divisors are those of whole numbers, not of {x1.dtype}")
    wide = f"uint{8 * x1.dtype.itemsize}"
    return astype(abs(x1), wide, copy=False), astype(abs(x2), wide, copy=False), x1.dtype


def _divisor(larger: Array, smaller: Array) -> Array:
    for _ in range(_EUCLID[larger.dtype.itemsize]):
        # A remainder of a division by zero is zero here.
        larger, smaller = where(smaller == 0, larger, smaller), remainder(larger, smaller)
    return larger


@like_ufunc
def gcd(x1: Any, x2: Any, /) -> Array:
    """Greatest common divisors of whole numbers."""
    x1, x2, dtype = _magnitudes(x1, x2)
    return astype(_divisor(x1, x2), dtype, copy=False)


@like_ufunc
def lcm(x1: Any, x2: Any, /) -> Array:
    """Least common multiples of whole numbers."""
    x1, x2, dtype = _magnitudes(x1, x2)
    return astype(multiply(floor_divide(x1, maximum(_divisor(x1, x2), 1)), x2), dtype, copy=False)


def angle(z: Array, deg: bool = False) -> Array:
    """Angles of complex numbers in the plane, in radians or degrees."""
    z = floating(asarray(z))
    found = atan2(imag(z), real(z))
    return rad2deg(found) if deg else found


def nan_to_num(
    x: Array, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Array:
    """The array with numbers in place of NaN and of infinities, which become the largest numbers of the type. ``copy=False`` changes the array itself.

    >>> import tilewright as tw
    >>> tw.nan_to_num(tw.asarray([1.0, float("nan")])).compute()
    array([1., 0.])
    """
    x = asarray(x)
    if not copy:
        assign(x, nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf))
        return x
    if x.dtype.kind == "c":
        parts = (nan_to_num(part, nan=nan, posinf=posinf, neginf=neginf) for part in (real(x), imag(x)))
        first, second = parts
        return astype(first + second * 1j, x.dtype, copy=False)
    if x.dtype.kind != "f":
        return asarray(x, copy=True)
    limits = np.finfo(x.dtype)
    top = float(limits.max) if posinf is None else posinf
    bottom = float(limits.min) if neginf is None else neginf
    return where(isnan(x), nan, where(x == math.inf, top, where(x == -math.inf, bottom, x)))
