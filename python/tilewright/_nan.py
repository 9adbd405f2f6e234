"""Reductions that leave NaN out."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _reductions as plain
from ._array import Array
from ._blocks import map_blocks
from ._creation import asarray
from ._elementwise import equal, isnan, logical_and, logical_not
from ._out import takes_out
from ._reductions import Axis
from ._searching import where


def _known(x: Array, mask: Any) -> Any:
    """A mask of the elements that are not NaN and lie under another mask; None if that is all of them."""
    if x.dtype.kind not in "fc":
        return mask
    known = logical_not(isnan(x))
    return known if mask is None else logical_and(known, mask)


@takes_out
def nansum(
    a: Array, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Array:
    """Sums along axes, with NaN as zero.

    >>> import tilewright as tw
    >>> float(tw.nansum(tw.asarray([1.0, float("nan"), 2.0])))
    3.0
    """
    a = asarray(a)
    return plain.sum(a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=_known(a, where))


@takes_out
def nanprod(
    a: Array, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Array:
    """Products along axes, with NaN as one."""
    a = asarray(a)
    return plain.prod(a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=_known(a, where))


def _check_type(a: Array, dtype: Any) -> None:
    """Means of floats are floats: as in NumPy whole numbers have no NaN for them."""
    if a.dtype.kind in "fc" and dtype is not None and np.dtype(dtype).kind not in "fc":
        raise TypeError(f"means of {a.dtype} without NaN are not of {np.dtype(dtype)}: NaN would be lost")


@takes_out
def nanmean(a: Array, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False, where: Any = None) -> Array:
    """Means along axes, of all that is not NaN; NaN where nothing else is."""
    a = asarray(a)
    _check_type(a, dtype)
    return plain.mean(a, axis=axis, dtype=dtype, keepdims=keepdims, where=_known(a, where))


@takes_out
def nanvar(
    a: Array, axis: Axis = None, dtype: Any = None, *, ddof: float | None = None, correction: float = 0.0,
    keepdims: bool = False, where: Any = None,
) -> Array:  # fmt: skip
    """Variances along axes, of all that is not NaN; NaN where no more than ``ddof`` elements are left."""
    a, ddof = asarray(a), plain.one_correction(correction, ddof)
    _check_type(a, dtype)
    known = _known(a, where)
    spread = plain.var(a, axis=axis, dtype=dtype, correction=ddof, keepdims=keepdims, where=known)
    if known is None:
        return spread
    counted = plain.number_of(a, known, axis, keepdims)
    return _where(counted <= ddof, float("nan"), spread)


@takes_out
def nanstd(
    a: Array, axis: Axis = None, dtype: Any = None, *, ddof: float | None = None, correction: float = 0.0,
    keepdims: bool = False, where: Any = None,
) -> Array:  # fmt: skip
    """Standard deviations along axes, of all that is not NaN."""
    return nanvar(a, axis, dtype, ddof=ddof, correction=correction, keepdims=keepdims, where=where) ** 0.5


def _infinity(value: float, a: Array) -> float | complex:
    """The number of a type that all others win over: of complex ones, both parts."""
    return complex(value, value) if a.dtype.kind == "c" else value


def _nanextreme(reduction: Any, sign: int, a: Any, axis: Axis, keepdims: bool, initial: Any, mask: Any) -> Array:
    """``sign`` is that of the infinity that any other element wins over."""
    a = asarray(a)
    if a.dtype.kind not in "fcmM":
        return reduction(a, axis=axis, keepdims=keepdims, initial=initial, where=mask)
    options = {"axis": axis, "keepdims": keepdims}
    if a.dtype.kind in "fc":
        worst, nothing = _infinity(sign * float("inf"), a), float("nan")
    else:
        ends = np.array([sign * (2**63 - 1), -(2**63)], dtype=np.int64).view(a.dtype)
        worst, nothing = asarray(ends[0]), asarray(ends[1])
    unknown = a != a
    found = reduction(_where(unknown, worst, a), **options, initial=initial, where=mask)
    if initial is not None:
        return found
    return _where(plain.all(unknown, **options), nothing, found)


@takes_out
def nanmax(
    a: Array, axis: Axis = None, *, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Array:
    """The largest along axes of all that is not NaN; NaN where nothing else is."""
    return _nanextreme(plain.max, -1, a, axis, keepdims, initial, where)


@takes_out
def nanmin(
    a: Array, axis: Axis = None, *, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Array:
    """The smallest along axes of all that is not NaN; NaN where nothing else is."""
    return _nanextreme(plain.min, 1, a, axis, keepdims, initial, where)


def _nanposition(reduction: Any, worst: float, a: Any, axis: int | None, keepdims: bool) -> Array:
    a = asarray(a)
    if a.dtype.kind not in "fc":
        return reduction(a, axis=axis, keepdims=keepdims)
    worst = _infinity(worst, a)
    options = {"axis": axis, "keepdims": keepdims}
    unknown = isnan(a)
    found = reduction(_where(unknown, worst, a), **options)
    # An infinity of the data may come after a NaN that stands for one: the first that is known is meant.
    infinite = logical_and(logical_not(unknown), equal(a, worst))
    only_worst = plain.all(unknown | infinite, **options)
    found = _where(only_worst, plain.argmax(infinite, **options), found)
    return map_blocks(_refuse_nothing, found, plain.all(unknown, **options), dtype=found.dtype, name=reduction.__name__)


def _refuse_nothing(found: np.ndarray, nothing: np.ndarray) -> np.ndarray:
    if nothing.any():
        raise ValueError("All-NaN slice encountered")
    return found


@takes_out
def nanargmax(a: Array, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Where the largest is that is not NaN. Where nothing else is, computing it is a ValueError."""
    return _nanposition(plain.argmax, -float("inf"), a, axis, keepdims)


@takes_out
def nanargmin(a: Array, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Where the smallest is that is not NaN. Where nothing else is, computing it is a ValueError."""
    return _nanposition(plain.argmin, float("inf"), a, axis, keepdims)


def _without(a: Any, value: int) -> Array:
    a = asarray(a)
    return _where(isnan(a), value, a) if a.dtype.kind in "fc" else a


@takes_out
def nancumsum(a: Array, axis: int | None = None, dtype: Any = None) -> Array:
    """Running sums along an axis, or of all elements in a row, with NaN as zero."""
    return plain.cumsum(_without(a, 0), axis, dtype)


@takes_out
def nancumprod(a: Array, axis: int | None = None, dtype: Any = None) -> Array:
    """Running products along an axis, or of all elements in a row, with NaN as one."""
    return plain.cumprod(_without(a, 1), axis, dtype)


# Parameters of that name hide the function.
_where = where
