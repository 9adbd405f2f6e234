"""Counting elements by their values."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _core
from ._array import Array
from ._creation import arange, asarray, full
from ._dtypes import astype, float64, result_type
from ._elementwise import floor, minimum
from ._manipulation import concat, flip, reshape
from ._reductions import diff, max, min, sum
from ._searching import searchsorted, where


@dataclass(frozen=True)
class _Bins:
    """Neighbouring intervals: each without its upper edge, but the last with it."""

    edges: Array
    #: Ends of intervals of equal length, as exact as they are known; None if lengths differ.
    ends: tuple[Array, Array] | None

    @property
    def number(self) -> int:
        return self.edges.size - 1

    def of(self, a: Array) -> Array:
        """The interval of every element; their number, where there is none."""
        n = self.number
        if self.ends is None:
            place = searchsorted(self.edges, a, side="right") - 1
            place = where(a == self.edges[-1], n - 1, place)
            return where(place < 0, n, place)
        first, last = self.ends
        a = astype(a, self.edges.dtype, copy=False)
        inside = (a >= first) & (a <= last)
        # By division, which may miss by one interval: the edges decide.
        place = minimum(floor(astype((a - first) * (n / (last - first)), float64, copy=False)), n - 1)
        place = where(a < _lower_end(place, self.ends, n, a.dtype), place - 1, place)
        place = where((a >= _lower_end(place + 1, self.ends, n, a.dtype)) & (place < n - 1), place + 1, place)
        return astype(where(inside, place, n), "int64")


def _lower_end(k: Array, ends: tuple[Array, Array], n: int, dtype: np.dtype) -> Array:
    """Where the k-th of ``n`` equal intervals begins."""
    first, last = ends
    step = (last - first) / n
    return astype(astype(k, step.dtype, copy=False) * step + first, dtype, copy=False)


def _bins(a: Array, bins: Any, range: Any, dtype: np.dtype) -> _Bins:
    if isinstance(bins, str):
        raise TypeError(f"bins are a number or a vector of edges; they cannot be chosen by the rule {bins!r}")
    if np.ndim(bins) > 0:
        return _Bins(_known_edges(bins), None)
    if not hasattr(bins, "__index__"):
        raise TypeError(f"bins are a whole number or a vector of edges, not {bins!r}")
    n = bins.__index__()
    if n < 1:
        raise ValueError(f"{n} bins")
    first, last = _ends(a, range)
    first, last = (end if end.dtype.kind == "f" else astype(end, float64) for end in (first, last))
    ends = where(first == last, first - 0.5, first), where(first == last, last + 0.5, last)
    return _Bins(concat((_lower_end(arange(n), ends, n, dtype), astype(reshape(ends[1], (1,)), dtype, copy=False))), ends)


def _known_edges(bins: Any) -> Array:
    edges = asarray(bins)
    if edges.ndim != 1:
        raise ValueError(f"edges of bins are a vector, not of {edges.ndim} axes")
    if not isinstance(bins, Array) and (np.asarray(bins)[1:] < np.asarray(bins)[:-1]).any():
        raise ValueError("edges of bins go up")
    return edges


def _ends(a: Array, range: Any) -> tuple[Array, Array]:
    if range is None:
        return (asarray(0.0), asarray(1.0)) if a.size == 0 else (min(a), max(a))
    first, last = range
    if first > last:
        raise ValueError(f"a range from {first} down to {last}")
    if not (np.isfinite(first) and np.isfinite(last)):
        raise ValueError(f"a range from {first} to {last} is not finite")
    return asarray(first), asarray(last)


def _edge_dtype(a: Array, range: Any) -> np.dtype:
    dtype = result_type(a.dtype, *(() if range is None else (each for each in range)))
    return result_type(dtype, float64) if dtype.kind in "iub" else dtype


def _counted(places: list[Array], lengths: list[int], weights: Array | None) -> Array:
    """How many elements have each place, or the sum of their weights; the last place along an axis is none."""
    rows = [reshape(place, (-1,)) for place in places]
    if weights is None:
        weights = full(rows[0].shape, 1)
    extents = [n + 1 for n in lengths]
    counts = Array(_core.scatter("sum", [row._tensor for row in rows], weights._tensor, extents))
    return counts[tuple(slice(n) for n in lengths)]


def _exact(weights: Any, shape: tuple[int, ...]) -> Array:
    """Weights as they are added up."""
    weights = asarray(weights)
    if weights.shape != shape:
        raise ValueError(f"weights of shape {weights.shape} for elements of shape {shape}")
    wide = {"c": "complex128", "f": "float64", "b": "int64"}.get(weights.dtype.kind)
    return reshape(weights if wide is None else astype(weights, wide, copy=False), (-1,))


def histogram_bin_edges(a: Array, bins: Any = 10, range: Any = None, weights: Any = None) -> Array:
    """Edges of bins: evenly spaced over a range, or over all elements; or those given."""
    a = reshape(asarray(a), (-1,))
    return _bins(a, bins, range, _edge_dtype(a, range)).edges


def histogram(
    a: Array, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Array, Array]:
    """How many elements lie in each bin, or the sum of their weights, and the edges of the bins.

    Bins are a number, evenly spaced over ``range`` or from the smallest to the largest element, or a vector of edges that go
    up. With ``density``, the counts are scaled so that the integral over all bins is 1. Elements outside the range do not
    count. Nothing is computed before it is needed: elements that are not finite give edges that are not, where NumPy raises.

    >>> import tilewright as tw
    >>> counts, edges = tw.histogram(tw.asarray([1, 2, 2, 4]), bins=[1, 2, 3, 4])
    >>> counts.compute()
    array([1, 2, 1])
    """
    a = asarray(a)
    if a.dtype.kind == "b":
        a = astype(a, "uint8")
    row = reshape(a, (-1,))
    found = _bins(row, bins, range, _edge_dtype(row, range))
    exact = None if weights is None else _exact(weights, a.shape)
    counts = _counted([found.of(row)], [found.number], exact)
    if weights is not None:
        counts = astype(counts, asarray(weights).dtype, copy=False)
    if density:
        counts = counts / astype(diff(found.edges), float64) / sum(counts)
    return counts, found.edges


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Array, list[Array]]:
    """How many points lie in each bin of a grid, or the sum of their weights, and the edges along every axis.

    Points are the rows of a matrix, or a list of coordinates. Bins and ranges are those of :func:`histogram`, for all
    axes or one each.
    """
    columns = _columns(sample)
    rank = len(columns)
    each = [bins] * rank if hasattr(bins, "__index__") and not isinstance(bins, Array) else list(bins)
    if len(each) != rank:
        raise ValueError(f"bins of {len(each)} axes for points of {rank} coordinates")
    ranges = [None] * rank if range is None else list(range)
    if len(ranges) != rank:
        raise ValueError(f"ranges of {len(ranges)} axes for points of {rank} coordinates")
    found = [
        _bins(column, own, reach, _edge_dtype(column, reach)) for column, own, reach in zip(columns, each, ranges, strict=True)
    ]
    exact = None if weights is None else _exact(weights, columns[0].shape)
    places = [own.of(column) for own, column in zip(found, columns, strict=True)]
    counts = _counted(places, [own.number for own in found], exact)
    counts = counts if counts.dtype.kind == "c" else astype(counts, float64, copy=False)
    edges = [own.edges for own in found]
    if density:
        total = sum(counts)
        for axis, own in enumerate(edges):
            line = [1] * rank
            line[axis] = own.size - 1
            counts = counts / reshape(astype(diff(own), float64), tuple(line))
        counts = counts / total
    return counts, edges


def _columns(sample: Any) -> list[Array]:
    if isinstance(sample, (list, tuple)):
        columns = [asarray(each) for each in sample]
        if builtins.any(column.ndim != 1 or column.shape != columns[0].shape for column in columns):
            raise ValueError("coordinates are vectors of one length")
        return columns
    sample = asarray(sample)
    sample = reshape(sample, (-1, 1)) if sample.ndim < 2 else sample
    if sample.ndim != 2:
        raise ValueError(f"points are the rows of a matrix, not of {sample.ndim} axes")
    return [sample[:, k] for k in builtins.range(sample.shape[1])]


def histogram2d(
    x: Array, y: Array, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Array, Array, Array]:
    """How many points lie in each bin of a plane, or the sum of their weights, and the edges along both axes."""
    if len(x) != len(y):
        raise ValueError(f"{len(x)} and {len(y)} coordinates")
    if not hasattr(bins, "__index__") or isinstance(bins, (Array, np.ndarray)):
        bins = list(bins) if len(bins) == 2 and not isinstance(bins, Array) else [bins, bins]
    counts, edges = histogramdd([x, y], bins, range, density, weights)
    return counts, edges[0], edges[1]


def bincount(x: Array, /, weights: Any = None, minlength: int = 0) -> Array:
    """How often each of 0, 1, 2, .. occurs in a vector, or the sum of the weights there.

    The length is that of the largest element plus one, and ``minlength`` at least: the largest is computed now.

    >>> import tilewright as tw
    >>> tw.bincount(tw.asarray([1, 1, 3])).compute()
    array([0, 2, 0, 1])
    """
    x = asarray(x)
    if x.ndim != 1:
        raise ValueError(f"whole numbers are counted in a vector, not in {x.ndim} axes")
    if x.dtype.kind not in "iub":
        if x.size:
            raise TypeError(f"whole numbers are counted, not {x.dtype}")
        x = astype(x, "int64")
    if minlength < 0:
        raise ValueError(f"a length of {minlength}")
    exact = full(x.shape, 1) if weights is None else _exact(weights, x.shape)
    if weights is not None:
        exact = astype(exact, float64, copy=False)
    if x.size == 0:
        return full(minlength, 0)
    x = astype(x, "int64", copy=False)
    smallest, largest = concat((reshape(min(x), (1,)), reshape(max(x), (1,)))).tolist()
    if smallest < 0:
        raise ValueError(f"{smallest} is counted nowhere: numbers begin with 0")
    length = builtins.max(largest + 1, minlength)
    return Array(_core.scatter("sum", [x._tensor], exact._tensor, [length], inside=True))


def digitize(x: Array, bins: Any, right: bool = False) -> Array:
    """The number of the bin of every element, among edges that go up or down; 0 is before the first.

    Bins are without their upper edge, or with it and without the lower one, if ``right``.
    """
    x = asarray(x)
    if not isinstance(bins, Array):
        steps = np.diff(np.asarray(bins))
        if not ((steps >= 0).all() or (steps <= 0).all()):
            raise ValueError("edges of bins go up, or they go down")
    bins = asarray(bins)
    if x.dtype.kind == "c" or bins.dtype.kind == "c":
        raise TypeError("complex numbers have no order")
    if bins.ndim != 1:
        raise ValueError(f"edges of bins are a vector, not of {bins.ndim} axes")
    side = "left" if right else "right"
    if bins.size == 0:
        return full(x.shape, 0)
    downwards = bins[0] > bins[-1]
    place = searchsorted(where(downwards, flip(bins), bins), x, side=side)
    return where(downwards, bins.size - place, place)
