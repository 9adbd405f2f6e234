"""``x[key]`` and ``x[key] = value``."""

from __future__ import annotations

from operator import index as as_index
from typing import Any

import numpy as np

from . import _core, _views
from ._array import Array, unwrap
from ._manipulation import broadcast_shapes, broadcast_to


_PLAIN = frozenset((int, type(None)))


def _parts(key: Any) -> tuple[Any, ...]:
    key = key if isinstance(key, tuple) else (key,)
    return tuple(_part(part) for part in key)


def _part(part: Any) -> Any:
    """An index as an integer, a slice, None, ``...``, or an array of integers or bools."""
    if part is None or part is Ellipsis:
        return part
    if isinstance(part, slice):
        # Views compare their keys, so slices are made of plain numbers.
        ends = (part.start, part.stop, part.step)
        if _PLAIN.issuperset(map(type, ends)):
            return part
        return slice(*(None if each is None else as_index(each) for each in ends))
    if isinstance(part, (bool, np.bool_)):
        return _array(np.asarray(part))
    if isinstance(part, Array):
        return part.__index__() if part.ndim == 0 and part.dtype.kind in "iu" else _checked(part)
    if isinstance(part, (list, np.ndarray)):
        array = np.asarray(part)
        if array.ndim == 0 and array.dtype.kind in "iu":
            return int(array)
        # An empty list holds no type of its own; as an index it means integers.
        return _array(array.astype(np.int64) if array.size == 0 and isinstance(part, list) else array)
    if hasattr(part, "__index__"):
        return part.__index__()
    raise IndexError(f"{part!r} is no index: integers, slices, None, ... and arrays of integers or bools are")


def _array(array: np.ndarray) -> Array:
    from ._creation import asarray

    return _checked(asarray(array))


def _checked(array: Array) -> Array:
    if array.dtype.kind not in "iub":
        raise IndexError(f"an array of {array.dtype} is no index; integers and bools are")
    return array


def check_inside(indices: Any, n: int, axis: int) -> None:
    """Refuses indices outside an axis of ``n`` elements if they are known already: in a list or a NumPy array."""
    if not isinstance(indices, (np.ndarray, np.integer, list, tuple, int)):
        return
    places = np.asarray(indices)
    if places.size == 0 or places.dtype.kind not in "iu":
        return
    outside = places.min() if places.min() < -n else places.max()
    if not -n <= outside < n:
        raise IndexError(f"index {outside} is out of bounds for axis {axis} with size {n}")


# Indices that a plan looks at one by one; more are data like any other.
MOST_KNOWN = 1 << 20

# A mask of NumPy that selects at most so many elements, and at most one of so many, is taken as the places that it names.
FEW_SELECTED = 1 << 12
SPARSE = 64


def from_start(indices: np.ndarray, n: int) -> np.ndarray:
    """Known indices inside an axis of ``n`` elements, negative ones counted from its start."""
    places = indices.astype(np.int64)
    return np.where(places < 0, places + n, places)


def getitem(x: Array, key: Any) -> Array:
    """The part of an array that a key names."""
    parts = _parts(key)
    if not any(isinstance(part, Array) for part in parts):
        # A single element is a value, as NumPy's scalars are: `a, x[0] = x[0], x[1]` must not change it.
        # So is what an array without axes names, which NumPy copies.
        if (len(parts) == x.ndim and all(isinstance(part, int) for part in parts)) or _has_number_array(key):
            return Array(_core.slice(x._tensor, parts))
        return _views.view(x, _views.Part(parts))
    if len(parts) == 1 and parts[0].dtype.kind == "b" and x.ndim > 0 and _covers(parts[0], x):
        mask = key[0] if isinstance(key, tuple) else key
        if _selects_few(mask) and not x._tensor.is_computed:
            # Only the blocks with these elements are read.
            return _advanced(x, parts, {0: np.asarray(mask)})
        return Array(_core.compact(x._tensor, parts[0]._tensor))
    if len(parts) == 1 and parts[0].dtype.kind == "b" and parts[0].ndim == 0:
        # One truth value for the whole array: a new axis, of length 1 or 0.
        return Array(_core.slice(_core.slice(x._tensor, (None,)), (slice(None, int(bool(parts[0]))),)))
    # What a mask of NumPy selects is known before anything runs.
    raw = key if isinstance(key, tuple) else (key,)
    if any(isinstance(part, Array) and part.ndim == 0 for part in parts):
        return _with_truth_values(x, raw, parts)
    known = {place: np.asarray(part) for place, part in enumerate(raw) if isinstance(part, (list, np.ndarray))}
    return _advanced(x, parts, known)


