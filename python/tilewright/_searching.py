"""Searching, sorting and choosing."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from . import _core
from ._array import Array, seen_in, unwrap
from ._elementwise import unwrap_array
from ._indexing import MOST_KNOWN, check_inside, from_start
from ._manipulation import reshape, stack
from ._out import takes_out


def where(condition: Array, x1: Any = None, x2: Any = None, /) -> Any:
    """``x1`` where the condition holds, ``x2`` elsewhere; of a condition alone, where it holds, as :func:`nonzero` says it."""
    if x1 is None and x2 is None:
        return nonzero(condition)
    if x1 is None or x2 is None:
        raise ValueError("where takes a condition alone, or both of x1 and x2")
    return Array(_core.where_(unwrap(condition), unwrap(x1), unwrap(x2)))


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """Indices of the elements that are not zero, one array per axis."""
    x = Array(unwrap_array(x))
    if x.ndim == 0:
        raise ValueError("an array without axes has no indices: use atleast_1d(x) first")
    from ._reductions import is_nonzero

    place = Array(_core.positions(is_nonzero(x)._tensor))
    if x.ndim == 1:
        return (place,)
    indices = []
    for n in reversed(x.shape):
        indices.append(place % n if n else place)
        place = place // n if n else place
    return tuple(reversed(indices))


def sort(
    x: Array, /, axis: int | None = -1, kind: str | None = None, *, descending: bool = False, stable: bool = True
) -> Array:
    """Sorted along an axis, or all elements in a row if it is None; NaN comes last (first if descending).

    Complex numbers are sorted by their real parts, then by their imaginary ones. Every sort is stable, so NumPy's ``kind`` changes nothing.

    >>> import tilewright as tw
    >>> tw.sort(tw.asarray([3, 1, 2])).compute()
    array([1, 2, 3])
    """
    tensor, axis = _row_or_axis(x, axis)
    if np.dtype(tensor.dtype).kind == "c" and not descending:
        return take_along_axis(Array(tensor), _complex_order(Array(tensor), axis), axis=axis)
    return Array(_core.sort(tensor, axis, descending)[0])


def argsort(
    x: Array, /, axis: int | None = -1, kind: str | None = None, *, descending: bool = False, stable: bool = True
) -> Array:
    """Where the sorted elements were; equal ones in their order."""
    # As in NumPy, a number is a vector of one.
    x = unwrap_array(x)
    tensor, axis = _row_or_axis(x, None if x.ndim == 0 and axis in (0, -1) else axis)
    if np.dtype(tensor.dtype).kind == "c" and not descending:
        return _complex_order(Array(tensor), axis)
    return Array(_core.sort(tensor, axis, descending)[1])


def _complex_order(x: Array, axis: int) -> Array:
    """Where complex numbers were that are sorted as NumPy does: by real parts, then by imaginary ones; those with a NaN last."""
    from ._elementwise import imag, isnan, real

    in_imag, in_real = (Array(_core.cast(isnan(part)._tensor, "uint8")) for part in (imag(x), real(x)))
    return lexsort((imag(x), real(x), in_imag + 2 * in_real), axis=axis)


def _row_or_axis(x: Any, axis: int | None) -> tuple[_core.Tensor, int]:
    tensor = unwrap_array(x)
    if axis is None:
        return _core.reshape(tensor, [-1]), 0
    return tensor, normalize_axis_index(axis, tensor.ndim)


def topk(x: Array, /, k: int, axis: int = -1, largest: bool = True) -> Array:
    """The ``k`` largest (or smallest) along an axis, in order; :func:`argtopk` tells where they are."""
    return _topk(x, k, axis, largest)[0]


def argtopk(x: Array, /, k: int, axis: int = -1, largest: bool = True) -> Array:
    """Where the ``k`` largest (or smallest) along an axis are, in their order.

    >>> import tilewright as tw
    >>> tw.argtopk(tw.asarray([3, 9, 5]), 2).compute()
    array([1, 2])
    """
    return _topk(x, k, axis, largest)[1]


def _topk(x: Any, k: int, axis: int, largest: bool) -> tuple[Array, Array]:
    tensor, axis = _row_or_axis(x, axis)
    if index(k) < 0:
        raise ValueError(f"the {k} largest: there are none; `largest=False` gives the smallest")
    values, positions = _core.sort(tensor, axis, largest, index(k))
    return Array(values), Array(positions)


def searchsorted(a: Array, v: Any, side: str = "left", sorter: Array | None = None) -> Array:
    """Where elements of ``v`` belong in the sorted vector ``a``: before equal ones, or after them (``side="right"``)."""
    if side not in ("left", "right"):
        raise ValueError(f"side is 'left' or 'right', not {side!r}")
    a, v = Array(unwrap_array(a)), Array(unwrap_array(v))
    if a.ndim != 1:
        raise ValueError(f"a sorted vector has one axis, not {a.ndim}")
    a = a if sorter is None else take(a, sorter)
    # How many of a come before each: the largest count whose last element does, found bit by bit.
    count = Array(_core.full(list(v.shape), 0, "int64"))
    step = 1 << a.size.bit_length() >> 1
    while step:
        longer = count + step
        last = take(a, Array(_core.binary("min", longer._tensor, a.size)) - 1)
        fits = Array(_core.logical("and", _before(last, v, side)._tensor, (longer <= a.size)._tensor))
        count = where(fits, longer, count)
        step >>= 1
    return count


def _before(known: Array, wanted: Array, side: str) -> Array:
    """True where a known element comes before a wanted one in sorted order, in which NaN is last."""
    if side == "left":
        return (known < wanted) | ((wanted != wanted) & (known == known)) if _has_nan(wanted) else known < wanted
    return (known <= wanted) | (wanted != wanted) if _has_nan(wanted) else known <= wanted


def _has_nan(x: Array) -> bool:
    return x.dtype.kind in "fcmM"


@takes_out
def take(x: Array, /, indices: Any, axis: int | None = None, *, mode: str = "raise") -> Array:
    """The elements at some indices along an axis; negative ones count from the end.

    Those outside are an IndexError (``mode="raise"``), counted around (``"wrap"``) or moved to the nearer end (``"clip"``).
    """
    known = np.asarray(indices) if isinstance(indices, (list, np.ndarray)) else None
    if known is not None and known.size == 0 and isinstance(indices, list):
        # An empty list holds no type of its own; as an index it means integers.
        known = indices = known.astype(np.int64)
    x, given, indices = Array(unwrap_array(x)), indices, Array(unwrap_array(indices))
    if axis is None or (x.ndim == 0 and axis in (0, -1)):
        if x.ndim != 1:
            x = reshape(x, (-1,))
        axis = 0
    axis = normalize_axis_index(axis, x.ndim)
    # Other types are refused below, where that needs no length of the axis.
    if mode == "raise" and indices.dtype.kind in "iu":
        check_inside(given, x.shape[axis], axis)
        if known is not None and known.size <= MOST_KNOWN:
            return Array(_core.gather_known(x._tensor, [from_start(known, x.shape[axis])], [axis]))
    # Small integers may not hold the length of the axis.
    if indices.dtype.kind == "b" or (indices.dtype.kind in "iu" and indices.dtype.itemsize < 8):
        indices = Array(_core.cast(indices._tensor, "int64"))
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"what to do with indices outside is 'raise', 'wrap' or 'clip', not {mode!r}")
    if mode != "raise":
        n = x.shape[axis]
        indices = indices % n if mode == "wrap" else Array(_core.binary("min", _core.binary("max", indices._tensor, 0), n - 1))
    return Array(_core.gather(x._tensor, [indices._tensor], [axis]))


def checked(x: Array, wrong: Array) -> Array:
    """Integers of which a condition must hold nowhere: computing them is an IndexError otherwise."""
    # The only error that depends on elements is an index outside, so a vector of one zero is looked up.
    zero = Array(_core.full([1], 0, x._tensor.dtype))
    found = x + take(zero, where(wrong, 1, 0))
    return found if x._tensor.is_open else seen_in(found, x.chunks)


def take_along_axis(x: Array, /, indices: Array, axis: int | None = -1) -> Array:
    """The elements at indices along an axis, which are arrays of the same rank: what ``argsort`` gives, say."""
    from ._manipulation import broadcast_shapes, broadcast_to

    x, given, indices = Array(unwrap_array(x)), indices, Array(unwrap_array(indices))
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    if x.ndim != indices.ndim:
        raise ValueError(f"an array with {x.ndim} axes and indices with {indices.ndim}")
    axis = normalize_axis_index(axis, x.ndim)
    check_inside(given, x.shape[axis], axis)
    drop = lambda shape: (*shape[:axis], 1, *shape[axis + 1 :])  # noqa: E731
    shape = list(broadcast_shapes(drop(x.shape), drop(indices.shape)))
    data = list(shape)
    shape[axis], data[axis] = indices.shape[axis], x.shape[axis]
    x, indices = broadcast_to(x, tuple(data)), broadcast_to(indices, tuple(shape))
    places = [
        indices._tensor if k == axis else _core.coordinate(shape, k) for k in range(x.ndim)
    ]
    return Array(_core.gather(x._tensor, places, list(range(x.ndim))))


def argwhere(a: Array) -> Array:
    """Indices of the elements that are not zero, one row each."""
    a = Array(unwrap_array(a))
    if a.ndim == 0:
        from ._reductions import is_nonzero

        hits = int(bool(is_nonzero(a)))
        return Array(_core.full([hits, 0], 0, "int64"))
    return stack(nonzero(a), axis=1)


def flatnonzero(a: Array) -> Array:
    """Indices of the elements that are not zero, among all in a row."""
    return nonzero(reshape(a, (-1,)))[0]


def lexsort(keys: Any, axis: int = -1) -> Array:
    """Where elements were that are sorted by several keys: by the last, where that is equal by the one before, and so on.

    >>> import tilewright as tw
    >>> tw.lexsort((tw.asarray([2, 1, 3]), tw.asarray([1, 1, 0]))).compute()
    array([2, 1, 0])
    """
    keys = [Array(unwrap_array(key)) for key in keys]
    if not keys:
        raise TypeError("there are no keys to sort by")
    if len({key.shape for key in keys}) > 1:
        raise ValueError("keys are of one shape")
    if keys[0].ndim == 0:
        return Array(_core.full([], 0, "int64"))
    order = argsort(keys[0], axis=axis)
    for key in keys[1:]:
        finer = argsort(take_along_axis(key, order, axis=axis), axis=axis)
        order = take_along_axis(order, finer, axis=axis)
    return order
