"""Functions over blocks that see some elements of their neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _core
from ._array import Array
from ._block_call import Lengths, common_cut, name_of, takes
from ._blocks import map_arrays
from ._manipulation import broadcast_shapes, concat
from ._padding import pad

#: Elements before and after a block, per axis.
Depth = list[tuple[int, int]]

#: The ways of NumPy's pad by the names that users of dask know.
_BORDERS = {"reflect": "symmetric", "periodic": "wrap", "nearest": "edge"}


def overlap(x: Array, depth: Any, boundary: Any = "none") -> Array:
    """The blocks of an array one after the other, each with ``depth`` elements of its neighbours before and after it.

    ``depth`` is a number, a tuple of one per axis, or a dict by axis; a pair in place of a number is (before, after). ``boundary`` says what is beyond the ends: ``"none"`` (those
    blocks are shorter), ``"reflect"``, ``"periodic"``, ``"nearest"``, or a number; a tuple or dict gives one per axis. Blocks shorter than the depth are
    joined with their neighbours first.

    >>> import tilewright as tw
    >>> tw.overlap(tw.arange(6).rechunk(3), 1, "nearest").compute()
    array([0, 0, 1, 2, 3, 2, 3, 4, 5, 5])
    """
    depths, borders = _depths(depth, x.ndim), _boundaries(boundary, x.ndim)
    return _overlapped(x, _long_enough(x.chunks, [depths], x.shape), depths, borders)


def map_overlap(
    func: Callable[..., Any],
    *args: Any,
    depth: Any,
    boundary: Any = "none",
    trim: bool = True,
    dtype: Any = None,
    meta: Any = None,
    chunks: Any = None,
    drop_axis: Any = None,
    new_axis: Any = None,
    name: str | None = None,
    token: str | None = None,
    align_arrays: bool = True,
    allow_rechunk: bool = True,
    executor: str = "threads",
    **kwargs: Any,
) -> Array:
    """Calls a function with every block and ``depth`` elements of its neighbours, and cuts these off what it gives.

    Arrays are broadcast as in :func:`map_blocks`, and cut alike; an axis of length 1 that meets a longer one has no neighbours. With several, lists of
    ``depth`` and ``boundary`` give one for each; what is cut off along an axis is the depth of the first array that is as long as the result there, of those with most axes. See :func:`overlap` for both. With ``trim=False``
    nothing is cut off: the function gives blocks without the elements of the neighbours, or of the lengths that ``chunks`` says. ``align_arrays`` and
    ``allow_rechunk`` are there for dask's users and change nothing. Other arguments are those of :func:`map_blocks`.

    >>> import tilewright as tw
    >>> x = tw.arange(8.0).rechunk(4)
    >>> tw.map_overlap(lambda b: (b[2:] + b[1:-1] + b[:-2]) / 3, x, depth=1, boundary="nearest", trim=False).compute()
    array([0.33333333, 1.        , 2.        , 3.        , 4.        ,
           5.        , 6.        , 6.66666667])
    """
    arrays = [argument for argument in args if isinstance(argument, Array)]
    if not arrays:
        raise ValueError("map_overlap takes one array at least")
    shape = broadcast_shapes(*(array.shape for array in arrays))
    rank, each = len(shape), len(arrays)
    given = [one if isinstance(one, list) else [one] * each for one in (depth, boundary)]
    if any(len(one) != each for one in given):
        raise ValueError(f"{len(given[0])} depths and {len(given[1])} boundaries for {each} arrays")
    borders = [_boundaries(one, array.ndim) for one, array in zip(given[1], arrays, strict=True)]
    depths = [_of_long_axes(_depths(one, array.ndim), array, shape) for one, array in zip(given[0], arrays, strict=True)]
    changes = chunks is not None or drop_axis is not None or new_axis is not None
    if trim and changes:
        raise ValueError("what the function gives can only be cut if it has the shape of its block: use trim=False")
    cuts = _long_enough(_common(arrays, rank), [_at_the_end(own, rank) for own in depths], shape)
    overlapped = [_overlapped(array, _own_cuts(array, cuts), *own) for array, *own in zip(arrays, depths, borders, strict=True)]
    made = iter(overlapped)
    args = tuple(next(made) if isinstance(argument, Array) else argument for argument in args)
    name = name or token or name_of(func)
    tried = None
    if trim:
        trimmed = _TrimmedWithInfo if takes(func, "block_info") else _Trimmed
        func = trimmed(func, name, cuts, *_cut_off(arrays, depths, borders, shape))
        tried = func.untrimmed
    chunks = chunks if changes else cuts
    dtype = getattr(meta, "dtype", None) if dtype is None else dtype
    return map_arrays(func, args, dtype, chunks, drop_axis, new_axis, name, executor, kwargs, aligned=False, tried=tried)


def _common(arrays: Sequence[Array], rank: int) -> list[Lengths]:
    """How arrays are cut alike along every axis of the shape in which they meet."""
    cuts: list[list[Lengths]] = [[] for _ in range(rank)]
    for array in arrays:
        for axis, cut in enumerate(array.chunks, rank - array.ndim):
            cuts[axis].append(cut)
    return [common_cut(found, "axes") for found in cuts]


def _own_cuts(array: Array, cuts: Sequence[Lengths]) -> list[Lengths]:
    return [cut if n == sum(cut) else (n,) for n, cut in zip(array.shape, cuts[len(cuts) - array.ndim :], strict=True)]


def _of_long_axes(depths: Depth, array: Array, shape: tuple[int, ...]) -> Depth:
    """Depths of an array; an axis that is repeated has none."""
    lengths = shape[len(shape) - array.ndim :]
    return [depth if own == n else (0, 0) for depth, own, n in zip(depths, array.shape, lengths, strict=True)]


def _at_the_end(depths: Depth, rank: int) -> Depth:
    return [(0, 0)] * (rank - len(depths)) + depths


def _cut_off(
    arrays: Sequence[Array], depths: Sequence[Depth], borders: Sequence[list[Any]], shape: tuple[int, ...]
) -> tuple[Depth, list[Any]]:
    """What is cut off the results of a function, and the borders there: along each axis, those of an array that is not repeated."""
    most_axes_first = sorted(range(len(arrays)), key=lambda k: -arrays[k].ndim)
    found = []
    for axis in range(-len(shape), 0):
        k = next(k for k in most_axes_first if arrays[k].ndim >= -axis and arrays[k].shape[axis] == shape[axis])
        found.append((depths[k][axis], borders[k][axis]))
    return [depth for depth, _ in found], [border for _, border in found]


class _Trimmed:
    """A function whose results lose the elements of the neighbours, in the same call."""

    def __init__(self, func: Callable[..., Any], name: str, cuts: Sequence[Lengths], depths: Depth, borders: list[Any]) -> None:
        self.func, self.name, self.cuts, self.depths = func, name, cuts, depths
        # Blocks at an end without a border have no elements before, or after, their own.
        self.open = [border == "none" for border in borders]
        self.wants_id = takes(func, "block_id")

    def untrimmed(self, *blocks: Any, block_id: Any = None, **kwargs: Any) -> Any:
        """What the function gives, with the elements of the neighbours."""
        if self.wants_id:
            kwargs["block_id"] = block_id
        return self.func(*blocks, **kwargs)

    def __call__(self, *blocks: Any, block_id: Any = None, **kwargs: Any) -> Any:
        made = np.asanyarray(self.untrimmed(*blocks, block_id=block_id, **kwargs))
        keep, shape = [], []
        for cut, (before, after), is_open, k in zip(self.cuts, self.depths, self.open, block_id, strict=True):
            start = 0 if is_open and k == 0 else before
            keep.append(slice(start, start + cut[k]))
            shape.append(start + cut[k] + (0 if is_open and k == len(cut) - 1 else after))
        if made.shape != tuple(shape):
            raise ValueError(f"`{self.name}` gave a block of shape {made.shape} where blocks with their neighbours have {tuple(shape)}: use trim=False")
        return made[tuple(keep)]


class _TrimmedWithInfo(_Trimmed):
    """The same of a function that wants to know about its blocks: those of the arrays that overlap."""

    def __call__(self, *blocks: Any, block_id: Any = None, block_info: Any = None, **kwargs: Any) -> Any:
        return super().__call__(*blocks, block_id=block_id, block_info=block_info, **kwargs)


def _overlapped(x: Array, cuts: Sequence[Lengths], depths: Depth, borders: list[Any]) -> Array:
    lengths, axes = [], []
    for axis, (cut, (before, after), border) in enumerate(zip(cuts, depths, borders, strict=True)):
        is_open = border == "none"
        if not is_open and (before or after):
            x = _bordered(x, axis, before, after, border)
        if len(set(cut[:-1])) > 1 or cut[-1] > cut[0]:
            x = _pieces(x, axis, cut, before, after, is_open)
            axes.append((sum(cut), 0, 0, False))
        else:
            axes.append((cut[0], before, after, not is_open))
        first = [0 if is_open and k == 0 else before for k in range(len(cut))]
        last = [0 if is_open and k == len(cut) - 1 else after for k in range(len(cut))]
        lengths.append([n + b + a for n, b, a in zip(cut, first, last, strict=True)])
    return Array(_core.rechunk(_core.overlap(x._tensor, axes), lengths))


def _pieces(x: Array, axis: int, cut: Lengths, before: int, after: int, is_open: bool) -> Array:
    """Blocks of any lengths with their neighbours: one slice each."""
    if not before and not after:
        return x
    parts, start = [], 0
    for n in cut:
        low, high = (start - before, start + n + after) if is_open else (start, start + n + before + after)
        parts.append(x[(slice(None),) * axis + (slice(max(low, 0), min(high, x.shape[axis])),)])
        start += n
    return concat(parts, axis=axis)


def _bordered(x: Array, axis: int, before: int, after: int, border: Any) -> Array:
    widths = {axis: (before, after)}
    if isinstance(border, str):
        return pad(x, widths, mode=_BORDERS[border])
    return pad(x, widths, mode="constant", constant_values=border)


def _long_enough(cuts: Sequence[Lengths], depths: Sequence[Depth], shape: tuple[int, ...]) -> tuple[Lengths, ...]:
    """Cuts in which no block is shorter than what its neighbours want of it."""
    found = []
    for axis, cut in enumerate(cuts):
        need = max(max(depth[axis]) for depth in depths)
        if need > shape[axis]:
            raise ValueError(f"a depth of {need} for axis {axis}, which has {shape[axis]} elements")
        joined: list[int] = []
        for n in cut:
            if joined and (joined[-1] < need or n < need):
                joined[-1] += n
            else:
                joined.append(n)
        found.append(tuple(joined) or (0,))
    return tuple(found)


def _depths(depth: Any, rank: int) -> Depth:
    if isinstance(depth, dict):
        each = [depth.get(axis, depth.get(axis - rank, 0)) for axis in range(rank)]
    else:
        each = list(depth) if isinstance(depth, tuple) else [depth] * rank
    if len(each) != rank:
        raise ValueError(f"{len(each)} depths for an array with {rank} axes")
    pairs = []
    for one in each:
        before, after = one if isinstance(one, (tuple, list)) else (one, one)
        if not (hasattr(before, "__index__") and hasattr(after, "__index__")):
            raise TypeError(f"a depth is a whole number or a pair of them, not {one!r}")
        if before < 0 or after < 0:
            raise ValueError(f"a depth of {one}")
        pairs.append((int(before), int(after)))
    return pairs


def _boundaries(boundary: Any, rank: int) -> list[Any]:
    if isinstance(boundary, dict):
        each = [boundary.get(axis, boundary.get(axis - rank, "none")) for axis in range(rank)]
    else:
        each = list(boundary) if isinstance(boundary, tuple) else [boundary] * rank
    each = ["none" if one is None else one for one in each]
    for one in each:
        if isinstance(one, str) and one != "none" and one not in _BORDERS:
            raise ValueError(f"there is no boundary {one!r}, only 'none', {', '.join(map(repr, _BORDERS))} and numbers")
    if len(each) != rank:
        raise ValueError(f"{len(each)} boundaries for an array with {rank} axes")
    return each
