"""The same elements in other places."""

from __future__ import annotations

import math
from operator import index
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from . import _core, _views
from ._array import Array
from ._dtypes import astype, result_type
from ._elementwise import unwrap_array
from ._out import takes_out


def _tuple(value: Any) -> tuple[int, ...]:
    """Whole numbers: one, or any sequence of them."""
    value = value.tolist() if isinstance(value, (Array, np.ndarray)) else value
    return tuple(index(each) for each in value) if isinstance(value, (tuple, list, range)) else (index(value),)


def as_array(x: Any) -> Array:
    """The array itself, or one of what can be made one."""
    return x if isinstance(x, Array) else Array(unwrap_array(x))


def broadcast_to(x: Array, /, shape: tuple[int, ...]) -> Array:
    """Repeated along axes of length 1 and new axes in front. As in NumPy, it follows the array and is read-only."""
    lengths = list(_tuple(shape))

    def strided(own: tuple[int, ...], strides: tuple[int, ...]) -> _views.Layout:
        new = len(lengths) - len(own)
        between = [0 if n != wanted else stride for n, wanted, stride in zip(own, lengths[new:], strides, strict=True)]
        return tuple(lengths), (*(0,) * new, *between)

    return _views.view(as_array(x), _views.ReadOnly("broadcast_to", lambda tensor: _core.broadcast_to(tensor, lengths), strided))


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape in which shapes meet."""
    return tuple(_core.broadcast_shapes([list(_tuple(shape)) for shape in shapes]))


def broadcast_arrays(*arrays: Array) -> tuple[Array, ...]:
    """Arrays repeated to the shape in which they meet."""
    arrays = tuple(as_array(x) for x in arrays)
    shape = broadcast_shapes(*(x.shape for x in arrays))
    return tuple(x if x.shape == shape else broadcast_to(x, shape) for x in arrays)


def concat(arrays: Any, /, axis: int | None = 0, *, dtype: Any = None) -> Array:
    """One array after the other along an axis; with ``axis=None``, all elements of all arrays in a row.

    >>> import tilewright as tw
    >>> tw.concat((tw.zeros(2), tw.ones(1))).compute()
    array([0., 0., 1.])
    """
    tensors = _operands(arrays, dtype)
    if axis is None:
        tensors, axis = [_core.reshape(x, [-1]) for x in tensors], 0
    return Array(_core.concat(tensors, normalize_axis_index(axis, tensors[0].ndim)))


def _operands(arrays: Any, dtype: Any) -> list[_core.Tensor]:
    """The tensors of arrays that are put together, in one type if it is given."""
    tensors = [unwrap_array(x) for x in arrays]
    if not tensors:
        raise ValueError("there is nothing to put together")
    if dtype is None and len({x.dtype for x in tensors}) > 2:
        # The engine would let them meet two by two, which may be wider.
        dtype = result_type(*(x.dtype for x in tensors))
    return tensors if dtype is None else [astype(Array(x), dtype, copy=False)._tensor for x in tensors]


@takes_out
def stack(arrays: Any, /, axis: int = 0, *, dtype: Any = None) -> Array:
    """Arrays of one shape side by side along a new axis."""
    tensors = _operands(arrays, dtype)
    return Array(_core.stack(tensors, normalize_axis_index(axis, tensors[0].ndim + 1)))


def part(x: Array, axis: int, key: Any) -> Array:
    """The part that an index or slice names along one axis, which is counted from the front."""
    return x[(slice(None),) * axis + (key,)]


def unstack(x: Array, /, axis: int = 0) -> tuple[Array, ...]:
    """The parts of an array along an axis, one array each."""
    axis = normalize_axis_index(axis, x.ndim)
    return tuple(part(x, axis, i) for i in range(x.shape[axis]))


def reshape(x: Array, /, shape: tuple[int, ...], order: str = "C", *, copy: bool | None = None) -> Array:
    """The same elements under another shape; one length may be -1.

    Elements are taken and placed row by row (``order="C"``), or with the first index running fastest (``"F"``). ``"A"`` is ``"C"``: that is how blocks lie.

    The result is a view where NumPy's would be one: not of a transposed or flipped array, whose elements lie in another order. ``copy=False`` refuses those.

    >>> import tilewright as tw
    >>> tw.reshape(tw.arange(4), (2, 2), order="F").compute()
    array([[0, 2],
           [1, 3]])
    """
    x, lengths = as_array(x), _tuple(shape)
    if by_columns(order, "ACF"):
        turned = reshape(permute_dims(x, tuple(range(x.ndim))[::-1]), lengths[::-1], copy=copy)
        return permute_dims(turned, tuple(range(turned.ndim))[::-1])
    if copy or not _views.reshapes(x, lengths):
        if copy is False:
            raise ValueError(f"an array of shape {x.shape}, seen in another order than its elements lie, becomes {lengths} only by a copy")
        return Array(_core.reshape(x._tensor, list(lengths)))
    return _views.view(x, _views.Shape(list(lengths)))


def by_columns(order: str, known: str) -> bool:
    """True if elements are in the order of columns, False if in that of rows; NumPy takes small letters, too."""
    name = order.upper() if isinstance(order, str) else order
    if not isinstance(name, str) or len(name) != 1 or name not in known:
        raise ValueError(f"elements lie in the order {', '.join(map(repr, known[:-1]))} or {known[-1]!r}, not {order!r}")
    return name == "F"


def expand_dims(x: Array, /, axis: int = 0) -> Array:
    """A new axis of length 1."""
    x = as_array(x)
    return _views.view(x, _views.NewAxes(sorted(_normalize(axis, x.ndim + len(_tuple(axis))))))


def squeeze(x: Array, /, axis: int | tuple[int, ...] | None = None) -> Array:
    """Without some axes, which must be of length 1, or without all that are."""
    x = as_array(x)
    # As in NumPy, the first or last axis of a number may be taken away.
    axis = None if x.ndim == 0 and axis in (0, -1) else axis
    axes = [k for k, n in enumerate(x.shape) if n == 1] if axis is None else sorted(_normalize(axis, x.ndim))
    return _views.view(x, _views.WithoutAxes(axes))


def permute_dims(x: Array, /, axes: tuple[int, ...]) -> Array:
    """The axes in another order."""
    x, axes = as_array(x), _tuple(axes)
    if len(axes) != x.ndim:
        raise ValueError(f"an order of {len(axes)} axes for an array with {x.ndim}")
    return _views.view(x, _views.Order(list(_normalize(axes, x.ndim))))


def matrix_transpose(x: Array, /) -> Array:
    """The last two axes exchanged."""
    return as_array(x).mT


def moveaxis(x: Array, /, source: Any, destination: Any) -> Array:
    """Some axes at other positions; the others keep their order."""
    x = as_array(x)
    source, destination = _normalize(source, x.ndim), _normalize(destination, x.ndim)
    if len(source) != len(destination):
        raise ValueError(f"{len(source)} axes are moved to {len(destination)} positions")
    order = [axis for axis in range(x.ndim) if axis not in source]
    for to, axis in sorted(zip(destination, source, strict=True)):
        order.insert(to, axis)
    return permute_dims(x, tuple(order))


def flip(x: Array, /, axis: int | tuple[int, ...] | None = None) -> Array:
    """The elements in opposite order along some axes, or all."""
    x = as_array(x)
    return _views.view(x, _views.Reverse(list(range(x.ndim)) if axis is None else list(_normalize(axis, x.ndim))))


def roll(x: Array, /, shift: Any, axis: int | tuple[int, ...] | None = None) -> Array:
    """The elements moved along axes; what leaves at one end comes in at the other."""
    x = Array(unwrap_array(x))
    if axis is None:
        if not hasattr(shift, "__index__"):
            shift = math.fsum(shift)
        return reshape(Array(_core.roll(_core.reshape(x._tensor, [-1]), int(shift), 0)), x.shape)
    axes = _normalize(axis, x.ndim, distinct=False)
    shifts = _tuple(shift) if isinstance(shift, (tuple, list)) else _tuple(shift) * len(axes)
    axes = axes * len(shifts) if len(axes) == 1 else axes
    if len(axes) != len(shifts):
        raise ValueError(f"{len(shifts)} shifts for {len(axes)} axes")
    tensor = x._tensor
    for by, along in zip(shifts, axes, strict=True):
        tensor = _core.roll(tensor, by, along)
    return Array(tensor)


def tile(x: Array, /, reps: int | tuple[int, ...]) -> Array:
    """The array repeated along every axis."""
    x = Array(unwrap_array(x))
    repetitions = _tuple(reps)
    if any(n < 0 for n in repetitions):
        raise ValueError(f"an array repeated {min(repetitions)} times")
    rank = max(x.ndim, len(repetitions))
    shape = (1,) * (rank - x.ndim) + x.shape
    repetitions = (1,) * (rank - len(repetitions)) + repetitions
    apart = [n for length in shape for n in (1, length)]
    repeated = [n for pair in zip(repetitions, shape, strict=True) for n in pair]
    x = broadcast_to(reshape(x, tuple(apart)), tuple(repeated))
    return reshape(x, tuple(r * n for r, n in zip(repetitions, shape, strict=True)))


def repeat(x: Array, /, repeats: Any, axis: int | None = None) -> Array:
    """Every element along an axis repeated, by one number or by one each."""
    from ._creation import asarray

    x = Array(unwrap_array(x))
    if axis is None or (x.ndim == 0 and axis in (0, -1)):
        x, axis = reshape(x, (-1,)), 0
    axis = normalize_axis_index(axis, x.ndim)
    if isinstance(repeats, (int, np.integer)):
        n = int(repeats)
        if n < 0:
            raise ValueError(f"an element repeated {n} times")
        return Array(_core.repeat(x._tensor, n, axis))
    # As in NumPy, numbers and lists lose their fractions; arrays must be whole.
    repeats = asarray(repeats if hasattr(repeats, "dtype") else np.asarray(repeats).astype(np.int64))
    if repeats.dtype.kind not in "iub" and repeats.size:
        raise TypeError(f"numbers of repeats are whole, not of {repeats.dtype}")
    if repeats.ndim == 0 or repeats.shape == (1,):
        return repeat(x, int(repeats), axis)
    if repeats.shape != (x.shape[axis],):
        raise ValueError(f"{repeats.size} numbers of repeats for {x.shape[axis]} elements")
    if repeats.size == 0:
        return x
    first = moveaxis(x, axis, 0)
    times = _core.cast(repeats._tensor, "int64")
    return moveaxis(Array(_core.compact(first._tensor, times)), 0, axis)


def _normalize(axis: Any, rank: int, distinct: bool = True) -> tuple[int, ...]:
    axes = tuple(normalize_axis_index(each, rank) for each in _tuple(axis))
    if distinct and len(set(axes)) != len(axes):
        raise ValueError(f"an axis is named twice in {axis}")
    return axes