def _with_truth_values(x: Array, raw: tuple[Any, ...], parts: tuple[Any, ...]) -> Array:
    """Single truth values among other indices: each is an index into a new axis of length 1, which it selects or not."""
    axes: list[Any] = []
    keys: list[Any] = []
    for given, part in zip(raw, parts, strict=True):
        if isinstance(part, Array) and part.ndim == 0:
            axes.append(None)
            keys.append(np.zeros(int(bool(part)), dtype=np.int64))
            continue
        keys.append(given)
        if part is Ellipsis:
            axes.append(part)
        elif part is not None:
            axes.extend([slice(None)] * (part.ndim if isinstance(part, Array) and part.dtype.kind == "b" else 1))
    return getitem(Array(_core.slice(x._tensor, tuple(axes))), tuple(keys))


def _selects_few(mask: Any) -> bool:
    """True if a mask is known and selects few of many elements."""
    if not isinstance(mask, (list, np.ndarray)):
        return False
    n = np.count_nonzero(mask)
    return n <= FEW_SELECTED and n * SPARSE <= np.size(mask)


def _has_number_array(key: Any) -> bool:
    return any(isinstance(part, (Array, np.ndarray)) for part in (key if isinstance(key, tuple) else (key,)))


def _covers(mask: Array, x: Array) -> bool:
    """True if a mask has the shape of the first axes of an array."""
    if mask.ndim == x.ndim:
        return _same_shape(mask, x)
    return 0 < mask.ndim < x.ndim and mask.shape == x.shape[: mask.ndim]


def _fits_mask(shape: tuple[int, ...], lengths: tuple[int, ...]) -> bool:
    """True if a mask is for axes of some lengths. As in NumPy, one without elements fits any: it selects nothing."""
    return len(shape) == len(lengths) and all(n in (length, 0) for n, length in zip(shape, lengths, strict=True))


def _same_shape(a: Array, b: Array) -> bool:
    """Shapes that depend on data are computed only if nothing else tells whether they are equal."""
    return a._tensor.fits(b._tensor) or (a.ndim == b.ndim and a.shape == b.shape)


def _together(arrays: list[Array]) -> list[_core.Tensor]:
    """Index arrays broadcast to the shape where they meet."""
    tensors = [array._tensor for array in arrays]
    if all(tensor.fits(tensors[0]) for tensor in tensors):
        return tensors
    shape = broadcast_shapes(*(array.shape for array in arrays))
    return [broadcast_to(array, shape)._tensor for array in arrays]


