"""Python functions over blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _compiled, _processes
from ._array import Array
from ._block_call import Axis, BlockCall, Lengths, common_cut, infer_dtypes, name_of, takes
from ._chunks import ends_of
from ._dtypes import refuse_mask


def map_blocks(
    func: Callable[..., Any],
    *args: Any,
    dtype: Any = None,
    chunks: Any = None,
    drop_axis: Any = None,
    new_axis: Any = None,
    name: str | None = None,
    token: str | None = None,
    meta: Any = None,
    executor: str = "threads",
    **kwargs: Any,
) -> Array:
    """Calls a function with every block, as a NumPy array, and puts what it gives together.

    Arrays among ``args`` are broadcast: the last axes go together, an axis of length 1 goes with any. ``chunks`` says how long the blocks of the
    result are where the function changes that; ``drop_axis`` names axes that it takes away (it sees them whole), ``new_axis`` axes that it adds. If the
    function has a parameter ``block_id`` or ``block_info``, it learns which block it works on. ``dtype`` is that of the
    array ``meta``, or found by a call on tiny arrays, if it is not given. ``name`` (or ``token``, as in dask) is what plans and messages call the function. ``executor="processes"`` calls the function in worker processes, which pure Python code needs to run in parallel.

    >>> import tilewright as tw
    >>> x = tw.arange(6).rechunk(3)
    >>> tw.map_blocks(lambda block: block[::-1], x).compute()
    array([2, 1, 0, 5, 4, 3])
    """
    if _compiled.is_compiled(func):
        return _compiled.apply(func, args, kwargs)
    return map_arrays(func, args, _type(dtype, meta), chunks, drop_axis, new_axis, name or token, executor, kwargs)


def map_arrays(
    func: Callable[..., Any], args: Sequence[Any], dtype: Any, chunks: Any, drop_axis: Any, new_axis: Any, name: str | None,
    executor: str, kwargs: dict[str, Any], aligned: bool = True, tried: Callable[..., Any] | None = None,
) -> Array:  # fmt: skip
    """What :func:`map_blocks` gives. Arrays that are not ``aligned`` are cut into as many blocks already, which keep their lengths.

    ``tried`` is called in place of the function to find the element type.
    """
    arrays = [argument for argument in args if isinstance(argument, Array)]
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
    return _call(func, out, paired, new, chunks, dtype, name, executor, kwargs, aligned, tried)


def _type(dtype: Any, meta: Any) -> Any:
    """The element type that is given, or that of an array that stands for the result."""
    return getattr(meta, "dtype", None) if dtype is None else dtype


def blockwise(
    func: Callable[..., Any],
    out_ind: Sequence[Any],
    *args: Any,
    dtype: Any = None,
    adjust_chunks: dict[Any, Any] | None = None,
    new_axes: dict[Any, Any] | None = None,
    name: str | None = None,
    token: str | None = None,
    meta: Any = None,
    concatenate: bool = True,
    align_arrays: bool = True,
    executor: str = "threads",
    **kwargs: Any,
) -> Array:
    """Calls a function with blocks whose axes are named by indices, as in einsum: ``blockwise(f, "ij", x, "ik", y, "kj")``.

    ``args`` are pairs of an array and its indices, or of any other value and None. Indices that are not in ``out_ind`` are seen whole. ``new_axes`` gives
    lengths of indices that no array has, ``adjust_chunks`` lengths of blocks (or a function of them) where the function changes them. With ``align_arrays=False`` arrays must be
    cut alike already. Other arguments are those of :func:`map_blocks`.

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
    if not align_arrays:
        _check_alike(pairs)
    return _call(func, out, pairs, new, lengths, _type(dtype, meta), name or token, executor, kwargs)


