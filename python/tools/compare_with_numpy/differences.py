"""Differences from NumPy that are meant, as docs/python.md lists them, each with what shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .case import Case
from .comparing import difference, leaves
from .elementwise import OPERATORS

DELIBERATE: list[tuple[str, Callable[[Case, Any, Any], bool]]] = []


def deliberate(reason: str) -> Callable[[Callable[[Case, Any, Any], bool]], None]:
    return lambda check: DELIBERATE.append((reason, check))


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
    return in_place and isinstance(expected, Exception) and not isinstance(found,
        Exception) and any(values.ndim == 0 for values in case.arrays.values())


@deliberate("lazy indices outside are an error when elements are read: of nothing none is; those of a list always")
def _(case: Case, found: Any, expected: Any) -> bool:
    nothing = lambda result: not isinstance(result, Exception) and any(np.size(each) == 0 for each in leaves(result))  # noqa: E731
    unchanged = case.name.startswith("a[") and not isinstance(found, Exception) and difference(found, case.of("a"), 1) is None
    none = nothing(expected) or any(values.size == 0 or (values.dtype == "?" and not values.any()) for values in case.arrays.values())
    return (isinstance(expected, IndexError) and (nothing(found) or unchanged)) or (isinstance(found,
        IndexError) and "out of bounds" in str(found) and none)


@deliberate("transforms of halves are singles, also where NumPy makes halves of them again")
def _(case: Case, found: Any, expected: Any) -> bool:
    return case.name.startswith("fft.") and getattr(expected, "dtype", None) == "f2" and difference(found.astype("f2"), expected,
        10) is None


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
    return case.name in ("a == b", "a != b") and first not in case.chunks and isinstance(found,
        ValueError) and "does not take" in str(found)


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
    return complex_in and isinstance(found, TypeError) and any(text in str(found) for text in ("take the real part first",
        "do not go into", "does not go into"))