def _advanced(x: Array, parts: tuple[Any, ...], known: dict[int, np.ndarray]) -> Array:
    """Basic indices first, with whole axes where arrays are; then the arrays."""
    from ._searching import nonzero

    basic: list[Any] = []
    arrays: list[tuple[int, Array]] = []
    # Those of the arrays whose elements are known already.
    fixed: list[np.ndarray] = []
    # The axis of the result of basic indexing that comes next.
    axis = 0
    positions = []
    used = sum(1 if not isinstance(p, Array) else max(p.ndim, 1) if p.dtype.kind == "b" else 1
               for p in parts if p is not None and p is not Ellipsis)  # fmt: skip
    source = 0
    for place, part in enumerate(parts):
        if part is Ellipsis:
            basic.append(part)
            axis += x.ndim - used
            source += x.ndim - used
        elif isinstance(part, Array):
            if part.dtype.kind == "b":
                lengths = x.shape[source : source + part.ndim]
                if not _fits_mask(part.shape, lengths):
                    raise IndexError(f"a mask of shape {part.shape} for axes of lengths {lengths}")
                places = known.get(place)
                found = nonzero(part) if places is None else tuple(_array(index) for index in np.nonzero(places))
                fixed.extend(() if places is None else np.nonzero(places))
            else:
                if place in known:
                    check_inside(known[place], x.shape[source], source)
                found = (part,)
                fixed.extend((known[place],) if place in known else ())
            for index in found:
                arrays.append((axis, index))
                basic.append(slice(None))
                axis += 1
                source += 1
            positions.append(place)
        else:
            basic.append(part)
            axis += part is None or isinstance(part, slice)
            source += part is not None
    if used > x.ndim:
        raise IndexError(f"{used} indices for an array with {x.ndim} axes")
    whole = all(isinstance(part, slice) and part == slice(None) for part in basic)
    plain = x if whole else Array(_core.slice(x._tensor, tuple(basic)))
    axes = [axis for axis, _ in arrays]
    if len(fixed) == len(arrays) and sum(index.size for index in fixed) <= MOST_KNOWN:
        places = [from_start(index, plain.shape[axis]) for index, axis in zip(fixed, axes, strict=True)]
        shape = broadcast_shapes(*(index.shape for index in places))
        rank = len(shape)
        gathered = Array(_core.gather_known(plain._tensor, [np.ascontiguousarray(np.broadcast_to(index, shape)) for index in places], axes))
    else:
        indices = _together([index for _, index in arrays])
        rank = indices[0].ndim
        gathered = Array(_core.gather(plain._tensor, indices, axes))
    # Arrays with something between them: their axes come first, as in NumPy. An integer beside an array counts as one.
    apart = [k for k, part in enumerate(parts) if isinstance(part, (Array, int)) and not isinstance(part, bool)]
    together = apart == list(range(apart[0], apart[0] + len(apart)))
    first = axes[0]
    if together or first == 0 or rank == 0:
        return gathered
    order = list(range(first, first + rank))
    order += [axis for axis in range(gathered.ndim) if axis not in order]
    return Array(_core.permute(gathered._tensor, order))


def setitem(x: Array, key: Any, value: Any) -> None:
    """Replaces the part of an array that a key names, there and in all arrays that share it."""
    parts = _parts(key)
    if not any(isinstance(part, Array) for part in parts) and _views.is_part(value, x, _views.Part(parts)):
        return
    if isinstance(value, Array) and _views.exchanges_rows(value, x, parts):
        raise TypeError(
            "rows of an array are views, so that exchanging them one by one, as NumPy's shuffle does, loses some: "
            "tw.random.shuffle(x) or tw.random.default_rng(seed).shuffle(x) shuffles an array in place, tw.random.permutation(x) gives a new one"
        )
    tensor = unwrap(value)
    _views.update(x, lambda own: _with(Array(own), key, parts, tensor)._tensor)


def _with(x: Array, key: Any, parts: tuple[Any, ...], value: Any) -> Array:
    """The array with a part replaced."""
    if isinstance(value, _core.Tensor) and x.dtype.kind != "c" and np.dtype(value.dtype).kind == "c":
        raise TypeError(f"complex numbers do not go into an array of {x.dtype}")
    _check_value(x.dtype, value)
    if not any(isinstance(part, Array) for part in parts):
        # A single element takes a number, not a vector of one.
        is_element = len(parts) == x.ndim and all(isinstance(part, int) for part in parts)
        return Array(replaced(x._tensor, parts, value if is_element else _without_leading(value)))
    if isinstance(value, _core.Tensor):
        # Now: int64 and uint64 would meet in float64, which holds neither.
        value = _core.cast(value, x._tensor.dtype)
    if len(parts) == 1 and parts[0].dtype.kind == "b" and parts[0].ndim == 0:
        return _all_or_nothing(x, parts[0], value)
    if len(parts) == 1 and parts[0].dtype.kind == "b" and _same_shape(parts[0], x):
        if isinstance(value, _core.Tensor) and value.shape not in ((), (1,)):
            return _masked(x, parts[0], Array(value))
        chosen = _core.where_(parts[0]._tensor, value, x._tensor)
        return Array(_core.cast(chosen, x._tensor.dtype))
    return _scattered(x, key, parts, _without_leading(value))


