"""Aggregates and running aggregates."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from ._array import Array
from ._dtypes import astype, to_name
from ._elementwise import unwrap_array

Axis = int | tuple[int, ...] | None


def _axes(axis: Any) -> list[int] | None:
    if axis is None:
        return None
    return [each.__index__() for each in axis] if isinstance(axis, (tuple, list)) else [axis.__index__()]


def _reduce(kind: str, x: Any, axis: Axis, keepdims: bool, ddof: float = 0.0) -> Array:
    return Array(_core.reduce(kind, unwrap_array(x), _axes(axis), keepdims, ddof))


def _converted(x: Any, dtype: Any) -> Any:
    return x if dtype is None else astype(Array(unwrap_array(x)), dtype, copy=False)


def sum(x: Array, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """Sums along axes, or of everything. Small integers are added as int64 or uint64 unless ``dtype`` says otherwise.

    >>> import tilewright as tw
    >>> tw.sum(tw.ones((2, 3)), axis=0).compute()
    array([2., 2., 2.])
    """
    summed = _reduce("sum", _converted(x, dtype), axis, keepdims)
    return summed if dtype is None else astype(summed, dtype, copy=False)


def prod(x: Array, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """Products along axes, or of everything."""
    product = _reduce("prod", _converted(x, dtype), axis, keepdims)
    return product if dtype is None else astype(product, dtype, copy=False)


def max(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """The largest along axes, or of everything; NaN wins."""
    return _reduce("max", x, axis, keepdims)


def min(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """The smallest along axes, or of everything; NaN wins."""
    return _reduce("min", x, axis, keepdims)


def mean(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Means along axes, or of everything."""
    return _reduce("mean", x, axis, keepdims)


def var(x: Array, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """Variances along axes, with ``n - correction`` in the denominator."""
    return _reduce("var", x, axis, keepdims, float(correction))


def std(x: Array, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """Standard deviations along axes, with ``n - correction`` in the denominator."""
    return _reduce("std", x, axis, keepdims, float(correction))


def any(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """True where any element along the axes is not zero."""
    return _reduce("any", x, axis, keepdims)


def all(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """True where no element along the axes is zero."""
    return _reduce("all", x, axis, keepdims)


def count_nonzero(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """How many elements along the axes are not zero."""
    return _reduce("count", x, axis, keepdims)


def argmax(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Where the largest is: the first one along the axis, or of all elements in order."""
    return _reduce("argmax", x, axis, keepdims)


def argmin(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Where the smallest is: the first one along the axis, or of all elements in order."""
    return _reduce("argmin", x, axis, keepdims)


def _running(kind: str, x: Any, axis: int | None, dtype: Any, initial: bool) -> Array:
    from ._creation import full
    from ._manipulation import concat

    x = Array(unwrap_array(x))
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"an array with {x.ndim} axes needs to be told along which")
        axis = 0
    tensor = _core.scan(kind, _converted(x, dtype)._tensor, axis)
    running = Array(tensor if dtype is None else _core.cast(tensor, to_name(dtype)))
    if not initial:
        return running
    first = list(x.shape)
    first[axis] = 1
    return concat((full(tuple(first), int(kind == "prod"), dtype=running.dtype), running), axis=axis)


def cumulative_sum(
    x: Array, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Array:
    """Running sums along an axis.

    >>> import tilewright as tw
    >>> tw.cumulative_sum(tw.arange(4)).compute()
    array([0, 1, 3, 6])
    """
    return _running("sum", x, axis, dtype, include_initial)


def cumulative_prod(
    x: Array, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Array:
    """Running products along an axis."""
    return _running("prod", x, axis, dtype, include_initial)


def diff(
    x: Array, /, *, axis: int = -1, n: int = 1, prepend: Array | None = None, append: Array | None = None
) -> Array:
    """Differences of neighbours along an axis, ``n`` times over."""
    from ._manipulation import concat

    if n < 0:
        raise ValueError(f"differences of order {n}")
    x = Array(unwrap_array(x))
    axis = np.lib.array_utils.normalize_axis_index(axis, x.ndim)
    parts = [part for part in (prepend, x, append) if part is not None]
    x = concat(tuple(parts), axis=axis) if len(parts) > 1 else x
    for _ in range(n):
        before = (slice(None),) * axis
        later, earlier = x[(*before, slice(1, None))], x[(*before, slice(None, -1))]
        x = later != earlier if x.dtype.kind == "b" else later - earlier
    return x
