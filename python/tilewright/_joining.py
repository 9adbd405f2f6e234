"""Arrays of arrays: taken apart and put together."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from ._array import Array
from ._creation import arange, asarray
from ._dtypes import astype
from ._elementwise import minimum
from ._manipulation import broadcast_to, concat, moveaxis, part, reshape
from ._out import takes_out
from ._rearranging import atleast_1d, atleast_2d, atleast_3d, copy, ravel
from ._searching import searchsorted, take, where


def _is_one(obj: Any) -> bool:
    """True for a single whole number, of Python or in an array."""
    rank = getattr(obj, "ndim", 0 if hasattr(obj, "__index__") else 1)
    return rank == 0 and not isinstance(obj, (bool, np.bool_))


def array_split(ary: Array, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Parts along an axis: so many of about equal length, or cut at given indices.

    >>> import tilewright as tw
    >>> [part.size for part in tw.array_split(tw.arange(5), 2)]
    [3, 2]
    """
    ary = asarray(ary)
    axis = normalize_axis_index(axis, ary.ndim)
    n = ary.shape[axis]
    if _is_one(indices_or_sections):
        sections = indices_or_sections.__index__()
        if sections <= 0:
            raise ValueError(f"{sections} parts: there must be one at least")
        short, longer = divmod(n, sections)
        lengths = [short + 1] * longer + [short] * (sections - longer)
        cuts = [0, *np.cumsum(lengths).tolist()]
    else:
        cuts = [0, *(index(cut) for cut in indices_or_sections), None]
    return [part(ary, axis, slice(start, stop)) for start, stop in zip(cuts[:-1], cuts[1:], strict=True)]


