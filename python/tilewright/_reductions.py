"""Aggregates and running aggregates."""

from __future__ import annotations

import builtins
import math
from operator import index
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from . import _core
from ._array import Array
from ._creation import full
from ._dtypes import astype, float64, floating, to_name
from ._elementwise import unwrap_array
from ._manipulation import broadcast_shapes, broadcast_to, concat, expand_dims, part, reshape
from ._out import takes_out, takes_out_by_name

Axis = int | tuple[int, ...] | None


def _axes(axis: Any, rank: int) -> list[int] | None:
    if axis is None:
        return None
    return [normalize_axis_index(each, rank) for each in (axis if isinstance(axis, (tuple, list)) else (axis,))]


#: Reductions that NumPy lets take the first or last axis of an array that has none.
_OF_NUMBERS = {"sum", "prod", "max", "min", "any", "all", "argmax", "argmin", "count"}
#: Reductions that are nothing without elements.
_OF_SOMETHING = {"max", "min", "argmax", "argmin"}


def _reduce(kind: str, x: Any, axis: Axis, keepdims: bool, ddof: float = 0.0) -> Array:
    tensor = unwrap_array(x)
    axes = _axes(_of_number(axis, tensor.ndim) if kind in _OF_NUMBERS else axis, tensor.ndim)
    if kind in _OF_SOMETHING and not tensor.is_open and 0 in (tensor.shape if axes is None else [tensor.shape[k] for k in axes]):
        raise ValueError(f"the {kind} of nothing has no value: the array has no elements along these axes")
    return Array(_core.reduce(kind, tensor, axes, keepdims, ddof))


def _of_number(axis: Axis, rank: int) -> Axis:
    """An axis; None for the first or last one of an array that has none."""
    return None if rank == 0 and axis in (0, -1) else axis


def _converted(x: Any, dtype: Any) -> Any:
    return x if dtype is None else astype(Array(unwrap_array(x)), dtype, copy=False)


def _masked(x: Array, where: Any, value: Any) -> Array:
    """The array with a value wherever the mask is false."""
    mask = unwrap_array(where)
    if np.dtype(mask.dtype).kind != "b":
        raise TypeError(f"a mask is made of bools, not of {mask.dtype}")
    if broadcast_shapes(mask.shape, x.shape) != x.shape:
        raise ValueError(f"a mask of shape {mask.shape} for an array of shape {x.shape}")
    return Array(_core.cast(_core.where_(mask, x._tensor, value), x._tensor.dtype))


def _started(op: str, reduced: Array, initial: Any) -> Array:
    """A reduction combined with the value that it starts from, in the type of the reduction."""
    first = _initial(initial, reduced.dtype)
    return Array(_core.cast(_core.binary(op, reduced._tensor, first._tensor), reduced._tensor.dtype))


def _initial(value: Any, dtype: np.dtype) -> Array:
    """What a reduction starts from, in its type."""
    if dtype.kind not in "bc" and np.dtype(getattr(value, "dtype", type(value))).kind == "c":
        raise TypeError(f"a reduction of {dtype} does not start from a complex number")
    return full((), value, dtype=dtype)


def _additive(
    kind: str, op: str, identity: int, x: Any, axis: Axis, dtype: Any, keepdims: bool, initial: Any, where: Any
) -> Array:
    x = Array(unwrap_array(_converted(x, dtype)))
    if where is not None:
        x = _masked(x, where, bool(identity) if x.dtype.kind == "b" else identity)
    reduced = _reduce(kind, x, axis, keepdims)
    reduced = reduced if dtype is None else astype(reduced, dtype, copy=False)
    return reduced if initial is None else _started(op, reduced, initial)


