"""Reductions of groups along an axis, by labels that are known before anything runs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from . import _core
from ._array import Array, seen_in
from ._creation import asarray
from ._dtypes import astype, float64
from ._elementwise import isnan, sqrt
from ._manipulation import moveaxis
from ._searching import take, where

_KINDS = ("sum", "prod", "min", "max", "count", "any", "all", "mean", "var", "std")


def group_reduce(kind: str, x: Array, labels: Any, n_groups: int | None = None, *, axis: int = 0, skipna: bool = False, ddof: float = 0.0) -> Array:
    """Reduces the elements of every group along an axis: those at the places where ``labels``, a vector of integers, has the number of the group.

    The reduction is ``"sum"``, ``"prod"``, ``"min"``, ``"max"``, ``"count"`` (of elements that are not NaN), ``"any"``, ``"all"``, ``"mean"``, ``"var"`` or ``"std"``. Groups are numbered from 0; their number
    takes the place of the axis. Elements with a negative label belong to no group. With ``skipna`` NaN does not count, and groups of nothing else are NaN, but 0 in sums and 1 in products. Every
    block of the array is read once; ``"var"`` and ``"std"`` read it twice.

    >>> import tilewright as tw
    >>> tw.group_reduce("sum", tw.asarray([1, 2, 3, 4]), [0, 1, 0, 1]).compute()
    array([4, 6])
    """
    if kind not in _KINDS:
        raise ValueError(f"there is no reduction of groups {kind!r}: {', '.join(_KINDS)} are")
    x = asarray(x)
    axis = normalize_axis_index(axis, x.ndim)
    groups = _Groups(_checked(labels, x.shape[axis], axis), n_groups)
    if groups.n == 0 or groups.labels.size == 0:
        raise ValueError("there are no groups to reduce")
    first = moveaxis(x, axis, 0)
    return moveaxis(_reduced(kind, first, groups, skipna and x.dtype.kind in "fc", ddof), 0, axis)


class _Groups:
    """Which group every element along an axis belongs to."""

    def __init__(self, labels: np.ndarray, n: int | None) -> None:
        self.n = int(labels.max(initial=-1)) + 1 if n is None else int(n)
        if labels.max(initial=-1) >= self.n:
            raise ValueError(f"label {labels.max()} for {self.n} groups")
        outside = labels < 0
        # Elements of no group go to an additional group, which is dropped.
        self.labels = np.where(outside, self.n, labels)
        self.extent = self.n + bool(outside.any())
        self.sizes = np.bincount(self.labels, minlength=self.extent)
        self._places: dict[tuple[int, ...], Array] = {}

    def scattered(self, kind: str, values: Array) -> Array:
        """One value of every group along the first axis."""
        # Cut like the values, which would be put together otherwise. One array for all reductions of the groups, which then read the values together.
        cut = values.chunks[0]
        places = self._places.setdefault(cut, asarray(self.labels, chunks=(cut,)))
        found = Array(_core.scatter(kind, [places._tensor], values._tensor, [self.extent], True))
        found = found if self.extent == self.n else found[: self.n]
        return seen_in(found, ((self.n,), *values.chunks[1:]))

    def size_of_each(self, rank: int) -> Array:
        return asarray(self.sizes[: self.n].reshape((-1,) + (1,) * (rank - 1)))


def _checked(labels: Any, n: int, axis: int) -> np.ndarray:
    labels = np.asarray(labels)
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise TypeError(f"labels of groups are a vector of integers, not an array of {labels.dtype} with {labels.ndim} axes")
    if labels.size != n:
        raise ValueError(f"{labels.size} labels for axis {axis}, which has {n} elements")
    return labels.astype(np.int64)


def _reduced(kind: str, x: Array, groups: _Groups, skipna: bool, ddof: float) -> Array:
    if kind in ("any", "all"):
        hits = groups.scattered("sum", astype((x != 0) if kind == "any" else (x == 0), "int64"))
        return hits > 0 if kind == "any" else hits == 0
    if kind == "count":
        return _count(x, groups)
    if kind in ("sum", "prod"):
        return groups.scattered(kind, where(isnan(x), int(kind == "prod"), x) if skipna else x)
    if kind in ("min", "max"):
        return _extreme(kind, x, groups, skipna)
    if kind == "mean":
        return _mean(x, groups, skipna)
    return _spread(kind, x, groups, skipna, ddof)


def _count(x: Array, groups: _Groups) -> Array:
    # Not by isnan, which sums use: what two statements read is computed apart and kept, and a comparison is cheaper than that.
    if x.dtype.kind in "fc":
        return groups.scattered("sum", astype(x == x, "int64"))  # noqa: PLR0124
    from ._manipulation import broadcast_to

    return broadcast_to(groups.size_of_each(x.ndim), (groups.n, *x.shape[1:]))


def _extreme(kind: str, x: Array, groups: _Groups, skipna: bool) -> Array:
    if (groups.sizes[: groups.n] == 0).any():
        raise ValueError(f"the {kind} of nothing has no value: a group has no elements")
    if not skipna:
        return groups.scattered(kind, x)
    least = x.dtype.type(np.inf if kind == "min" else -np.inf)
    found = groups.scattered(kind, where(isnan(x), least, x))
    return where(_count(x, groups) > 0, found, x.dtype.type(np.nan))


def _mean(x: Array, groups: _Groups, skipna: bool) -> Array:
    exact = x if x.dtype.kind in "fc" else astype(x, float64)
    total = _reduced("sum", exact, groups, skipna, 0.0)
    if not skipna:
        n = astype(groups.size_of_each(x.ndim), total.real.dtype)
    elif groups.labels.size <= 2 ** (np.finfo(total.real.dtype).nmant + 1):
        # Counted in the type of the sums, which holds such counts exactly: less to read and write than whole numbers.
        n = groups.scattered("sum", astype(exact == exact, total.real.dtype))  # noqa: PLR0124
    else:
        n = astype(_count(exact, groups), total.real.dtype)
    return astype(total / n, exact.dtype, copy=False)


def _spread(kind: str, x: Array, groups: _Groups, skipna: bool, ddof: float) -> Array:
    exact = x if x.dtype.kind in "fc" else astype(x, float64)
    # Elements of no group meet any mean: what they give is not seen.
    apart = exact - take(_mean(exact, groups, skipna), np.minimum(groups.labels, groups.n - 1), axis=0)
    squares = apart.real * apart.real + apart.imag * apart.imag if apart.dtype.kind == "c" else apart * apart
    total = _reduced("sum", squares, groups, skipna, 0.0)
    n = _count(exact, groups) if skipna else groups.size_of_each(x.ndim)
    free = astype(n, float64) - ddof
    spread = astype(where(free > 0, total / where(free > 0, free, 1.0), np.nan), total.dtype, copy=False)
    return sqrt(spread) if kind == "std" else spread
