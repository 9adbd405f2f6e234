"""Functions of every element."""

from __future__ import annotations

import builtins
import math
import operator
from typing import Any

import numpy as np

from . import _core, _views
from ._array import Array, binary, named, unwrap
from ._dtypes import astype, floating, result_type
from ._out import like_ufunc, takes_out


def _unary(op: str, name: str, doc: str) -> Any:
    def function(x: Array, /) -> Array:
        return Array(_core.unary(op, unwrap_array(x)))

    return _described(function, name, doc)


def _binary(op: str, name: str, doc: str) -> Any:
    def function(x1: Any, x2: Any, /) -> Array:
        return Array(binary(op, unwrap(x1), unwrap(x2)))

    return _described(function, name, doc)


def _logical(op: str, name: str, doc: str) -> Any:
    def function(x1: Any, x2: Any, /) -> Array:
        return Array(_core.logical(op, unwrap(x1), unwrap(x2)))

    return _described(function, name, doc)


def _described(function: Any, name: str, doc: str) -> Any:
    function.__qualname__ = name
    function.__doc__ = doc
    return like_ufunc(named(function, name))


def unwrap_array(x: Any) -> _core.Tensor:
    """The tensor of an array, or of what can be made one."""
    tensor = unwrap(x)
    if isinstance(tensor, _core.Tensor):
        return tensor
    from ._creation import asarray

    return asarray(x)._tensor


abs = _unary("abs", "abs", "Magnitudes.")
acos = _unary("acos", "acos", "Arc cosines.")
acosh = _unary("acosh", "acosh", "Inverse hyperbolic cosines.")
asin = _unary("asin", "asin", "Arc sines.")
asinh = _unary("asinh", "asinh", "Inverse hyperbolic sines.")
atan = _unary("atan", "atan", "Arc tangents.")
atanh = _unary("atanh", "atanh", "Inverse hyperbolic tangents.")
bitwise_invert = _unary("not", "bitwise_invert", "All bits changed; of truth values, the other one.")
cbrt = _unary("cbrt", "cbrt", "Cube roots.")
cos = _unary("cos", "cos", "Cosines.")
cosh = _unary("cosh", "cosh", "Hyperbolic cosines.")
exp = _unary("exp", "exp", "Exponentials.")
expm1 = _unary("expm1", "expm1", "``exp(x) - 1`` without cancellation.")
isfinite = _unary("isfinite", "isfinite", "True for all but infinities and NaN.")
isinf = _unary("isinf", "isinf", "True for infinities.")
isnan = _unary("isnan", "isnan", "True for NaN.")
log = _unary("log", "log", "Natural logarithms.")
log10 = _unary("log10", "log10", "Logarithms to base 10.")
log1p = _unary("log1p", "log1p", "``log(1 + x)`` without cancellation.")
log2 = _unary("log2", "log2", "Logarithms to base 2.")
negative = _unary("neg", "negative", "Negated elements.")
signbit = _unary("signbit", "signbit", "True where the sign bit is set, as it is for -0.0.")
sin = _unary("sin", "sin", "Sines.")
sinh = _unary("sinh", "sinh", "Hyperbolic sines.")
sqrt = _unary("sqrt", "sqrt", "Square roots.")
tan = _unary("tan", "tan", "Tangents.")
tanh = _unary("tanh", "tanh", "Hyperbolic tangents.")

add = _binary("add", "add", "Sums.")
atan2 = _binary("atan2", "atan2", "Angles of the points (x2, x1).")
bitwise_and = _binary("and", "bitwise_and", "Bits set in both.")
bitwise_left_shift = _binary("shl", "bitwise_left_shift", "Bits moved up.")
bitwise_or = _binary("or", "bitwise_or", "Bits set in either.")
bitwise_right_shift = _binary("shr", "bitwise_right_shift", "Bits moved down, with the sign kept.")
bitwise_xor = _binary("xor", "bitwise_xor", "Bits set in one of both.")
copysign = _binary("copysign", "copysign", "Magnitudes of the first with signs of the second.")
divide = _binary("div", "divide", "Quotients; of integers, as float64.")
equal = _binary("eq", "equal", "True where elements are equal.")
floor_divide = _binary("floordiv", "floor_divide", "Quotients rounded down.")
greater = _binary("gt", "greater", "True where the first is greater.")
greater_equal = _binary("ge", "greater_equal", "True where the first is not less.")
hypot = _binary("hypot", "hypot", "Lengths of the vectors (x1, x2).")
less = _binary("lt", "less", "True where the first is less.")
less_equal = _binary("le", "less_equal", "True where the first is not greater.")
maximum = _binary("max", "maximum", "The larger of two; NaN wins.")
minimum = _binary("min", "minimum", "The smaller of two; NaN wins.")
multiply = _binary("mul", "multiply", "Products.")
nextafter = _binary("nextafter", "nextafter", "The next numbers after the first, towards the second.")
not_equal = _binary("ne", "not_equal", "True where elements differ.")
pow = _binary("pow", "pow", "Powers.")
remainder = _binary("mod", "remainder", "Remainders, with the sign of the divisor.")
subtract = _binary("sub", "subtract", "Differences.")

