"""Blocks of an array, chosen by their numbers."""

from __future__ import annotations

import math
from operator import index
from typing import Any

import numpy as np

from ._array import Array
from ._chunks import ends_of


class BlockView:
    """An array of blocks: an index chooses some of them, and gives the array that they make up. A number keeps its axis.

    >>> import tilewright as tw
    >>> x = tw.arange(6).rechunk(2)
    >>> x.blocks[1].compute(), x.blocks[[2, 0]].compute()
    (array([2, 3]), array([4, 5, 0, 1]))
    """

    __slots__ = ("_array",)

    def __init__(self, array: Array) -> None:
        self._array = array

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of blocks along each axis."""
        return self._array.numblocks

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._array.ndim

    @property
    def size(self) -> int:
        """Number of blocks."""
        return math.prod(self.shape)

    def ravel(self) -> list[Array]:
        """All blocks, one after the other."""
        cuts = self._array.chunks
        ends = [ends_of(cut) for cut in cuts]
        blocks = []
        for place in np.ndindex(*(len(cut) for cut in cuts)):
            block = self._array[tuple(slice(own[k], own[k + 1]) for own, k in zip(ends, place, strict=True))]
            blocks.append(block.rechunk(tuple((cut[k],) for cut, k in zip(cuts, place, strict=True))))
        return blocks

    def __getitem__(self, key: Any) -> Array:
        keys = _whole_key(key if isinstance(key, tuple) else (key,), self.ndim)
        if sum(not isinstance(each, (int, slice)) for each in keys) > 1:
            raise ValueError("blocks are chosen by a list along one axis only")
        chosen, cuts = self._array, []
        for axis, (each, cut) in enumerate(zip(keys, self._array.chunks, strict=True)):
            numbers = _numbers(each, len(cut), axis)
            chosen = _taken(chosen, axis, cut, numbers)
            cuts.append(tuple(cut[k] for k in numbers) or (0,))
        return chosen.rechunk(tuple(cuts))

    def __repr__(self) -> str:
        return f"<blocks {self.shape} of {self._array!r}>"


def _whole_key(key: tuple[Any, ...], rank: int) -> tuple[Any, ...]:
    """A key with one entry per axis."""
    if any(each is None for each in key):
        raise IndexError("blocks have no new axes")
    key = tuple(each if isinstance(each, slice) or each is Ellipsis or np.ndim(each) else index(each) for each in key)
    dots = [place for place, each in enumerate(key) if each is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index has one ... at most")
    if len(key) - len(dots) > rank:
        raise IndexError(f"{len(key)} indices for blocks with {rank} axes")
    place = dots[0] if dots else len(key)
    return (*key[:place], *[slice(None)] * (rank - len(key) + len(dots)), *key[place + 1 :])


def _numbers(key: Any, n: int, axis: int) -> list[int]:
    """The numbers of the blocks that a key names along an axis of so many."""
    if isinstance(key, slice):
        return list(range(n))[key]
    numbers = np.atleast_1d(np.asarray(key))
    if numbers.dtype.kind == "b" and numbers.shape == (n,):
        return np.flatnonzero(numbers).tolist()
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise IndexError(f"blocks are chosen by numbers, slices, and lists of numbers or of {n} truth values, not by {key!r}")
    for number in numbers.tolist():
        if not -n <= number < n:
            raise IndexError(f"index {number} is out of bounds for axis {axis} with {n} blocks")
    return [int(number) % n for number in numbers.tolist()]


def _taken(array: Array, axis: int, cut: tuple[int, ...], numbers: list[int]) -> Array:
    """Blocks along an axis, one after the other; neighbours that follow each other are one slice."""
    from ._manipulation import concat, part

    ends = ends_of(cut)
    if not numbers:
        return part(array, axis, slice(0, 0))
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number:
            runs[-1][1] += 1
        else:
            runs.append([number, number + 1])
    parts = [part(array, axis, slice(ends[first], ends[last])) for first, last in runs]
    return parts[0] if len(parts) == 1 else concat(parts, axis=axis)
