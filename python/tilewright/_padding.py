"""Elements around an array."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._array import Array
from ._creation import arange, asarray, full
from ._dtypes import astype, floating
from ._elementwise import floor, round
from ._manipulation import broadcast_to, concat, flip, part
from ._quantiles import median
from ._reductions import max, mean, min

#: What a mode takes besides the widths, and what it is if nothing is said.
_OPTIONS = {
    "constant": {"constant_values": 0},
    "edge": {},
    "empty": {},
    "linear_ramp": {"end_values": 0},
    "maximum": {"stat_length": None},
    "mean": {"stat_length": None},
    "median": {"stat_length": None},
    "minimum": {"stat_length": None},
    "reflect": {"reflect_type": "even"},
    "symmetric": {"reflect_type": "even"},
    "wrap": {},
}


def pad(array: Array, pad_width: Any, mode: str = "constant", **kwargs: Any) -> Array:
    """The array with elements before and after it along every axis.

    Modes are ``"constant"``, ``"edge"``, ``"linear_ramp"``, ``"maximum"``, ``"mean"``, ``"median"``, ``"minimum"``, ``"reflect"``,
    ``"symmetric"``, ``"wrap"`` and ``"empty"`` (zeros), with NumPy's options.

    >>> import tilewright as tw
    >>> tw.pad(tw.asarray([1, 2, 3]), 2, mode="reflect").compute()
    array([3, 2, 1, 2, 3, 2, 1])
    """
    array = asarray(array)
    if mode not in _OPTIONS:
        raise ValueError(f"there is no way {mode!r} to pad; known are {', '.join(_OPTIONS)}")
    unknown = set(kwargs) - set(_OPTIONS[mode])
    if unknown:
        raise ValueError(f"the mode {mode!r} takes no {', '.join(sorted(unknown))}")
    options = {**_OPTIONS[mode], **kwargs}
    for axis, (before, after) in enumerate(_widths(pad_width, array.ndim)):
        each = {name: _of_axis(name, value, axis, array.ndim) for name, value in options.items()}
        if before or after:
            array = _pad_axis(array, axis, before, after, mode, each)
    return array.copy()


def _widths(pad_width: Any, rank: int) -> list[tuple[int, int]]:
    if isinstance(pad_width, dict):
        widths = np.zeros((rank, 2), dtype=np.int64)
        for axis, width in pad_width.items():
            widths[axis] = width
    else:
        widths = np.asarray(pad_width)
        if widths.dtype.kind not in "iu" and widths.size:
            raise TypeError("widths are whole numbers")
        widths = np.broadcast_to(widths, (rank, 2))
    if (widths < 0).any():
        raise ValueError("a width is negative")
    return [(int(before), int(after)) for before, after in widths]


def _of_axis(name: str, value: Any, axis: int, rank: int) -> Any:
    """The part of an option that is about an axis: a pair, before and after."""
    if name == "reflect_type" or value is None:
        return value
    pair = np.broadcast_to(np.asarray(value), (rank, 2))[axis]
    # Constants keep their type, which says how they convert.
    return tuple(pair if name == "constant_values" else pair.tolist())


def _pad_axis(x: Array, axis: int, before: int, after: int, mode: str, options: dict[str, Any]) -> Array:
    n = x.shape[axis]
    if n == 0 and mode not in ("constant", "empty"):
        raise ValueError(f"axis {axis} is empty: the mode {mode!r} has nothing to take elements from")
    if mode in ("reflect", "symmetric"):
        return _mirrored(x, axis, before, after, mode, options["reflect_type"])
    if mode == "wrap":
        return concat((*_wrapped(x, axis, before, True), x, *_wrapped(x, axis, after, False)), axis=axis)
    parts = [x]
    for width, end, at_start in ((before, 0, True), (after, 1, False)):
        if width:
            made = _margin(x, axis, width, end, mode, options)
            parts = [made, *parts] if at_start else [*parts, made]
    return concat(parts, axis=axis)


def _margin(x: Array, axis: int, width: int, end: int, mode: str, options: dict[str, Any]) -> Array:
    """Elements before (``end`` 0) or after (1) an array, all made from one slice of it or from a number."""
    shape = (*x.shape[:axis], width, *x.shape[axis + 1 :])
    if mode in ("constant", "empty"):
        # As in NumPy, integers that do not fit wrap.
        return full(shape, options.get("constant_values", (0, 0))[end], dtype=x.dtype)
    edge = part(x, axis, slice(0, 1)) if end == 0 else part(x, axis, slice(-1, None))
    if mode == "edge":
        return broadcast_to(edge, shape)
    if mode == "linear_ramp":
        return _ramp(edge, options["end_values"][end], axis, width, end)
    length = options["stat_length"]
    length = x.shape[axis] if length is None else length[end]
    if length <= 0:
        raise ValueError(f"a {mode} of {length} elements")
    chosen = part(x, axis, slice(0, length)) if end == 0 else part(x, axis, slice(-np.minimum(length, x.shape[axis]), None))
    found = {"maximum": max, "minimum": min, "mean": mean, "median": median}[mode](chosen, axis=axis, keepdims=True)
    if x.dtype.kind in "iu" and mode in ("mean", "median"):
        found = round(found)
    return broadcast_to(astype(found, x.dtype, copy=False), shape)


def _ramp(edge: Array, final: float, axis: int, width: int, end: int) -> Array:
    """Evenly spaced from a final value towards the edge, which is not part of them."""
    line = [1] * edge.ndim
    line[axis] = width
    steps = arange(width, dtype="float64").reshape(tuple(line))
    exact = floating(edge)
    ramp = final + astype(steps, exact.real.dtype, copy=False) * ((exact - final) / width)
    ramp = floor(ramp) if edge.dtype.kind in "iu" else ramp
    ramp = astype(ramp, edge.dtype, copy=False)
    return ramp if end == 0 else flip(ramp, axis=axis)


def _wrapped(x: Array, axis: int, width: int, at_start: bool) -> list[Array]:
    """Copies of the array until the width is filled; the one at the outer end may be a part."""
    n = x.shape[axis]
    whole, rest = divmod(width, n)
    parts = [x] * whole
    if not rest:
        return parts
    return [part(x, axis, slice(n - rest, None)), *parts] if at_start else [*parts, part(x, axis, slice(0, rest))]


def _mirrored(x: Array, axis: int, before: int, after: int, mode: str, kind: str) -> Array:
    """Mirrored at its ends, over and over. ``"reflect"`` does not repeat the element at a mirror, ``"odd"`` mirrors at points."""
    if kind not in ("even", "odd"):
        raise ValueError(f"a reflection is 'even' or 'odd', not {kind!r}")
    n, skip = x.shape[axis], int(mode == "reflect")
    if n == 1 and skip:
        ends = [(*x.shape[:axis], width, *x.shape[axis + 1 :]) for width in (before, after)]
        return concat((broadcast_to(x, ends[0]), x, broadcast_to(x, ends[1])), axis=axis)
    while before > 0:
        width = int(np.minimum(before, n - skip))
        piece = flip(part(x, axis, slice(skip, skip + width)), axis=axis)
        x = concat((piece if kind == "even" else _turned(part(x, axis, slice(0, 1)), piece), x), axis=axis)
        before -= width
    while after > 0:
        width = int(np.minimum(after, n - skip))
        length = x.shape[axis]
        piece = flip(part(x, axis, slice(length - skip - width, length - skip)), axis=axis)
        x = concat((x, piece if kind == "even" else _turned(part(x, axis, slice(length - 1, None)), piece)), axis=axis)
        after -= width
    return x


def _turned(edge: Array, piece: Array) -> Array:
    """A piece mirrored at the point of an edge. Truth values are mirrored as numbers."""
    return astype(2 * edge - piece, edge.dtype, copy=False)