logical_and = _logical("and", "logical_and", "True where both are true.")
logical_or = _logical("or", "logical_or", "True where either is true.")
logical_xor = _logical("xor", "logical_xor", "True where one of both is true.")


@like_ufunc
def exp2(x: Array, /) -> Array:
    """Powers of two."""
    tensor = unwrap_array(x)
    if np.dtype(tensor.dtype).kind == "c":
        return Array(_core.unary("exp", _core.binary("mul", tensor, math.log(2))))
    return Array(_core.unary("exp2", tensor))


@like_ufunc
def sign(x: Array, /) -> Array:
    """-1, 0 or 1; of complex numbers, the number of magnitude 1 in the same direction."""
    tensor = unwrap_array(x)
    kind = np.dtype(tensor.dtype).kind
    if kind == "m":
        # The sign of a span is a span. As in NumPy that of NaT, the smallest number, is negative.
        return Array(_core.cast(_core.unary("sign", _core.cast(tensor, "int64")), tensor.dtype))
    found = _core.unary("sign", tensor)
    if kind == "c":
        # Zeros of any signs have the sign 0.
        found = _core.where_(_core.binary("eq", tensor, 0), _core.full([], 0, tensor.dtype), found)
    return Array(found)


@like_ufunc
def logical_not(x: Array, /) -> Array:
    """True where an element is zero or false."""
    tensor = unwrap_array(x)
    if np.dtype(tensor.dtype).kind in "Mm":
        raise TypeError(f"logical_not of {tensor.dtype} is not defined")
    return Array(_core.logical_not(tensor))


def _rounding(op: str, name: str, doc: str) -> Any:
    def function(x: Array, /) -> Array:
        tensor = unwrap_array(x)
        # Whole numbers are rounded already, and keep their type.
        return Array(tensor if np.dtype(tensor.dtype).kind in "iub" else _core.unary(op, tensor))

    return _described(function, name, doc)


ceil = _rounding("ceil", "ceil", "Rounded up.")
floor = _rounding("floor", "floor", "Rounded down.")
trunc = _rounding("trunc", "trunc", "Rounded towards zero.")


@takes_out
def round(x: Array, /, decimals: int = 0) -> Array:
    """Rounded to the nearest whole number, or to so many decimals, ties to even ones.

    >>> import tilewright as tw
    >>> tw.round(tw.asarray([1.25, 1.375]), decimals=1).compute()
    array([1.2, 1.4])
    """
    tensor = unwrap_array(x)
    decimals = operator.index(decimals)
    kind = np.dtype(tensor.dtype).kind
    if kind == "c":
        parts = (round(part(x), decimals=decimals)._tensor for part in (real, imag))
        return Array(_core.binary("complex", *parts))
    if kind == "b" and decimals < 0:
        raise TypeError(f"bools are not rounded to tens (decimals={decimals}): convert them to numbers first")
    if kind in "iub" and decimals >= 0:
        return Array(tensor)
    scale = 10 ** builtins.abs(decimals)
    if decimals == 0:
        return Array(_core.unary("round", tensor))
    if decimals > 0:
        return divide(round(multiply(x, float(scale))), float(scale))
    return astype(multiply(round(divide(x, scale)), scale), tensor.dtype, copy=False)


@like_ufunc
def positive(x: Array, /) -> Array:
    """The elements as they are."""
    tensor = unwrap_array(x)
    if np.dtype(tensor.dtype).kind in "bM":
        raise TypeError(f"positive of {tensor.dtype} is not defined")
    return Array(tensor)


def real(x: Array, /) -> Array:
    """Real parts; of real numbers, the numbers."""
    x = x if isinstance(x, Array) else Array(unwrap_array(x))
    return _views.view(x, _views.RealPart()) if x.dtype.kind == "c" else x


