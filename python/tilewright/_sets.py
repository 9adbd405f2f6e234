"""Sets: the distinct elements of arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.lib.array_utils import normalize_axis_index

from . import _core
from ._array import Array
from ._creation import arange, asarray, full, ones
from ._dtypes import astype
from ._elementwise import imag, minimum, real
from ._manipulation import concat, flip, moveaxis, reshape
from ._reductions import any, cumulative_sum
from ._reductions import max as largest_of
from ._reductions import min as smallest_of
from ._searching import argsort, lexsort, searchsorted, sort, take, where


class UniqueAll(NamedTuple):
    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    values: Array
    inverse_indices: Array


def _groups(x: Any) -> tuple[Array, Array, Array, tuple[int, ...]]:
    """Sorted elements, where they were, and which of them are the first of their kind."""
    x = asarray(x)
    values, positions = _in_order(reshape(x, (-1,)))
    return values, positions, _first_of_kind(values), x.shape


def _in_order(x: Array) -> tuple[Array, Array]:
    """A vector sorted, and where its elements were; complex numbers by real parts, then by imaginary ones."""
    if x.dtype.kind == "c":
        positions = lexsort((imag(x), real(x)))
        return take(x, positions), positions
    values, positions = _core.sort(x._tensor, 0)
    return Array(values), Array(positions)


def _first_of_kind(values: Array, equal_nan: bool = False) -> Array:
    """True for the first of equal elements of a sorted vector."""
    n_first = min(values.size, 1)
    later, earlier = values[1:], values[:-1]
    differs = later != earlier
    if equal_nan and values.dtype.kind in "fcmM":
        differs = differs & ((later == later) | (earlier == earlier))
    return concat((ones(n_first, dtype="bool"), differs))


def _kept(x: Array, mask: Array) -> Array:
    return Array(_core.compact(x._tensor, mask._tensor))


def unique_values(x: Array, /) -> Array:
    """The distinct elements, sorted. NaNs are all distinct."""
    values, _, first, _ = _groups(x)
    return _kept(values, first)


def unique_counts(x: Array, /) -> UniqueCounts:
    """The distinct elements, sorted, and how often each occurs."""
    values, _, first, _ = _groups(x)
    return UniqueCounts(_kept(values, first), _counts(first))


def unique_inverse(x: Array, /) -> UniqueInverse:
    """The distinct elements, sorted, and for every element of ``x`` which of them it is."""
    values, positions, first, shape = _groups(x)
    return UniqueInverse(_kept(values, first), _inverse(positions, first, shape))


def unique_all(x: Array, /) -> UniqueAll:
    """The distinct elements, sorted; where each occurs first; which of them every element is; how often each occurs."""
    values, positions, first, shape = _groups(x)
    inverse = _inverse(positions, first, shape)
    return UniqueAll(_kept(values, first), _kept(positions, first), inverse, _counts(first))


def _counts(first: Array) -> Array:
    """How many elements every group has: the distance to the next first element, of which a running minimum from the end knows."""
    n = first.size
    place = arange(n)
    later = concat((where(first, place, n)[1:], full(min(n, 1), n)))
    following = flip(Array(_core.scan("min", flip(later)._tensor, 0)))
    return _kept(following - place, first)


def _inverse(positions: Array, first: Array, shape: tuple[int, ...]) -> Array:
    groups = cumulative_sum(first) - 1
    return reshape(take(groups, argsort(positions)), shape)


#: So many elements or fewer are compared with one by one, which is one pass; the steps of a search are passes of their own.
_FEW = 16


def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: str | None = None
) -> Array:
    """True where an element is among the test elements. NumPy's ``assume_unique`` and ``kind`` change nothing."""
    element, known = asarray(element), reshape(test_elements, (-1,))
    if known.size == 0:
        return full(element.shape, invert)
    same = _in_table(element, known) if element.dtype.kind in "iub" and known.dtype.kind in "iub" else None
    if same is None and known.size <= _FEW:
        same = any(element[..., None] == known, axis=-1)
    elif same is None:
        known = sort(known)
        place = searchsorted(known, element)
        same = take(known, minimum(place, known.size - 1)) == element
    return ~same if invert else same