@takes_out
def sum(
    x: Array, /, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Array:
    """Sums along axes, or of everything. Small integers are added as int64 or uint64 unless ``dtype`` says otherwise.

    ``where`` is a mask of the elements that count, ``initial`` a number that the sums start from.

    >>> import tilewright as tw
    >>> tw.sum(tw.ones((2, 3)), axis=0).compute()
    array([2., 2., 2.])
    """
    return _additive("sum", "add", 0, x, axis, dtype, keepdims, initial, where)


@takes_out
def prod(
    x: Array, /, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Array:
    """Products along axes, or of everything; ``initial`` and ``where`` as in :func:`sum`."""
    return _additive("prod", "mul", 1, x, axis, dtype, keepdims, initial, where)


def _extreme(kind: str, x: Any, axis: Axis, keepdims: bool, initial: Any, where: Any) -> Array:
    x = Array(unwrap_array(x))
    if initial is None:
        if where is not None:
            raise ValueError(f"the {kind} of nothing has no value: with `where`, say what it is by `initial`")
        return _reduce(kind, x, axis, keepdims)
    if where is not None:
        x = _masked(x, where, _initial(initial, x.dtype)._tensor)
    axis = _of_number(axis, x.ndim)
    axes = range(x.ndim) if axis is None else normalize_axis_tuple(axis, x.ndim)
    if not builtins.all(x.shape[k] for k in axes):
        shape = [1 if k in axes else n for k, n in enumerate(x.shape) if keepdims or k not in axes]
        return broadcast_to(_initial(initial, x.dtype), tuple(shape))
    return _started(kind, _reduce(kind, x, axis, keepdims), initial)


@takes_out
def max(x: Array, /, axis: Axis = None, *, keepdims: bool = False, initial: Any = None, where: Any = None) -> Array:
    """The largest along axes, or of everything; NaN wins. With ``where`` only of those under a mask, and of ``initial``."""
    return _extreme("max", x, axis, keepdims, initial, where)


@takes_out
def min(x: Array, /, axis: Axis = None, *, keepdims: bool = False, initial: Any = None, where: Any = None) -> Array:
    """The smallest along axes, or of everything; NaN wins. With ``where`` only of those under a mask, and of ``initial``."""
    return _extreme("min", x, axis, keepdims, initial, where)


amax, amin = max, min


def number_of(x: Array, where: Any, axis: Axis, keepdims: bool) -> Array:
    """How many elements a mask leaves; as numbers that are compared and divided by, of whatever type."""
    is_whole = isinstance(where, Array) and where.dtype.kind == "b" and where.shape == x.shape
    # A mask that need not be broadcast keeps its own blocks.
    mask = where if is_whole else _masked(full(x.shape, True), where, False)
    axes = _axes(_of_number(axis, x.ndim), x.ndim)
    if x.dtype in (np.float32, np.complex64) and axes is not None and math.prod(x.shape[k] for k in axes) <= 2 ** (np.finfo(np.float32).nmant + 1):
        # The type of the sums holds such counts exactly, and both are folded in one loop then.
        return sum(astype(mask, np.float32), axis=axis, keepdims=keepdims)
    return count_nonzero(mask, axis=axis, keepdims=keepdims)


@takes_out
def mean(x: Array, /, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, where: Any = None) -> Array:
    """Means along axes, or of everything; with ``where``, of the elements under a mask.

    ``dtype`` is the type of the elements and of the result: means in a type of whole numbers lose their fractions, as in NumPy.
    """
    x = Array(unwrap_array(_converted(x, dtype)))
    if _is_whole(dtype):
        _axes(axis if where is None else None, x.ndim)
        total = sum(x, axis=axis, dtype=dtype, keepdims=keepdims, where=where)
        return astype(total / number_of(x, True if where is None else where, axis, keepdims), dtype)
    if where is None:
        return _reduce("mean", x, axis, keepdims)
    exact = floating(x)
    total = sum(exact, axis=axis, keepdims=keepdims, where=where)
    return astype(total / astype(number_of(x, where, axis, keepdims), total.real.dtype), exact.dtype, copy=False)


def one_correction(correction: float, ddof: float | None) -> float:
    """What the standard calls a correction, and NumPy also ``ddof``."""
    if ddof is not None and correction:
        raise ValueError("ddof and correction are two names of one argument: give one of them")
    return float(correction if ddof is None else ddof)


@takes_out
def var(
    x: Array, /, axis: Axis = None, dtype: Any = None, *, correction: float = 0.0, ddof: float | None = None,
    keepdims: bool = False, where: Any = None,
) -> Array:  # fmt: skip
    """Variances along axes, with ``n - correction`` in the denominator; with ``where``, of the elements under a mask.

    ``ddof`` is NumPy's name of the correction.
    """
    correction = one_correction(correction, ddof)
    if _is_whole(dtype):
        return _whole_variance(Array(unwrap_array(x)), axis, dtype, correction, keepdims, where)
    x = Array(unwrap_array(_converted(x, dtype)))
    if where is None:
        return _complex_if(dtype, _reduce("var", x, axis, keepdims, correction))
    # Not by keepdims: such a mean is one block for all, and would wait for every block of the array.
    middle = mean(x, axis=axis, where=where)
    axes = _axes(_of_number(axis, x.ndim), x.ndim)
    squares = _squares(x, expand_dims(middle, axis=tuple(range(x.ndim) if axes is None else axes)))
    return _complex_if(dtype, sum(squares, axis=axis, keepdims=keepdims, where=where) / astype(_free(x, where, axis, keepdims, correction), squares.dtype))


def _complex_if(dtype: Any, spread: Array) -> Array:
    """Variances are real, but have a complex type if it is asked for."""
    return astype(spread, dtype) if dtype is not None and np.dtype(dtype).kind == "c" else spread


def _squares(x: Array, middle: Array) -> Array:
    """Squared distances from the means."""
    apart = x - middle
    return apart.real * apart.real + apart.imag * apart.imag if apart.dtype.kind == "c" else apart * apart


def _free(x: Array, where: Any, axis: Axis, keepdims: bool, correction: float) -> Array:
    """How many elements count, less the correction, but never less than zero."""
    free = astype(number_of(x, where, axis, keepdims), float64) - correction
    return Array(_core.binary("max", free._tensor, 0.0))


def _is_whole(dtype: Any) -> bool:
    return dtype is not None and np.dtype(dtype).kind in "iub"


def _whole_variance(x: Array, axis: Axis, dtype: Any, correction: float, keepdims: bool, where: Any) -> Array:
    """Variances in a type of whole numbers: as in NumPy means, squares and quotients lose their fractions, each when it is found."""
    _axes(axis if where is None else None, x.ndim)
    where = True if where is None else where
    squares = _squares(x, mean(x, axis=axis, dtype=dtype, keepdims=True, where=where))
    total = sum(squares, axis=axis, dtype=dtype, keepdims=keepdims, where=where)
    return astype(total / _free(x, where, axis, keepdims, correction), dtype)


@takes_out
def std(
    x: Array, /, axis: Axis = None, dtype: Any = None, *, correction: float = 0.0, ddof: float | None = None,
    keepdims: bool = False, where: Any = None,
) -> Array:  # fmt: skip
    """Standard deviations along axes, with ``n - correction`` in the denominator; with ``where``, of the elements under a mask.

    ``ddof`` is NumPy's name of the correction.
    """
    correction = one_correction(correction, ddof)
    if where is None and not _is_whole(dtype):
        return _complex_if(dtype, _reduce("std", _converted(x, dtype), axis, keepdims, correction))
    squares = var(x, axis=axis, dtype=dtype, correction=correction, keepdims=keepdims, where=where)
    return astype(Array(_core.unary("sqrt", squares._tensor)), squares.dtype, copy=False)


def is_nonzero(x: Array) -> Array:
    """True for elements that are not zero. A time is zero if its number is."""
    if x.dtype.kind == "b":
        return x
    return Array(_core.binary("ne", _core.cast(x._tensor, "int64") if x.dtype.kind in "mM" else x._tensor, 0))


def _truth(kind: str, x: Any, axis: Axis, keepdims: bool, where: Any) -> Array:
    x = Array(unwrap_array(x))
    if where is not None:
        x = _masked(is_nonzero(x), where, kind == "all")
    return _reduce(kind, x, axis, keepdims)


@takes_out
def any(x: Array, /, axis: Axis = None, *, keepdims: bool = False, where: Any = None) -> Array:
    """True where any element along the axes is not zero; with ``where``, any of those under a mask."""
    return _truth("any", x, axis, keepdims, where)


@takes_out
def all(x: Array, /, axis: Axis = None, *, keepdims: bool = False, where: Any = None) -> Array:
    """True where no element along the axes is zero; with ``where``, none of those under a mask."""
    return _truth("all", x, axis, keepdims, where)


def count_nonzero(x: Array, /, axis: Axis = None, *, keepdims: bool = False) -> Array:
    """How many elements along the axes are not zero."""
    return _reduce("count", x, axis, keepdims)


@takes_out
def argmax(x: Array, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Where the largest is: the first one along the axis, or of all elements in order."""
    return _reduce("argmax", x, None if axis is None else index(axis), keepdims)


@takes_out
def argmin(x: Array, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Where the smallest is: the first one along the axis, or of all elements in order."""
    return _reduce("argmin", x, None if axis is None else index(axis), keepdims)


def _running(kind: str, x: Any, axis: int | None, dtype: Any, initial: bool) -> Array:
    x = Array(unwrap_array(x))
    # As in NumPy, a number is a vector of one.
    x = reshape(x, (1,)) if x.ndim == 0 else x
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"an array with {x.ndim} axes needs to be told along which")
        axis = 0
    axis = normalize_axis_index(axis, x.ndim)
    tensor = _core.scan(kind, _converted(x, dtype)._tensor, axis)
    running = Array(tensor if dtype is None else _core.cast(tensor, to_name(dtype)))
    if not initial:
        return running
    first = list(x.shape)
    first[axis] = 1
    return concat((full(tuple(first), int(kind == "prod"), dtype=running.dtype), running), axis=axis)


@takes_out_by_name
def cumulative_sum(
    x: Array, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Array:
    """Running sums along an axis.

    >>> import tilewright as tw
    >>> tw.cumulative_sum(tw.arange(4)).compute()
    array([0, 1, 3, 6])
    """
    return _running("sum", x, axis, dtype, include_initial)


@takes_out
def cumsum(a: Array, axis: int | None = None, dtype: Any = None) -> Array:
    """Running sums along an axis, or of all elements in a row.

    >>> import tilewright as tw
    >>> tw.cumsum(tw.ones((2, 2))).compute()
    array([1., 2., 3., 4.])
    """
    return _running("sum", *_in_a_row(a, axis), dtype, False)


@takes_out
def cumprod(a: Array, axis: int | None = None, dtype: Any = None) -> Array:
    """Running products along an axis, or of all elements in a row."""
    return _running("prod", *_in_a_row(a, axis), dtype, False)


def _in_a_row(x: Any, axis: int | None) -> tuple[Array, int]:
    x = Array(unwrap_array(x))
    return (x, axis) if axis is not None else (reshape(x, (-1,)), 0)


@takes_out_by_name
def cumulative_prod(
    x: Array, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Array:
    """Running products along an axis."""
    return _running("prod", x, axis, dtype, include_initial)


def _edge(value: Any, x: Array, axis: int) -> Array:
    """What is put before or after an array: a number stands along the whole edge."""
    edge = Array(unwrap_array(value))
    return edge if edge.ndim else broadcast_to(edge, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))


def diff(
    x: Array, /, n: int = 1, axis: int = -1, prepend: Array | None = None, append: Array | None = None
) -> Array:
    """Differences of neighbours along an axis, ``n`` times over."""
    if n < 0:
        raise ValueError(f"differences of order {n}")
    x = Array(unwrap_array(x))
    if n == 0:
        return x
    axis = normalize_axis_index(axis, x.ndim)
    parts = [_edge(each, x, axis) if each is not x else x for each in (prepend, x, append) if each is not None]
    x = concat(tuple(parts), axis=axis) if len(parts) > 1 else x
    for _ in range(n):
        later, earlier = part(x, axis, slice(1, None)), part(x, axis, slice(None, -1))
        x = later != earlier if x.dtype.kind == "b" else later - earlier
    return x
