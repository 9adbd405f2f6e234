"""One call of a function per block: how axes of operands and results are cut is worked out here, for all functions of blocks."""

from __future__ import annotations

import atexit
import inspect
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from . import _core
from ._array import Array
from ._dtypes import to_name

# Python ends threads that come back to it while it shuts down, so calls under way must be over by then.
atexit.register(_core.settle)

#: Lengths of the blocks along an axis.
Lengths = tuple[int, ...]


class Axis:
    """An axis of a result: the label of the grid it follows, or None for an axis that is not cut, and the lengths of its blocks."""

    __slots__ = ("label", "lengths")

    def __init__(self, label: Hashable | None, lengths: Sequence[int]) -> None:
        self.label = label
        self.lengths = tuple(int(n) for n in lengths)
        if any(n < 0 for n in self.lengths) or (0 in self.lengths and sum(self.lengths) > 0):
            raise ValueError(f"blocks of lengths {self.lengths}; blocks of a result have elements, unless none has")


def common_cut(cuts: Sequence[Lengths], what: str) -> Lengths:
    """The coarsest cut that has the boundaries of all; axes of length 1 go with any other.

    >>> common_cut([(4, 4), (8,), (2, 6)], "x")
    (2, 2, 4)
    """
    long = [cut for cut in cuts if sum(cut) != 1] or list(cuts[:1])
    if len({sum(cut) for cut in long}) > 1:
        raise ValueError(f"{what} of lengths {' and '.join(str(sum(cut)) for cut in long)} do not go together")
    ends: set[int] = set()
    for cut in long:
        ends.update(int(end) for end in np.cumsum(cut))
    return tuple(int(n) for n in np.diff([0, *sorted(ends)])) or (0,)


class BlockCall:
    """A function over a grid of blocks.

    ``grid`` maps labels to lengths of blocks. An operand is an array and a label, or None, per axis: axes with a label are cut like it unless their
    length is 1, others are seen whole by every call. Operands that are not ``aligned`` keep their own lengths, of as many blocks.
    """

    def __init__(
        self, name: str, grid: dict[Any, Lengths], operands: Sequence[tuple[Array, Sequence[Any]]], aligned: bool = True
    ) -> None:
        self.name = name
        self.grid = grid
        self.aligned = aligned
        # One block needs no number: there is nothing to choose.
        self.numbers = {label: k for k, label in enumerate(label for label, cut in grid.items() if len(cut) > 1)}
        self.operands = [(array, [self._number(label, n) for label, n in zip(labels, array.shape, strict=True)]) for array, labels in operands]
        self.labels = [list(labels) for _, labels in operands]

    def _number(self, label: Any, n: int) -> int | None:
        return None if label is None or n == 1 else self.numbers.get(label)

    def place(self, key: Sequence[int], labels: Sequence[Any]) -> tuple[int, ...]:
        """Where a block is along axes with some labels, of the numbers that the engine gives it."""
        return tuple(key[self.numbers[label]] if label in self.numbers else 0 for label in labels)

    def apply(self, call: Callable[..., Any], results: Sequence[tuple[Any, Sequence[Axis]]]) -> list[Array]:
        """The results of ``call(key, blocks)`` for every key of the grid; results without elements need no call."""
        made: list[Array | None] = []
        for dtype, axes in results:
            shape = [sum(axis.lengths) for axis in axes]
            made.append(Array(_core.full(shape, 0, to_name(dtype))) if 0 in shape else None)
        wanted = [k for k, array in enumerate(made) if array is None]
        if len(wanted) not in (len(results), 0):
            call = _Selected(call, wanted)
        if wanted:
            for k, tensor in zip(wanted, self._tensors(call, [results[k] for k in wanted]), strict=True):
                made[k] = Array(tensor)
        # The function holds this object as long as its results live; the engine holds operands only as long as it needs them.
        self.operands = []
        return made

    def _tensors(self, call: Callable[..., Any], results: Sequence[tuple[Any, Sequence[Axis]]]) -> list[_core.Tensor]:
        operands = [(self._cut(array, numbers), numbers) for array, numbers in self.operands]
        carriers = self._carriers(results)
        modes = [(to_name(dtype), [self._mode(axis) for axis in axes]) for dtype, axes in results]
        # The numbers of a block are the only element of its block of these.
        counts = [(_vector(_core.coordinate([len(self.grid[label])], 0), None), [k]) for label, k in self.numbers.items()]
        if not (carriers or operands or counts):
            operands = []
            carriers = [(_core.full([], 0, "int8"), [])]
        return _core.block_function(call, self.name, [*carriers, *operands, *counts], len(carriers), modes)

    def _cut(self, array: Array, numbers: list[int | None]) -> _core.Tensor:
        """The array, cut as the grid says along the axes with a number."""
        cuts = {number: self.grid[label] for label, number in self.numbers.items()}
        chunks = [own if number is None else cuts[number] for own, number in zip(array.chunks, numbers, strict=True)]
        fixed = array._tensor.tiling
        if not self.aligned or all(number is None for number in numbers) or fixed == tuple(chunks):
            return array._tensor
        return _core.rechunk(array._tensor, chunks)

    def _mode(self, axis: Axis) -> tuple[int | None, int | None]:
        number = self.numbers.get(axis.label)
        if number is None:
            return None, sum(axis.lengths)
        return number, axis.lengths[0] if len(set(axis.lengths)) == 1 else None

    def _carriers(self, results: Sequence[tuple[Any, Sequence[Axis]]]) -> list[Any]:
        """Operands whose only use is that a result is cut as they are: where no operand is cut so along the first axis with its number."""
        carriers = []
        for label, number in self.numbers.items():
            cuts = {axis.lengths for _, axes in results for axis in axes if axis.label == label and len(set(axis.lengths)) > 1}
            for lengths in {len(axis.lengths) for _, axes in results for axis in axes if axis.label == label}:
                if lengths != len(self.grid[label]):
                    raise ValueError(f"{lengths} blocks in a result for {len(self.grid[label])} blocks of the operands")
            if len(cuts) > 1:
                raise ValueError(f"results of `{self.name}` with blocks of lengths {' and '.join(map(str, sorted(cuts)))}")
            in_operands = any(number in numbers for _, numbers in self.operands)
            for cut in cuts:
                if not in_operands or cut != self.grid[label]:
                    carriers.append((_vector(_core.full([sum(cut)], 0, "int8"), cut), [number]))
        return carriers


