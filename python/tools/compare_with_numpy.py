"""Compares random small programs on our arrays with the same programs on NumPy's.

    python python/tools/compare_with_numpy.py --count 100000 --seed 1

Every comparison is a few lines of code over random arrays: indices, masks, assignments, views, functions with ``where=`` and ``out=``, reductions, sorting, sets,
statistics, linear algebra, transforms, and chains of these. Shapes, types, elements and classes of exceptions must agree. It prints every kind of difference as code
that shows it, then a table of functions with how often each was compared, and ends with status 1 if anything differed. The same seed gives the same programs;
``--at`` runs one of them by its number, ``--only`` those of functions whose name contains a text.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import tilewright as tw

BOOLS, SIGNED, UNSIGNED = ["?"], ["i1", "i2", "i4", "i8"], ["u1", "u2", "u4", "u8"]
FLOATS, COMPLEX = ["f2", "f4", "f8"], ["c8", "c16"]
DATES, SPANS = ["M8[D]", "M8[s]", "M8[ms]"], ["m8[D]", "m8[s]", "m8[ms]"]
WHOLE = SIGNED + UNSIGNED
REAL = WHOLE + FLOATS + ["f8", "f8"]
NUMBERS = BOOLS + REAL + COMPLEX
ALL = NUMBERS + DATES + SPANS
WIDE = ["f4", "f8", "f8", "c16"]

#: What a float may be off by, in units of the larger of 1 and the largest element.
TOLERANCES = {2: 4e-3, 4: 3e-5, 8: 1e-11}


class Case:
    """One program: its arrays, its lines, and the random choices that it is made of."""

    def __init__(self, seed: int, number: int) -> None:
        self.random = random.Random(f"{seed}/{number}")
        self.numbers = np.random.default_rng([seed, number])
        self.name = "?"
        self.arrays: dict[str, np.ndarray] = {}
        #: How our array of a name is cut; arrays that are not here stay NumPy's.
        self.chunks: dict[str, Any] = {}
        self.lines: list[str] = []
        self.loose = 1.0
        # NumPy's functions call ours.
        self.by_protocol = self.chance(0.15)

    # Choices

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def pick(self, values: Any) -> Any:
        return self.random.choice(list(values))

    def int(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def shape(self, low: int = 0, high: int = 4, min_side: int = 0) -> tuple[int, ...]:
        ndim = self.pick([n for n in (0, 1, 1, 1, 2, 2, 2, 3, 3, 4) if low <= n <= high] or [low])
        if min_side == 0 and self.chance(0.06):
            return tuple(self.int(0, 3) for _ in range(ndim))
        return tuple(self.int(1, 6 if ndim < 3 else 4) for _ in range(ndim))

    def axis(self, ndim: int, none: bool = True) -> Any:
        if none and self.chance(0.25):
            return None
        if self.chance(0.03):
            return ndim + self.int(0, 2)
        return self.int(-ndim, ndim - 1) if ndim else self.pick([0, -1, None])

    def axes(self, ndim: int) -> Any:
        """An axis, several, or None."""
        if ndim > 1 and self.chance(0.3):
            return tuple(self.random.sample(range(ndim), self.int(1, ndim)))
        return self.axis(ndim)

    # Arrays

    def add(self, values: np.ndarray, own: bool = True) -> str:
        """A new array of the program; gives its name."""
        name = "abcdefghijklmnopqrstuvwxyz"[len(self.arrays)]
        self.arrays[name] = np.asarray(values)
        if own:
            self.chunks[name] = self.pick([None, None, 1, 2, 3, -1, "each"])
            if self.chunks[name] == "each":
                self.chunks[name] = tuple(self.int(1, 4) for _ in values.shape)
        return name

    def array(self, dtypes: Any = ALL, shape: Any = None, own: bool = True, finite: bool = False, low: int = -20, high: int = 20, **sizes: int) -> str:
        shape = self.shape(**sizes) if shape is None else shape
        return self.add(self.values(self.pick(dtypes), shape, finite, low, high), own)

    def values(self, dtype: str, shape: Any, finite: bool = False, low: int = -20, high: int = 20) -> np.ndarray:
        dtype = np.dtype(dtype)
        if dtype.kind == "b":
            return self.numbers.random(shape) < self.pick([0.0, 0.2, 0.5, 0.5, 0.8, 1.0])
        if dtype.kind in "iu":
            return self.numbers.integers(max(low, 0) if dtype.kind == "u" else low, high + 1, shape).astype(dtype)
        if dtype.kind in "Mm":
            times = self.numbers.integers(low, high + 1, shape).astype(dtype)
            return times if finite or not self.chance(0.15) else np.where(self.numbers.random(shape) < 0.2, np.array("NaT", dtype), times)
        values = self.floats(shape, low, high)
        if dtype.kind == "c":
            return np.asarray(values + 1j * self.floats(shape, low, high)).astype(dtype)
        if not finite and self.chance(0.2):
            special = self.numbers.choice([np.nan, np.inf, -np.inf, -0.0, np.nan], shape)
            values = np.where(self.numbers.random(shape) < 0.25, special, values)
        return np.asarray(values).astype(dtype)

    def floats(self, shape: Any, low: int, high: int) -> np.ndarray:
        if self.chance(0.4):
            return np.asarray(self.numbers.integers(low, high + 1, shape) * 1.0)
        return np.asarray(np.clip(self.numbers.standard_normal(shape) * 3, low, high))

    def mask(self, shape: tuple[int, ...], own: bool | None = None) -> str:
        """A mask that is repeated to a shape."""
        return self.add(self.values("?", self.repeated(shape)), self.chance(0.7) if own is None else own)

    def repeated(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape that is repeated to another one: without leading axes, or with axes of length 1."""
        if self.chance(0.6):
            return shape
        shape = shape[self.int(0, len(shape)) :]
        return tuple(1 if self.chance(0.3) else n for n in shape)

    def number(self, dtype: np.dtype) -> str:
        """A number for an array of a type, as text."""
        if dtype.kind in "Mm":
            return f"np.{'datetime64' if dtype.kind == 'M' else 'timedelta64'}({self.int(-9, 9)}, {np.datetime_data(dtype)[0]!r})"
        # What negative fractions become in unsigned integers is not defined.
        fraction = self.int(0 if dtype.kind == "u" else -20, 20) / 4
        choices = [str(self.int(0, 9)), str(self.int(-9, 9)), str(fraction), "True", "2j", f"np.int8({self.int(-9, 9)})", f"np.float32({fraction})"]
        return self.pick(choices[:2] if dtype.kind in "biu" and self.chance(0.8) else choices)

    # Lines

    def line(self, text: str) -> None:
        self.lines.append(text)

    def peek(self, text: str) -> Any:
        """What an expression is in NumPy after the lines so far; None if it raises."""
        names = names_for(self, ours=False)
        try:
            for each in self.lines:
                exec(each, names)
            return eval(text, names)
        except Exception:
            return None

    def of(self, name: str) -> np.ndarray:
        return self.arrays[name]

    def code(self) -> str:
        """The program as a script."""
        lines = ["import numpy as np, tilewright as tw"]
        for name, values in self.arrays.items():
            made = f"np.array({values.tolist()!r}, dtype={values.dtype.str!r})" if values.dtype.kind not in "Mm" else f"np.array({values.astype('i8').tolist()!r}).astype({values.dtype.str!r})"
            made = made.replace("nan", "np.nan").replace("inf", "np.inf") + (f".reshape({values.shape})" if values.size == 0 else "")
            lines.append(f"{name} = {made}")
        for name, chunk in self.chunks.items():
            cut = "" if chunk is None or self.arrays[name].ndim == 0 else f".rechunk({chunk})"
            lines.append(f"{name} = tw.asarray({name}){cut}")
        lines.append(f"xp = {'np' if self.by_protocol else 'tw'}")
        return "\n".join([*lines, *self.lines, "print(r)"])


def names_for(case: Case, ours: bool) -> dict[str, Any]:
    """What the lines of a program see: the module, and arrays of their own."""
    names: dict[str, Any] = {"np": np, "xp": tw if ours and not case.by_protocol else np}
    for name, values in case.arrays.items():
        names[name] = values.copy()
        if ours and name in case.chunks:
            array, chunk = tw.asarray(values), case.chunks[name]
            names[name] = array if chunk is None or array.ndim == 0 else array.rechunk(chunk)
    return names


# Programs. Each function makes one kind.

KINDS: list[tuple[Callable[[Case], None], float]] = []


def kind(weight: float) -> Callable[[Callable[[Case], None]], Callable[[Case], None]]:
    def keep(make: Callable[[Case], None]) -> Callable[[Case], None]:
        KINDS.append((make, weight))
        return make

    return keep


def call(case: Case, name: str, *args: Any, **options: Any) -> None:
    """The line ``r = xp.name(..)``; options that are ``...`` are left out."""
    case.name = name
    given = [str(arg) for arg in args] + [f"{key}={value}" for key, value in options.items() if value is not ...]
    case.line(f"r = xp.{name}({', '.join(given)})")


def sometimes(case: Case, value: Any, share: float = 0.4) -> Any:
    return value if case.chance(share) else ...


# Indices


