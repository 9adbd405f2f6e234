"""Methods of arrays, with the arguments that NumPy's users write: axes by position, ``ddof``."""

from __future__ import annotations

from typing import Any

from . import _creation, _dtypes, _elementwise, _manipulation, _reductions, _searching
from ._array import Array


def _reduction(name: str) -> Any:
    function = getattr(_reductions, name)

    def method(self: Array, axis: Any = None, *, keepdims: bool = False, **options: Any) -> Array:
        if "ddof" in options:
            options["correction"] = options.pop("ddof")
        return function(self, axis=axis, keepdims=keepdims, **options)

    method.__name__ = name
    method.__doc__ = function.__doc__
    return method


def reshape(self: Array, *shape: Any) -> Array:
    """The same elements, in the same order, under another shape; one length may be -1."""
    return _manipulation.reshape(self, shape[0] if len(shape) == 1 else shape)


def transpose(self: Array, *axes: Any) -> Array:
    """The axes in another order; reversed if none is given."""
    if not axes or axes == (None,):
        return self.T
    return _manipulation.permute_dims(self, axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes)


def squeeze(self: Array, axis: Any = None) -> Array:
    """Without axes of length 1: those given, or all."""
    axes = tuple(k for k, n in enumerate(self.shape) if n == 1) if axis is None else axis
    return _manipulation.squeeze(self, axes)


def ravel(self: Array) -> Array:
    """All elements in a row."""
    return _manipulation.reshape(self, (-1,))


def cumsum(self: Array, axis: int | None = None, *, dtype: Any = None) -> Array:
    """Running sums along an axis, or of all elements in a row."""
    return _reductions.cumulative_sum(ravel(self) if axis is None else self, axis=axis or 0, dtype=dtype)


def cumprod(self: Array, axis: int | None = None, *, dtype: Any = None) -> Array:
    """Running products along an axis, or of all elements in a row."""
    return _reductions.cumulative_prod(ravel(self) if axis is None else self, axis=axis or 0, dtype=dtype)


def astype(self: Array, dtype: Any, *, copy: bool = True) -> Array:
    """The array converted to another type."""
    return _dtypes.astype(self, dtype, copy=copy)


def clip(self: Array, min: Any = None, max: Any = None) -> Array:
    """The elements, but none below ``min`` and none above ``max``."""
    return _elementwise.clip(self, min, max)


def copy(self: Array) -> Array:
    """The array: arrays are values."""
    return _creation.asarray(self, copy=True)


def argsort(self: Array, axis: int = -1) -> Array:
    """Where the sorted elements were."""
    return _searching.argsort(self, axis=axis)


def take(self: Array, indices: Any, axis: int | None = None) -> Array:
    """The elements at some indices along an axis."""
    return _searching.take(self, indices, axis=axis)


def repeat(self: Array, repeats: Any, axis: int | None = None) -> Array:
    """Every element along an axis repeated."""
    return _manipulation.repeat(self, repeats, axis=axis)


def attach() -> None:
    """Gives arrays their methods."""
    for name in ("sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmax", "argmin"):
        setattr(Array, name, _reduction(name))
    for method in (reshape, transpose, squeeze, ravel, cumsum, cumprod, astype, clip, copy, argsort, take, repeat):
        setattr(Array, method.__name__, method)
    Array.flatten = ravel
    Array.conj = Array.conjugate = lambda self: _elementwise.conj(self)
    Array.round = lambda self: _elementwise.round(self)
    Array.nonzero = lambda self: _searching.nonzero(self)
    Array.dot = lambda self, other: self @ other
