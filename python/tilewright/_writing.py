"""NumPy's functions that write into an array. Arrays that share its elements change, too, whatever view it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from . import _core, _views
from ._array import Array
from ._choosing import _inside
from ._creation import arange, asarray, full
from ._dtypes import astype
from ._manipulation import broadcast_to, reshape
from ._reductions import any, cumsum, is_nonzero
from ._searching import where as chosen


def _target(x: Any) -> Array:
    if not isinstance(x, Array):
        raise TypeError(f"lazy values go into an array of tilewright, not into {type(x).__name__}: compute them first, or write them by store(.., x)")
    return x


def _changed(x: Array, change: Callable[[Array], Array]) -> None:
    """Gives an array the elements that a function makes of its own."""
    dtype, shape = x.dtype, x.shape
    _views.update(x, lambda own: reshape(astype(change(Array(own)), dtype, copy=False), shape)._tensor)


def _around(values: Any, places: Array) -> Array:
    """The elements of some values at places in a row, from the first one again when there are no more."""
    row = reshape(asarray(values), (-1,))
    return broadcast_to(row, places.shape) if row.size == 1 else row[places % row.size]


def _safe(values: Any, x: Array) -> Array:
    """Values that go into an array: those that have a type must convert without a loss, as NumPy has it for these functions."""
    if hasattr(values, "dtype") and not np.can_cast(values.dtype, x.dtype, "safe"):
        raise TypeError(f"{values.dtype} does not go into an array of {x.dtype} by the rule 'safe': convert it by .astype(..)")
    return asarray(values)


def fill(x: Array, value: Any) -> None:
    """Writes one value everywhere."""
    x[...] = value


def copyto(dst: Array, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Writes values into an array, repeated to its shape and converted by NumPy's rule ``casting``; with ``where``, under a mask alone.

    >>> import tilewright as tw
    >>> x = tw.zeros(3)
    >>> tw.copyto(x[1:], 7)
    >>> x.compute()
    array([0., 7., 7.])
    """
    dst = _target(dst)
    if type(src) in (bool, int, float, complex) and np.can_cast(np.result_type(dst.dtype, src), dst.dtype, casting):
        # A number has no type of its own.
        src = full((), src, dtype=dst.dtype)
    if where is True:
        _views.assign(dst, src, casting)
        return
    src, mask = asarray(src), asarray(where)
    if mask.dtype.kind != "b":
        raise TypeError(f"a mask is made of bools, not of {mask.dtype}")
    if not np.can_cast(src.dtype, dst.dtype, casting):
        raise TypeError(f"{src.dtype} does not go into an array of {dst.dtype} by the rule {casting!r}: convert one of them by .astype(..)")
    values, mask = broadcast_to(astype(src, dst.dtype, copy=False), dst.shape), broadcast_to(mask, dst.shape)
    _changed(dst, lambda own: chosen(mask, values, own))


def put(a: Array, ind: Any, v: Any, mode: str = "raise") -> None:
    """Writes values at places that are counted in a row, from the first value again when there are no more."""
    a, places, values = _target(a), reshape(asarray(ind), (-1,)), asarray(v)
    if places.size == 0 or values.size == 0:
        return
    if mode != "raise":
        places = _inside(places, a.size, mode)
    key = np.asarray(ind).reshape(-1) if mode == "raise" and not isinstance(ind, Array) else places
    values = astype(_around(values, arange(places.size)), a.dtype, copy=False)

    def change(own: Array) -> Array:
        row = reshape(own, (-1,))
        row[key] = values
        return row

    _changed(a, change)


def putmask(a: Array, mask: Any, values: Any) -> None:
    """Writes values under a mask: at every place the value with the number of the place, from the first one again when there are no more."""
    a, mask, values = _target(a), is_nonzero(asarray(mask)), _safe(values, a)
    if mask.size != a.size:
        raise ValueError("putmask: mask and data must be the same size")
    if values.size == 0:
        return
    values = astype(_around(values, arange(a.size)), a.dtype, copy=False)
    _changed(a, lambda own: chosen(reshape(mask, (-1,)), values, reshape(own, (-1,))))


def place(arr: Array, mask: Any, vals: Any) -> None:
    """Writes values under a mask, one after the other, from the first one again when there are no more."""
    arr, mask, values = _target(arr), is_nonzero(asarray(mask)), _safe(vals, arr)
    if mask.size != arr.size:
        raise ValueError("place: mask and data must be the same size")
    if values.size == 0:
        if any(mask):
            raise ValueError("Cannot insert from an empty array!")
        return
    mask = reshape(mask, (-1,))
    values = astype(_around(values, cumsum(mask) - 1), arr.dtype, copy=False)
    _changed(arr, lambda own: chosen(mask, values, reshape(own, (-1,))))


def fill_diagonal(a: Array, val: Any, wrap: bool = False) -> None:
    """Writes values on the diagonal of a matrix, or of an array whose axes all have one length. ``wrap`` begins again below a square of a tall matrix.

    >>> import tilewright as tw
    >>> x = tw.zeros((2, 2))
    >>> tw.fill_diagonal(x, 5)
    >>> x.compute()
    array([[5., 0.],
           [0., 5.]])
    """
    shape = _target(a).shape
    if len(shape) < 2:
        raise ValueError("array must be at least 2-d")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    step = 1 + sum(int(np.prod(shape[k + 1 :], dtype=object)) for k in range(len(shape) - 1))
    end = a.size if wrap or len(shape) > 2 else min(shape[1] * shape[1], a.size)
    n = len(range(0, end, step))
    if n == 0:
        return
    values = astype(_around(val, arange(n)), a.dtype, copy=False)

    def change(own: Array) -> Array:
        row = reshape(own, (-1,))
        row[:end:step] = values
        return row

    _changed(a, change)


def put_along_axis(arr: Array, indices: Any, values: Any, axis: int | None) -> None:
    """Writes values at indices along an axis, which are arrays of the same rank: what ``argsort`` gives, say."""
    arr, indices = _target(arr), asarray(indices)
    if axis is None:
        if indices.ndim != 1:
            raise ValueError(f"indices of places in a row are a vector, not of {indices.ndim} axes")
        put(arr, indices, broadcast_to(asarray(values), indices.shape))
        return
    if indices.ndim != arr.ndim:
        raise ValueError(f"an array with {arr.ndim} axes and indices with {indices.ndim}")
    if indices.dtype.kind not in "iu":
        raise IndexError(f"an array of {indices.dtype} is no index; integers are")
    axis = normalize_axis_index(axis, arr.ndim)
    lengths = arr.shape[:axis] + indices.shape[axis : axis + 1] + arr.shape[axis + 1 :]
    arr[tuple(indices if k == axis else Array(_core.coordinate(list(lengths), k)) for k in range(arr.ndim))] = values
