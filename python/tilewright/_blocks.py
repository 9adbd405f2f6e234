"""Python functions over blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _compiled, _processes
from ._array import Array
from ._block_call import Axis, BlockCall, Lengths, common_cut, infer_dtypes, name_of, takes


def map_blocks(
    func: Callable[..., Any],
    *args: Any,
    dtype: Any = None,
    chunks: Any = None,
    drop_axis: Any = None,
    new_axis: Any = None,
    name: str | None = None,
    executor: str = "threads",
    **kwargs: Any,
) -> Array:
    """Calls a function with every block, as a NumPy array, and puts what it gives together.

    Arrays among ``args`` are broadcast: the last axes go together, an axis of length 1 goes with any. ``chunks`` says how long the blocks of the
    result are where the function changes that; ``drop_axis`` names axes that it takes away (it sees them whole), ``new_axis`` axes that it adds. If the
    function has a parameter ``block_id`` or ``block_info``, it learns which block it works on. ``dtype`` is found by a call on tiny arrays if
    it is not given. ``executor="processes"`` calls the function in worker processes, which pure Python code needs to run in parallel.

    >>> import tilewright as tw
    >>> x = tw.arange(6).rechunk(3)
    >>> tw.map_blocks(lambda block: block[::-1], x).compute()
    array([2, 1, 0, 5, 4, 3])
    """
    arrays = [argument for argument in args if isinstance(argument, Array)]
    if _compiled.is_compiled(func):
        return _compiled.apply(func, args, kwargs)
    if not callable(func):
        raise TypeError(f"a function is expected, not {type(func).__name__}")
    rank = max((array.ndim for array in arrays), default=0)
    labels = list(range(rank))
    dropped = _axes(drop_axis, rank, "drop_axis")
    out: list[Any] = [label for label in labels if label not in dropped]
    new = {}
    for position in sorted(_axes(new_axis, len(out) + len(_listed(new_axis)), "new_axis")):
        label = f"new {position}"
        out.insert(position, label)
        new[label] = (1,)
    if not arrays:
        if chunks is None:
            raise ValueError("without arrays, chunks=.. must say how the result is cut")
        labels = out = list(range(len(chunks)))
        new = {k: tuple(cut) if isinstance(cut, (tuple, list)) else (cut,) for k, cut in enumerate(chunks)}
    indices = [labels[rank - array.ndim :] for array in arrays]
    operands = iter(indices)
    paired = [(argument, next(operands) if isinstance(argument, Array) else None) for argument in args]
    return _call(func, out, paired, new, chunks, dtype, name, executor, kwargs)


def blockwise(
    func: Callable[..., Any],
    out_ind: Sequence[Any],
    *args: Any,
    dtype: Any = None,
    adjust_chunks: dict[Any, Any] | None = None,
    new_axes: dict[Any, Any] | None = None,
    name: str | None = None,
    concatenate: bool = True,
    executor: str = "threads",
    **kwargs: Any,
) -> Array:
    """Calls a function with blocks whose axes are named by indices, as in einsum: ``blockwise(f, "ij", x, "ik", y, "kj")``.

    ``args`` are pairs of an array and its indices, or of any other value and None. Indices that are not in ``out_ind`` are seen whole. ``new_axes`` gives
    lengths of indices that no array has, ``adjust_chunks`` lengths of blocks (or a function of them) where the function changes them.

    >>> import tilewright as tw
    >>> x, y = tw.arange(4).rechunk(2), tw.arange(3)
    >>> tw.blockwise(lambda a, b: a[:, None] * b, "ij", x, "i", y, "j").compute()
    array([[0, 0, 0],
           [0, 1, 2],
           [0, 2, 4],
           [0, 3, 6]])
    """
    if len(args) % 2:
        raise ValueError("arguments come in pairs: an array and its indices, or any other value and None")
    pairs = [(value, None if indices is None else list(indices)) for value, indices in zip(args[::2], args[1::2], strict=True)]
    for value, indices in pairs:
        if indices is not None and not isinstance(value, Array):
            raise TypeError(f"indices for {type(value).__name__}, which is no array of tilewright")
        if indices is not None and len(indices) != value.ndim:
            raise ValueError(f"{len(indices)} indices for an array with {value.ndim} axes")
    out = list(out_ind)
    used = {label for _, indices in pairs for label in indices or []}
    if not concatenate and used - set(out):
        raise ValueError("indices that are not in the result are always seen whole: concatenate=False is not possible")
    new = {label: tuple(cut) if isinstance(cut, (tuple, list)) else (cut,) for label, cut in (new_axes or {}).items()}
    for label in out:
        if label not in used and label not in new:
            raise ValueError(f"no array has the index {label!r} of the result; new_axes can say how long it is")
    lengths: list[Any] = [None] * len(out)
    for label, adjust in (adjust_chunks or {}).items():
        lengths[out.index(label)] = adjust
    return _call(func, out, pairs, new, lengths, dtype, name, executor, kwargs)


def _call(
    func: Callable[..., Any],
    out: list[Any],
    pairs: list[tuple[Any, list[Any] | None]],
    new: dict[Any, Lengths],
    lengths: Any,
    dtype: Any,
    name: str | None,
    executor: str,
    kwargs: dict[str, Any],
) -> Array:
    """The result of a function of one result whose axes have labels."""
    cuts: dict[Any, list[Lengths]] = {}
    for value, labels in pairs:
        for axis, label in enumerate(labels or []):
            cuts.setdefault(label, []).append(value.chunks[axis])
    grid = {label: common_cut(found, "axes") for label, found in cuts.items()}
    # Blocks of an array that is new are counted by the result alone.
    grid.update(new)
    seen = {label: grid[label] for label in out}
    operands = [(value, [label if label in seen else None for label in labels]) for value, labels in pairs if labels is not None]
    call = BlockCall(name or name_of(func), seen, operands)
    axes = _result_axes(out, seen, lengths)
    function = _Function(func, call, pairs, out, axes, kwargs)
    if dtype is None:
        first = function.keywords(call.place([0] * len(call.numbers), out))
        dtype = infer_dtypes(func, [value for value, _ in pairs], first, None, "dtype=..")[0]
    function.dtype = np.dtype(dtype)
    function.func = _processes.choose(executor, func)
    return call.apply(function, [(dtype, axes)])[0]


def _result_axes(out: list[Any], grid: dict[Any, Lengths], lengths: Any) -> list[Axis]:
    if lengths is None:
        lengths = [None] * len(out)
    if not isinstance(lengths, (tuple, list)) or len(lengths) != len(out):
        raise ValueError(f"chunks {lengths!r} for a result with {len(out)} axes")
    axes = []
    for label, given in zip(out, lengths, strict=True):
        cut = grid[label]
        if callable(given):
            given = tuple(given(n) for n in cut)
        if given is None:
            given = cut
        elif not isinstance(given, (tuple, list)):
            given = (given,) * len(cut)
        if len(given) != len(cut):
            raise ValueError(f"{len(given)} lengths of blocks in chunks for {len(cut)} blocks")
        axes.append(Axis(label, given))
    return axes


class _Function:
    """What the engine calls: the function of the user with its other arguments."""

    def __init__(
        self, func: Any, call: BlockCall, pairs: list[Any], out: list[Any], axes: list[Axis], kwargs: dict[str, Any]
    ) -> None:
        self.func, self.call, self.out, self.axes, self.kwargs = func, call, out, axes, kwargs
        self.dtype: Any = None
        # Arrays are kept by the engine; here only what must be told about them.
        self.fixed = [None if labels is not None else value for value, labels in pairs]
        self.described = [(value.shape, labels) if labels is not None else None for value, labels in pairs]
        self.wants_id, self.wants_info = takes(func, "block_id"), takes(func, "block_info")

    def __call__(self, key: tuple[int, ...], blocks: tuple[np.ndarray, ...]) -> Any:
        waiting = iter(blocks)
        args = [fixed if described is None else next(waiting) for fixed, described in zip(self.fixed, self.described, strict=True)]
        if self.wants_id or self.wants_info:
            return self.func(*args, **self.keywords(self.call.place(key, self.out)))
        return self.func(*args, **self.kwargs)

    def keywords(self, place: tuple[int, ...]) -> dict[str, Any]:
        """The keyword arguments of the call for one block of the result."""
        more: dict[str, Any] = {}
        if self.wants_id:
            more["block_id"] = place
        if self.wants_info:
            more["block_info"] = self._info(place)
        return {**self.kwargs, **more}

    def _info(self, place: tuple[int, ...]) -> dict[int | None, dict[str, Any]]:
        """What dask tells a function about its blocks, by position of the argument; the result under None."""
        at = dict(zip(self.out, place, strict=True))
        info: dict[int | None, dict[str, Any]] = {}
        for position, described in enumerate(self.described):
            if described is not None:
                shape, labels = described
                cuts = [self.call.grid[label] if label in at and n != 1 else (n,) for label, n in zip(labels, shape, strict=True)]
                here = tuple(at[label] if len(cut) > 1 else 0 for label, cut in zip(labels, cuts, strict=True))
                info[position] = _described(shape, cuts, here)
        cuts = [axis.lengths for axis in self.axes]
        shape = tuple(sum(cut) for cut in cuts)
        blocks = tuple(cut[k] for cut, k in zip(cuts, place, strict=True))
        info[None] = {**_described(shape, cuts, place), "chunk-shape": blocks, "dtype": self.dtype}
        return info


def _described(shape: tuple[int, ...], cuts: list[Lengths], place: tuple[int, ...]) -> dict[str, Any]:
    starts = [sum(cut[:k]) for cut, k in zip(cuts, place, strict=True)]
    return {
        "shape": shape,
        "num-chunks": tuple(len(cut) for cut in cuts),
        "array-location": [(start, start + cut[k]) for start, cut, k in zip(starts, cuts, place, strict=True)],
        "chunk-location": place,
    }


def _listed(axes: Any) -> list[int]:
    return [] if axes is None else [axes] if hasattr(axes, "__index__") else list(axes)


def _axes(axes: Any, rank: int, what: str) -> list[int]:
    """Axes counted from the front."""
    found = []
    for axis in _listed(axes):
        if not -rank <= axis < rank:
            raise ValueError(f"{what}={axis} of an array with {rank} axes")
        found.append(axis % rank)
    if len(set(found)) != len(found):
        raise ValueError(f"{what}={axes} names an axis twice")
    return found
