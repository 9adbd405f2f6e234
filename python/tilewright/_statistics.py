"""Averages, covariances, differences and integrals."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from ._array import Array
from ._blocks import map_blocks
from ._creation import asarray, zeros
from ._dtypes import astype, float64, result_type
from ._elementwise import clip, conj, maximum, real, sqrt
from ._manipulation import broadcast_to, concat, moveaxis, reshape
from ._out import takes_out
from ._reductions import Axis, diff, max, mean, min, sum


@takes_out
def ptp(a: Array, axis: Axis = None, *, keepdims: bool = False) -> Array:
    """The largest less the smallest along axes, or of everything."""
    return max(a, axis=axis, keepdims=keepdims) - min(a, axis=axis, keepdims=keepdims)


def average(
    a: Array, axis: Axis = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False
) -> Any:
    """Means along axes, weighted if there are weights; with ``returned``, also the sums of weights.

    Weights that add up to zero are a ZeroDivisionError: at once if they are a list or a NumPy array, else when they are computed.

    >>> import tilewright as tw
    >>> float(tw.average(tw.asarray([1.0, 4.0]), weights=tw.asarray([2, 1])))
    2.0
    """
    a = asarray(a)
    if axis is not None:
        axis = normalize_axis_tuple(axis, a.ndim)
    if weights is None:
        found = mean(a, axis=axis, keepdims=keepdims)
        total = asarray(a.size // builtins.max(found.size, 1), dtype=found.dtype)
    else:
        given, weights = weights, asarray(weights)
        whole = a.dtype.kind in "iub"
        dtype = result_type(a.dtype, weights.dtype, *([float64] if whole else []))
        weights = astype(_like_axes(weights, a, axis), dtype, copy=False)
        total = sum(weights, axis=axis, keepdims=keepdims)
        if isinstance(given, Array):
            total = map_blocks(_refuse_zero, total, dtype=total.dtype, name="average")
        else:
            # Weights that are there already are looked at now.
            given = np.asarray(given)
            _refuse_zero(np.sum(given, axis=axis if given.shape == a.shape else None))
        found = sum(astype(a, dtype, copy=False) * weights, axis=axis, keepdims=keepdims) / total
    return (found, broadcast_to(total, found.shape)) if returned else found


def _refuse_zero(total: np.ndarray) -> np.ndarray:
    if np.any(total == 0):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    return total


def _like_axes(weights: Array, a: Array, axis: Axis) -> Array:
    """Weights of some axes in the shape of the whole array."""
    if weights.shape == a.shape:
        return weights
    if axis is None:
        raise TypeError(f"weights of shape {weights.shape} for elements of shape {a.shape} need an axis")
    axes = normalize_axis_tuple(axis, a.ndim)
    if weights.shape != tuple(a.shape[k] for k in axes):
        raise ValueError(f"weights of shape {weights.shape} for axes {axes} of an array of shape {a.shape}")
    order = sorted(range(len(axes)), key=lambda k: axes[k])
    lengths = [n if k in axes else 1 for k, n in enumerate(a.shape)]
    return broadcast_to(reshape(weights.transpose(*order), tuple(lengths)), a.shape)


def cov(
    m: Array, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None, fweights: Any = None,
    aweights: Any = None, *, dtype: Any = None,
) -> Array:  # fmt: skip
    """Covariances of the rows of a matrix (of its columns, if not ``rowvar``), and of those of ``y``.

    >>> import tilewright as tw
    >>> tw.cov(tw.asarray([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])).compute()
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    given = [asarray(each) for each in (m, y) if each is not None]
    if builtins.any(each.ndim > 2 for each in given):
        raise ValueError("covariances are those of a vector or matrix")
    if ddof is not None and ddof != int(ddof):
        raise ValueError(f"ddof is a whole number, not {ddof}")
    dtype = result_type(*(each.dtype for each in given), float64) if dtype is None else dtype
    rows = [_rows(astype(each, dtype, copy=False), rowvar) for each in given]
    if y is not None and given[1].ndim == 2 and given[1].shape[0] == 1:
        # As in NumPy, a single row is one variable either way.
        rows[1] = astype(given[1], dtype, copy=False)
    x = rows[0] if len(rows) == 1 else concat(rows, axis=0)
    if x.shape[0] == 0:
        return zeros((0, 0), dtype=x.dtype)
    ddof = int(not bias) if ddof is None else int(ddof)
    weights = _weights(fweights, aweights, x.shape[1])
    middle, total = average(x, axis=1, weights=weights, returned=True)
    free = total[0] - ddof
    if aweights is not None and ddof:
        free = total[0] - ddof * sum(weights * asarray(aweights)) / total[0]
    apart = x - middle[:, None]
    product = (apart if weights is None else apart * weights) @ conj(apart).T
    return (product / maximum(real(free), 0)).squeeze()


def _rows(x: Array, rowvar: bool) -> Array:
    if x.ndim < 2:
        return reshape(x, (1, -1))
    return x if rowvar else x.T


def _weights(fweights: Any, aweights: Any, n: int) -> Array | None:
    """Numbers of repeats times importances."""
    given = [asarray(each) for each in (fweights, aweights) if each is not None]
    if builtins.any(each.shape != (n,) for each in given):
        raise ValueError(f"weights of {n} observations are vectors of that length")
    if fweights is not None and given[0].dtype.kind not in "iub":
        raise TypeError("fweights are numbers of repeats: whole ones")
    return None if not given else astype(given[0], float64) if len(given) == 1 else given[0] * given[1]


def corrcoef(x: Array, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Array:
    """Correlations of the rows of a matrix (of its columns, if not ``rowvar``), and of those of ``y``."""
    product = cov(x, y, rowvar, dtype=dtype)
    if product.ndim == 0:
        return product / product
    spread = sqrt(real(product.diagonal()))
    found = product / spread[:, None] / spread[None, :]
    if found.dtype.kind == "c":
        return clip(real(found), -1, 1) + clip(found.imag, -1, 1) * 1j
    return clip(found, -1, 1)


def ediff1d(ary: Array, to_end: Any = None, to_begin: Any = None) -> Array:
    """Differences of neighbours among all elements in a row, with others before and after."""
    if asarray(ary).dtype.kind == "b":
        raise TypeError("truth values have no differences: use ^ of neighbours")
    steps = diff(reshape(asarray(ary), (-1,)))
    ends = [None if each is None else reshape(asarray(each), (-1,)) for each in (to_begin, to_end)]
    for each in ends:
        if each is not None and not np.can_cast(each.dtype, steps.dtype, casting="same_kind"):
            raise TypeError(f"differences of {steps.dtype} do not hold {each.dtype}")
    ends = [None if each is None else astype(each, steps.dtype, copy=False) for each in ends]
    parts = [part for part in (ends[0], steps, ends[1]) if part is not None]
    return parts[0] if len(parts) == 1 else concat(parts)


def trapezoid(y: Array, x: Any = None, dx: float = 1.0, axis: int = -1) -> Array:
    """Integrals along an axis by straight lines between samples, at the places ``x`` or at distances ``dx``.

    >>> import tilewright as tw
    >>> float(tw.trapezoid(tw.asarray([0.0, 1.0, 2.0]), dx=2))
    4.0
    """
    y = asarray(y)
    axis = normalize_axis_index(axis, y.ndim)
    rows = moveaxis(y, axis, -1)
    if x is not None:
        x = asarray(x)
        dx = diff(x if x.ndim == 1 else moveaxis(x, axis, -1))
    pairs = rows[..., 1:] + rows[..., :-1]
    return sum(dx * pairs / 2.0, axis=-1)