def slice_text(case: Case, n: int) -> str:
    if case.chance(0.25):
        return ":"
    start, stop = (case.int(-n - 1, n + 1) if case.chance(0.6) else "" for _ in range(2))
    step = case.pick(["", "", 1, 2, 3, -1, -1, -2])
    return f"{start}:{stop}:{step}"


def basic_part(case: Case, n: int) -> str:
    if n and case.chance(0.35):
        return str(case.int(-n, n - 1))
    return slice_text(case, n) if case.chance(0.98) else str(n + 1)


def decorated(case: Case, parts: list[str]) -> str:
    """Parts of an index with new axes and an ellipsis among them, or with trailing full slices left out."""
    if case.chance(0.2):
        parts.insert(case.int(0, len(parts)), "None")
    if case.chance(0.25):
        parts.insert(case.int(0, len(parts)), "...")
    while parts and parts[-1] == ":" and case.chance(0.7):
        parts.pop()
    return ", ".join(parts) or "()" if len(parts) != 1 or case.chance(0.7) else f"{parts[0]},"


def basic_key(case: Case, shape: tuple[int, ...]) -> str:
    parts = [basic_part(case, n) for n in shape]
    return decorated(case, parts[: case.int(1, len(parts))] if parts and case.chance(0.3) else parts)


def index_text(case: Case, n: int, shape: tuple[int, ...]) -> str:
    """An array of indices of an axis: a list, or an array of either library."""
    outside = case.chance(0.02)
    values = case.numbers.integers(-n, n, shape) if n else np.zeros(shape, "i8")
    if outside:
        values = values + n
    if case.chance(0.4) and shape:
        return str(values.tolist())
    dtype = case.pick(["i8", "i8", "i4", "i2", "u1"])
    return case.add((values % max(n, 1) if dtype == "u1" and not outside else values).astype(dtype), own=case.chance(0.6))


def fancy_key(case: Case, shape: tuple[int, ...]) -> str:
    if not shape:
        return case.pick(["None, ...", "()", "True", "False", "np.array(True)"])
    parts = [basic_part(case, n) for n in shape]
    at = case.int(0, len(shape) - 1)
    if case.chance(0.3):
        # A mask of one or two axes.
        width = case.int(1, min(2, len(shape) - at))
        mask = case.values("?", shape[at : at + width])
        text = str(mask.tolist()) if case.chance(0.3) and mask.size else case.add(mask, own=case.chance(0.6))
        parts[at : at + width] = [text]
        meets: tuple[int, ...] = (int(mask.sum()),) if case.chance(0.5) else (1,)
        others = range(at + 1, len(parts))
        lengths = dict(zip(others, shape[at + width :], strict=True))
    else:
        meets = case.pick([(), (1,), (2,), (3,), (3,), (5,), (2, 2), (2, 3), (0,)])
        parts[at] = index_text(case, shape[at], meets)
        lengths = {i: shape[i] for i in range(len(shape)) if i != at}
    for i, n in lengths.items():
        if case.chance(0.35):
            parts[i] = index_text(case, n, case.repeated(meets))
    return decorated(case, parts)


def any_key(case: Case, shape: tuple[int, ...]) -> str:
    return basic_key(case, shape) if case.chance(0.4) else fancy_key(case, shape)


@kind(5)
def basic_index(case: Case) -> None:
    a = case.array()
    case.name = "a[slices]"
    case.line(f"r = {a}[{basic_key(case, case.of(a).shape)}]")


@kind(12)
def fancy_index(case: Case) -> None:
    a = case.array()
    case.name = "a[fancy]"
    case.line(f"r = {a}[{fancy_key(case, case.of(a).shape)}]")
    follow_up(case)


@kind(8)
def mask_index(case: Case) -> None:
    a = case.array(low=1) if case.chance(0.9) else case.array()
    shape = case.of(a).shape
    case.name = "a[mask]"
    if case.chance(0.4):
        key = f"{a} {case.pick(['>', '<=', '!=', '=='])} {case.number(case.of(a).dtype)}"
    else:
        key = case.add(case.values("?", shape[: case.int(1, max(len(shape), 1))]), own=case.chance(0.7))
    case.line(f"r = {a}[{key}]")
    follow_up(case)


def follow_up(case: Case) -> None:
    """Now and then, one step more with the result."""
    if case.chance(0.5):
        return
    r = case.peek("r")
    if not isinstance(r, np.ndarray):
        return
    steps = ["r.sum()", "r + r", "r.ravel()[::-1]", "xp.sort(r, axis=None)", "r == r", "r.T", "r.max()", "r.reshape(-1)", "xp.concatenate([r.ravel(), r.ravel()])", "xp.cumsum(r)", "r.shape"]
    case.line(f"r = {case.pick(steps)}")


# Assignment


def value_for(case: Case, dtype: np.dtype, shape: tuple[int, ...]) -> str:
    """What may be assigned to a part of a shape: a number, a list, or an array of some type."""
    if case.chance(0.35):
        return case.number(dtype)
    kinds = [dtype.str] if dtype.kind in "Mm" or case.chance(0.6) else NUMBERS
    if case.chance(0.02):
        shape = (*shape, 2)
    return case.array(kinds, shape=case.repeated(shape), own=case.chance(0.7), finite=True, low=0, high=9)


@kind(12)
def assignment(case: Case) -> None:
    a = case.array(finite=True)
    key = any_key(case, case.of(a).shape)
    part = case.peek(f"{a}[{key}]")
    case.name = "a[key] = b"
    value = value_for(case, case.of(a).dtype, () if part is None else part.shape)
    operation = "="
    if case.chance(0.35):
        operation = case.pick(["+=", "-=", "*=", "*=", "|=", "//="])
        case.name = f"a[key] {operation} b"
    case.line(f"{a}[{key}] {operation} {value}")
    case.line(f"r = {a}")


@kind(8)
def mask_assignment(case: Case) -> None:
    a = case.array(finite=True)
    values = case.of(a)
    if case.chance(0.4):
        key = f"{a} > {case.number(values.dtype)}"
    else:
        key = case.add(case.values("?", values.shape[: case.int(1, max(values.ndim, 1))]), own=case.chance(0.7))
    part = case.peek(f"{a}[{key}]")
    operation = case.pick(["=", "=", "*=", "+=", "-="])
    case.name = f"a[mask] {operation} b"
    case.line(f"{a}[{key}] {operation} {value_for(case, values.dtype, () if part is None else part.shape)}")
    case.line(f"r = {a}")


VIEWS = ["{0}.T", "{0}[::-1]", "{0}[1:]", "{0}[..., ::2]", "{0}[None]", "{0}.reshape(-1)", "{0}.ravel()", "{0}[...]", "xp.flip({0})", "{0}.swapaxes(0, -1)", "xp.squeeze({0})", "{0}.real",
         "xp.expand_dims({0}, 0)", "xp.moveaxis({0}, 0, -1)", "xp.atleast_2d({0})", "{0}.flatten()", "{0}.copy()", "{0} + 0", "xp.rot90({0})", "xp.split({0}, 1)[0]", "{0}[:, 0]", "{0}[[0]]"]  # fmt: skip


@kind(6)
def views(case: Case) -> None:
    a = case.array(finite=True, low=-9, high=9, shape=case.shape(1, 3, 1))
    case.name = "views"
    names = [a]
    for i in range(case.int(1, 3)):
        step = case.pick(VIEWS).format(case.pick(names))
        # The order of the elements of what is no view is NumPy's own affair, and decides which of its reshapes are views.
        if not isinstance(case.peek(step), np.ndarray) or (("reshape" in step or "ravel" in step) and any("+ 0" in each or "[[0]]" in each or "copy" in each for each in case.lines)):
            continue
        case.line(f"v{i} = {step}")
        names.append(f"v{i}")
    for _ in range(case.int(1, 2)):
        target = case.pick(names)
        key = basic_key(case, np.shape(case.peek(target)))
        case.line(f"{target}[{key}] {case.pick(['=', '=', '+=', '*='])} {value_for(case, case.of(a).dtype, np.shape(case.peek(f'{target}[{key}]')))}")
    case.line(f"r = ({', '.join(names)},)")


# Functions of every element

UNARY = ["abs", "negative", "positive", "sign", "sqrt", "square", "exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh",
         "arcsinh", "arccosh", "arctanh", "floor", "ceil", "trunc", "rint", "isnan", "isinf", "isfinite", "logical_not", "invert", "conj", "reciprocal", "cbrt", "signbit", "fabs", "deg2rad", "rad2deg",
         "isnat", "frexp", "modf", "fix"]  # fmt: skip
BINARY = ["add", "subtract", "multiply", "divide", "floor_divide", "remainder", "power", "maximum", "minimum", "fmax", "fmin", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
          "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "hypot", "arctan2", "copysign", "logaddexp", "logaddexp2", "fmod",
          "gcd", "lcm", "heaviside", "float_power", "divmod", "ldexp", "nextafter"]  # fmt: skip
COMPARISONS = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "&", "|", "^", "<<", ">>"]