def _without_leading(value: Any) -> Any:
    """A value without its first axes of length 1: as in NumPy, it may have more axes than the part that it goes into."""
    if not isinstance(value, _core.Tensor) or value.ndim == 0 or value.is_open or value.shape[0] != 1:
        return value
    shape = value.shape
    n = next((axis for axis, length in enumerate(shape) if length != 1), len(shape))
    return _core.squeeze(value, list(range(n)))


def replaced(tensor: _core.Tensor, parts: tuple[Any, ...], value: Any) -> _core.Tensor:
    """A tensor with the part that integers, slices, None and ``...`` name replaced."""
    if any(part is None for part in parts):
        parts, value = _without_new_axes(Array(tensor), parts, value)
    return _core.replace(tensor, parts, value)


def _without_new_axes(x: Array, parts: tuple[Any, ...], value: Any) -> tuple[tuple[Any, ...], Any]:
    """A key without its new axes, and a value without the axes of length 1 that it has for them."""
    kept = tuple(part for part in parts if part is not None)
    if not isinstance(value, _core.Tensor):
        return kept, value
    new, axis = [], 0
    for part in parts:
        if part is None:
            new.append(axis)
        axis += x.ndim - sum(each is not Ellipsis for each in kept) if part is Ellipsis else not isinstance(part, int)
    wide = _core.broadcast_to(value, list(_core.slice(x._tensor, parts).shape))
    return kept, _core.squeeze(wide, new)


def _all_or_nothing(x: Array, mask: Array, value: Any) -> Array:
    """The whole array replaced if one truth value says so. The value may have one more axis, which that index adds."""
    if isinstance(value, _core.Tensor):
        shape = value.shape
        if len(shape) == x.ndim + 1 and shape[0] == 1:
            value = _core.squeeze(value, [0])
        elif len(shape) == x.ndim + 1 and shape[0] == 0:
            # What a truth value that does not hold has selected elsewhere.
            if mask:
                raise ValueError(f"values of shape {shape} for an array of shape {x.shape}")
            return x
        value = broadcast_to(Array(value), x.shape)._tensor
    return Array(_core.cast(_core.where_(mask._tensor, value, x._tensor), x._tensor.dtype))


def _check_value(dtype: np.dtype, value: Any) -> None:
    """Refuses numbers that the array cannot hold, as NumPy does."""
    if isinstance(value, _core.Tensor):
        return
    if isinstance(value, complex) and dtype.kind not in "cb":
        raise TypeError(f"a complex number does not go into an array of {dtype}")
    if dtype.kind in "iu":
        whole = int(value)  # NaN and infinities are refused here.
        info = np.iinfo(dtype)
        if not info.min <= whole <= info.max:
            raise OverflowError(f"{value} does not fit into {dtype}")


def _masked(x: Array, mask: Array, value: Array) -> Array:
    """Elements under a mask replaced by those of a vector, in order."""
    count = mask._tensor.n_selected()
    if value.shape != (count,):
        raise ValueError(f"{value.size} values for {count} places")
    return Array(_core.expand(x._tensor, mask._tensor, _core.cast(value._tensor, x._tensor.dtype)))