def _in_table(element: Array, known: Array) -> Array | None:
    """Whole numbers looked up in a table of truth values, if that is not much larger than the arrays; its limits are computed now."""
    low, high = (int(limit) for limit in concat((reshape(smallest_of(known), (1,)), reshape(largest_of(known), (1,)))).tolist())
    length = high - low + 1
    if length > 6 * (element.size + known.size) or high >= 2**63 or element.dtype == "uint64":
        return None
    element, known = astype(element, "int64", copy=False), astype(known, "int64", copy=False)
    table = _core.scatter("any", [(known - low)._tensor], full(known.shape, True)._tensor, [length], inside=True)
    is_inside = (element >= low) & (element <= high)
    return is_inside & take(Array(table), where(is_inside, element - low, 0))


def unique(
    ar: Array, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, axis: int | None = None,
    *, equal_nan: bool = True, sorted: bool = True,
) -> Any:  # fmt: skip
    """The distinct elements, sorted, or the distinct parts along an axis; NaNs are one unless ``equal_nan`` is false.

    On request also where each occurs first, which of them every element is, and how often each occurs.

    >>> import tilewright as tw
    >>> values, counts = tw.unique(tw.asarray([3, 1, 3]), return_counts=True)
    >>> values.compute(), counts.compute()
    (array([1, 3]), array([1, 2]))
    """
    ar = asarray(ar)
    if ar.ndim == 1 and axis is not None:
        # The parts of a vector are its elements.
        axis = None if normalize_axis_index(axis, 1) == 0 else axis
    if axis is None:
        values, positions = _in_order(reshape(ar, (-1,)))
        first = _first_of_kind(values, equal_nan)
        found, shape = [_kept(values, first)], ar.shape
    else:
        axis = normalize_axis_index(axis, ar.ndim)
        positions, first = _rows_in_order(moveaxis(ar, axis, 0))
        found, shape = [take(ar, _kept(positions, first), axis=axis)], (ar.shape[axis],)
    if return_index:
        found.append(_kept(positions, first))
    if return_inverse:
        found.append(_inverse(positions, first, shape))
    if return_counts:
        found.append(_counts(first))
    return found[0] if len(found) == 1 else tuple(found)


def _rows_in_order(x: Array) -> tuple[Array, Array]:
    """Where parts along the first axis were before they are sorted, and which of them are the first of their kind."""
    n = x.shape[0]
    rows = reshape(x, (n, x.size // n if n else 0))
    columns = [rows[:, k] for k in range(rows.shape[1])]
    if x.dtype.kind == "c":
        columns = [part for column in columns for part in (real(column), imag(column))]
    positions = lexsort(columns[::-1]) if columns else arange(n)
    rows = take(rows, positions, axis=0)
    differs = any(rows[1:] != rows[:-1], axis=1)
    return positions, concat((ones(min(n, 1), dtype="bool"), differs))


def intersect1d(ar1: Array, ar2: Array, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The distinct elements that are in both arrays, sorted; on request also where each occurs first in either."""
    values, places = zip(*(_distinct(each, assume_unique) for each in (ar1, ar2)), strict=True)
    both, positions = _in_order(concat(values))
    twice = both[1:] == both[:-1]
    found = _kept(both[:-1], twice)
    if not return_indices:
        return found
    # Of equal elements, the one of the first array comes first.
    first, second = _kept(positions[:-1], twice), _kept(positions[1:], twice) - values[0].size
    return found, take(places[0], first), take(places[1], second)


def _distinct(x: Any, are_distinct: bool) -> tuple[Array, Array]:
    flat = reshape(asarray(x), (-1,))
    return (flat, arange(flat.size)) if are_distinct else unique(flat, return_index=True)


def union1d(ar1: Array, ar2: Array) -> Array:
    """The distinct elements of two arrays, sorted."""
    return unique(concat((asarray(ar1), asarray(ar2)), axis=None))


def setdiff1d(ar1: Array, ar2: Array, assume_unique: bool = False) -> Array:
    """The distinct elements of one array that are not in another, sorted; in their order, if they are distinct already."""
    values, _ = _distinct(ar1, assume_unique)
    return _kept(values, isin(values, ar2, invert=True))


def setxor1d(ar1: Array, ar2: Array, assume_unique: bool = False) -> Array:
    """The distinct elements that are in one of two arrays and not in the other, sorted."""
    values = concat([_distinct(each, assume_unique)[0] for each in (ar1, ar2)])
    both, _ = _in_order(values)
    alone = both[1:] != both[:-1]
    edge = ones(min(values.size, 1), dtype="bool")
    return _kept(both, concat((edge, alone)) & concat((alone, edge)))
