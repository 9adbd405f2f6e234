"""NumPy's other ways to turn arrays around: axes, diagonals, ranks."""

from __future__ import annotations

import math
from typing import Any

from numpy.lib.array_utils import normalize_axis_index

from . import _core, _views
from ._array import Array
from ._creation import _shape, asarray, zeros
from ._manipulation import by_columns, concat, expand_dims, flip, permute_dims, reshape, tile
from ._out import takes_out
from ._reductions import sum
from ._searching import where


def copy(a: Array, order: str = "K") -> Array:
    """An independent copy of an array. Elements are copied only when one of the two is written. ``order`` is that of NumPy's memory."""
    by_columns(order, "ACKF")
    return asarray(a, copy=True) if isinstance(a, Array) else asarray(a)


def shape(a: Array) -> tuple[int, ...]:
    """Lengths of the axes."""
    return asarray(a).shape


def ndim(a: Array) -> int:
    """Number of axes."""
    return asarray(a).ndim


def size(a: Array, axis: int | None = None) -> int:
    """Number of elements, or the length of an axis."""
    a = asarray(a)
    return a.size if axis is None else a.shape[normalize_axis_index(axis, a.ndim)]


def ravel(a: Array, order: str = "C") -> Array:
    """All elements in a row: row by row, or with the first index running fastest (``order="F"``).

    The result is a view, unless the elements lie in another order or apart, as those of a transposed array.
    """
    a = asarray(a)
    if by_columns(order, "ACKF"):
        return reshape(a, (-1,), "F", copy=True)
    return reshape(a, (-1,), copy=None if _views.is_contiguous(a) else True)


def flatten(a: Array, order: str = "C") -> Array:
    """A copy of all elements in a row."""
    return reshape(a, (-1,), "F" if by_columns(order, "ACKF") else "C", copy=True)