def operands(case: Case, name: str) -> tuple[str, str]:
    """Two operands that meet, one of which may be a number."""
    whole = name in ("gcd", "lcm", "<<", ">>", "left_shift", "right_shift", "&", "|", "^", "bitwise_and", "bitwise_or", "bitwise_xor")
    dtypes = WHOLE + BOOLS if whole and case.chance(0.85) else ALL if case.chance(0.5) else REAL
    bounds = {"low": 0, "high": 6} if name in ("power", "**", "float_power", "<<", ">>", "left_shift", "right_shift", "ldexp") else {"low": -20, "high": 20}
    a = case.array(dtypes, **bounds)
    values = case.of(a)
    if case.chance(0.25):
        other = case.number(values.dtype)
    else:
        same = [values.dtype.str] if case.chance(0.5) else [d for d in dtypes if (np.dtype(d).kind in "Mm") == (values.dtype.kind in "Mm") or case.chance(0.1)]
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


@kind(9)
def unary(case: Case) -> None:
    name = case.pick(UNARY)
    dtypes = WIDE + FLOATS if case.chance(0.6) else ALL
    low, high = (-1, 1) if name in ("arcsin", "arccos", "arctanh") else (-8, 8)
    a = case.array(dtypes, low=low, high=high)
    if name == "fix":
        call(case, name, a)
    else:
        into_arrays(case, name, [a])


@kind(14)
def binary(case: Case) -> None:
    name = case.pick(BINARY)
    args = list(operands(case, name))
    if name in COMPARISONS and any(arg not in case.arrays for arg in args):
        # NumPy 2.4 crashes when an unsigned array and a negative number are compared under a mask.
        call(case, name, *args)
    else:
        into_arrays(case, name, args)


@kind(7)
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


@kind(4)
def further_elementwise(case: Case) -> None:
    name = case.pick(["clip", "round", "nan_to_num", "isclose", "allclose", "array_equal", "array_equiv", "angle", "real", "imag", "sinc", "isposinf", "isneginf", "iscomplex", "isreal", "where", "astype",
                      "result_type", "iscomplexobj", "unary operator"])  # fmt: skip
    a = case.array(NUMBERS if case.chance(0.8) or name in ("isreal", "iscomplex", "real", "imag") else ALL)
    values = case.of(a)
    case.name = name
    if name == "clip":
        bounds = [case.pick([case.number(values.dtype), "None", case.array([values.dtype.str], shape=case.repeated(values.shape), finite=True)]) for _ in range(2)]
        call(case, name, a, *(bounds if bounds != ["None"] * 2 else ["None", case.number(values.dtype)]))
    elif name == "round":
        call(case, name, a, case.pick([0, 1, 2, -1]))
    elif name == "nan_to_num":
        call(case, name, a, nan=sometimes(case, case.int(0, 5)), posinf=sometimes(case, 9))
    elif name in ("isclose", "allclose", "array_equal", "array_equiv"):
        b = case.array([values.dtype.str] if case.chance(0.5) else NUMBERS, shape=values.shape if case.chance(0.8) else case.repeated(values.shape))
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


# Reductions

REDUCTIONS = ["sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmax", "argmin", "count_nonzero", "ptp", "median", "nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd",
              "nanargmax", "nanargmin", "nanmedian"]  # fmt: skip


