"""Differences from NumPy that are meant, as docs/python.md lists them, each with a check of what shows it.

A check must hold for nothing but the difference that it describes: it names functions, types, messages and, where it can, the elements.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from .case import Case, names_for
from .comparing import difference, leaves, near

#: What is said of a difference, and whether a comparison shows it: a case with both results, or the exceptions instead of them.
DELIBERATE: list[tuple[str, Callable[[Case, Any, Any], bool]]] = []

#: A line such as ``a[1] += b``.
IN_PLACE = re.compile(r"(.+?) (\+|-|\*|/|//|%|\*\*|&|\||\^|<<|>>)= (.+)")


def deliberate(reason: str) -> Callable[[Callable[[Case, Any, Any], bool]], None]:
    return lambda check: DELIBERATE.append((reason, check))


def pairs(found: Any, expected: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """The arrays of two results side by side; none if something was raised or their numbers differ."""
    if isinstance(found, Exception) or isinstance(expected, Exception) or len(leaves(found)) != len(leaves(expected)):
        return []
    return [(np.asarray(ours), np.asarray(theirs)) for ours, theirs in zip(leaves(found), leaves(expected), strict=True)]


def differing(case: Case, found: Any, expected: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Those of them that differ."""
    return [(ours, theirs) for ours, theirs in pairs(found, expected) if difference(ours, theirs, case.loose) is not None]


def has(case: Case, kinds: str, size: int = 16) -> bool:
    """Whether an array of the program has a type of these kinds and at most this many bytes."""
    return any(values.dtype.kind in kinds and values.dtype.itemsize <= size for values in case.arrays.values())


def function(case: Case) -> str:
    """The name of the function that a program is about, without its options."""
    return case.name.removesuffix(" where=")


# Types

#: What NumPy computes in the smallest float that holds the integers.
REAL_FUNCTIONS = set(
    """
    sqrt exp expm1 exp2 log log1p log2 log10 sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh cbrt fabs
    deg2rad rad2deg frexp modf hypot arctan2 copysign logaddexp logaddexp2 heaviside ldexp nextafter angle rint
    """.split()
)


@deliberate("functions of real numbers take bools and small integers as float64, not as float16 or float32 (docs/dtypes.md)")
def _(case: Case, found: Any, expected: Any) -> bool:
    # A Python number beside the exponents of ldexp is a half in NumPy, whatever it is.
    if function(case) not in REAL_FUNCTIONS or not (has(case, "biu", 2) or function(case) == "ldexp"):
        return False
    into = any("out=" in line for line in case.lines)

    def wider(ours: np.ndarray, theirs: np.ndarray) -> bool:
        if ours.shape != theirs.shape:
            return False
        if ours.dtype == "f8" and theirs.dtype in ("f2", "f4"):
            return near(ours.astype(theirs.dtype), theirs, 1)
        # Into an array that was given, the same but for what NumPy has rounded before.
        return into and ours.dtype == theirs.dtype and ours.dtype.kind in "fc" and near(ours, theirs, 4e8)

    return all(wider(*pair) for pair in differing(case, found, expected)) and pairs(found, expected) != []


@deliberate("round and conj leave truth values as they are; in NumPy they become float16 and int8")
def _(case: Case, found: Any, expected: Any) -> bool:
    if case.name == "round" and isinstance(expected, TypeError) and case.of("a").dtype == "?":
        # To tenths it refuses them.
        return not isinstance(found, Exception) and difference(found, case.of("a"), 1) is None
    theirs_type = {"round": "f2", "conj": "i1"}.get(function(case))
    apart = differing(case, found, expected)
    return bool(apart) and all(ours.dtype == "?" and theirs.dtype == theirs_type and np.array_equal(ours, theirs) for ours, theirs in apart)


