"""Lengths of blocks, as users of dask write them."""

from __future__ import annotations

import math
import re
from operator import index
from typing import Any

import numpy as np

from . import _core

#: Default bytes of a block.
AUTOMATIC_BYTES = 128 << 20

#: Default bytes of a block that may be read in parts: such blocks stay in cache between the steps that use them.
PART_BYTES = 8 << 20

#: More blocks along an axis than any plan takes.
_TOO_MANY = 1 << 24

Chunks = tuple[tuple[int, ...], ...]

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def automatic_chunks(shape: tuple[int, ...], itemsize: int, limit: int = AUTOMATIC_BYTES) -> Chunks:
    """Blocks of at most so many bytes: the longest axis is halved until they are small enough."""
    return _core.automatic_chunks(list(shape), itemsize, limit)


def aligned_chunks(shape: tuple[int, ...], itemsize: int, unit: tuple[int, ...], limit: str = "auto") -> Chunks:
    """Blocks of about so many bytes, made of whole units such as the chunks of a file; one unit at least.

    >>> aligned_chunks((100, 10), 8, (30, 10), "5KB")
    ((60, 40), (10,))
    """
    most = AUTOMATIC_BYTES if limit == "auto" else parse_bytes(limit)
    n_units = tuple(-(-n // each) for n, each in zip(shape, unit, strict=True))
    lengths = automatic_chunks(n_units, itemsize * math.prod(unit), most)
    return tuple(_even(n, max(cut, default=1) * each) for n, cut, each in zip(shape, lengths, unit, strict=True))


def in_parts(chunks: Chunks, itemsize: int, unit: tuple[int, ...], limit: int = PART_BYTES) -> Chunks:
    """Every block cut into even parts of about so many bytes, at whole units of the array; leading axes are cut first, so that parts are read in long runs.

    >>> in_parts(((60, 40), (10,)), 8, (10, 10), 2400)
    ((30, 30, 20, 20), (10,))
    """
    longest = [max(cut, default=0) for cut in chunks]
    found = []
    for axis, (cut, each) in enumerate(zip(chunks, unit, strict=True)):
        beside = itemsize * math.prod(max(n, 1) for k, n in enumerate(longest) if k != axis)
        most = max(limit // beside // each, 1) * each
        found.append(_parts(cut, most, each) if longest[axis] > most else cut)
        longest[axis] = max(found[-1], default=0)
    return tuple(found)


def _parts(cut: tuple[int, ...], most: int, unit: int) -> tuple[int, ...]:
    ends, start = [0], 0
    for n in cut:
        n_parts = -(-n // most)
        for k in range(1, n_parts):
            end = (start + n * k // n_parts) // unit * unit
            if end > ends[-1]:
                ends.append(end)
        start += n
        ends.append(start)
    return tuple(np.diff(ends).tolist())


def normalize_chunks(chunks: Any, shape: tuple[int, ...], dtype: Any) -> Chunks:
    """Lengths of blocks along every axis from any way to write them.

    >>> normalize_chunks(4, (10,), "f8")
    ((4, 4, 2),)
    >>> normalize_chunks({0: 5}, (10, 3), "f8")
    ((5, 5), (3,))

    ``"auto"``, or bytes as in ``"64MiB"``, for some axes: as long as blocks of so many bytes may be, with the other axes as they are given.

    >>> normalize_chunks((-1, "400B"), (10, 10), "f8")
    ((10,), (5, 5))
    """
    itemsize = np.dtype(dtype).itemsize
    if isinstance(chunks, str):
        limit = AUTOMATIC_BYTES if chunks == "auto" else parse_bytes(chunks)
        return automatic_chunks(shape, itemsize, limit)
    if isinstance(chunks, dict):
        given = [chunks.get(axis, chunks.get(axis - len(shape), -1)) for axis in range(len(shape))]
        unknown = [axis for axis in chunks if not -len(shape) <= axis < len(shape)]
        if unknown:
            raise ValueError(f"chunks for axis {unknown[0]} of an array with {len(shape)} axes")
    elif isinstance(chunks, (tuple, list)):
        given = list(chunks)
        if len(given) != len(shape):
            raise ValueError(f"{len(given)} entries of chunks for an array with {len(shape)} axes")
    else:
        given = [chunks] * len(shape)
    limits = [AUTOMATIC_BYTES if each == "auto" else parse_bytes(each) for each in given if isinstance(each, str)]
    fixed = [None if isinstance(each, str) else _axis(each, n, axis) for axis, (each, n) in enumerate(zip(given, shape, strict=True))]
    if limits:
        # What the other axes fix is a factor of every block; the rest of the bytes is for those that are automatic.
        factor = math.prod(max(cut, default=1) or 1 for cut in fixed if cut is not None)
        free = [axis for axis, cut in enumerate(fixed) if cut is None]
        for axis, cut in zip(free, automatic_chunks(tuple(shape[axis] for axis in free), itemsize * factor, min(limits)), strict=True):
            fixed[axis] = cut
    return tuple(cut for cut in fixed if cut is not None)


def parse_bytes(text: str) -> int:
    """A number of bytes such as ``"64MiB"``."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", text)
    if match is None or match[2].upper() not in _UNITS:
        raise ValueError(f"{text!r} is no number of bytes such as '64MiB'")
    size = int(float(match[1]) * _UNITS[match[2].upper()])
    if size < 1:
        raise ValueError(f"{text!r} is less than a byte")
    return size


def _axis(given: Any, n: int, axis: int) -> tuple[int, ...]:
    if given is None or given == -1:
        return _even(n, max(n, 1))
    if isinstance(given, (tuple, list)):
        lengths = tuple(_length(length) for length in given)
        if any(length < 0 for length in lengths) or sum(lengths) != n:
            raise ValueError(f"chunks {lengths} do not add up to the length {n} of axis {axis}")
        return lengths
    length = _length(given)
    if length < 1:
        raise ValueError(f"chunks of length {length} along axis {axis}")
    return _even(n, length)


def ends_of(cut: Any) -> list[int]:
    """Where the blocks of a cut begin, and the last ends."""
    return [0, *np.cumsum(cut).tolist()]


def _length(given: Any) -> int:
    if isinstance(given, (bool, np.bool_)) or not hasattr(given, "__index__"):
        raise TypeError(f"chunks are whole numbers, tuples of them, -1, None or 'auto', not {given!r}")
    return index(given)


def _even(n: int, length: int) -> tuple[int, ...]:
    whole, rest = divmod(n, length)
    if whole >= _TOO_MANY:
        raise MemoryError(f"{whole} blocks of length {length} along an axis are more than fit into memory; choose longer chunks")
    return (length,) * whole + ((rest,) if rest or n == 0 else ())