def split(ary: Array, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Parts along an axis: so many of equal length, or cut at given indices."""
    ary = asarray(ary)
    n = ary.shape[normalize_axis_index(axis, ary.ndim)]
    if _is_one(indices_or_sections) and n % max(indices_or_sections.__index__(), 1):
        raise ValueError(f"{n} elements do not split into {indices_or_sections} equal parts")
    return array_split(ary, indices_or_sections, axis)


def hsplit(ary: Array, indices_or_sections: Any) -> list[Array]:
    """Parts along the second axis; of vectors, along the only one."""
    rank = asarray(ary).ndim
    if rank < 1:
        raise ValueError("an array without axes has nothing to split")
    return split(ary, indices_or_sections, min(rank - 1, 1))


def vsplit(ary: Array, indices_or_sections: Any) -> list[Array]:
    """Parts along the first of two axes or more."""
    if asarray(ary).ndim < 2:
        raise ValueError("vsplit needs two axes")
    return split(ary, indices_or_sections, 0)


def dsplit(ary: Array, indices_or_sections: Any) -> list[Array]:
    """Parts along the third axis."""
    if asarray(ary).ndim < 3:
        raise ValueError("dsplit needs three axes")
    return split(ary, indices_or_sections, 2)


def _several(widened: Any) -> list[Array]:
    return list(widened) if isinstance(widened, tuple) else [widened]


def hstack(tup: Any, *, dtype: Any = None) -> Array:
    """Arrays side by side: along the second axis; vectors along their only one."""
    arrays = _several(atleast_1d(*tup))
    return concat(arrays, axis=0 if arrays and arrays[0].ndim == 1 else 1, dtype=dtype)


def vstack(tup: Any, *, dtype: Any = None) -> Array:
    """Arrays one below the other: along the first axis; vectors are rows."""
    return concat(_several(atleast_2d(*tup)), axis=0, dtype=dtype)


def dstack(tup: Any) -> Array:
    """Arrays one behind the other: along the third axis."""
    return concat(_several(atleast_3d(*tup)), axis=2)


def column_stack(tup: Any) -> Array:
    """Vectors as columns, and matrices, side by side."""
    arrays = [asarray(each) for each in tup]
    return concat([atleast_2d(each).T if each.ndim < 2 else each for each in arrays], axis=1)


def block(arrays: Any) -> Array:
    """An array of nested lists of arrays: the innermost along the last axis, the next along the one before, and so on.

    >>> import tilewright as tw
    >>> tw.block([[tw.ones((1, 2)), tw.zeros((1, 1))]]).compute()
    array([[1., 1., 0.]])
    """
    depth = _depth(arrays)
    leaves: list[Any] = []
    _leaves(arrays, leaves)
    rank = max([depth, *(asarray(leaf).ndim for leaf in leaves)])
    made = _block(arrays, rank, rank - depth)
    return made if depth else copy(made)


def _depth(nested: Any) -> int:
    if isinstance(nested, tuple):
        raise TypeError("blocks come in lists, not in tuples")
    if not isinstance(nested, list):
        return 0
    depths = {_depth(each) for each in nested}
    if not nested:
        raise ValueError("a list of blocks is empty")
    if len(depths) > 1:
        raise ValueError("lists of blocks are nested to different depths")
    return 1 + depths.pop()


def _leaves(nested: Any, found: list[Any]) -> None:
    if not isinstance(nested, list):
        found.append(nested)
        return
    for each in nested:
        _leaves(each, found)


def _block(nested: Any, rank: int, axis: int) -> Array:
    if isinstance(nested, list):
        return concat([_block(each, rank, axis + 1) for each in nested], axis=axis)
    leaf = asarray(nested)
    return reshape(leaf, (1,) * (rank - leaf.ndim) + leaf.shape)


@takes_out
def concatenate(arrays: Any, axis: int | None = 0, *, dtype: Any = None) -> Array:
    """One array after the other along an axis; with ``axis=None``, all elements of all arrays in a row."""
    return concat(arrays, axis=axis, dtype=dtype)


def append(arr: Array, values: Any, axis: int | None = None) -> Array:
    """Values after the end of an axis; without one, all elements in a row and the values after them."""
    if axis is None:
        return concat((ravel(arr), ravel(values)))
    return concat((asarray(arr), asarray(values)), axis=axis)


def delete(arr: Array, obj: Any, axis: int | None = None) -> Array:
    """Without the parts at some indices along an axis: an int, a slice, a list of ints or a mask.

    >>> import tilewright as tw
    >>> tw.delete(tw.arange(5), [0, 2]).compute()
    array([1, 3, 4])
    """
    arr = ravel(arr) if axis is None else asarray(arr)
    axis = normalize_axis_index(0 if axis is None else axis, arr.ndim)
    n = arr.shape[axis]
    gone = np.unique(_places(obj, n))
    if gone.size == 0:
        return copy(arr)
    first, last = int(gone[0]), int(gone[-1])
    if last - first + 1 == gone.size:
        return concat((part(arr, axis, slice(None, first)), part(arr, axis, slice(last + 1, None))), axis=axis)
    # Element k of the rest has before it all that are gone, up to the first that k others precede.
    rest = arange(n - gone.size)
    return take(arr, rest + searchsorted(asarray(gone - np.arange(gone.size)), rest, side="right"), axis=axis)


def _places(obj: Any, n: int, end: int = 0) -> np.ndarray:
    """Indices of an axis as NumPy has them: how many there are decides about the shape, so they are needed now."""
    if isinstance(obj, slice):
        return np.arange(*obj.indices(n))
    places = np.asarray(obj)
    if places.size == 0 and not isinstance(obj, (np.ndarray, Array)):
        places = places.astype(np.int64)
    if places.dtype.kind not in "iub":
        raise IndexError(f"an array of {places.dtype} is no index; integers and bools are")
    if places.dtype.kind == "b":
        if places.shape != (n,):
            raise ValueError(f"a mask of shape {places.shape} for an axis of length {n}")
        return np.flatnonzero(places)
    places = places.reshape(-1).astype(np.int64)
    outside = places[(places < -n) | (places >= n + end)]
    if outside.size:
        raise IndexError(f"index {outside[0]} is outside an axis of length {n}")
    return np.where(places < 0, places + n, places)


def insert(arr: Array, obj: Any, values: Any, axis: int | None = None) -> Array:
    """With values before some indices along an axis: an int, a slice, a list of ints or a mask.

    >>> import tilewright as tw
    >>> tw.insert(tw.arange(3), 1, 9).compute()
    array([0, 9, 1, 2])
    """
    arr = ravel(arr) if axis is None else asarray(arr)
    axis = normalize_axis_index(0 if axis is None else axis, arr.ndim)
    n = arr.shape[axis]
    one = _is_one(obj)
    places = _places(obj, n, end=1)
    # Numbers take the type of the array, and must fit into it.
    values = asarray(values, None if hasattr(values, "dtype") else arr.dtype)
    if places.size == 1:
        # As many as there are values go to a single place.
        values = reshape(values, (1,) * (arr.ndim - values.ndim) + values.shape)
        values = moveaxis(values, 0, axis) if one else values
        places = np.repeat(places, values.shape[axis])
    shape = (*arr.shape[:axis], places.size, *arr.shape[axis + 1 :])
    new = astype(broadcast_to(values, shape), arr.dtype, copy=False)
    if places.size == 0 or (places == places[0]).all():
        at = int(places[0]) if places.size else n
        return concat((part(arr, axis, slice(None, at)), new, part(arr, axis, slice(at, None))), axis=axis)
    # Places of the result are those of new elements, of which it has so many before, or else of old ones.
    order = np.argsort(places, kind="stable")
    taken = asarray(places[order] + np.arange(places.size))
    result = arange(n + places.size)
    before = searchsorted(taken, result)
    nearest = minimum(before, places.size - 1)
    source = where(take(taken, nearest) == result, n + take(asarray(order), nearest), result - before)
    return take(concat((arr, new), axis=axis), source, axis=axis)