@deliberate("powers of truth values with a Python integer are int64, in NumPy int8")
def _(case: Case, found: Any, expected: Any) -> bool:
    if case.name != "chain" or not any("** 2" in line for line in case.lines):
        return False
    apart = differing(case, found, expected)
    # Later steps keep the type, or meet in a wider one; the first difference is the power itself.
    same = all(ours.shape == theirs.shape and near(ours.astype("f8"), theirs.astype("f8"), case.loose) for ours, theirs in apart)
    return bool(apart) and same and apart[0][0].dtype == "i8" and apart[0][1].dtype == "i1"


@deliberate("transforms of halves are singles, also where NumPy makes halves of them again")
def _(case: Case, found: Any, expected: Any) -> bool:
    if case.name not in ("fft.irfft", "fft.hfft", "fft.irfftn", "fft.irfft2") or getattr(expected, "dtype", None) != "f2":
        return False
    return getattr(found, "dtype", None) == "f4" and difference(found.astype("f2"), expected, 10) is None


@deliberate("clip keeps the type of the array beside bounds that are arrays, as the standard says")
def _(case: Case, found: Any, expected: Any) -> bool:
    apart = differing(case, found, expected)
    kept = all(ours.dtype == case.of("a").dtype and difference(ours, theirs.astype(ours.dtype), 1) is None for ours, theirs in apart)
    return case.name == "clip" and bool(apart) and case.text.startswith("type") and kept


@deliberate("quantiles at whole levels by some methods are float64, as at all others (docs/guide.md)")
def _(case: Case, found: Any, expected: Any) -> bool:
    quantile = "quantile" in case.name or "percentile" in case.name
    if not quantile or "method=" not in case.lines[0] or case.text != "type float64, not int64":
        return False
    return difference(found, np.asarray(expected).astype("f8"), 1) is None


@deliberate("nanquantile of nothing, or beside parts that are nothing but NaN, has the shape and type of other quantiles")
def _(case: Case, found: Any, expected: Any) -> bool:
    if case.name not in ("nanquantile", "nanpercentile") or not pairs(found, expected):
        return False
    values = case.of("a")
    if values.size == 0:
        return bool(np.isnan(found).all())
    singles = values.dtype in ("f2", "f4") and bool(np.isnan(values).any()) and expected.dtype == values.dtype
    return singles and found.dtype == "f8" and difference(found.astype(values.dtype), expected, case.loose) is None


# Elements


@deliberate("a float that an integer type cannot hold becomes the nearest it can, in NumPy what the machine makes of it (docs/dtypes.md)")
def _(case: Case, found: Any, expected: Any) -> bool:
    written = case.name in ("views", "full", "full_like") or (case.name.startswith("a") and "=" in case.name)
    # NumPy meets uint64 and signed integers in float64, too.
    mixed = has(case, "u") and has(case, "i")
    floats = has(case, "f") or mixed or any("np.float32" in line or "np.int8" in line for line in case.lines) or "full" in case.name
    apart = differing(case, found, expected)

    def nearest(ours: np.ndarray, theirs: np.ndarray) -> bool:
        if ours.dtype != theirs.dtype or ours.dtype.kind not in "iu" or ours.shape != theirs.shape:
            return False
        limits = np.iinfo(ours.dtype)
        # NaN becomes 0, which is the least unsigned number as well.
        return bool(np.isin(ours[ours != theirs], [limits.min, limits.max, 0]).all())

    return written and floats and bool(apart) and all(nearest(*pair) for pair in apart)


@deliberate("a negative power of integers is the whole part of the reciprocal, where NumPy raises (docs/dtypes.md)")
def _(case: Case, found: Any, expected: Any) -> bool:
    refused = isinstance(expected, ValueError) and "negative integer powers" in str(expected)
    return refused and not isinstance(found, Exception) and all(np.asarray(each).dtype.kind in "iub" for each in leaves(found)[:1])


