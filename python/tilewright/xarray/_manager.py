"""What xarray asks of a chunk manager, in terms of Tilewright's own functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from xarray.namedarray.parallelcompat import ChunkManagerEntrypoint

import tilewright as tw

from .._array import Array
from .._block_call import common_cut
from .._chunks import AUTOMATIC_BYTES, Chunks, automatic_chunks, normalize_chunks
from .._dtypes import is_known
from . import _calls, _hooks

#: How dask is told to compute. Tilewright has one engine, so these mean nothing here; any other argument is a mistake.
_OF_DASK = {"scheduler", "num_workers", "optimize_graph", "traverse", "pool"}


class TilewrightManager(ChunkManagerEntrypoint[Array]):
    """Makes xarray's chunked variables arrays of Tilewright.

    Variables whose types Tilewright does not have, such as strings, stay NumPy arrays.
    """

    array_cls = Array
    available = True

    def __init__(self) -> None:
        _hooks.install()

    def is_chunked_array(self, data: Any) -> bool:
        """True for arrays of Tilewright."""
        return isinstance(data, Array)

    def chunks(self, data: Array) -> Chunks:
        """Lengths of the blocks."""
        return data.chunks

    def normalize_chunks(
        self, chunks: Any, shape: tuple[int, ...] | None = None, limit: int | None = None, dtype: Any = None,
        previous_chunks: Any = None,
    ) -> Chunks:  # fmt: skip
        """Lengths of blocks from any way to write them; automatic ones are whole numbers of the previous chunks, such as those of a file."""
        if shape is None:
            raise ValueError("chunks are normalized for a shape: shape=.. is missing")
        itemsize = 8 if dtype is None else np.dtype(dtype).itemsize
        given = _per_axis(chunks, len(shape))
        if not any(isinstance(each, str) for each in given):
            return normalize_chunks(given, shape, np.dtype("f8") if dtype is None else dtype)
        units = [_unit(each, n) for each, n in zip(_per_axis(previous_chunks, len(shape)), shape, strict=True)]
        return _automatic(given, shape, units, itemsize, AUTOMATIC_BYTES if limit is None else limit)

    def from_array(self, data: Any, chunks: Any, **kwargs: Any) -> Any:
        """An array over a variable of a file, read when elements are needed, or over an array in memory."""
        kwargs = {key: value for key, value in kwargs.items() if key in ("lock", "name")}
        if not is_known(data.dtype):
            return np.asarray(data)
        cuts = self.normalize_chunks(chunks, data.shape, dtype=data.dtype)
        if isinstance(data, (np.ndarray, Array)):
            return tw.asarray(data, chunks=cuts)
        read = _native(data)
        if read is not None:
            return read if read.chunks == cuts else read.rechunk(cuts)
        return tw.from_array(_Declared(data), cuts, **{"lock": False, **kwargs})

    def rechunk(self, data: Array, chunks: Any, **kwargs: Any) -> Array:
        """The array in other blocks."""
        if isinstance(chunks, dict):
            own = dict(enumerate(data.chunks))
            chunks = tuple(own[axis] if chunks.get(axis) is None else chunks[axis] for axis in range(data.ndim))
        return data.rechunk(self.normalize_chunks(chunks, data.shape, dtype=data.dtype, previous_chunks=data.chunks))

    def compute(self, *data: Any, **kwargs: Any) -> tuple[Any, ...]:
        """All arrays computed in one plan."""
        _refuse(kwargs)
        return tw.compute(*data)

    def persist(self, *data: Any, **kwargs: Any) -> tuple[Any, ...]:
        """All arrays computed in one plan and kept as arrays of Tilewright."""
        _refuse(kwargs)
        return tw.persist(*data)

    @property
    def array_api(self) -> Any:
        """Tilewright's functions."""
        return tw

    def reduction(
        self, arr: Array, func: Callable[..., Any], combine_func: Callable[..., Any] | None = None,
        aggregate_func: Callable[..., Any] | None = None, axis: Any = None, dtype: Any = None, keepdims: bool = False,
    ) -> Array:  # fmt: skip
        """A function of every block along the axes, and another one of what it gives for all of them."""
        axes = tuple(range(arr.ndim)) if axis is None else tuple(k % arr.ndim for k in np.atleast_1d(axis))
        along = axes[0] if len(axes) == 1 else axes
        last = aggregate_func or combine_func or func
        dtype = arr.dtype if dtype is None else dtype
        lengths = tuple((1,) * len(cut) if k in axes else cut for k, cut in enumerate(arr.chunks))
        parts = tw.map_blocks(lambda block: func(block, axis=along, keepdims=True), arr, dtype=dtype, chunks=lengths)
        reduced = tw.map_blocks(lambda block: last(block, axis=along, keepdims=False), parts, dtype=dtype, drop_axis=list(axes))
        return tw.expand_dims(reduced, axis=axes) if keepdims else reduced

    def scan(
        self, func: Callable[..., Any], binop: Callable[..., Any], ident: float, arr: Array, axis: int | None = None,
        dtype: Any = None, **kwargs: Any,
    ) -> Array:  # fmt: skip
        """A running function along an axis, which every call sees whole."""
        if axis is None:
            raise ValueError("a scan needs to be told along which axis")
        axis %= arr.ndim
        whole = arr.rechunk({axis: -1})
        return tw.map_blocks(lambda block: func(block, axis=axis, dtype=dtype), whole, dtype=dtype or arr.dtype)

    def apply_gufunc(
        self, func: Callable[..., Any], signature: str, *args: Any, axes: Any = None, axis: int | None = None, keepdims: bool = False,
        output_dtypes: Any = None, output_sizes: dict[str, int] | None = None, vectorize: bool | None = None, allow_rechunk: bool = False,
        meta: Any = None, **kwargs: Any,
    ) -> Any:  # fmt: skip
        """A function of the last axes of arrays, called for every block of the others."""
        options = {"axes": axes, "axis": axis, "keepdims": keepdims, "output_sizes": output_sizes, "vectorize": bool(vectorize)}
        return _calls.apply_gufunc(func, signature, args, output_dtypes, meta, options, kwargs)

    def map_blocks(
        self, func: Callable[..., Any], *args: Any, dtype: Any = None, chunks: Any = None, drop_axis: Any = None, new_axis: Any = None,
        **kwargs: Any,
    ) -> Any:  # fmt: skip
        """A function of every block."""
        return _calls.map_blocks(func, args, dtype, chunks, drop_axis, new_axis, kwargs)

    def blockwise(
        self, func: Callable[..., Any], out_ind: Iterable[Any], *args: Any, adjust_chunks: Any = None, new_axes: Any = None,
        align_arrays: bool = True, **kwargs: Any,
    ) -> Any:  # fmt: skip
        """A function of blocks whose axes are named."""
        pairs = [(tw.asarray(x) if labels is not None else x, labels) for x, labels in zip(args[::2], args[1::2], strict=True)]
        flat = [each for pair in pairs for each in pair]
        return tw.blockwise(func, tuple(out_ind), *flat, adjust_chunks=adjust_chunks, new_axes=new_axes, align_arrays=align_arrays, **kwargs)

    def unify_chunks(self, *args: Any, **kwargs: Any) -> tuple[dict[Any, Any], list[Array]]:
        """Arrays in blocks that have the same boundaries along axes of one name."""
        pairs = list(zip(args[::2], args[1::2], strict=True))
        cuts: dict[Any, list[Any]] = {}
        for x, labels in pairs:
            for label, cut in zip(labels or (), x.chunks if labels else (), strict=True):
                cuts.setdefault(label, []).append(cut)
        common = {label: common_cut(found, f"axes {label!r}") for label, found in cuts.items()}
        unified = [x if labels is None else x.rechunk(tuple(_cut_like(cut, common[label]) for cut, label in zip(x.chunks, labels, strict=True)))
                   for x, labels in pairs]  # fmt: skip
        return common, unified

    def store(self, sources: Any, targets: Any, **kwargs: Any) -> Any:
        """Writes arrays into anything with NumPy's slicing, in one plan; with ``compute=False`` later."""
        return tw.store(sources, targets, **kwargs)

    def shuffle(self, x: Array, indexer: list[list[int]], axis: int, chunks: Any) -> Array:
        """The parts of an array along an axis in another order, in blocks of whole groups."""
        groups = [list(range(*group.indices(x.shape[axis]))) if isinstance(group, slice) else list(group) for group in indexer]
        groups = [group for group in groups if group]
        order = np.concatenate([np.asarray(group, dtype=np.int64) for group in groups]) if groups else np.zeros(0, dtype=np.int64)
        moved = tw.take(x, order, axis=axis)
        most = max(x.chunks[axis], default=1)
        lengths: list[int] = []
        for group in groups:
            if lengths and lengths[-1] + len(group) <= most:
                lengths[-1] += len(group)
            else:
                lengths.append(len(group))
        return moved.rechunk({axis: tuple(lengths) or (0,)})

    def get_auto_chunk_size(self) -> int:
        """Default bytes of a block."""
        return AUTOMATIC_BYTES


