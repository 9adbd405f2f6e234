"""The methods of NumPy's ufuncs on our arrays: ``np.add.at(x, i, v)``, ``np.minimum.accumulate(x)``, ``np.bitwise_or.reduce(x)``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from . import _core, _reductions, _views
from ._array import Array, binary
from ._creation import arange, asarray
from ._dtypes import astype
from ._indexing import getitem
from ._manipulation import broadcast_to, concat, expand_dims, reshape
from ._out import into

#: What ufuncs reduce to, and what they accumulate to.
_REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any",
    "fmax": "nanmax", "fmin": "nanmin",
}  # fmt: skip
_RUNNING = {"add": "cumulative_sum", "multiply": "cumulative_prod"}

#: What to use instead of a method that is not there.
_INSTEAD = {
    "at": "write x[i] = .. where every place is named once",
    "reduceat": "sums of parts are differences of tw.cumulative_sum(x)",
    "reduce": "tw.map_blocks calls it with blocks",
    "accumulate": "tw.map_blocks calls it with blocks",
}


def method_of(function: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """A method of a ufunc other than a call and ``outer``. Those that are not there raise, and say what to use."""
    import tilewright

    name = function.__name__
    # NumPy passes options by name, and a type or an output that was not requested as None.
    options = {key: value for key, value in options.items() if value is not np._NoValue and (key == "axis" or value is not None)}
    if getattr(np, name, None) is function:
        same = {"reduce": _REDUCTIONS, "accumulate": _RUNNING}.get(method, {}).get(name)
        if same is not None:
            return getattr(tilewright, same)(*inputs, **{"axis": 0, **options})
        own = _OWN.get((name, method))
        if own is not None:
            return own(*inputs, **options)
    known = (Array, np.ndarray, np.generic)
    if not all(isinstance(each, known) or not hasattr(each, "__array_ufunc__") for each in inputs):
        # A third library may know what to do.
        return NotImplemented
    advice = _INSTEAD.get(method, "there is nothing like it")
    raise TypeError(f"{name}.{method} does not take lazy arrays: {advice}, or give it the array of NumPy that x.compute() makes")


# Writing at places that may be named more than once


def _at(scattered: str, combined: str | None, target: Any, indices: Any, values: Any) -> None:
    """Combines elements at indices with values, one after the other where a place is named several times; as in NumPy, views of the array show it."""
    if not isinstance(target, Array):
        raise TypeError(f"lazy indices and values go into an array of tilewright, not into {type(target).__name__}")
    values = asarray(values)
    met = np.result_type(target.dtype, values.dtype)
    # Integers of any kind go into integers of any other, as in NumPy.
    if not np.can_cast(met, target.dtype, "same_kind") and not (met.kind in "iu" and target.dtype.kind in "iu"):
        raise TypeError(f"a result of {met} does not go into an array of {target.dtype} by the rule 'same_kind'")
    values = astype(values, target.dtype, copy=False)
    # Which elements are meant is asked of an array that holds the position of each.
    named = getitem(reshape(arange(target.size), target.shape), indices)
    places, values = reshape(named, (-1,)), reshape(broadcast_to(values, named.shape), (-1,))
    _views.update(target, lambda own: _combined(scattered, combined, Array(own), places, values)._tensor)


def _combined(scattered: str, combined: str | None, own: Array, places: Array, values: Array) -> Array:
    row = reshape(own, (-1,))
    if combined is None:
        # Every element is one of the values for its place: of nothing there is no largest.
        places, values = concat((arange(own.size), places)), concat((row, values))
    made = Array(_core.scatter(scattered, [places._tensor], values._tensor, [own.size]))
    made = made if combined is None else Array(binary(combined, row._tensor, _core.cast(made._tensor, row._tensor.dtype)))
    return reshape(astype(made, own.dtype, copy=False), own.shape)


# Bits


def _bits(kind: str, x: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Array:
    """Bitwise and, or, exclusive or of the elements along axes: of every bit for itself."""
    x = asarray(x) if dtype is None else astype(asarray(x), dtype)
    if x.dtype.kind not in "biu":
        raise TypeError(f"elements of {x.dtype} have no bits to combine; integers and bools have")
    if x.dtype.kind == "b":
        return into(out, _each_bit(kind, x, axis, keepdims))
    axes = None if axis is None else tuple(np.lib.array_utils.normalize_axis_tuple(axis, x.ndim))
    places = arange(8 * x.itemsize, dtype=x.dtype)
    bits = expand_dims(x, -1) >> places & 1 != 0
    found = _each_bit(kind, bits, tuple(range(x.ndim)) if axes is None else axes, keepdims)
    return into(out, _reductions.sum(astype(found, x.dtype) << places, axis=-1, dtype=x.dtype))


def _each_bit(kind: str, bits: Array, axis: Any, keepdims: bool) -> Array:
    if kind == "xor":
        return _reductions.count_nonzero(bits, axis=axis, keepdims=keepdims) % 2 != 0
    return (_reductions.all if kind == "and" else _reductions.any)(bits, axis=axis, keepdims=keepdims)


def _odd(x: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Array:
    """True if an odd number of elements is not zero."""
    return into(out, _each_bit("xor", _reductions.is_nonzero(asarray(x)), axis, keepdims))


def _running(kind: str, truth: bool, x: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Array:
    x = asarray(x)
    return into(out, _reductions._running(kind, _reductions.is_nonzero(x) if truth else x, axis, dtype, False))


#: The methods that no other function of ours does.
_OWN: dict[tuple[str, str], Callable[..., Any]] = {
    ("add", "at"): partial(_at, "sum", "add"),
    ("subtract", "at"): partial(_at, "sum", "sub"),
    ("multiply", "at"): partial(_at, "prod", "mul"),
    ("maximum", "at"): partial(_at, "max", None),
    ("minimum", "at"): partial(_at, "min", None),
    ("maximum", "accumulate"): partial(_running, "max", False),
    ("minimum", "accumulate"): partial(_running, "min", False),
    ("logical_or", "accumulate"): partial(_running, "max", True),
    ("logical_and", "accumulate"): partial(_running, "min", True),
    ("bitwise_or", "reduce"): partial(_bits, "or"),
    ("bitwise_and", "reduce"): partial(_bits, "and"),
    ("bitwise_xor", "reduce"): partial(_bits, "xor"),
    ("logical_xor", "reduce"): _odd,
}