class _Selected:
    """Some of the results of a function of several."""

    def __init__(self, call: Callable[..., Any], wanted: list[int]) -> None:
        self.call, self.wanted = call, wanted

    def __call__(self, key: Any, blocks: Any) -> Any:
        made = self.call(key, blocks)
        return made[self.wanted[0]] if len(self.wanted) == 1 else tuple(made[k] for k in self.wanted)


def _vector(tensor: _core.Tensor, lengths: Lengths | None) -> _core.Tensor:
    """A vector in blocks of these lengths, or of one element each."""
    return _core.rechunk(tensor, [(1,) * tensor.shape[0] if lengths is None else lengths])


def name_of(function: Any) -> str:
    """What a function is called in messages and plans."""
    return getattr(function, "__name__", None) or type(function).__name__


def takes(function: Any, keyword: str) -> bool:
    """True if a function has a parameter of this name."""
    try:
        return keyword in inspect.signature(function).parameters
    except (TypeError, ValueError):  # Functions of C may not say.
        return False


def example(array: Any) -> Any:
    """A tiny array of the type and rank of another, to try a function on."""
    return np.ones((1,) * array.ndim, dtype=array.dtype) if isinstance(array, Array) else array


def infer_dtypes(function: Any, args: Sequence[Any], kwargs: dict[str, Any], n_results: int | None, say: str, name: str | None = None) -> list[np.dtype]:
    """The element types of the results, found by calling the function, of some name, on tiny arrays."""
    try:
        with np.errstate(all="ignore"):
            made = function(*[example(argument) for argument in args], **kwargs)
    except Exception as error:
        error.add_note(f"while `{name or name_of(function)}` was tried on arrays of one element to find the type of its results; say {say} to avoid that")
        raise
    return [np.asarray(each).dtype for each in ([made] if n_results is None else made)]
