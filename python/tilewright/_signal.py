"""Convolutions, interpolation and moving windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from . import _core, _views
from ._array import Array
from ._creation import asarray, full
from ._dtypes import astype, float64, result_type
from ._elementwise import clip, conj, isnan
from ._manipulation import concat, expand_dims, flip, moveaxis, part, reshape
from ._padding import pad
from ._reductions import sum as total
from ._searching import argsort, searchsorted, take, where


def _vectors(a: Any, v: Any) -> tuple[Array, Array]:
    a, v = (reshape(x, (-1,)) if x.ndim == 0 else x for x in (asarray(a), asarray(v)))
    if a.ndim != 1 or v.ndim != 1:
        raise ValueError("vectors are convolved, not arrays of several axes")
    if a.size == 0 or v.size == 0:
        raise ValueError("an empty vector is not convolved")
    return a, v


def _convolved(a: Array, v: Array, mode: str, start: int) -> Array:
    """Windows of the longer vector times the shorter one reversed. ``start`` is where "same" begins."""
    a, v = (v, a) if v.size > a.size else (a, v)
    n, m = a.size, v.size
    # How many windows reach over the ends of the longer vector.
    margins = {"full": (m - 1, m - 1), "same": (m - 1 - start, start), "valid": (0, 0)}
    if mode not in margins:
        raise ValueError(f"a convolution is 'full', 'same' or 'valid', not {mode!r}")
    dtype = result_type(a.dtype, v.dtype)
    if dtype.kind == "b":
        a, v = astype(a, "int64"), astype(v, "int64")
    before, after = margins[mode]
    v = flip(v)
    parts = [_windows(a, 0, n - m + 1, m) @ v]
    if before:
        parts = [_over_an_end(a[: m - 1], v, (before, 0)), *parts]
    if after:
        parts = [*parts, _over_an_end(a[n - m + 1 :], v, (0, after))]
    found = parts[0] if len(parts) == 1 else concat(parts)
    return found != 0 if dtype.kind == "b" else found


def _over_an_end(a: Array, v: Array, beyond: tuple[int, int]) -> Array:
    """Sums of products with windows that begin before a vector, or end after it."""
    places = sum(beyond)
    products = _windows(pad(a, beyond), 0, places, v.size) * v
    # Elements that are not there are left out: a zero in their place would make NaN of what is not finite.
    there = _windows(pad(full(a.shape, True), beyond, constant_values=False), 0, places, v.size)
    return total(products, axis=1, dtype=products.dtype, where=there)


def convolve(a: Array, v: Any, mode: str = "full") -> Array:
    """Sums of products of two vectors, one of them reversed and moved along the other.

    >>> import tilewright as tw
    >>> tw.convolve(tw.asarray([1, 2, 3]), tw.asarray([1, 1])).compute()
    array([1, 3, 5, 3])
    """
    a, v = _vectors(a, v)
    return _convolved(a, v, mode, (min(a.size, v.size) - 1) // 2)


def correlate(a: Array, v: Any, mode: str = "valid") -> Array:
    """Sums of products of two vectors, one of them conjugated and moved along the other."""
    a, v = _vectors(a, v)
    shorter = min(a.size, v.size)
    return _convolved(a, conj(flip(v)), mode, shorter // 2 if v.size > a.size else (shorter - 1) // 2)


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: float | None = None) -> Array:
    """Values at ``x`` on the straight lines between points (``xp``, ``fp``), whose places go up.

    Before and after them, ``left`` and ``right``, or the values at the ends. With a period, places are taken modulo it.

    >>> import tilewright as tw
    >>> tw.interp(tw.asarray([0.5, 9.0]), tw.asarray([0.0, 1.0]), tw.asarray([0.0, 10.0])).compute()
    array([ 5., 10.])
    """
    x, xp, fp = asarray(x), asarray(xp), asarray(fp)
    if xp.ndim != 1 or fp.ndim != 1 or xp.size != fp.size:
        raise ValueError(f"points at places of shape {xp.shape} with values of shape {fp.shape}")
    if xp.size == 0:
        raise ValueError("there are no points")
    x, xp = astype(x, float64, copy=False), astype(xp, float64, copy=False)
    fp = astype(fp, "complex128" if fp.dtype.kind == "c" else float64, copy=False)
    if period is not None:
        if period == 0:
            raise ValueError("a period is not 0")
        left = right = None
        x, xp = x % abs(period), xp % abs(period)
        order = argsort(xp)
        xp, fp = take(xp, order), take(fp, order)
        xp = concat((xp[-1:] - abs(period), xp, xp[:1] + abs(period)))
        fp = concat((fp[-1:], fp, fp[:1]))
    left = fp[0] if left is None else asarray(left, dtype=fp.dtype)
    right = fp[-1] if right is None else asarray(right, dtype=fp.dtype)
    if xp.size == 1:
        return where(x < xp[0], left, where(x > xp[0], right, fp[0]))
    found = where(x < xp[0], left, where(x > xp[-1], right, where(x == xp[-1], fp[-1], _between(x, xp, fp))))
    return where(isnan(x), x, found)


def _between(x: Array, xp: Array, fp: Array) -> Array:
    place = clip(searchsorted(xp, x, side="right") - 1, 0, xp.size - 2)
    start, end = take(xp, place), take(xp, place + 1)
    first, last = take(fp, place), take(fp, place + 1)
    slope = (last - first) / (end - start)
    value = slope * (x - start) + first
    # Beside an infinite point one end of the line may tell more than the other.
    value = where(isnan(value), slope * (x - end) + last, value)
    return where(isnan(value) & (first == last), first, value)


def sliding_window_view(x: Array, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False) -> Array:
    """Windows that move over an array, as new axes at the end. ``.mean(axis=-1)`` of them is a rolling mean.

    ``subok`` is for NumPy's own arrays. Windows overlap, so they cannot be ``writeable``.

    >>> import tilewright as tw
    >>> tw.sliding_window_view(tw.arange(5.0), 3).mean(axis=-1).compute()
    array([1., 2., 3.])
    """
    if writeable:
        raise ValueError("windows overlap and cannot be written: assign to the array that they show")
    x = asarray(x)
    lengths = tuple(window_shape) if np.iterable(window_shape) else (window_shape,)
    if any(length < 0 for length in lengths):
        raise ValueError(f"a window of shape {lengths}")
    if axis is None:
        axes = tuple(range(x.ndim))
        if len(lengths) != len(axes):
            raise ValueError(f"a window of {len(lengths)} axes over {len(axes)}: say along which by `axis`")
    else:
        axes = normalize_axis_tuple(axis, x.ndim, allow_duplicate=True)
        if len(lengths) != len(axes):
            raise ValueError(f"a window of {len(lengths)} axes along {len(axes)}")
    windows = list(zip(lengths, axes, strict=True))
    left = list(x.shape)
    for length, along in windows:
        if left[along] - length + 1 < 1:
            raise ValueError(f"a window of length {length} on an axis of length {left[along]}")
        left[along] -= length - 1

    def read(tensor: _core.Tensor) -> _core.Tensor:
        seen = Array(tensor)
        for length, along in windows:
            seen = moveaxis(_windows(seen, along, seen.shape[along] - length + 1, length), along + 1, -1)
        return seen._tensor

    def strided(own: tuple[int, ...], strides: tuple[int, ...]) -> _views.Layout:
        return (*left, *lengths), (*strides, *(strides[along] for along in axes))

    return _views.view(x, _views.ReadOnly("sliding_window_view", read, strided))


def _windows(x: Array, axis: int, places: int, length: int) -> Array:
    """Windows along an axis, as a new axis behind it. Element ``k`` of window ``i`` is read at ``i + k``, without a copy."""
    shape = (*x.shape[:axis], places, length, *x.shape[axis + 1 :])
    if length == 0:
        return full(shape, 0, dtype=x.dtype)
    # Blocks of one element, each with those after it.
    axes = [(n, 0, 0, False) for n in x.shape]
    axes[axis] = (1, 0, length - 1, True)
    return reshape(Array(_core.overlap(x._tensor, axes)), shape)


def coarsen(reduction: Callable[..., Array], x: Array, axes: dict[int, int], trim_excess: bool = False) -> Array:
    """A reduction such as ``tw.sum`` over every group of so many neighbours along some axes.

    >>> import tilewright as tw
    >>> tw.coarsen(tw.sum, tw.arange(6), {0: 2}).compute()
    array([1, 5, 9])
    """
    x = asarray(x)
    groups = {normalize_axis_index(axis, x.ndim): int(n) for axis, n in axes.items()}
    for axis, n in groups.items():
        if n < 1:
            raise ValueError(f"groups of {n}")
        rest = x.shape[axis] % n
        if rest and not trim_excess:
            raise ValueError(f"axis {axis} of length {x.shape[axis]} does not consist of groups of {n}")
        x = part(x, axis, slice(x.shape[axis] - rest))
    shape: list[int] = []
    within = []
    for axis, n in enumerate(x.shape):
        group = groups.get(axis, 1)
        shape += [n // group, group]
        within.append(2 * axis + 1)
    return reduction(reshape(x, tuple(shape)), axis=tuple(within))


def apply_over_axes(func: Callable[..., Array], a: Array, axes: Any) -> Array:
    """A function with an axis applied along one axis after the other; axes that it removes are put back with length 1."""
    a = asarray(a)
    for axis in normalize_axis_tuple(axes, a.ndim, allow_duplicate=True):
        found = func(a, axis=axis)
        a = found if found.ndim == a.ndim else expand_dims(found, axis=axis)
    return a
