"""Methods of arrays, with the arguments that NumPy's users write."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from . import (
    _blocks, _choosing, _dtypes, _elementwise, _files, _foreign, _manipulation, _out, _overlap, _products, _quantiles, _rearranging, _reductions,
    _searching, _writing,
)  # fmt: skip
from ._array import Array


def reshape(self: Array, *shape: Any, order: str = "C", copy: bool | None = None) -> Array:
    """The same elements under another shape; one length may be -1. See :func:`tilewright.reshape`."""
    return _manipulation.reshape(self, shape[0] if len(shape) == 1 else shape, order, copy=copy)


def transpose(self: Array, *axes: Any) -> Array:
    """The axes in another order; reversed if none is given."""
    if not axes or axes == (None,):
        return self.T
    return _manipulation.permute_dims(self, axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes)


def astype(
    self: Array, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True, *, device: str | None = None
) -> Array:
    """The array converted to another type, if NumPy's rule ``casting`` allows it. ``order`` and ``subok`` say how NumPy keeps arrays in memory."""
    _manipulation.by_columns(order, "ACKF")
    if not np.can_cast(self.dtype, dtype, casting):
        raise TypeError(f"{self.dtype} does not convert to {np.dtype(dtype)} by the rule {casting!r}")
    return _dtypes.astype(self, dtype, copy=copy, device=device)


def sort(self: Array, axis: int = -1, kind: str | None = None) -> None:
    """Brings the elements along an axis into order, as ``x[..] = ..`` would."""
    # All elements in a row, which None asks of the function, would have another shape.
    _out.rebind(self, _searching.sort(self, index(axis)))


def partition(self: Array, kth: Any, axis: int = -1, kind: str = "introselect") -> None:
    """Brings elements along an axis to the places that they have in order, with smaller ones before and larger ones after them; see :func:`tilewright.partition`."""
    _out.rebind(self, _quantiles.partition(self, kth, index(axis)))


def argpartition(self: Array, kth: Any, axis: int | None = -1, kind: str = "introselect") -> Array:
    """The indices that would bring elements to the places that they have in order; see :func:`tilewright.argpartition`."""
    return _quantiles.argpartition(self, kth, axis)


def put(self: Array, indices: Any, values: Any, mode: str = "raise") -> None:
    """Writes values at places that are counted in a row; see :func:`tilewright.put`."""
    _writing.put(self, indices, values, mode)


def tobytes(self: Array, order: str = "C") -> bytes:
    """Computes the array and gives the bytes of its elements."""
    return self.compute().tobytes(order)


def to_whole_or_rounded(self: Array, ndigits: int | None = None) -> Any:
    """``round(x, 2)``: rounded to so many decimals. Without them a single number becomes an int, as Python's numbers do."""
    return int(_elementwise.rint(self).item()) if ndigits is None and self.ndim == 0 else _elementwise.round(self, decimals=ndigits or 0)


def round(self: Array, decimals: int = 0, out: Array | None = None) -> Array:
    """Rounded to so many decimals, ties to even ones."""
    return _elementwise.round(self, decimals=decimals, out=out)


def compress(self: Array, condition: Any, axis: int | None = None, out: Array | None = None) -> Array:
    """The parts along an axis for which a condition holds."""
    return _choosing.compress(condition, self, axis, out=out)


def searchsorted(self: Array, v: Any, side: str = "left", sorter: Any = None) -> Array:
    """Where elements belong in this sorted vector."""
    return _searching.searchsorted(self, v, side=side, sorter=sorter)


def nonzero(self: Array) -> tuple[Array, ...]:
    """Indices of the elements that are not zero, one array per axis."""
    return _searching.nonzero(self)


def conj(self: Array) -> Array:
    """Complex conjugates; of real numbers, the array itself, as in NumPy."""
    return _elementwise.conj(self) if self.dtype.kind == "c" else self


#: Functions whose arguments are those of NumPy's methods already.
_SAME = (
    _choosing.choose, _elementwise.clip, _manipulation.repeat, _manipulation.squeeze, _products.dot, _rearranging.copy,
    _rearranging.diagonal, _rearranging.ravel, _rearranging.swapaxes, _rearranging.trace, _reductions.all, _reductions.any,
    _reductions.argmax, _reductions.argmin, _reductions.cumprod, _reductions.cumsum, _reductions.max, _reductions.mean,
    _reductions.min, _reductions.prod, _reductions.std, _reductions.sum, _reductions.var, _searching.argsort, _searching.take,
)  # fmt: skip


def map_blocks(self: Array, func: Any, *args: Any, **options: Any) -> Array:
    """Calls a function with every block; see :func:`tilewright.map_blocks`."""
    return _blocks.map_blocks(func, self, *args, **options)


def map_overlap(self: Array, func: Any, depth: Any, boundary: Any = "none", trim: bool = True, **options: Any) -> Array:
    """Calls a function with every block and some elements of its neighbours; see :func:`tilewright.map_overlap`."""
    return _overlap.map_overlap(func, self, depth=depth, boundary=boundary, trim=trim, **options)


def compute_chunk_sizes(self: Array) -> Array:
    """The array itself, with lengths that depend on elements computed now."""
    self._tensor.shape  # noqa: B018
    return self


def store(
    self: Array, target: Any, regions: Any = None, lock: Any = True, *, compute: bool = True, flush: bool = True
) -> _foreign.Writing | None:
    """Writes the array into anything with NumPy's slicing; see :func:`tilewright.store`."""
    return _foreign.store(self, target, regions=regions, lock=lock, compute=compute, flush=flush)


def to_zarr(self: Array, path: Any, component: str | None = None, **options: Any) -> None:
    """Computes the array and writes it to a Zarr store, block by block; see :func:`tilewright.to_zarr`."""
    _files.to_zarr(self, path, component, **options)


def to_parquet(self: Array, path: Any, **options: Any) -> None:
    """Computes the array and writes it to a Parquet file, a column for each of its columns; see :func:`tilewright.to_parquet`."""
    _files.to_parquet(self, path, **options)


def to_csv(self: Array, path: Any, **options: Any) -> None:
    """Computes the array and writes it as text, a line for each of its rows; see :func:`tilewright.to_csv`."""
    _files.to_csv(self, path, **options)


def attach() -> None:
    """Gives arrays their methods."""
    own = (reshape, transpose, astype, compress, sort, partition, argpartition, put, tobytes, round, searchsorted, nonzero, conj)
    blocks = (map_blocks, map_overlap, compute_chunk_sizes, store, to_zarr, to_parquet, to_csv)
    for method in (*own, *blocks, *_SAME, _writing.fill):
        setattr(Array, method.__name__, method)
    Array.flatten = _rearranging.flatten
    Array.conjugate = conj
    Array.__round__ = to_whole_or_rounded