@kind(14)
def reduction(case: Case) -> None:
    name = case.pick(REDUCTIONS)
    product = "prod" in name
    a = case.array(ALL if case.chance(0.3) else NUMBERS, low=-2 if product else -20, high=2 if product else 20, finite=case.chance(0.5))
    values = case.of(a)
    single = "arg" in name
    options = {"axis": sometimes(case, case.axis(values.ndim) if single else case.axes(values.ndim), 0.75), "keepdims": sometimes(case, True, 0.3)}
    if name in ("sum", "prod", "mean", "nansum", "nanprod", "nanmean", "var", "std") and values.dtype.kind not in "Mm" and case.chance(0.15):
        options["dtype"] = repr(case.pick(["f4", "f8", "i8", "c16", "u4"]))
        if values.dtype.kind in "fc":
            case.arrays[a] = np.nan_to_num(values, nan=1, posinf=1, neginf=1).clip(0, 9)
    if name in ("sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "nansum", "nanmax") and case.chance(0.4):
        options["where"] = case.mask(values.shape)
        if options.get("dtype") in ("'i8'", "'u4'"):
            # What NaN becomes there is not defined.
            del options["dtype"]
        if name in ("max", "min", "nanmax"):
            options["initial"] = case.number(values.dtype)
    if name in ("sum", "prod", "max", "min") and "initial" not in options and case.chance(0.25):
        options["initial"] = case.number(values.dtype)
    if name in ("var", "std", "nanvar", "nanstd"):
        options["ddof"] = sometimes(case, case.pick([0, 1, 2, 0.5])) if "dtype" not in options else ...
    method = name in ("sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmax", "argmin") and case.chance(0.3)
    call(case, name, a, **options)
    if "where" in options:
        case.name = f"{name} where="
    if method:
        case.lines[-1] = case.lines[-1].replace(f"xp.{name}({a}, ", f"{a}.{name}(").replace(f"xp.{name}({a})", f"{a}.{name}()")
    if case.chance(0.1) and "dtype" not in options:
        found = case.peek(case.lines[-1][4:])
        if found is not None and found.dtype.kind not in "Mm":
            out = case.array([found.dtype.str], shape=np.shape(found), finite=True)
            case.lines[-1] = (case.lines[-1].replace("r = ", "s = ", 1)[:-1] + f", out={out})").replace("(, ", "(")
            case.line(f"r = (s, {out})")


@kind(4)
def cumulative(case: Case) -> None:
    name = case.pick(["cumsum", "cumprod", "nancumsum", "nancumprod", "diff", "cumulative_sum", "cumulative_prod", "ediff1d"])
    product = "prod" in name
    # Running products of halves overflow here where they do at last, in NumPy also on the way.
    dtypes = [each for each in (NUMBERS if case.chance(0.8) else ALL) if each != "f2" or not product]
    a = case.array(dtypes, low=-2 if product else -20, high=2 if product else 20)
    values = case.of(a)
    if name == "diff":
        edge = case.array([values.dtype.str], shape=(), finite=True)
        call(case, name, a, n=sometimes(case, case.int(0, 3)), axis=sometimes(case, case.axis(values.ndim, none=False)), prepend=sometimes(case, edge, 0.2), append=sometimes(case, edge, 0.2))
    elif name == "ediff1d":
        call(case, name, a, to_end=sometimes(case, case.array([values.dtype.str], shape=(2,), finite=True), 0.3))
    elif "cumulative" in name:
        call(case, name, a, axis=case.axis(values.ndim, none=values.ndim < 2), include_initial=sometimes(case, True))
    else:
        call(case, name, a, axis=sometimes(case, case.axis(values.ndim), 0.7), dtype=sometimes(case, "'f8'", 0.1) if values.dtype.kind not in "Mm" else ...)


# Shapes


def divisors(case: Case, size: int) -> tuple[int, ...]:
    """A shape of some number of elements."""
    shape = []
    while size > 1 and len(shape) < 3:
        n = case.pick([d for d in range(1, size + 1) if size % d == 0])
        shape.append(n)
        size //= n
    return (*shape, size)


@kind(10)
def shapes(case: Case) -> None:
    name = case.pick(["reshape", "ravel", "transpose", "moveaxis", "swapaxes", "rollaxis", "expand_dims", "squeeze", "flip", "fliplr", "flipud", "roll", "rot90", "tile", "repeat", "broadcast_to",
                      "atleast_1d", "atleast_2d", "atleast_3d", "diag", "diagflat", "diagonal", "trace", "tril", "triu", "resize", "permute_dims", "matrix_transpose", "unstack", "shape", "ndim", "size"])  # fmt: skip
    a = case.array()
    values = case.of(a)
    ndim = values.ndim
    if name in ("reshape", "resize"):
        shape = list(divisors(case, values.size)) if name == "reshape" else list(case.shape(1, 3))
        if name == "reshape" and case.chance(0.4):
            shape[case.int(0, len(shape) - 1)] = -1
        call(case, name, a, tuple(shape), order=sometimes(case, case.pick(["'C'", "'F'", "'A'"]), 0.3) if name == "reshape" else ...)
    elif name == "ravel":
        call(case, name, a, order=sometimes(case, case.pick(["'C'", "'F'"])))
    elif name in ("transpose", "permute_dims"):
        call(case, name, a, axes=tuple(case.random.sample(range(ndim), ndim)) if case.chance(0.9) or name == "permute_dims" else ...)
    elif name == "moveaxis":
        n = case.int(0, ndim)
        source, target = (case.random.sample(range(ndim), n) for _ in range(2))
        call(case, name, a, source, target)
    elif name in ("swapaxes", "rollaxis"):
        call(case, name, a, case.axis(ndim, none=False), case.axis(ndim, none=False))
    elif name in ("expand_dims", "flip"):
        call(case, name, a, axis=case.axes(ndim) if name == "flip" else case.pick([0, -1, ndim, case.axis(ndim, none=False), (0, 1)]))
    elif name == "squeeze":
        call(case, name, a, axis=sometimes(case, case.axes(ndim)))
    elif name == "roll":
        axis = case.axes(ndim)
        call(case, name, a, case.int(-7, 7) if not isinstance(axis, tuple) else tuple(case.int(-7, 7) for _ in axis), axis=axis)
    elif name == "rot90":
        call(case, name, a, case.int(-4, 4), axes=sometimes(case, tuple(case.random.sample(range(ndim), 2)) if ndim > 1 else (0, 1)))
    elif name == "tile":
        call(case, name, a, case.pick([2, (2, 1), (1, 2, 2), 0, (3,)]))
    elif name == "repeat":
        axis = case.axis(ndim)
        n = values.size if axis is None else values.shape[axis] if -ndim <= axis < ndim else 1
        counts = case.add(case.numbers.integers(0, 4, n), own=case.chance(0.5)) if case.chance(0.4) else case.int(0, 3)
        call(case, name, a, counts, axis=axis)
    elif name == "broadcast_to":
        call(case, name, a, (*case.shape(0, 2), *(n if n != 1 else case.int(1, 3) for n in values.shape)))
    elif name in ("diag", "diagflat", "tril", "triu"):
        call(case, name, a, k=sometimes(case, case.int(-3, 3)))
    elif name in ("diagonal", "trace"):
        first, second = case.random.sample(range(ndim), 2) if ndim > 1 else (0, 1)
        call(case, name, a, case.int(-2, 2), first, second)
    elif name == "unstack":
        call(case, name, a, axis=sometimes(case, case.axis(ndim, none=False)))
    else:
        call(case, name, a)


@kind(7)
def joining(case: Case) -> None:
    name = case.pick(["concatenate", "stack", "hstack", "vstack", "dstack", "column_stack", "block", "append", "insert", "delete", "split", "array_split", "hsplit", "vsplit", "dsplit", "broadcast_arrays", "meshgrid"])
    a = case.array(low=-9, high=9)
    values = case.of(a)
    ndim, axis = values.ndim, case.axis(values.ndim, none=False)
    same = [values.dtype.str] if case.chance(0.5) or values.dtype.kind in "Mm" else NUMBERS
    length = values.shape[axis] if ndim and axis is not None and -ndim <= axis < ndim else 1

    def other(longer: bool) -> str:
        shape = list(values.shape)
        if longer and shape and axis is not None and -ndim <= axis < ndim:
            shape[axis] = case.int(0, 3)
        return case.array(same, shape=tuple(shape) if case.chance(0.97) else (9,), own=case.chance(0.8))

    if name in ("concatenate", "stack"):
        call(case, name, f"[{', '.join([a, *(other(name == 'concatenate') for _ in range(case.int(0, 2)))])}]", axis=axis if case.chance(0.85) or name == "stack" else None)
    elif name in ("hstack", "vstack", "dstack", "column_stack"):
        call(case, name, f"({a}, {other(False)}, {a})")
    elif name == "block":
        b = other(False)
        call(case, name, case.pick([f"[{a}, {b}]", f"[[{a}, {b}], [{b}, {a}]]"]))
    elif name == "append":
        axis = axis if case.chance(0.6) else None
        call(case, name, a, other(True), axis=axis)
    elif name == "insert":
        call(case, name, a, case.pick([case.int(-length, length), [0, length // 2], "slice(0, 2)", [0]]), value_for(case, values.dtype, ()), axis=axis if case.chance(0.7) else None)
    elif name == "delete":
        mask = case.values("?", (length,)).tolist()
        call(case, name, a, case.pick([case.int(-length, max(length - 1, 0)), [0], [0, -1], "slice(None, None, 2)", mask, []]), axis=axis if case.chance(0.7) else None)
    elif name in ("split", "array_split"):
        call(case, name, a, case.pick([1, 2, 3, [1, 2], [0, 3, 9], length or 1]), axis=axis)
    elif name in ("hsplit", "vsplit", "dsplit"):
        call(case, name, a, case.pick([1, 2, [1]]))
    elif name == "broadcast_arrays":
        b = case.array(same, shape=case.repeated(values.shape))
        case.name = name
        case.line(f"r = tuple(xp.broadcast_arrays({a}, {b}))")
    else:
        b = case.array(shape=case.shape(1, 1))
        case.name = name
        case.line(f"r = tuple(xp.meshgrid({a}.ravel(), {b}, indexing={case.pick(['xy', 'ij'])!r}, sparse={case.chance(0.4)}))")


@kind(3)
def padding(case: Case) -> None:
    # Mirrored at points, infinities make NaN of their neighbours, in an order that is nobody's affair.
    a = case.array(NUMBERS, shape=case.shape(1, 3), finite=True, low=-9, high=9)
    ndim = case.of(a).ndim
    mode = case.pick(["constant", "edge", "reflect", "symmetric", "wrap", "linear_ramp", "maximum", "minimum", "mean", "median", "empty"][:10])
    width = case.pick([1, 2, (1, 2), [case.int(0, 3)], tuple((case.int(0, 3), case.int(0, 3)) for _ in range(ndim))])
    options: dict[str, Any] = {}
    if mode == "constant":
        options["constant_values"] = sometimes(case, case.pick([3, (1, 2)]))
    if mode in ("reflect", "symmetric"):
        options["reflect_type"] = sometimes(case, "'odd'", 0.3)
    if mode in ("maximum", "mean", "minimum", "median"):
        options["stat_length"] = sometimes(case, case.pick([1, 2, (1, 2)]), 0.3)
    call(case, "pad", a, width, repr(mode), **options)
    case.name = f"pad {mode}"


# Order and sets


@kind(8)
def searching(case: Case) -> None:
    name = case.pick(["sort", "argsort", "partition", "argpartition", "searchsorted", "nonzero", "argwhere", "flatnonzero", "where1", "take", "take_along_axis", "lexsort", "compress", "extract", "choose", "select",
                      "unravel_index", "ravel_multi_index", "ix_"])  # fmt: skip
    a = case.array(low=-5, high=5)
    values = case.of(a)
    axis = case.axis(values.ndim)
    case.name = name
    if name in ("sort", "argsort"):
        options = {"axis": sometimes(case, axis, 0.7), "stable": "True" if name == "argsort" else ...}
        if case.chance(0.3):
            method = f"{a}.sort()" if name == "sort" else f"{a}.argsort(stable=True)"
            case.line(f"s = {method}")
            case.line(f"r = {a}" if name == "sort" else "r = s")
        else:
            call(case, name, a, **options)
    elif name in ("partition", "argpartition"):
        n = values.shape[-1] if values.ndim else 1
        k = case.int(0, max(n - 1, 0))
        text = f"xp.partition({a}, {k})" if name == "partition" else f"xp.take_along_axis({a}, xp.argpartition({a}, {k}), -1)"
        case.line(f"r = {text}[..., {k}]")
    elif name == "searchsorted":
        if values.dtype.kind == "f":
            case.arrays[a] = np.nan_to_num(values)
        case.line(f"s = xp.sort({a}, axis=None)")
        v = case.array([values.dtype.str] if case.chance(0.6) or values.dtype.kind in "Mm" else NUMBERS, own=case.chance(0.7), low=-6, high=6)
        case.line(f"r = xp.searchsorted(s, {v}, side={case.pick(['left', 'right'])!r})")
    elif name == "where1":
        case.line(f"r = xp.where({a})")
    elif name == "take":
        n = values.size if axis is None else values.shape[axis] if -values.ndim <= axis < values.ndim else 1
        mode = sometimes(case, repr(case.pick(["clip", "wrap"])), 0.3)
        call(case, name, a, index_text(case, n, case.pick([(2,), (3,), (2, 2), (0,)])), axis=axis, mode=mode)
    elif name == "take_along_axis":
        axis = case.int(0, max(values.ndim - 1, 0)) if case.chance(0.8) else None
        shape = list(values.shape) if axis is not None else [values.size]
        n = shape[axis or 0] if shape else 1
        if shape:
            shape[axis or 0] = case.int(0, 4)
        b = case.add(case.numbers.integers(-n, n, shape) if n else np.zeros(shape, "i8"))
        call(case, name, a, b, axis=axis)
    elif name == "lexsort":
        keys = [case.array(REAL, shape=(5,), low=0, high=2) for _ in range(case.int(1, 3))]
        call(case, name, f"({', '.join(keys)},)")
    elif name == "compress":
        n = values.size if axis is None else values.shape[axis] if -values.ndim <= axis < values.ndim else 1
        call(case, name, case.add(case.values("?", (max(n - case.int(0, 1), 0),)), own=case.chance(0.5)), a, axis=axis)
    elif name == "extract":
        call(case, name, case.add(case.values("?", values.shape), own=case.chance(0.5)), a)
    elif name == "choose":
        index = case.array(["i8", "u1", "?"], low=0, high=1)
        shape = case.of(index).shape
        choices = [case.array([values.dtype.str], shape=case.repeated(shape)) for _ in range(2)]
        call(case, name, index, f"[{', '.join(choices)}]", mode=sometimes(case, repr(case.pick(["wrap", "clip"])), 0.3))
    elif name == "select":
        conditions = [case.mask(values.shape, own=True) for _ in range(2)]
        choices = [a, case.array([values.dtype.str] if values.dtype.kind in "Mm" else NUMBERS, shape=case.repeated(values.shape))]
        call(case, name, f"[{', '.join(conditions)}]", f"[{', '.join(choices)}]", default=sometimes(case, case.number(values.dtype)))
    elif name == "unravel_index":
        shape = case.shape(1, 3, 1)
        index = case.add(case.numbers.integers(0, int(np.prod(shape)), case.shape(0, 2)))
        call(case, name, index, shape, order=sometimes(case, "'F'", 0.3))
    elif name == "ravel_multi_index":
        shape = case.shape(1, 3, 1)
        parts = [case.add(case.numbers.integers(0, n, (4,))) for n in shape]
        call(case, name, f"({', '.join(parts)},)", shape, mode=sometimes(case, repr(case.pick(["wrap", "clip"])), 0.3), order=sometimes(case, "'F'", 0.3))
    elif name == "ix_":
        case.arrays[a] = values = values.reshape(-1)
        case.chunks[a] = 2
        b = case.add(case.values("?", (3,)))
        case.line(f"r = xp.ix_({a}, {b})")
    else:
        call(case, name, a)


@kind(5)
def sets(case: Case) -> None:
    name = case.pick(["unique", "unique_values", "unique_counts", "unique_inverse", "unique_all", "intersect1d", "union1d", "setdiff1d", "setxor1d", "isin"])
    a = case.array(low=-4, high=4)
    values = case.of(a)
    if name == "unique":
        options = {key: sometimes(case, True) for key in ("return_index", "return_inverse", "return_counts")}
        call(case, name, a, **options, axis=sometimes(case, case.axis(values.ndim), 0.3), equal_nan=sometimes(case, False, 0.2))
    elif name.startswith("unique"):
        if values.dtype.kind in "fMm":
            # Several NaN are distinct, and their order is nobody's affair.
            case.arrays[a] = np.nan_to_num(values, nan=2) if values.dtype.kind == "f" else np.where(np.isnat(values), values.dtype.type(2, "s"), values).astype(values.dtype)
        call(case, name, a)
        case.line("r = tuple(r)" if name != "unique_values" else "r = xp.sort(r)")
    else:
        b = case.array([values.dtype.str] if case.chance(0.7) or values.dtype.kind in "Mm" else NUMBERS, low=-4, high=4, own=case.chance(0.8))
        invert = sometimes(case, True, 0.3) if name == "isin" else ...
        indices = sometimes(case, True, 0.3) if name == "intersect1d" else ...
        call(case, name, a, b, invert=invert, return_indices=indices)


# Statistics


@kind(8)
def statistics(case: Case) -> None:
    name = case.pick(["quantile", "percentile", "nanquantile", "nanpercentile", "histogram", "histogram_bin_edges", "histogram2d", "histogramdd", "bincount", "digitize", "cov", "corrcoef", "average", "trapezoid",
                      "gradient", "interp", "convolve", "correlate"])  # fmt: skip
    make = STATISTICS.get(name, quantiles)
    case.loose = 10
    make(case, name)


def quantiles(case: Case, name: str) -> None:
    a = case.array(BOOLS + REAL if case.chance(0.2) else REAL)
    if case.of(a).dtype.kind == "f":
        # Beside an infinity NumPy finds NaN, where a quantile is known.
        case.arrays[a] = np.nan_to_num(case.of(a), nan=np.nan, posinf=9, neginf=-9)
    if case.of(a).dtype == "f2":
        # NumPy rounds distances of halves.
        case.loose = 4e8
    scale = 100 if "percentile" in name else 1
    levels = [case.pick([0, 0.25, 0.5, 0.3, 0.9, 1.0]) * scale for _ in range(case.int(1, 3))]
    methods = ["linear", "linear", "lower", "higher", "midpoint", "nearest", "hazen", "weibull", "median_unbiased", "normal_unbiased", "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf"]
    call(case, name, a, levels if case.chance(0.5) else levels[0], axis=sometimes(case, case.axes(case.of(a).ndim), 0.7), method=sometimes(case, repr(case.pick(methods)), 0.6), keepdims=sometimes(case, True, 0.3))


def bins_of(case: Case) -> Any:
    return case.pick([case.int(1, 6), [-5, 0, 1, 4], [-2.5, 2.5], case.int(1, 6)])


def histograms(case: Case, name: str) -> None:
    a = case.array(REAL, finite=True, low=-9, high=9)
    values = case.of(a)
    if name in ("histogram", "histogram_bin_edges"):
        weights = case.array(WHOLE + ["f4", "f8"], shape=values.shape, finite=True, low=0, high=5)
        options = {} if name != "histogram" else {"density": sometimes(case, True, 0.3), "weights": sometimes(case, weights, 0.3)}
        call(case, name, a, bins_of(case), range=sometimes(case, (-4, 5), 0.3), **options)
        return
    points = [case.array(["f8", "i4"], shape=(9,), finite=True, low=-9, high=9) for _ in range(2)]
    if name == "histogram2d":
        call(case, name, *points, bins=sometimes(case, case.pick([3, (2, 3), [[-5, 0, 5], [-9, 9]]])), density=sometimes(case, True, 0.3))
    else:
        case.line(f"s = xp.stack([{', '.join(points)}], axis=1)")
        call(case, name, "s", bins=case.pick([3, (2, 4)]), density=sometimes(case, True, 0.3))


def counts(case: Case, name: str) -> None:
    if name == "bincount":
        a = case.array(WHOLE + BOOLS, shape=case.shape(1, 1), low=0, high=9)
        weights = case.array(REAL, shape=case.of(a).shape, finite=True)
        call(case, name, a, weights=sometimes(case, weights), minlength=sometimes(case, case.int(0, 12)))
    else:
        edges = sorted(case.pick([[0, 1, 2], [-3.5, 0.0, 4], [1], [0, 0, 3]]), reverse=case.chance(0.3))
        call(case, name, case.array(REAL), edges, right=sometimes(case, True))


def covariances(case: Case, name: str) -> None:
    a = case.array(NUMBERS, shape=case.shape(1, 2, 1), finite=True, low=-9, high=9)
    shape = case.of(a).shape
    options: dict[str, Any] = {"rowvar": sometimes(case, False, 0.3)}
    if name == "cov":
        n = shape[0] if options["rowvar"] is False and len(shape) == 2 else shape[-1]
        options |= {"bias": sometimes(case, True, 0.3), "ddof": sometimes(case, case.int(0, 2), 0.3)}
        options["fweights"] = sometimes(case, case.array(["i8"], shape=(n,), low=1, high=4), 0.2)
        options["aweights"] = sometimes(case, case.array(["f8"], shape=(n,), finite=True, low=1, high=4), 0.2)
    b = case.array(REAL, shape=shape, finite=True)
    call(case, name, a, y=sometimes(case, b, 0.3), **options)


def averages(case: Case, name: str) -> None:
    a = case.array(NUMBERS, finite=True)
    values = case.of(a)
    axis = case.axes(values.ndim)
    shape = values.shape
    if isinstance(axis, int) and -values.ndim <= axis < values.ndim and case.chance(0.5):
        shape = (shape[axis],)
    weights = case.array(REAL, shape=shape, finite=True, low=1, high=5)
    call(case, name, a, axis=axis, weights=sometimes(case, weights, 0.7), returned=sometimes(case, True, 0.3), keepdims=sometimes(case, True, 0.2))


def integrals(case: Case, name: str) -> None:
    a = case.array(REAL + COMPLEX, shape=case.shape(1, 3, 1), finite=True)
    axis = case.int(0, case.of(a).ndim - 1)
    n = case.of(a).shape[axis]
    places = case.add(np.cumsum(case.numbers.integers(1, 4, n)).astype(case.pick(["f8", "i4"])))
    if name == "trapezoid":
        call(case, name, a, x=sometimes(case, places), dx=sometimes(case, 0.5, 0.3), axis=axis)
    else:
        spacing = case.pick([[], [2], [0.5], [places]])
        call(case, name, a, *spacing, axis=axis if spacing or case.chance(0.5) else ..., edge_order=sometimes(case, 2, 0.3))


def lines(case: Case, name: str) -> None:
    if name == "interp":
        xp = case.add(np.cumsum(case.numbers.integers(1, 4, 5)) * 1.0)
        fp = case.array(["f8", "i4", "c16"], shape=(5,), finite=True)
        call(case, name, case.array(REAL, low=-2, high=18), xp, fp, left=sometimes(case, 7, 0.3), right=sometimes(case, -7, 0.3), period=sometimes(case, 20, 0.15))
    else:
        a, b = (case.array(NUMBERS, shape=(case.int(1, 8),), finite=True, low=-5, high=5) for _ in range(2))
        call(case, name, a, b, mode=sometimes(case, repr(case.pick(["full", "same", "valid"])), 0.8))


STATISTICS = {"histogram": histograms, "histogram_bin_edges": histograms, "histogram2d": histograms, "histogramdd": histograms, "bincount": counts, "digitize": counts, "cov": covariances,
              "corrcoef": covariances, "average": averages, "trapezoid": integrals, "gradient": integrals, "interp": lines, "convolve": lines, "correlate": lines}  # fmt: skip


# Linear algebra


@kind(6)
def products(case: Case) -> None:
    name = case.pick(["matmul", "@", "dot", "inner", "outer", "vdot", "tensordot", "vecdot", "kron", "cross", "einsum", "polyval", "vander"])
    case.loose = 10
    types = NUMBERS if name != "polyval" else REAL
    n, m, k = (case.int(1, 5) for _ in range(3))
    batch = case.pick([(), (), (2,), (1,), (2, 3)])
    if name in ("matmul", "@", "dot"):
        first = case.pick([(*batch, n, m), (m,), (n, m)])
        second = case.pick([(*batch, m, k), (m,), (m, k)]) if case.chance(0.97) else (m + 1, k)
        a, b = (case.array(types, shape=s, finite=True, low=-5, high=5) for s in (first, second))
        case.name = name
        case.line(f"r = {a} @ {b}" if name == "@" else f"r = xp.{name}({a}, {b})")
    elif name in ("inner", "vecdot", "vdot"):
        a, b = (case.array(types, shape=s, finite=True, low=-5, high=5) for s in ((n, m), case.pick([(m,), (n, m)])))
        call(case, name, a, b)
    elif name in ("outer", "kron"):
        a, b = (case.array(types, shape=case.shape(0, 2), finite=True, low=-5, high=5) for _ in range(2))
        call(case, name, a, b)
    elif name == "tensordot":
        a, b = (case.array(types, shape=s, finite=True, low=-5, high=5) for s in ((n, m, k), (m, k, n)))
        call(case, name, a, b, axes=case.pick([0, 2, 1, "([1, 2], [0, 1])", "(0, 2)", "([0, 2], [2, 1])"]))
    elif name == "cross":
        a, b = (case.array(types, shape=s, finite=True, low=-5, high=5) for s in ((n, 3), case.pick([(3,), (n, 3)])))
        call(case, name, a, b)
    elif name == "einsum":
        text, letters = case.pick([("ij,jk->ik", 2), ("ij,ij->", 2), ("ij->ji", 1), ("ij,j", 2), ("i,j->ij", 2), ("ii->i", 1), ("ij,jk,kl->il", 3), ("...j,j->...", 2), ("ij->j", 1), ("ij,kj->ijk", 2), ("ii", 1)])
        sizes = dict.fromkeys("ijkl", n) if "ii" in text else dict(zip("ijkl", (n, m, k, 2), strict=True))
        shapes = [tuple(sizes[letter] for letter in part.replace("...", "i")) for part in text.split("->")[0].split(",")]
        call(case, name, repr(text), *(case.array(types, shape=s, finite=True, low=-4, high=4) for s in shapes))
    elif name == "polyval":
        call(case, name, case.array(types, shape=(4,), finite=True, low=-3, high=3), case.array(["f8", "i8"], finite=True, low=-3, high=3))
    else:
        call(case, name, case.array(types, shape=(n,), finite=True, low=-3, high=3), N=sometimes(case, 3), increasing=sometimes(case, True))


@kind(4)
def linear_algebra(case: Case) -> None:
    name = case.pick(["det", "inv", "solve", "qr", "svd", "svdvals", "eigh", "eigvalsh", "eigvals", "cholesky", "norm", "matrix_norm", "vector_norm", "matrix_power", "matrix_rank", "pinv", "slogdet", "lstsq", "cond",
                      "multi_dot", "trace", "diagonal", "outer", "cross", "matmul", "tensordot", "vecdot", "matrix_transpose"])  # fmt: skip
    case.loose = 1e4
    n, m = case.int(1, 5), case.int(1, 5)
    batch = case.pick([(), (), (), (2,), (2, 1)])
    types = WIDE if case.chance(0.8) else [*WHOLE, *WIDE, "?"]
    square = case.values(case.pick(types), (*batch, n, n), finite=True, low=-5, high=5)
    case.name = f"linalg.{name}"
    full = f"xp.linalg.{name}"
    if name in ("det", "inv", "slogdet", "solve", "cond", "matrix_power", "eigvals"):
        # Far from singular, so that rounding does not decide.
        a = case.add(square + (20 * np.eye(n)).astype(square.dtype) if square.dtype.kind != "b" else np.broadcast_to(np.eye(n, dtype=bool), square.shape).copy())
        other = case.array(WIDE, shape=case.pick([(*batch, n, m), (n,)]) if name == "solve" else (), finite=True)
        more = f", {other}" if name == "solve" else f", {case.int(-2, 4)}" if name == "matrix_power" else ""
        case.line(f"r = {full}({a}{more})")
        case.line("r = xp.sort(xp.abs(r), axis=-1)" if name == "eigvals" else "r = tuple(r)" if name == "slogdet" else "pass")
    elif name in ("eigh", "eigvalsh", "cholesky"):
        product = square @ np.conj(np.swapaxes(square, -1, -2)) if square.dtype.kind in "fc" else square
        a = case.add(product + (20 * np.eye(n)).astype(square.dtype) if square.dtype.kind in "fc" else np.broadcast_to(np.eye(n, dtype=square.dtype), square.shape).copy())
        case.line(f"r = {full}({a})")
        if name == "eigh":
            case.line(f"r = (r[0], xp.matmul({a}, r[1]) - r[1] * r[0][..., None, :])")
    elif name in ("qr", "svd", "svdvals", "pinv", "matrix_rank"):
        a = case.array(types, shape=(*batch, n, m), finite=True, low=-5, high=5)
        if name == "qr":
            case.line(f"q, s = {full}({a}{case.pick(['', ', mode=' + repr('complete')])})")
            case.line("r = (xp.matmul(q, s), xp.abs(s))")
        elif name == "svd":
            case.line(f"u, s, v = {full}({a}, full_matrices=False)")
            case.line("r = (s, xp.matmul(u * s[..., None, :], v))")
        else:
            case.line(f"r = {full}({a})")
    elif name == "lstsq":
        a, b = case.array(["f8"], shape=(n + 3, n), finite=True), case.array(["f8"], shape=(n + 3, m), finite=True)
        case.line(f"r = {full}({a}, {b}, rcond=None)[0] @ xp.ones({m})" if case.chance(0.2) else f"s = {full}({a}, {b}); r = (s[0], s[3])")
    elif name in ("norm", "matrix_norm", "vector_norm"):
        a = case.array(types, shape=(*batch, n, m), finite=True, low=-5, high=5)
        orders = {"norm": [None, 1, 2, "np.inf", "'fro'", "'nuc'", -1], "matrix_norm": [1, 2, "np.inf", "'fro'", "'nuc'", -1, -2], "vector_norm": [1, 2, "np.inf", 0, 3, "-np.inf"]}[name]
        axis = f", axis={case.axes(len(batch) + 2)}" if name == "vector_norm" and case.chance(0.6) else ", axis=(-2, -1)" if name == "norm" and batch else ""
        case.line(f"r = {full}({a}{axis}, ord={case.pick(orders)}, keepdims={case.chance(0.3)})")
    elif name == "multi_dot":
        k = case.int(1, 4)
        parts = [case.array(WIDE, shape=s, finite=True, low=-4, high=4) for s in ((n, m), (m, k), (k, 2))]
        case.line(f"r = {full}([{', '.join(parts)}])")
    elif name in ("trace", "diagonal", "matrix_transpose"):
        a = case.array(NUMBERS, shape=(*batch, n, m), finite=True)
        offset = "" if name == "matrix_transpose" or case.chance(0.5) else f", offset={case.int(-2, 2)}"
        case.line(f"r = {full}({a}{offset})")
    else:
        shapes = {"outer": ((n,), (m,)), "cross": ((n, 3), (n, 3)), "matmul": ((*batch, n, m), (*batch, m, n)), "tensordot": ((n, m), (m, n)), "vecdot": ((n, m), (n, m))}[name]
        a, b = (case.array(NUMBERS, shape=s, finite=True, low=-5, high=5) for s in shapes)
        case.line(f"r = {full}({a}, {b}{', axes=1' if name == 'tensordot' else ''})")


@kind(3)
def transforms(case: Case) -> None:
    name = case.pick(["fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2", "fftfreq", "rfftfreq", "fftshift", "ifftshift"])
    case.name, case.loose = f"fft.{name}", 100
    norm = f", norm={case.pick(['backward', 'ortho', 'forward'])!r}" if case.chance(0.3) else ""
    if name in ("fftfreq", "rfftfreq"):
        case.line(f"r = xp.fft.{name}({case.int(1, 9)}, d={case.pick([1.0, 0.5])})")
        return
    real = name in ("rfft", "rfftn", "rfft2", "ihfft")
    a = case.array(BOOLS + REAL if real else NUMBERS, shape=case.shape(2 if "2" in name else 1, 3, 2), finite=True)
    ndim = case.of(a).ndim
    if "shift" in name:
        case.line(f"r = xp.fft.{name}({a}{'' if case.chance(0.5) else f', axes={case.int(0, ndim - 1)}'})")
    elif name.endswith("n"):
        axes = tuple(case.random.sample(range(ndim), case.int(1, ndim)))
        sizes = f", s={tuple(case.int(2, 6) for _ in axes)}" if case.chance(0.3) else ""
        case.line(f"r = xp.fft.{name}({a}{sizes}{f', axes={axes}' if sizes or case.chance(0.6) else ''}{norm})")
    elif "2" in name:
        case.line(f"r = xp.fft.{name}({a}{norm})")
    else:
        n = f", n={case.int(2, 8)}" if case.chance(0.4) else ""
        axis = f", axis={case.int(-ndim, ndim - 1)}" if case.chance(0.5) else ""
        case.line(f"r = xp.fft.{name}({a}{n}{axis}{norm})")


@kind(3)
def creation(case: Case) -> None:
    name = case.pick(["full_like", "ones_like", "zeros_like", "arange", "linspace", "eye", "tri", "indices", "logspace", "geomspace", "identity", "full", "tril_indices", "triu_indices", "diag_indices", "array", "asarray", "copy"])
    case.by_protocol = False
    dtype = sometimes(case, repr(case.pick(NUMBERS)))
    n, m = case.int(0, 5), case.int(1, 5)
    if name in ("full_like", "ones_like", "zeros_like", "copy"):
        a = case.array()
        value = [case.number(case.of(a).dtype)] if name == "full_like" else []
        call(case, name, a, *value, dtype=dtype if name != "copy" and case.of(a).dtype.kind not in "Mm" else ...)
    elif name == "arange":
        call(case, name, case.int(-5, 5), case.int(-9, 9), case.pick([1, 2, -1, 0.5, -3]), dtype=sometimes(case, repr(case.pick(["i8", "f4", "f8", "i2"]))))
    elif name in ("linspace", "logspace", "geomspace"):
        start, stop = case.int(1, 5), case.int(1, 9) / 2
        call(case, name, start, stop, num=case.int(0, 9), endpoint=sometimes(case, False), dtype=sometimes(case, repr(case.pick(["f4", "f8", "c16"]))))
    elif name in ("eye", "tri"):
        call(case, name, n, m, k=case.int(-3, 3), dtype=dtype)
    elif name == "indices":
        call(case, name, (n, m), sparse=sometimes(case, True))
    elif name in ("tril_indices", "triu_indices"):
        call(case, name, n, k=case.int(-2, 2), m=sometimes(case, m))
    elif name in ("identity", "diag_indices"):
        call(case, name, n)
    elif name == "full":
        call(case, name, (n, m), case.int(0, 5), dtype=dtype)
    else:
        text = case.values(case.pick(["?", "i8", "f8", "c16"]), case.shape(0, 3), finite=True).tolist()
        call(case, name, text, dtype=sometimes(case, repr(case.pick(["f4", "f8", "c16"])), 0.3))


# Several steps

STEPS = ["xp.abs({0})", "{0} * 2", "{0} + {1}", "{0} - {1}", "xp.where({0} > {1}, {0}, {1})", "xp.maximum({0}, {1})", "{0}[::-1]", "{0}[..., 1:]", "{0}.T", "xp.cumsum({0}, axis=0)", "{0}.sum(axis=-1, keepdims=True)",
         "{0}.mean(axis=0)", "xp.sort({0}, axis=-1)", "{0}[{0} > 0]", "{0}.reshape(-1)", "xp.flip({0}, axis=0)", "xp.roll({0}, 1)", "xp.concatenate([{0}, {1}])", "xp.stack([{0}, {0}])", "{0}.max(axis=0)",
         "xp.clip({0}, -2, 3)", "{0} ** 2", "xp.diff({0}, axis=0)", "{0}[[0, -1]]", "xp.repeat({0}, 2, axis=0)", "xp.unique({0})", "xp.argsort({0}, axis=-1, stable=True)", "xp.tile({0}, 2)",
         "xp.add({0}, {1}, where={0} > 0, out=xp.zeros_like({0}))", "{0}.sum(where={0} > 1)", "xp.outer({0}, {0})[:4]", "{0}[None, ...]", "xp.nonzero({0})[0]", "xp.pad({0}, 1)", "{0}.var()", "{0} // 3", "xp.isin({0}, [1, 2])",
         "xp.take({0}, [0, 0], axis=0)", "{0} @ {1}.T", "{0}.argmax()", "{0}.astype('f4')", "xp.bincount(xp.abs({0}).astype('i8').ravel())"]  # fmt: skip


@kind(12)
def chain(case: Case) -> None:
    case.name, case.loose = "chain", 1e3
    # Whole numbers, so that rounding decides no comparison.
    values = case.values(case.pick(["i4", "i8", "i8", "f8"]), case.shape(1, 3, 1), finite=True, low=-6, high=6)
    names = [case.add(np.round(values))]
    for i in range(case.int(2, 6)):
        step = case.pick(STEPS).format(case.pick(names[-2:]), case.pick(names))
        found = case.peek(step)
        if found is None or np.size(found) > 500 or np.asarray(found).dtype.kind == "c" or (np.size(found) and not np.all(np.abs(found) < 1e4)):
            continue
        case.line(f"v{i} = {step}")
        names.append(f"v{i}")
        # Of what NumPy gives as a number there are no views, and which of its reshapes are some depends on how elements lie.
        scalars = any(isinstance(case.peek(each), np.generic) for each in names) or any("reshape" in each for each in case.lines)
        if case.chance(0.15) and np.ndim(found) and np.size(found) and not scalars:
            case.line(f"v{i}[{any_key(case, np.shape(found))}] = {case.int(0, 5)}")
            if case.peek("1") is None:
                case.lines.pop()
    case.line(f"r = ({', '.join(names)},)")


# Comparing


def run(case: Case, code: Any, ours: bool) -> tuple[Any, Exception | None]:
    """What a program gives, computed, or raises."""
    names = names_for(case, ours)
    try:
        exec(code, names)
        return (computed(names["r"]) if ours else names["r"]), None
    except Exception as error:
        return None, error


def computed(found: Any) -> Any:
    """Results with their arrays computed, all in one run, after a look at what their shapes and types were said to be."""
    several = isinstance(found, (list, tuple))
    leaves = list(found) if several else [found]
    arrays = [each for each in leaves if isinstance(each, tw.Array)]
    types = [each.dtype for each in arrays]
    made = iter(tw.compute(*arrays))
    results = []
    for each in leaves:
        if isinstance(each, tw.Array):
            array = next(made)
            if array.shape != each.shape or array.dtype != types.pop(0):
                raise AssertionError(f"said to be {each.shape} of {each.dtype}, computed as {array.shape} of {array.dtype}")
            results.append(array)
        else:
            results.append(computed(each) if isinstance(each, (list, tuple)) else each)
    return results if several else results[0]


def difference(found: Any, expected: Any, loose: float) -> str | None:
    """How two results differ, or None."""
    if isinstance(expected, (list, tuple)):
        if not isinstance(found, (list, tuple)) or len(found) != len(expected):
            return f"{len(expected)} results expected"
        return next((text for pair in zip(found, expected, strict=True) if (text := difference(*pair, loose)) is not None), None)
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        return f"shape {found.shape}, not {expected.shape}"
    if found.dtype != expected.dtype:
        return f"type {found.dtype}, not {expected.dtype}"
    if expected.dtype.kind in "Mm":
        return None if np.array_equal(found.astype("i8"), expected.astype("i8")) else "values"
    if expected.dtype.kind not in "fc":
        return None if np.array_equal(found, expected) else "values"
    return None if near(found, expected, loose) else "values"


def near(found: np.ndarray, expected: np.ndarray, loose: float) -> bool:
    if found.size == 0:
        return True
    finite = np.abs(expected[np.isfinite(expected)])
    width = expected.dtype.itemsize // (2 if expected.dtype.kind == "c" else 1)
    tolerance = TOLERANCES[width] * (min(loose, 30) if width < 8 else loose)
    return bool(np.allclose(found.astype("c16"), expected.astype("c16"), rtol=tolerance, atol=tolerance * max(1.0, finite.max(initial=0)), equal_nan=True))


def raised_alike(ours: Exception, theirs: Exception) -> bool:
    return isinstance(ours, (type(theirs), TypeError, ValueError, IndexError, OverflowError)) and not isinstance(ours, AssertionError)


#: Differences that are meant, as docs/python.md lists them: what is said of one, and whether a comparison shows it.
DELIBERATE: list[tuple[str, Callable[[Case, Any, Any], bool]]] = []


def deliberate(reason: str) -> Callable[[Callable[[Case, Any, Any], bool]], None]:
    return lambda check: DELIBERATE.append((reason, check))


def leaves(result: Any) -> list[Any]:
    return [leaf for each in result for leaf in leaves(each)] if isinstance(result, (list, tuple)) else [result]


@deliberate("functions of real numbers take bools and small integers as float64, not as float16 or float32 (docs/dtypes.md)")
def _(case: Case, found: Any, expected: Any) -> bool:
    if isinstance(found, Exception) or isinstance(expected, Exception) or len(leaves(found)) != len(leaves(expected)):
        return False
    pairs = [(np.asarray(ours), np.asarray(theirs)) for ours, theirs in zip(leaves(found), leaves(expected), strict=True)]
    small = case.name.startswith("ldexp") or any(values.dtype.kind in "biu" and values.dtype.itemsize < 4 for values in case.arrays.values())
    wider = any(ours.dtype.kind == "f" and theirs.dtype.kind == "f" for ours, theirs in pairs)
    return small and wider and all(difference(ours.astype("f2"), theirs.astype("f2"), 1) is None for ours, theirs in pairs)


@deliberate("a negative power of integers is the whole part of the reciprocal, where NumPy raises (docs/dtypes.md)")
def _(case: Case, found: Any, expected: Any) -> bool:
    return isinstance(expected, ValueError) and "negative integer powers" in str(expected)


@deliberate("arrays without axes follow NumPy's scalars: what would change type or shape in place makes a new one, also where NumPy has an array without axes")
def _(case: Case, found: Any, expected: Any) -> bool:
    in_place = any(f" {sign}= " in line for line in case.lines for sign in OPERATORS)
    return in_place and isinstance(expected, Exception) and not isinstance(found, Exception) and any(values.ndim == 0 for values in case.arrays.values())


@deliberate("lazy indices outside are an error when elements are read: of nothing none is; those of a list always")
def _(case: Case, found: Any, expected: Any) -> bool:
    nothing = lambda result: not isinstance(result, Exception) and any(np.size(each) == 0 for each in leaves(result))  # noqa: E731
    unchanged = case.name.startswith("a[") and not isinstance(found, Exception) and difference(found, case.of("a"), 1) is None
    none = nothing(expected) or any(values.size == 0 or (values.dtype == "?" and not values.any()) for values in case.arrays.values())
    return (isinstance(expected, IndexError) and (nothing(found) or unchanged)) or (isinstance(found, IndexError) and "out of bounds" in str(found) and none)


@deliberate("transforms of halves are singles, also where NumPy makes halves of them again")
def _(case: Case, found: Any, expected: Any) -> bool:
    return case.name.startswith("fft.") and getattr(expected, "dtype", None) == "f2" and difference(found.astype("f2"), expected, 10) is None


@deliberate("round and conj leave truth values as they are; powers of them are int64 beside a Python integer")
def _(case: Case, found: Any, expected: Any) -> bool:
    truths = any(values.dtype.kind == "b" for values in case.arrays.values())
    return (truths and case.name.split()[0] in ("round", "conj")) or (case.name == "chain" and any("** 2" in line for line in case.lines) and "int8" in case.text)


@deliberate("a Python integer in where() that the type cannot hold is an OverflowError, in NumPy it wraps")
def _(case: Case, found: Any, expected: Any) -> bool:
    return case.name == "where" and isinstance(found, OverflowError)


@deliberate("clip keeps the type of the array beside bounds that are arrays, as the standard says")
def _(case: Case, found: Any, expected: Any) -> bool:
    return case.name == "clip" and case.text.startswith("type")


@deliberate("quantiles of nothing, or of nothing but NaN, have the shape and type of those of something")
def _(case: Case, found: Any, expected: Any) -> bool:
    nothing = [values.size == 0 or (values.dtype in ("f2", "f4") and np.isnan(values).any() and case.text.startswith("type")) for values in case.arrays.values()]
    return case.name in ("quantile", "percentile", "nanquantile", "nanpercentile") and any(nothing)


@deliberate("quantiles at whole levels by some methods are float64, as at all others (docs/guide.md)")
def _(case: Case, found: Any, expected: Any) -> bool:
    return ("quantile" in case.name or "percentile" in case.name) and "method=" in case.lines[0] and case.text == "type float64, not int64"


@deliberate("a span divided by an integer is rounded down by //, in NumPy towards zero (docs/dtypes.md)")
def _(case: Case, found: Any, expected: Any) -> bool:
    kinds = {values.dtype.kind for values in case.arrays.values()}
    return case.text == "values" and "m" in kinds and any(text in case.name for text in ("floor_divide", "//"))


@deliberate("every NaT is distinct in unique(.., equal_nan=False), as every NaN is")
def _(case: Case, found: Any, expected: Any) -> bool:
    return case.name == "unique" and "equal_nan=False" in case.lines[0] and case.of("a").dtype.kind in "Mm" and bool(np.isnat(case.of("a")).any())


@deliberate("a NumPy array of numbers == dates of ours calls np.equal, which refuses them")
def _(case: Case, found: Any, expected: Any) -> bool:
    first = case.lines[0].removeprefix("r = ").split(" ")[0]
    return case.name in ("a == b", "a != b") and first not in case.chunks and isinstance(found, ValueError) and "does not take" in str(found)


@deliberate("what integers give that are divided by zero is not defined: 0 here (docs/dtypes.md)")
def _(case: Case, found: Any, expected: Any) -> bool:
    return case.name.startswith("reciprocal") and case.text == "values" and any(values.dtype.kind in "iub" and not values.all() for values in case.arrays.values())


@deliberate("a span of time does not go into an array of dates: ValueError, where NumPy takes its number")
def _(case: Case, found: Any, expected: Any) -> bool:
    return isinstance(found, ValueError) and "does not convert to datetime64" in str(found)


@deliberate("a standard deviation in a type of whole numbers loses its fraction, as a variance does; NumPy refuses it along an axis")
def _(case: Case, found: Any, expected: Any) -> bool:
    return case.name.startswith("std") and isinstance(expected, TypeError) and "dtype=" in case.lines[0]


@deliberate("averages of nothing along an axis are nothing, where NumPy divides by zero")
def _(case: Case, found: Any, expected: Any) -> bool:
    return case.name == "average" and isinstance(expected, ZeroDivisionError) and all(np.size(each) == 0 for each in leaves(found)[:1])


@deliberate("exponents of ldexp may be uint64")
def _(case: Case, found: Any, expected: Any) -> bool:
    return case.name.startswith("ldexp") and isinstance(expected, TypeError) and any(values.dtype == "u8" for values in case.arrays.values())


@deliberate("complex numbers do not become real ones by themselves: TypeError, where NumPy warns")
def _(case: Case, found: Any, expected: Any) -> bool:
    complex_in = any(values.dtype.kind == "c" for values in case.arrays.values()) or any("2j" in line for line in case.lines)
    return complex_in and isinstance(found, TypeError) and any(text in str(found) for text in ("take the real part first", "do not go into", "does not go into"))


def compare(case: Case) -> str | None:
    """How the results of a program differ, or None. Leaves what was deliberate in ``case.excuse``."""
    case.excuse = None
    code = compile("\n".join(case.lines), "<program>", "exec")
    expected, theirs = run(case, code, ours=False)
    found, ours = run(case, code, ours=True)
    if theirs is not None:
        text = None if ours is not None and raised_alike(ours, theirs) else f"NumPy raises {type(theirs).__name__}: {theirs}; here {describe(ours)}"
    elif ours is not None:
        text = f"raises {describe(ours)}"
    else:
        text = difference(found, expected, case.loose)
    if text is None:
        return None
    case.found, case.expected, case.text = ours or found, theirs or expected, text
    case.excuse = next((reason for reason, check in DELIBERATE if check(case, case.found, case.expected)), None)
    return None if case.excuse else text


def describe(error: Exception | None) -> str:
    return "nothing is raised" if error is None else f"{type(error).__name__}: {str(error)[:300]}"


def simplified(case: Case, text: str) -> str:
    """Makes a program that differs plainer as long as it still does: arrays in one block, functions called directly."""
    for change in ("chunks", "by_protocol"):
        before = getattr(case, change)
        setattr(case, change, dict.fromkeys(case.chunks) if change == "chunks" else False)
        plainer = compare(case)
        if plainer is None:
            setattr(case, change, before)
        else:
            text = plainer
    return text


# The whole run


def make(seed: int, number: int) -> Case:
    case = Case(seed, number)
    chosen = case.random.choices([each for each, _ in KINDS], [weight for _, weight in KINDS])[0]
    chosen(case)
    return case


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000, help="how many programs are compared")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--at", type=int, help="only the program of this number")
    parser.add_argument("--first", type=int, default=0, help="the number of the first program")
    parser.add_argument("--only", default="", help="only programs whose name contains this text")
    parser.add_argument("--each", type=int, default=2, help="how many examples of a kind of difference are printed")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    numbers = [options.at] if options.at is not None else range(options.first, options.first + options.count)
    compared, failed, shown, excused = Counter(), Counter(), Counter(), Counter()
    start = time.monotonic()
    for number in numbers:
        case = make(options.seed, number)
        if options.only not in case.name:
            continue
        compared[case.name] += 1
        text = compare(case)
        if case.excuse:
            excused[case.excuse] += 1
        if text is None:
            continue
        failed[case.name] += 1
        sort = (case.name, text.split(":")[0][:60])
        shown[sort] += 1
        if shown[sort] <= options.each:
            text = simplified(case, text)
            print(f"--- {case.name} (--seed {options.seed} --at {number}): {text}\n{case.code()}\n# expected: {str(case.expected)[:400]}\n# found:    {str(case.found)[:400]}\n", flush=True)
    summary(compared, failed, excused, time.monotonic() - start)
    return bool(failed)


def summary(compared: Counter, failed: Counter, excused: Counter, seconds: float) -> None:
    print("| function | compared | differ |\n|---|---|---|")
    for name, count in sorted(compared.items()):
        print(f"| `{name}` | {count} | {failed[name]} |")
    for reason, count in excused.most_common():
        print(f"deliberate, {count} times: {reason}")
    print(f"{compared.total()} comparisons in {seconds:.0f} s, {len(compared)} kinds; {excused.total()} differ on purpose, {failed.total()} otherwise")


if __name__ == "__main__":
    sys.exit(main())
