"""Order statistics: exact, without sorting. A long vector is never held or moved: a few passes over its blocks count digits."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from . import _core
from ._array import Array
from ._creation import asarray, full
from ._dtypes import astype
from ._elementwise import ceil, clip, floor, isnan
from ._manipulation import broadcast_to, concat, moveaxis, reshape
from ._out import takes_out
from ._reductions import sum
from ._searching import argsort, sort, take_along_axis, where

# How NumPy's continuous methods place a quantile: (alpha, beta) of ``n q + alpha + q (1 - alpha - beta) - 1``.
_CONTINUOUS = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "linear": (1.0, 1.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
#: Methods that give elements of the array, never numbers between them.
_TAKEN = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")
METHODS = (
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", *_CONTINUOUS, "lower", "higher", "midpoint", "nearest",
)  # fmt: skip


def _place(n: Array, q: Array, method: str) -> tuple[Array, Array, Array]:
    """The ranks around each quantile of ``n`` elements, and how far it lies between them."""
    if method == "linear":
        at = (n - 1) * q
    elif method in _CONTINUOUS:
        alpha, beta = _CONTINUOUS[method]
        at = n * q + (alpha + q * (1 - alpha - beta)) - 1
    elif method in ("inverted_cdf", "averaged_inverted_cdf"):
        at = n * q - 1
    elif method == "closest_observation":
        at = n * q - 1.5
    else:
        at = (n - 1) * q
    below = floor(at)
    between = at - below
    if method in ("lower", "higher", "midpoint", "nearest"):
        upper = ceil(at)
        # Half way, NumPy's nearest is the even rank.
        if method == "nearest":
            up = (between > 0.5) | ((between == 0.5) & (below % 2 == 1))
            lower = upper = where(up, below + 1, below)
        else:
            lower, upper = (upper if method == "higher" else below), (below if method == "lower" else upper)
        between = where(lower == upper, 0.0, 0.5)
    else:
        lower, upper = below, below + 1
        if method == "inverted_cdf":
            between = where(between > 0, 1.0, 0.0)
        elif method == "averaged_inverted_cdf":
            between = where(between > 0, 1.0, 0.5)
        elif method == "closest_observation":
            between = where((between == 0) & (below % 2 == 1), 0.0, 1.0)
        # Outside, there is only one neighbour.
        between = where(at < 0, 0.0, where(at >= n - 1, 0.0, between))
        lower = where(at >= n - 1, n - 1, lower)
    last = n - 1
    lower, upper = (where(each < 0, 0, where(each > last, last, each)) for each in (lower, upper))
    return lower, upper, between


def _check(x: Array, levels: np.ndarray, method: str, is_taken: bool, is_median: bool) -> None:
    if method not in METHODS:
        raise ValueError(f"there is no method {method!r}, only {', '.join(METHODS)}")
    if x.dtype.kind in "cMm":
        raise TypeError(f"quantiles of {x.dtype} are not there; complex numbers have no order, times no share of one")
    if x.dtype.kind == "b" and not is_taken and not is_median:
        raise TypeError(f"there is nothing between truth values: the method {method!r} is for numbers")
    if levels.size and not ((levels >= 0) & (levels <= 1)).all():
        raise ValueError("levels of quantiles are between 0 and 1, those of percentiles between 0 and 100")


def _nothing(shape: tuple[int, ...], dtype: np.dtype, skip_nan: bool, is_median: bool) -> Array:
    """Quantiles of no elements, as NumPy has them."""
    if not skip_nan and not is_median:
        raise IndexError("quantiles of no elements")
    # The caller's line: a median has one function more on the way here.
    warnings.warn("Mean of empty slice", RuntimeWarning, stacklevel=6 if is_median else 5)
    if dtype.kind == "m":
        return broadcast_to(asarray(np.array("NaT", dtype)), shape)
    return full(shape, np.nan, dtype if dtype.kind in "fc" else "float64")


def _quantile(x: Any, q: Any, axis: Any, method: str, keepdims: bool, skip_nan: bool, is_median: bool = False) -> Array:
    x, shares, levels = asarray(x), np.asarray(q), np.asarray(q, dtype="float64")
    # Some methods give elements of the array, the others numbers between them; so does the usual one at its ends.
    is_taken = not is_median and (method in _TAKEN or (method == "linear" and shares.dtype.kind in "iub"))
    _check(x, levels, method, is_taken, is_median)
    # A number of Python has no type of its own.
    share = x.dtype if type(q) in (int, float) and x.dtype.kind == "f" else shares.dtype
    dtype = _result_type(x.dtype, share, is_taken, is_median)
    x = astype(x, _select_type(x.dtype, is_taken), copy=False)
    has_nan = x.dtype.kind == "f"
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(np.lib.array_utils.normalize_axis_index(each, x.ndim) for each in axes)
    kept = [k for k in range(x.ndim) if k not in axes]
    rest = tuple(x.shape[k] for k in kept)
    shape = (*levels.shape, *(rest if not keepdims else (1 if k in axes else n for k, n in enumerate(x.shape))))
    fibres = x
    if x.ndim != 1 or axes != (0,):
        fibres = x if kept and len(axes) == 1 else reshape(moveaxis(x, axes, tuple(range(x.ndim - len(axes), x.ndim))), (*rest, math.prod(x.shape[k] for k in axes)))
    along = axes[0] if kept and len(axes) == 1 else fibres.ndim - 1
    length = fibres.shape[along]
    if length == 0 and 0 not in rest:
        return _nothing(shape, dtype, skip_nan, is_median)
    if 0 in shape:
        return full(shape, 0, dtype)
    line = tuple(levels.size if k == along else 1 for k in range(fibres.ndim))
    wanted = reshape(asarray(levels.reshape(-1)), line)
    n = asarray(float(length))
    if skip_nan and has_nan:
        n = sum(astype(~isnan(fibres), "float64"), axis=along, keepdims=True)
    lower, upper, between = _place(n, wanted, method)
    wide = tuple(levels.size if k == along else m for k, m in enumerate(fibres.shape))
    # The largest element tells whether there is a NaN: those come last.
    ranks = [broadcast_to(each, wide) for each in (lower, upper)]
    if has_nan and not skip_nan:
        last = tuple(1 if k == along else m for k, m in enumerate(fibres.shape))
        ranks.append(broadcast_to(asarray(float(length - 1)), last))
    ranks = astype(concat(tuple(clip(each, 0, length - 1) for each in ranks), axis=along), "int64")
    found = Array(_core.select(fibres._tensor, ranks._tensor, along))
    before = (slice(None),) * along
    low, high = found[(*before, slice(0, levels.size))], found[(*before, slice(levels.size, 2 * levels.size))]
    between = broadcast_to(between, wide)
    if is_taken:
        result = where(between == 0, low, high)
    else:
        result = _between(low, high, astype(between, dtype, copy=False) if dtype.itemsize > 2 else between, is_median)
    if has_nan and skip_nan:
        result = where(n == 0, np.nan, where(isnan(high) & ~isnan(low), high, result))
    elif has_nan:
        result = where(isnan(found[(*before, slice(2 * levels.size, None))]), np.nan, result)
    return reshape(moveaxis(astype(result, dtype, copy=False), along, 0), shape)


def _between(low: Array, high: Array, share: Array, is_median: bool) -> Array:
    """Numbers between neighbours, at a share of their distance; from the nearer end, so that equal neighbours give themselves."""
    result = (low + high) / 2 if is_median else where(share < 0.5, low + (high - low) * share, high - (high - low) * (1 - share))
    return where(share == 0, low, where(share == 1, high, result))


def _result_type(dtype: np.dtype, share: np.dtype, is_taken: bool, is_median: bool) -> np.dtype:
    """Elements keep their type. Numbers between them are as exact as the elements and the shares; whole shares count as doubles."""
    if is_taken or (is_median and dtype.kind == "f"):
        return dtype
    return np.result_type(dtype, share if share.kind == "f" and not is_median else np.float64)


def _select_type(dtype: np.dtype, is_taken: bool) -> np.dtype:
    """The type in which elements are looked for."""
    if dtype == "float16":
        return np.dtype("float32")
    if is_taken:
        return np.dtype("uint8") if dtype.kind == "b" else dtype
    return dtype if dtype.kind == "f" else np.dtype("float64")


@takes_out
def quantile(
    x: Array, q: Any, axis: int | tuple[int, ...] | None = None, *, method: str = "linear", keepdims: bool = False
) -> Array:
    """The values below which a share ``q`` of the elements lies, exactly.

    >>> import tilewright as tw
    >>> float(tw.quantile(tw.arange(101), 0.25))
    25.0
    """
    return _quantile(x, q, axis, method, keepdims, False)


@takes_out
def nanquantile(
    x: Array, q: Any, axis: int | tuple[int, ...] | None = None, *, method: str = "linear", keepdims: bool = False
) -> Array:
    """Like :func:`quantile`, of the elements that are not NaN."""
    return _quantile(x, q, axis, method, keepdims, True)


def _hundredths(q: Any) -> Any:
    """Shares of hundredths; a number of Python stays one."""
    return q / 100 if type(q) in (int, float) else np.true_divide(q, 100)


@takes_out
def percentile(
    x: Array, q: Any, axis: int | tuple[int, ...] | None = None, *, method: str = "linear", keepdims: bool = False
) -> Array:
    """Like :func:`quantile`, with shares in hundredths."""
    return quantile(x, _hundredths(q), axis, method=method, keepdims=keepdims)


@takes_out
def nanpercentile(
    x: Array, q: Any, axis: int | tuple[int, ...] | None = None, *, method: str = "linear", keepdims: bool = False
) -> Array:
    """Like :func:`percentile`, of the elements that are not NaN."""
    return nanquantile(x, _hundredths(q), axis, method=method, keepdims=keepdims)


@takes_out
def median(x: Array, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> Array:
    """The elements in the middle.

    >>> import tilewright as tw
    >>> float(tw.median(tw.asarray([3.0, 1.0, 2.0])))
    2.0
    """
    return _median(x, axis, keepdims, False)


@takes_out
def nanmedian(x: Array, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> Array:
    """Like :func:`median`, of the elements that are not NaN."""
    return _median(x, axis, keepdims, True)


def _median(x: Any, axis: Any, keepdims: bool, skip_nan: bool) -> Array:
    x = asarray(x)
    if x.dtype.kind in "cm":
        return _sorted_median(x, axis, keepdims, skip_nan)
    return _quantile(x, 0.5, axis, "linear", keepdims, skip_nan, is_median=True)


def _sorted_median(x: Array, axis: Any, keepdims: bool, skip_nan: bool) -> Array:
    """The middle of complex numbers in NumPy's order, by real parts, then by imaginary ones, and NaN last; or of spans of time, and NaT last."""
    axes = tuple(range(x.ndim)) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, x.ndim)
    rest = tuple(n for k, n in enumerate(x.shape) if k not in axes)
    shape = tuple(1 if k in axes else n for k, n in enumerate(x.shape)) if keepdims else rest
    length = math.prod(x.shape[k] for k in axes)
    if length == 0:
        return _nothing(shape, x.dtype, skip_nan, True) if 0 not in rest else full(shape, 0, x.dtype)
    fibres = reshape(moveaxis(x, axes, tuple(range(x.ndim - len(axes), x.ndim))), (*rest, length))
    ordered = sort(fibres, axis=-1)
    n = sum(fibres == fibres, axis=-1, keepdims=True) if skip_nan else full((*rest, 1), length)
    lower, upper = (take_along_axis(ordered, clip(place, 0, length - 1), axis=-1) for place in ((n - 1) // 2, n // 2))
    middle = where(n % 2 == 1, lower, (lower + upper) / 2)
    unknown = full((), complex(np.nan, np.nan), x.dtype) if x.dtype.kind == "c" else asarray(np.array("NaT", x.dtype))
    last = ordered[..., -1:]
    return reshape(where(n == 0, unknown, middle) if skip_nan else where(last != last, last, middle), shape)


def partition(x: Array, kth: int | tuple[int, ...], axis: int | None = -1, kind: str = "introselect") -> Array:
    """The elements in an order in which the ``kth`` is where it would be if all were sorted. Here all are, whatever the ``kind``."""
    x, axis = _checked_kth(x, kth, axis)
    return sort(x, axis=axis)


def argpartition(x: Array, kth: int | tuple[int, ...], axis: int | None = -1, kind: str = "introselect") -> Array:
    """Where the elements of :func:`partition` were."""
    x, axis = _checked_kth(x, kth, axis, of_number=True)
    return argsort(x, axis=axis)


def _checked_kth(x: Any, kth: Any, axis: int | None, of_number: bool = False) -> tuple[Array, int]:
    x = asarray(x)
    if axis is None or (of_number and x.ndim == 0 and axis in (0, -1)):
        x, axis = reshape(x, (-1,)), 0
    n = x.shape[np.lib.array_utils.normalize_axis_index(axis, x.ndim)]
    for each in np.ravel(kth).tolist():
        if not hasattr(each, "__index__"):
            raise TypeError(f"kth is a whole number or several of them, not {kth!r}")
        # Of no elements there is none to look for, and NumPy does not check.
        if not -n <= each < n and x.size:
            raise ValueError(f"kth(={each}) out of bounds ({n})")
    return x, axis