def _scattered(x: Array, key: Any, parts: tuple[Any, ...], value: Any) -> Array:
    """Elements at integer indices replaced; of several values for one place the last wins.

    Every place keeps the number of the last write to it, which is the largest; then its elements are taken from the values, or stay. Nothing is sorted. An
    index of one axis names places along this axis alone.
    """
    from ._creation import arange, full
    from ._manipulation import reshape
    from ._searching import nonzero

    if not isinstance(value, _core.Tensor):
        value = full((), value, dtype=x.dtype)._tensor
    axis, index = _one_axis(x, key, parts)
    if index is None:
        # Which elements are meant is asked of an array that holds the position of each.
        named = getitem(reshape(arange(x.size), x.shape), key)
        values = Array(value) if value.ndim == 0 else reshape(broadcast_to(Array(value), named.shape), (-1,))
        return reshape(_last_written(reshape(x, (-1,)), 0, reshape(named, (-1,)), values), x.shape)
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    values = Array(value)
    if index.dtype.kind == "b" and values.ndim <= len(after):
        return _where_hit(x, axis, index, broadcast_to(values, after))
    places = nonzero(index)[0] if index.dtype.kind == "b" else index
    if values.ndim <= len(after):
        values = broadcast_to(values, after)
    else:
        values = reshape(broadcast_to(values, (*before, *places.shape, *after)), (*before, places.size, *after))
    return _last_written(x, axis, reshape(places, (-1,)), values)


def _one_axis(x: Array, key: Any, parts: tuple[Any, ...]) -> tuple[int, Array | None]:
    """The axis that an array indexes, and this array, if the key takes all other axes whole."""
    at = next(k for k, part in enumerate(parts) if isinstance(part, Array))
    index = parts[at]
    others = (*parts[:at], *parts[at + 1 :])
    whole = all(part is Ellipsis or (isinstance(part, slice) and part == slice(None)) for part in others)
    n_ellipses = sum(part is Ellipsis for part in others)
    if not whole or n_ellipses > 1 or len(parts) - n_ellipses > x.ndim or index.ndim == 0:
        return 0, None
    axis = x.ndim - len(parts) + at if n_ellipses and any(part is Ellipsis for part in parts[:at]) else at
    if index.dtype.kind == "b" and index.shape != x.shape[axis : axis + 1]:
        return 0, None
    raw = key[at] if isinstance(key, tuple) else key
    check_inside(raw, x.shape[axis], axis)
    return axis, index


def _last_written(x: Array, axis: int, places: Array, values: Array) -> Array:
    """An array with values at places along an axis, which are a vector. The values have an axis of its length for them; or none, if they are the same for all."""
    from ._creation import arange, full, ones
    from ._dtypes import astype
    from ._elementwise import maximum
    from ._manipulation import concat
    from ._searching import take

    n, extents = places.size, [x.shape[axis]]
    if n == 0:
        return x
    if values.ndim < x.ndim:
        hit = _core.scatter("any", [places._tensor], ones(n, dtype="bool")._tensor, extents)
        return _where_hit(x, axis, Array(hit), values)
    if x.ndim == 1:
        hit = Array(_core.scatter("any", [places._tensor], ones(n, dtype="bool")._tensor, extents))
        return _where_hit(x, axis, hit, Array(_core.scatter_last(places._tensor, values._tensor, arange(n)._tensor, extents[0])))
    # Every place is named at least once: of nothing there is no largest number.
    every, none = arange(extents[0]), full(extents, -1)
    named, numbers = concat((every, astype(places, every.dtype, copy=False))), concat((none, arange(n)))
    last = Array(_core.scatter("max", [named._tensor], numbers._tensor, extents))
    return _where_hit(x, axis, last >= 0, take(values, maximum(last, 0), axis=axis))


def _where_hit(x: Array, axis: int, hit: Array, values: Array) -> Array:
    """Values where a mask of an axis holds, elsewhere the elements of an array."""
    from ._manipulation import reshape

    mask = reshape(hit, (*(1,) * axis, x.shape[axis], *(1,) * (x.ndim - axis - 1)))
    return Array(_core.cast(_core.where_(mask._tensor, values._tensor, x._tensor), x._tensor.dtype))