def resize(a: Array, new_shape: Any) -> Array:
    """Elements of the array in a row, over and over, under a shape that may need more or fewer of them."""
    lengths = tuple(_shape(new_shape))
    wanted = math.prod(lengths)
    row = ravel(a)
    if wanted == 0 or row.size == 0:
        return zeros(lengths, dtype=row.dtype)
    return reshape(tile(row, (-(-wanted // row.size),))[:wanted], lengths)


def transpose(a: Array, axes: Any = None) -> Array:
    """The axes in another order; reversed if none is given."""
    a = asarray(a)
    return a.T if axes is None else permute_dims(a, axes)


def swapaxes(a: Array, axis1: int, axis2: int) -> Array:
    """Two axes exchanged."""
    a = asarray(a)
    order = list(range(a.ndim))
    axis1, axis2 = normalize_axis_index(axis1, a.ndim), normalize_axis_index(axis2, a.ndim)
    order[axis1], order[axis2] = axis2, axis1
    return permute_dims(a, tuple(order))


def rollaxis(a: Array, axis: int, start: int = 0) -> Array:
    """One axis moved to where it lies before the axis ``start``."""
    a = asarray(a)
    axis, start = normalize_axis_index(axis, a.ndim), start + a.ndim if start < 0 else start
    if not 0 <= start <= a.ndim:
        raise ValueError(f"an array with {a.ndim} axes has none to lie before axis {start}")
    order = [k for k in range(a.ndim) if k != axis]
    order.insert(start - (axis < start), axis)
    return permute_dims(a, tuple(order))


def rot90(m: Array, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Turned by ``k`` right angles, from the first of two axes towards the second.

    >>> import tilewright as tw
    >>> tw.rot90(tw.asarray([[1, 2], [3, 4]])).compute()
    array([[2, 4],
           [1, 3]])
    """
    m = asarray(m)
    if len(axes) != 2:
        raise ValueError(f"an array turns in a plane of two axes, not in {axes}")
    first, second = (normalize_axis_index(axis, m.ndim) for axis in axes)
    if first == second:
        raise ValueError(f"an array turns in a plane of two axes, and {axes} are one")
    if k % 4 == 0:
        return m[...]
    if k % 4 == 2:
        return flip(m, axis=(first, second))
    if k % 4 == 1:
        return swapaxes(flip(m, axis=second), first, second)
    return flip(swapaxes(m, first, second), axis=second)


def fliplr(m: Array) -> Array:
    """In opposite order along the second axis."""
    if ndim(m) < 2:
        raise ValueError("left and right need a second axis")
    return flip(m, axis=1)


def flipud(m: Array) -> Array:
    """In opposite order along the first axis."""
    if ndim(m) < 1:
        raise ValueError("up and down need an axis")
    return flip(m, axis=0)


def _at_least(rank: int, arrays: tuple[Any, ...]) -> Any:
    wide = []
    for array in (asarray(each) for each in arrays):
        if rank == 3 and array.ndim in (1, 2):
            array = expand_dims(array, axis=array.ndim)
        while array.ndim < rank:
            array = expand_dims(array, axis=0)
        wide.append(array)
    return wide[0] if len(wide) == 1 else tuple(wide)


def atleast_1d(*arys: Array) -> Any:
    """Arrays with one axis at least."""
    return _at_least(1, arys)


def atleast_2d(*arys: Array) -> Any:
    """Arrays with two axes at least; a vector becomes a row."""
    return _at_least(2, arys)


def atleast_3d(*arys: Array) -> Any:
    """Arrays with three axes at least; a vector goes to the middle one, a matrix to the first two."""
    return _at_least(3, arys)


def diagonal(a: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """A diagonal of two axes, as the last axis. As in NumPy, it follows the array and is read-only."""
    a = asarray(a)
    if a.ndim < 2:
        raise ValueError(f"a diagonal needs two axes, and there are {a.ndim}")
    if normalize_axis_index(axis1, a.ndim) == normalize_axis_index(axis2, a.ndim):
        raise ValueError("a diagonal needs two axes, not one twice")
    axis1, axis2 = normalize_axis_index(axis1, a.ndim), normalize_axis_index(axis2, a.ndim)

    def strided(own: tuple[int, ...], strides: tuple[int, ...]) -> _views.Layout:
        others = [axis for axis in range(len(own)) if axis not in (axis1, axis2)]
        n = max(min(own[axis1] + min(offset, 0), own[axis2] - max(offset, 0)), 0)
        return (*(own[axis] for axis in others), n), (*(strides[axis] for axis in others), strides[axis1] + strides[axis2])

    return _views.view(a, _views.ReadOnly("diagonal", lambda tensor: _core.diagonal(tensor, offset, axis1, axis2), strided))


@takes_out
def trace(a: Array, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Array:
    """Sums of diagonals."""
    return sum(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


def diag(v: Array, k: int = 0) -> Array:
    """The ``k``-th diagonal of a matrix, or the matrix whose ``k``-th diagonal is a vector.

    >>> import tilewright as tw
    >>> tw.diag(tw.asarray([1, 2])).compute()
    array([[1, 0],
           [0, 2]])
    """
    v = asarray(v)
    if v.ndim == 2:
        return diagonal(v, k)
    if v.ndim != 1:
        raise ValueError(f"a diagonal is that of a matrix or a vector, not of {v.ndim} axes")
    n = v.size + abs(k)
    below, right = max(-k, 0), max(k, 0)
    if v.size == 0:
        return zeros((n, n), dtype=v.dtype)
    rows, columns = Array(_core.coordinate([n, n], 0)), Array(_core.coordinate([n, n], 1))
    ends = [zeros(length, dtype=v.dtype) for length in (below, n - v.size - below)]
    padded = concat((ends[0], v, ends[1])) if n > v.size else v
    nothing = zeros((), dtype=v.dtype)
    return where(columns - rows == right - below, padded[:, None], nothing)


def diagflat(v: Array, k: int = 0) -> Array:
    """The matrix whose ``k``-th diagonal has all elements in a row."""
    return diag(ravel(v), k)