def imag(x: Array, /) -> Array:
    """Imaginary parts; of real numbers, zeros."""
    x = x if isinstance(x, Array) else Array(unwrap_array(x))
    if x.dtype.kind == "c":
        return _views.view(x, _views.ImaginaryPart())
    return Array(_core.full(list(x.shape), 0, x._tensor.dtype))


@like_ufunc
def conj(x: Array, /) -> Array:
    """Complex conjugates; of real numbers, the numbers."""
    tensor = unwrap_array(x)
    kind = np.dtype(tensor.dtype).kind
    if kind in "Mm":
        raise TypeError(f"conj of {tensor.dtype} is not defined")
    return Array(_core.unary("conj", tensor) if kind == "c" else tensor)


@like_ufunc
def square(x: Array, /) -> Array:
    """Squares."""
    tensor = unwrap_array(x)
    # As NumPy multiplies a truth value by itself: as the smallest integer.
    tensor = _core.cast(tensor, "int8") if tensor.dtype == "bool" else tensor
    return Array(_core.binary("mul", tensor, tensor))


@like_ufunc
def reciprocal(x: Array, /) -> Array:
    """One divided by the elements; of integers, without the fraction."""
    tensor = unwrap_array(x)
    tensor = _core.cast(tensor, "int8") if tensor.dtype == "bool" else tensor
    if np.dtype(tensor.dtype).kind not in "iu":
        return Array(_core.binary("div", 1, tensor))
    whole = Array(tensor)
    # One is divided by numbers of magnitude 1 alone. What zero gives is not defined.
    return astype(Array(_core.where_((abs(whole) == 1)._tensor, tensor, 0)), whole.dtype, copy=False)


@like_ufunc
def rint(x: Array, /) -> Array:
    """Rounded to the nearest whole number, ties to even ones, as floating point numbers."""
    return round(floating(Array(unwrap_array(x))))


@like_ufunc
def logaddexp(x1: Any, x2: Any, /) -> Array:
    """``log(exp(x1) + exp(x2))`` without overflow on the way."""
    # Differences of whole numbers may wrap, and Python integers fit into every floating point type.
    x1, x2 = (float(x) if type(x) in (bool, int) else x if type(x) is float else Array(unwrap_array(x)) for x in (x1, x2))
    meet = result_type(x1, x2)
    x1, x2 = (x if type(x) is float else astype(x, meet, copy=False) if meet.kind == "f" else floating(x) for x in (x1, x2))
    if any(isinstance(x, Array) and x.dtype.kind == "c" for x in (x1, x2)):
        raise TypeError("logaddexp of complex numbers is not defined")
    larger = maximum(x1, x2)
    apart = larger + log1p(exp(-abs(subtract(x1, x2))))
    # The difference of equal infinities is NaN.
    return Array(_core.where_(equal(x1, x2)._tensor, (larger + float(np.log(2.0)))._tensor, apart._tensor))


@takes_out
def clip(x: Array, /, min: Any = None, max: Any = None, *, a_min: Any = None, a_max: Any = None) -> Array:
    """The elements, but none below ``min`` and none above ``max``, which NumPy also calls ``a_min`` and ``a_max``.

    >>> import tilewright as tw
    >>> tw.clip(tw.arange(5), 1, 3).compute()
    array([1, 1, 2, 3, 3])
    """
    if (min is not None and a_min is not None) or (max is not None and a_max is not None):
        raise ValueError("min and a_min, like max and a_max, are two names of one argument: give one of them")
    min, max = a_min if min is None else min, a_max if max is None else max
    out = Array(unwrap_array(x))
    dtype = out.dtype
    if dtype.kind in "iu":
        # An integer beyond the type bounds nothing from that side, though no element could hold it.
        min = None if type(min) is int and min <= np.iinfo(dtype).min else min
        max = None if type(max) is int and max >= np.iinfo(dtype).max else max
    bounds = [bound for bound in (min, max) if bound is not None]
    if min is not None:
        out = maximum(out, min)
    if max is not None:
        out = minimum(out, max)
    of_arrays = all(isinstance(bound, (Array, np.ndarray, np.generic)) for bound in bounds)
    return astype(out, dtype) if bounds and of_arrays and out.dtype != dtype else out


#: NumPy's other names.
around, bitwise_not = round, bitwise_invert
absolute, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh = abs, acos, acosh, asin, asinh, atan, atan2, atanh
conjugate, invert, left_shift, mod, power, right_shift, true_divide = (
    conj, bitwise_invert, bitwise_left_shift, remainder, pow, bitwise_right_shift, divide,
)  # fmt: skip
