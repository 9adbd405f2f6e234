"""Bounds of random whole numbers: both among the numbers that may be drawn, and checked against their type."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from ._array import Array
from ._creation import asarray
from ._dtypes import astype
from ._elementwise import logical_or


def integer_type(dtype: Any) -> np.dtype:
    """The type of whole numbers to draw."""
    dtype = np.dtype(dtype)
    if dtype.kind not in "iub":
        raise TypeError(f"whole numbers are drawn as integers, not as {dtype}")
    return dtype


def first_and_last(low: Any, high: Any, dtype: np.dtype, endpoint: bool) -> tuple[Any, Any, Array | None]:
    """The smallest and the largest number to draw, as uint64 modulo 2**64, and where they turn out to be wrong.

    Bounds that are known are checked now, and given as NumPy's arrays if both are. Those of lazy arrays are only checked where the third
    result, which is None otherwise, is computed.
    """
    first, too_low = _bound("low", low, 0, dtype)
    last, too_high = _bound("high", high, int(not endpoint), dtype)
    comparable = [each.astype(_widest(dtype)) for each in (first, last)]
    if too_low is None and too_high is None:
        if np.any(comparable[0] > comparable[1]):
            raise ValueError("low > high" if endpoint else "low >= high")
        return first, last, None
    wrong = asarray(comparable[0]) > asarray(comparable[1])
    for more in (too_low, too_high):
        wrong = wrong if more is None else logical_or(wrong, more)
    return asarray(first), asarray(last), wrong


def _widest(dtype: np.dtype) -> str:
    return "int64" if dtype.kind == "i" else "uint64"


def _bound(name: str, bound: Any, excluded: int, dtype: np.dtype) -> tuple[Any, Array | None]:
    """A bound less what is excluded, as uint64 modulo 2**64; of a lazy array also where it is wrong."""
    least, most = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    if isinstance(bound, Array):
        if bound.dtype.kind not in "iub":
            raise TypeError(f"{name} is an array of integers, not of {bound.dtype}: convert it by astype first")
        number = astype(bound, "uint64", copy=False) if bound.dtype.kind == "b" else bound
        wrong = logical_or(number < least + excluded, number > most + excluded)
        return astype(number, "uint64", copy=False) - excluded, wrong
    known = _known(name, bound)
    if np.any(known < least + excluded) or np.any(known > most + excluded):
        raise ValueError(f"{name} is out of bounds for {dtype}")
    # NumPy's integers wrap, Python's do not.
    if known.dtype.kind == "O":
        return np.asarray((known - excluded) % 2**64, dtype="uint64"), None
    return known.astype("uint64") - np.uint64(excluded), None


def _known(name: str, bound: Any) -> np.ndarray:
    """Bounds as integers of NumPy if they are an array of those, otherwise as integers of Python, which may be of any size."""
    if isinstance(bound, np.ndarray) and bound.ndim and bound.dtype.kind in "iu":
        return bound
    given = bound if isinstance(bound, np.ndarray) else np.asarray(bound, dtype=object)
    return np.asarray(np.frompyfunc(lambda each: _whole(name, each), 1, 1)(given), dtype=object)


def _whole(name: str, bound: Any) -> int:
    """A bound of whole numbers; those of floating point types must be whole."""
    if np.ndim(bound) > 0:
        raise TypeError(f"{name} is made of numbers, not of {type(bound).__name__}")
    number = bound.item() if hasattr(bound, "item") else bound
    if isinstance(number, float) and number.is_integer():
        return int(number)
    return index(number)