class _Declared:
    """A variable of a file whose slices have the type that xarray declares: decoding may give another one of the same kind."""

    def __init__(self, data: Any) -> None:
        self.data, self.shape, self.dtype = data, tuple(data.shape), np.dtype(data.dtype)

    def __getitem__(self, key: Any) -> np.ndarray:
        return np.asarray(self.data[key]).astype(self.dtype, copy=False)


def _native(data: Any) -> Array | None:
    """A variable that is no more than an array of a Zarr store in a directory, read by Tilewright's own reader. None for everything else.

    The names are private in xarray and zarr; where they have changed, elements come through xarray as those of other files do.
    """
    try:
        from xarray.backends.zarr import ZarrArrayWrapper
        from xarray.core import indexing
        from zarr.storage import LocalStore

        wrappers = (indexing.ImplicitToExplicitIndexingAdapter, indexing.CopyOnWriteArray, indexing.MemoryCachedArray, indexing.LazilyIndexedArray)
        inner = data
        while isinstance(inner, wrappers):
            if isinstance(inner, indexing.LazilyIndexedArray) and any(each != slice(None) for each in inner.key.tuple):
                return None
            inner = inner.array
        if type(inner) is not ZarrArrayWrapper or type(inner._array.store) is not LocalStore:
            return None
        found = tw.open_zarr(inner._array.store.root, inner._array.path or None)
    except (ImportError, AttributeError, OSError, TypeError, ValueError):
        # Another version of xarray or zarr, or a codec that only zarr knows.
        return None
    return found if found.shape == data.shape and found.dtype == data.dtype else None


