"""Programs of functions and operators of every element, with ``where=`` and ``out=``."""

from __future__ import annotations

import numpy as np

from .case import ALL, BOOLS, DATES, FLOATS, NUMBERS, REAL, SPANS, WHOLE, WIDE, Case, call, sometimes
from .indexing import value_for

UNARY = """
    abs negative positive sign sqrt square exp expm1 exp2 log log1p log2 log10 sin cos tan arcsin arccos arctan sinh cosh tanh
    arcsinh arccosh arctanh floor ceil trunc rint isnan isinf isfinite logical_not invert conj reciprocal cbrt signbit fabs
    deg2rad rad2deg isnat frexp modf fix
""".split()
BINARY = """
    add subtract multiply divide floor_divide remainder power maximum minimum fmax fmin equal not_equal less less_equal greater
    greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor left_shift right_shift hypot arctan2
    copysign logaddexp logaddexp2 fmod gcd lcm heaviside float_power divmod ldexp nextafter
""".split()
COMPARISONS = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "&", "|", "^", "<<", ">>"]


def operands(case: Case, name: str) -> tuple[str, str]:
    """Two operands that meet, one of which may be a number."""
    whole = name in ("gcd", "lcm", "<<", ">>", "left_shift", "right_shift", "&", "|", "^", "bitwise_and", "bitwise_or", "bitwise_xor")
    dtypes = WHOLE + BOOLS if whole and case.chance(0.85) else ALL if case.chance(0.5) else REAL
    bounds = {"low": 0, "high": 6} if name in ("power", "**", "float_power", "<<", ">>", "left_shift", "right_shift",
                                               "ldexp") else {"low": -20, "high": 20}
    a = case.array(dtypes, **bounds)
    values = case.of(a)
    if case.chance(0.25):
        other = case.number(values.dtype)
    else:
        same = [values.dtype.str]
        if not case.chance(0.5):
            same = [each for each in dtypes if (np.dtype(each).kind in "Mm") == (values.dtype.kind in "Mm") or case.chance(0.1)]
        other = case.array(same or dtypes, shape=case.repeated(values.shape) if case.chance(0.97) else (7,), own=case.chance(0.7), **bounds)
    return (a, other) if case.chance(0.8) else (other, a)


def into_arrays(case: Case, name: str, args: list[str], shape: tuple[int, ...] | None = None) -> None:
    """A call with ``out=`` and ``where=``, at random. What is not under a mask and comes from nowhere is not compared."""
    case.name = name
    text = f"xp.{name}({', '.join(args)}"
    plain = case.peek(f"{text})")
    several = isinstance(plain, tuple)
    first = plain[0] if several else plain
    shape = np.shape(first)
    options = []
    mask = None
    if case.chance(0.45):
        mask = case.mask(shape)
        options.append(f"where={mask}")
        case.name = f"{name} where="
    if case.chance(0.4) and first is not None and not several:
        dtype = first.dtype.str
        if case.chance(0.3):
            # The result may be computed in a type that is less exact than that of the array it goes into.
            dtype, case.loose = case.pick(DATES + SPANS if first.dtype.kind in "Mm" else NUMBERS), 4e8
        out = case.array([dtype], shape=shape if case.chance(0.97) else (*shape, 2), finite=True, low=0)
        options.append(f"out={out}")
        case.line(f"s = {', '.join([text, *options])})")
        case.line(f"r = (s, {out}, s is {out})")
    elif mask is None:
        case.line(f"r = {', '.join([text, *options])})")
    else:
        case.line(f"s = {', '.join([text, *options])})")
        case.line(f"r = [xp.where({mask}, each, xp.zeros_like(each)) for each in ({'s' if several else 's,'})]")


def unary(case: Case) -> None:
    name = case.pick(UNARY)
    dtypes = WIDE + FLOATS if case.chance(0.6) else ALL
    low, high = (-1, 1) if name in ("arcsin", "arccos", "arctanh") else (-8, 8)
    a = case.array(dtypes, low=low, high=high)
    if name == "fix":
        call(case, name, a)
    else:
        into_arrays(case, name, [a])


def binary(case: Case) -> None:
    name = case.pick(BINARY)
    args = list(operands(case, name))
    if name in COMPARISONS and any(arg not in case.arrays for arg in args):
        # NumPy 2.4 crashes when an unsigned array and a negative number are compared under a mask.
        call(case, name, *args)
    else:
        into_arrays(case, name, args)


def operator(case: Case) -> None:
    sign = case.pick(OPERATORS)
    a, b = operands(case, sign)
    case.name = f"a {sign} b"
    if sign not in ("==", "!=", "<", "<=", ">", ">=") and case.chance(0.3) and a in case.chunks:
        case.name = f"a {sign}= b"
        case.line(f"{a} {sign}= {b}")
        case.line(f"r = {a}")
    else:
        case.line(f"r = {a} {sign} {b}")


def further_elementwise(case: Case) -> None:
    name = case.pick(["clip", "round", "nan_to_num", "isclose", "allclose", "array_equal", "array_equiv", "angle", "real", "imag",
                      "sinc", "isposinf", "isneginf", "iscomplex", "isreal", "where", "astype",
                      "result_type", "iscomplexobj", "unary operator"])
    a = case.array(NUMBERS if case.chance(0.8) or name in ("isreal", "iscomplex", "real", "imag") else ALL)
    values = case.of(a)
    case.name = name
    if name == "clip":
        bounds = [case.pick([case.number(values.dtype), "None", case.array([values.dtype.str], shape=case.repeated(values.shape),
            finite=True)]) for _ in range(2)]
        call(case, name, a, *(bounds if bounds != ["None"] * 2 else ["None", case.number(values.dtype)]))
    elif name == "round":
        call(case, name, a, case.pick([0, 1, 2, -1]))
    elif name == "nan_to_num":
        call(case, name, a, nan=sometimes(case, case.int(0, 5)), posinf=sometimes(case, 9))
    elif name in ("isclose", "allclose", "array_equal", "array_equiv"):
        b = case.array([values.dtype.str] if case.chance(0.5) else NUMBERS,
                       shape=values.shape if case.chance(0.8) else case.repeated(values.shape))
        if case.chance(0.4) and case.of(b).shape == values.shape:
            case.arrays[b] = values.copy()
        call(case, name, a, b, equal_nan=... if name == "array_equiv" else sometimes(case, True))
    elif name == "where":
        b = value_for(case, values.dtype, values.shape)
        call(case, name, case.mask(values.shape, own=True), a, b)
    elif name == "astype":
        to = case.pick(NUMBERS)
        if values.dtype.kind in "fc":
            case.arrays[a] = np.nan_to_num(abs(values).clip(0, 20) if values.dtype.kind == "f" else values.clip(0, 9), nan=1, posinf=2)
        case.line(f"r = {a}.astype({to!r})")
    elif name == "result_type":
        b = case.array()
        case.line(f"r = np.zeros(1, xp.result_type({a}, {b}))")
    elif name == "unary operator":
        case.line(f"r = {case.pick(['-', '+', '~', 'abs'])}({a})")
    else:
        call(case, name, a)
