"""Choosing elements, and the arithmetic of indices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from ._array import Array
from ._creation import asarray, full
from ._dtypes import astype, result_type
from ._elementwise import clip
from ._manipulation import broadcast_arrays, flip, stack
from ._out import takes_out
from ._rearranging import ravel
from ._reductions import any as any_of
from ._reductions import argmax, is_nonzero
from ._searching import checked, flatnonzero, take, take_along_axis, where
from ._session import compute


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Array:
    """Elements of the choice whose condition is the first that holds, or the default.

    >>> import tilewright as tw
    >>> x = tw.arange(4)
    >>> tw.select([x < 1, x > 2], [-x - 1, x * 10]).compute()
    array([-1,  0,  0, 30])
    """
    if len(condlist) != len(choicelist):
        raise ValueError(f"{len(condlist)} conditions for {len(choicelist)} choices")
    if len(condlist) == 0:
        raise ValueError("there are no conditions to select by")
    conditions = [asarray(each) for each in condlist]
    for condition in conditions:
        if condition.dtype.kind != "b":
            raise TypeError(f"a condition is made of bools, not of {condition.dtype}")
    numbers = (bool, int, float, complex)
    choices = [each if type(each) in numbers else asarray(each) for each in [*choicelist, default]]
    dtype = result_type(*choices)
    if dtype.kind == "M" and any(type(each) in numbers for each in choices):
        raise TypeError("dates and numbers have no common type: give a date as the default")
    *choices, chosen = (astype(asarray(each), dtype, copy=False) for each in choices)
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        chosen = where(condition, choice, chosen)
    return chosen


def piecewise(x: Array, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Array:
    """Numbers, or what functions give of the elements for which a condition holds; of several conditions the last counts.

    One more function than conditions is for the elements for which none holds. How many elements there are under every condition is computed now, as no function is called with nothing.

    >>> import tilewright as tw
    >>> x = tw.arange(-2.0, 3.0)
    >>> tw.piecewise(x, [x < 0, x >= 0], [lambda part: -part, 10]).compute()
    array([ 2.,  1., 10., 10., 10.])
    """
    x = asarray(x)
    single = not isinstance(condlist, (list, tuple, Array, np.ndarray)) or (x.ndim and np.ndim(condlist[0]) == 0)
    conditions = [astype(asarray(each), "bool", copy=False) for each in ([condlist] if single else condlist)]
    if len(funclist) == len(conditions) + 1:
        none = full((), True)
        for condition in conditions:
            none = none & ~condition
        conditions.append(none)
    elif len(funclist) != len(conditions):
        raise ValueError(f"with {len(conditions)} condition(s), either {len(conditions)} or {len(conditions) + 1} functions are expected")
    made = full(x.shape, 0, dtype=x.dtype)
    for condition, function in zip(conditions, funclist, strict=True):
        if not callable(function):
            made[condition] = function
            continue
        selected = x[condition]
        if selected.size:
            made[condition] = function(selected, *args, **kw)
    return made


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Array:
    """The part of an array without zeros at its front (``"f"``) and back (``"b"``), along some axes or all. Where it begins and ends is computed now.

    >>> import tilewright as tw
    >>> tw.trim_zeros(tw.asarray([0, 0, 1, 0, 2, 0])).compute()
    array([1, 0, 2])
    """
    filt, trim = asarray(filt), trim.lower()
    if trim not in ("fb", "bf", "f", "b"):
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
    axes = range(filt.ndim) if axis is None else normalize_axis_tuple(axis, filt.ndim)
    found = is_nonzero(filt)
    key = [slice(None)] * filt.ndim
    for k in axes:
        along = any_of(found, axis=tuple(other for other in range(filt.ndim) if other != k))
        if along.size == 0:
            key[k] = slice(0, 0)
            continue
        # The first of the largest is the first that is not zero, if there is one.
        some, first, from_end = (int(value) for value in compute(any_of(along), argmax(along), argmax(flip(along))))
        if not some:
            key[k] = slice(0, 0)
        else:
            key[k] = slice(first if "f" in trim else None, along.size - from_end if "b" in trim else None)
    return filt[tuple(key)]


def _inside(index: Array, n: int, mode: str) -> Array:
    """Indices of an axis of length ``n``, with those outside refused, moved to the nearest end, or counted around."""
    if index.dtype.kind not in "iub":
        raise TypeError(f"an array of {index.dtype} is no index; integers are")
    index = astype(index, "int64", copy=False)
    if mode == "wrap":
        return index % n
    if mode == "clip":
        return clip(index, 0, n - 1)
    if mode != "raise":
        raise ValueError(f"what to do with indices outside is 'raise', 'wrap' or 'clip', not {mode!r}")
    return checked(index, (index < 0) | (index >= n))


@takes_out
def choose(a: Array, choices: Any, *, mode: str = "raise") -> Array:
    """At every place, the element of the choice whose number stands there."""
    a, *choices = broadcast_arrays(asarray(a), *(asarray(each) for each in choices))
    if not choices:
        raise ValueError("there is nothing to choose from")
    number = _inside(a, len(choices), mode)
    return take_along_axis(stack(choices), number[None], axis=0)[0]


@takes_out
def compress(condition: Any, a: Array, axis: int | None = None) -> Array:
    """The parts along an axis for which a condition holds; what it says nothing about is left out."""
    condition = asarray(condition)
    if condition.ndim != 1:
        raise ValueError(f"a condition is a vector, not of {condition.ndim} axes")
    return take(a, flatnonzero(condition), axis=axis)


def extract(condition: Any, arr: Array) -> Array:
    """The elements for which a condition holds, in a row."""
    return compress(ravel(condition), ravel(arr))


def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Array:
    """Positions in a row of the elements that indices name, one array per axis."""
    indices = [asarray(each) for each in multi_index]
    if len(indices) != len(dims):
        raise ValueError(f"{len(indices)} indices of an array with {len(dims)} axes")
    modes = (mode,) * len(dims) if isinstance(mode, str) else tuple(mode)
    steps = _steps(dims, order)
    place = full((), 0)
    for index, n, step, how in zip(indices, dims, steps, modes, strict=True):
        place = place + _inside(index, n, how) * step
    return place


def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Array, ...]:
    """Indices, one array per axis, of the elements at given positions in a row."""
    shape = (shape,) if hasattr(shape, "__index__") else tuple(shape)
    size = 1
    for n in shape:
        size *= n
    place = _inside(asarray(indices), size, "raise")
    return tuple(place // step % n for n, step in zip(shape, _steps(shape, order), strict=True))


def _steps(shape: Any, order: str) -> list[int]:
    """How far apart neighbours along every axis lie in a row."""
    if order not in ("C", "F"):
        raise ValueError(f"elements lie in the order 'C' or 'F', not {order!r}")
    steps, step = [], 1
    for n in shape if order == "F" else reversed(shape):
        steps.append(step)
        step *= n
    return steps if order == "F" else steps[::-1]