@deliberate("what integers give that are divided by zero is not defined: 0 here (docs/dtypes.md)")
def _(case: Case, found: Any, expected: Any) -> bool:
    apart = differing(case, found, expected)
    zeros = all(ours.shape == theirs.shape and not ours[ours != theirs].any() for ours, theirs in apart)
    divided = any(values.dtype.kind in "iub" and not values.all() for values in case.arrays.values())
    # A mean or variance of nothing is divided by the number of elements.
    of_nothing = function(case) in ("mean", "var", "std") and any(values.size == 0 for values in case.arrays.values())
    whole = all(ours.dtype.kind in "iu" for ours, _ in apart)
    return case.text == "values" and zeros and whole and (of_nothing or (function(case) == "reciprocal" and divided))


@deliberate("a span divided by an integer is rounded down by //, in NumPy towards zero (docs/dtypes.md)")
def _(case: Case, found: Any, expected: Any) -> bool:
    if case.text != "values" or not has(case, "m") or not any(text in case.name for text in ("floor_divide", "//", "divmod")):
        return False
    steps = [np.unique(theirs.astype("i8") - ours.astype("i8")) for ours, theirs in differing(case, found, expected)]
    return all(set(step.tolist()) <= {0, 1} for step in steps)


@deliberate("every NaT is distinct in unique(.., equal_nan=False), as every NaN is")
def _(case: Case, found: Any, expected: Any) -> bool:
    if case.name != "unique" or "equal_nan=False" not in case.lines[0] or case.of("a").dtype.kind not in "Mm":
        return False
    several = int(np.isnat(case.of("a")).sum()) > 1
    return several and not isinstance(found, Exception) and len(leaves(found)[0]) > len(leaves(expected)[0])


@deliberate("a standard deviation in a type of whole numbers loses its fraction, as a variance does; NumPy refuses it along an axis")
def _(case: Case, found: Any, expected: Any) -> bool:
    whole = any(f"dtype={name!r}" in case.lines[0] for name in ("i8", "u4"))
    return function(case) == "std" and isinstance(expected, TypeError) and whole and not isinstance(found, Exception)


@deliberate("averages of nothing along an axis are nothing, where NumPy divides by zero")
def _(case: Case, found: Any, expected: Any) -> bool:
    if case.name != "average" or not isinstance(expected, ZeroDivisionError) or isinstance(found, Exception):
        return False
    return all(np.size(each) == 0 for each in leaves(found))


@deliberate("exponents of ldexp may be uint64")
def _(case: Case, found: Any, expected: Any) -> bool:
    wide = any(values.dtype == "u8" for values in case.arrays.values())
    return function(case) == "ldexp" and isinstance(expected, TypeError) and not isinstance(found, Exception) and wide


@deliberate("arrays without axes follow NumPy's scalars: what would change their type or shape in place makes a new array")
def _(case: Case, found: Any, expected: Any) -> bool:
    line = next((line for line in case.lines if IN_PLACE.fullmatch(line)), None)
    if line is None or not isinstance(expected, Exception) or isinstance(found, Exception):
        return False
    target, sign, value = IN_PLACE.fullmatch(line).groups()
    if np.ndim(case.peek(target, before=line)) != 0:
        return False
    names = names_for(case, ours=False)
    try:
        exec("\n".join(each if each != line else f"{target} = {target} {sign} {value}" for each in case.lines), names)
    except Exception:
        return False
    # The power of a truth value has another type besides, as it has where it is not written in place.
    powers = sign == "**" and getattr(found, "dtype", None) == "i8" and getattr(names["r"], "dtype", None) == "i1"
    return difference(found.astype("i1") if powers else found, names["r"], case.loose) is None


# Exceptions


@deliberate("lazy indices outside are an error when elements are read: of nothing none is; those of a list always")
def _(case: Case, found: Any, expected: Any) -> bool:
    def nothing(result: Any) -> bool:
        return not isinstance(result, Exception) and any(np.size(each) == 0 for each in leaves(result))

    outside = [each for each in (found, expected) if isinstance(each, IndexError) and "out of bounds" in str(each)]
    none = any(values.size == 0 or (values.dtype == "?" and not values.any()) for values in case.arrays.values())
    none = none or selects_nothing(case)
    unchanged = case.name.startswith("a[") and not isinstance(found, Exception) and difference(found, case.of("a"), 1) is None
    return len(outside) == 1 and (nothing(found) or nothing(expected) or (none and (unchanged or isinstance(found, IndexError))))


