"""Derivatives of sampled functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from ._array import Array, seen_in
from ._creation import asarray
from ._dtypes import astype, float64
from ._elementwise import abs
from ._manipulation import concat, moveaxis
from ._reductions import all, cumsum, diff
from ._searching import where


def gradient(f: Array, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Derivatives along axes by central differences, one-sided at the ends; a tuple of them for several axes.

    Distances of samples are 1, or one number or one vector of places for every axis.

    >>> import tilewright as tw
    >>> tw.gradient(tw.asarray([1.0, 2.0, 4.0, 7.0])).compute()
    array([1. , 1.5, 2.5, 3. ])
    """
    f = asarray(f)
    axes = tuple(range(f.ndim)) if axis is None else normalize_axis_tuple(axis, f.ndim)
    if edge_order not in (1, 2):
        raise ValueError(f"edges are of order 1 or 2, not {edge_order}")
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError(f"{len(varargs)} distances for {len(axes)} axes")
    distances = [1.0] * len(axes) if not varargs else list(varargs) * (len(axes) if len(varargs) == 1 else 1)
    if f.dtype.kind not in "fcmM":
        f = astype(f, float64)
    derivatives = []
    for along, distance in zip(axes, distances, strict=True):
        n = f.shape[along]
        if n < edge_order + 1:
            raise ValueError(f"{n} samples along axis {along}; edges of order {edge_order} need {edge_order + 1}")
        if np.ndim(distance) > 0:
            known = None if isinstance(distance, Array) else np.asarray(distance)
            distance = asarray(distance)
            if distance.shape != (n,):
                raise ValueError(f"places of shape {distance.shape} for {n} samples along axis {along}")
            distance = diff(astype(distance, float64, copy=False) if distance.dtype.kind in "iub" else distance)
            if known is not None and _is_even(known):
                distance = distance[0]
        derived = _along_last(moveaxis(f, along, -1), distance, edge_order)
        derivatives.append(seen_in(moveaxis(derived, -1, along), f.chunks))
    return derivatives[0] if len(axes) == 1 else tuple(derivatives)


def unwrap(p: Array, discont: float | None = None, axis: int = -1, *, period: float = 2 * np.pi) -> Array:
    """Angles along an axis without jumps of more than ``discont``, by default half a period: whole periods are added.

    >>> import tilewright as tw
    >>> tw.unwrap(tw.asarray([0, 1, 2, -1, 0]), period=4).compute()
    array([0, 1, 2, 3, 4])
    """
    p = asarray(p)
    axis = normalize_axis_index(axis, p.ndim)
    steps = diff(p, axis=axis)
    discont = period / 2 if discont is None else discont
    dtype = np.result_type(steps.dtype, period)
    half, rest = divmod(period, 2) if dtype.kind in "iu" else (period / 2, 0)
    wrapped = (steps + half) % period - half
    if rest == 0:
        # Half a period up is as near as half a period down.
        wrapped = where((wrapped == -half) & (steps > 0), half, wrapped)
    added = where(abs(steps) < discont, 0, wrapped - steps)
    first, later = ((slice(None),) * axis + (part,) for part in (slice(None, 1), slice(1, None)))
    return seen_in(astype(concat((astype(p[first], dtype), p[later] + cumsum(added, axis=axis)), axis=axis), dtype, copy=False), p.chunks)


def _is_even(places: np.ndarray) -> bool:
    """True if all neighbours lie equally far apart."""
    steps = np.diff(places)
    return bool((steps == steps[0]).all())


def _along_last(f: Array, h: Any, edge_order: int) -> Array:
    """Derivatives along the last axis; ``h`` is the distance of neighbours, or one for every pair of them."""
    if not isinstance(h, Array) or h.ndim == 0:
        inner = (f[..., 2:] - f[..., :-2]) / (2.0 * h)
        first, last = h, h
        if edge_order == 2:
            left = (-1.5 / h, 2.0 / h, -0.5 / h)
            right = (0.5 / h, -2.0 / h, 1.5 / h)
    else:
        a, b = h[:-1], h[1:]
        inner = f[..., :-2] * (-b / (a * (a + b))) + f[..., 1:-1] * ((b - a) / (a * b)) + f[..., 2:] * (a / (b * (a + b)))
        # At even distances the element in the middle has no part in it, which tells if that is NaN. Whether they are even is known with the elements.
        inner = where(all(h == h[:1]), (f[..., 2:] - f[..., :-2]) / (2.0 * h[0]), inner)
        first, last = h[0], h[-1]
        if edge_order == 2:
            a, b = h[0], h[1]
            left = (-(2.0 * a + b) / (a * (a + b)), (a + b) / (a * b), -a / (b * (a + b)))
            a, b = h[-2], h[-1]
            right = (b / (a * (a + b)), -(b + a) / (a * b), (2.0 * b + a) / (b * (a + b)))
    if edge_order == 1:
        start, end = (f[..., 1:2] - f[..., 0:1]) / first, (f[..., -1:] - f[..., -2:-1]) / last
    else:
        n = f.shape[-1]
        start, end = _weighted(f, 0, left), _weighted(f, n - 3, right)
    parts = [start, inner, end] if f.shape[-1] > 2 else [start, end]
    return astype(concat(parts, axis=-1), f.dtype, copy=False)


def _weighted(f: Array, at: int, weights: Any) -> Array:
    terms = [f[..., at + k : at + k + 1] * weight for k, weight in enumerate(weights)]
    return terms[0] + terms[1] + terms[2]