def _per_axis(chunks: Any, rank: int) -> list[Any]:
    """The chunks of each axis; None where none are given."""
    if isinstance(chunks, dict):
        return [chunks.get(axis) for axis in range(rank)]
    if isinstance(chunks, (tuple, list)):
        if len(chunks) == rank:
            return list(chunks)
        if rank == 1 and all(isinstance(each, (int, np.integer)) for each in chunks):
            return [tuple(chunks)]
        raise ValueError(f"{len(chunks)} entries of chunks for an array with {rank} axes")
    return [chunks] * rank


def _unit(previous: Any, n: int) -> int:
    """The length of the chunks that automatic blocks are made of."""
    if isinstance(previous, (tuple, list)):
        return max(previous, default=1) or 1
    return int(previous) if isinstance(previous, (int, np.integer)) and 0 < previous < n else 1


def _automatic(given: list[Any], shape: tuple[int, ...], units: list[int], itemsize: int, limit: int) -> Chunks:
    """Blocks of at most so many bytes, of whole units along the axes that are automatic."""
    fixed = [None if isinstance(each, str) else normalize_chunks((each,), (n,), "i1")[0] for each, n in zip(given, shape, strict=True)]
    texts = {each for each in given if isinstance(each, str) and each != "auto"}
    if texts:
        from .._chunks import parse_bytes

        limit = min(parse_bytes(text) for text in texts)
    free = [axis for axis, cut in enumerate(fixed) if cut is None]
    size = itemsize * int(np.prod([max(cut, default=1) or 1 for cut in fixed if cut is not None], dtype=object))
    size *= int(np.prod([units[axis] for axis in free], dtype=object))
    lengths = automatic_chunks(tuple(-(-shape[axis] // units[axis]) for axis in free), max(size, 1), limit)
    for axis, cut in zip(free, lengths, strict=True):
        fixed[axis] = normalize_chunks((max(max(cut, default=1), 1) * units[axis],), (shape[axis],), "i1")[0]
    return tuple(fixed)  # type: ignore[arg-type]


def _cut_like(own: tuple[int, ...], common: tuple[int, ...]) -> tuple[int, ...]:
    """The common cut; an axis of length 1 goes with any and stays as it is."""
    return own if sum(own) != sum(common) else common


def _refuse(kwargs: dict[str, Any]) -> None:
    unknown = set(kwargs) - _OF_DASK
    if unknown:
        raise TypeError(f"compute has no argument {sorted(unknown)[0]!r}")