def selects_nothing(case: Case) -> bool:
    """Whether the part that the first line writes to has no elements, wherever its indices point; or that of any line, by a list that holds nowhere."""
    if any(re.match(r"\w+\[.*\[False(, False)*\].*\] \S*= ", line) for line in case.lines):
        return True
    part = re.match(r"(a\[.*\]) \S*= ", case.lines[0])
    names = {name: np.zeros_like(values) if values.dtype.kind in "iu" else values for name, values in case.arrays.items()}
    try:
        return part is not None and np.size(eval(part[1], {"np": np}, names)) == 0
    except IndexError:
        return False


@deliberate("a Python integer in where() that the type cannot hold is an OverflowError, in NumPy it wraps")
def _(case: Case, found: Any, expected: Any) -> bool:
    return case.name == "where" and isinstance(found, OverflowError) and not isinstance(expected, Exception) and has(case, "iu")


@deliberate("a NumPy array of numbers == dates of ours calls np.equal, which refuses them")
def _(case: Case, found: Any, expected: Any) -> bool:
    first = case.lines[0].removeprefix("r = ").split(" ")[0]
    refused = isinstance(found, (TypeError, ValueError)) and "does not take" in str(found) and not isinstance(expected, Exception)
    return case.name in ("a == b", "a != b") and first not in case.chunks and refused


@deliberate("a span of time does not go into an array of dates: TypeError, where NumPy takes its number")
def _(case: Case, found: Any, expected: Any) -> bool:
    refused = isinstance(found, (TypeError, ValueError)) and "timedelta64" in str(found) and "does not convert to datetime64" in str(found)
    return refused and not isinstance(expected, Exception)


@deliberate("complex numbers do not become real ones by themselves: TypeError, where NumPy warns or fails later")
def _(case: Case, found: Any, expected: Any) -> bool:
    complex_in = has(case, "c") or any("2j" in line for line in case.lines)
    texts = ("take the real part first", "do not go into", "does not go into")
    refused = isinstance(found, TypeError) and any(text in str(found) for text in texts)
    # Histograms of NumPy take complex numbers and fail in the middle, with whatever fails there.
    fails_later = isinstance(expected, Exception) and any("histogram" in line for line in case.lines)
    return complex_in and refused and (fails_later or not isinstance(expected, Exception))


@deliberate("what is wrong in two ways, in types, numbers, indices or shapes, may raise the exception of either")
def _(case: Case, found: Any, expected: Any) -> bool:
    def fault(error: Any) -> str | None:
        if isinstance(error, (TypeError, IndexError)):
            return "types" if isinstance(error, TypeError) else "indices"
        # A number that is written, and that its type cannot hold: so much is wrong for certain, whatever NumPy finds first.
        if isinstance(error, OverflowError) and any(text in str(error) for text in ("does not fit into", "out of bounds for")):
            return "numbers"
        shapes = isinstance(error, ValueError) and any(text in str(error) for text in ("broadcast", "dimension", "1-d"))
        return "shapes" if shapes else None

    return None not in (fault(found), fault(expected)) and fault(found) != fault(expected)


@deliberate("a shape that does not fit is a ValueError, also where NumPy raises something else: values for a mask, tril of a number")
def _(case: Case, found: Any, expected: Any) -> bool:
    others = {"tril": "tri() missing", "triu": "tri() missing", "gradient": "index 0 is out of bounds"}
    text = others.get(case.name, "boolean array indexing assignment requires")
    # What goes into a single element of complex numbers, also through a view.
    element = case.name.startswith("a[") or case.name == "views"
    shapes = text in str(expected) or ("only 0-dimensional arrays can be converted" in str(expected) and element)
    return type(found) is ValueError and isinstance(expected, Exception) and shapes