def _check_alike(pairs: list[tuple[Any, list[Any] | None]]) -> None:
    """Refuses arrays that are cut differently along an index."""
    cuts: dict[Any, Lengths] = {}
    for value, labels in pairs:
        for label, cut in zip(labels or [], value.chunks if labels else [], strict=True):
            if sum(cut) != 1 and cuts.setdefault(label, cut) != cut:
                raise ValueError(f"arrays are cut into {cuts[label]} and {cut} along {label!r}: align_arrays=True cuts them alike")


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
    aligned: bool = True,
    tried: Callable[..., Any] | None = None,
) -> Array:
    """The result of a function of one result whose axes have labels. Arrays that are not ``aligned`` keep their own blocks, as many of them."""
    cuts: dict[Any, list[Lengths]] = {}
    for value, labels in pairs:
        for axis, label in enumerate(labels or []):
            cuts.setdefault(label, []).append(value.chunks[axis])
    grid = {label: common_cut(found, "axes") if aligned else _longest(found) for label, found in cuts.items()}
    # Blocks of an array that is new are counted by the result alone.
    grid.update(new)
    seen = {label: grid[label] for label in out}
    operands = [(value, [label if label in seen else None for label in labels]) for value, labels in pairs if labels is not None]
    call = BlockCall(name or name_of(func), seen, operands, aligned)
    axes = _result_axes(out, seen, lengths)
    function = _Function(func, call, pairs, out, axes, kwargs)
    if dtype is None:
        first = function.keywords(call.place([0] * len(call.numbers), out))
        dtype = infer_dtypes(tried or func, [value for value, _ in pairs], first, None, "dtype=..", call.name)[0]
    function.dtype = np.dtype(dtype)
    function.func = _processes.choose(executor, func)
    return call.apply(function, [(dtype, axes)])[0]


def _longest(cuts: list[Lengths]) -> Lengths:
    """The first cut into as many blocks as any."""
    return max(cuts, key=len)


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
        self.wants_id, self.wants_info = takes(func, "block_id"), takes(func, "block_info")
        self.described = [None if labels is None else self._operand(value, labels) for value, labels in pairs]
        self.result = _Description([axis.lengths for axis in axes], out) if self.wants_info else None

    def _operand(self, array: Array, labels: list[Any]) -> Any:
        """What is told about the blocks of an array, if anything is."""
        if not self.wants_info:
            return labels
        grid, cuts = self.call.grid, []
        for label, n, own in zip(labels, array.shape, array.chunks, strict=True):
            cuts.append((n,) if label not in grid or n == 1 else grid[label] if self.call.aligned else own)
        return _Description(cuts, labels)

    def __call__(self, key: tuple[int, ...], blocks: tuple[np.ndarray, ...]) -> Any:
        waiting = iter(blocks)
        args = [fixed if described is None else next(waiting) for fixed, described in zip(self.fixed, self.described, strict=True)]
        told = self.keywords(self.call.place(key, self.out)) if self.wants_id or self.wants_info else self.kwargs
        made = self.func(*args, **told)
        refuse_mask(made)
        return made

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
        told: dict[int | None, dict[str, Any]] = {k: each.at(at) for k, each in enumerate(self.described) if each is not None}
        result = self.result.at(at)
        lengths = tuple(stop - start for start, stop in result["array-location"])
        told[None] = {**result, "chunk-shape": lengths, "dtype": self.dtype}
        return told


class _Description:
    """Where the blocks of an array are. What does not depend on the block is worked out once."""

    def __init__(self, cuts: list[Lengths], labels: Sequence[Any]) -> None:
        self.labels = [label if len(cut) > 1 else None for cut, label in zip(cuts, labels, strict=True)]
        self.ends = [ends_of(cut) for cut in cuts]
        self.shape = tuple(ends[-1] for ends in self.ends)
        self.numbers = tuple(len(cut) for cut in cuts)

    def at(self, place: dict[Any, int]) -> dict[str, Any]:
        """What dask tells of the block at some numbers, by label."""
        here = tuple(0 if label is None else place[label] for label in self.labels)
        return {
            "shape": self.shape,
            "num-chunks": self.numbers,
            "array-location": [(ends[k], ends[k + 1]) for ends, k in zip(self.ends, here, strict=True)],
            "chunk-location": here,
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
