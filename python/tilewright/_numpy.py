"""Calls of NumPy's functions on our arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._array import Array

# Functions of NumPy with other names here.
_RENAMED = {
    "concatenate": "concat",
    "transpose": "permute_dims",
    "amax": "max",
    "amin": "min",
    "cumsum": "cumulative_sum",
    "cumprod": "cumulative_prod",
}

# Keyword arguments of NumPy that mean what ours of another name mean.
_KEYWORDS = {"ddof": "correction"}


def ufunc(function: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of a NumPy ufunc; those without a counterpart are refused, never computed behind the user's back."""
    import tilewright

    if kwargs.pop("out", None) is not None or kwargs.pop("where", True) is not True:
        return NotImplemented
    ours = getattr(tilewright, function.__name__, None)
    if method == "__call__" and ours is not None and not kwargs:
        return ours(*inputs)
    reduction = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}.get(function.__name__)
    if method == "reduce" and reduction is not None:
        axis = kwargs.pop("axis", 0)
        return getattr(tilewright, reduction)(inputs[0], axis=axis, **kwargs)
    return NotImplemented


def function(function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of any other NumPy function."""
    import tilewright

    module = tilewright
    for name in function.__module__.split(".")[1:]:
        module = getattr(module, name, tilewright)
    ours = getattr(module, _RENAMED.get(function.__name__, function.__name__), None)
    if function in (np.save, np.shape):
        ours = function
    if ours is None or not all(issubclass(each, (Array, np.ndarray)) for each in types):
        return NotImplemented
    kwargs = {_KEYWORDS.get(name, name): value for name, value in kwargs.items() if value is not np._NoValue}
    if function is np.save:
        return args[1].to_npy(args[0])
    if function is np.shape:
        return args[0].shape
    if function is np.where and len(args) == 1:
        return tilewright.nonzero(args[0])
    if function is np.squeeze and len(args) == 1 and not kwargs:
        return tilewright.squeeze(args[0], tuple(axis for axis, n in enumerate(args[0].shape) if n == 1))
    if function is np.transpose and not args[1:] and "axes" not in kwargs:
        return args[0].T
    # NumPy passes the axis by position, we take it by name.
    if len(args) == 2 and function.__name__ in _AXIS_SECOND:
        args, kwargs = args[:1], {"axis": args[1], **kwargs}
    return ours(*args, **kwargs)


_AXIS_SECOND = {
    "sum", "prod", "mean", "var", "std", "max", "min", "amax", "amin", "any", "all", "argmax", "argmin",
    "sort", "argsort", "cumsum", "cumprod", "count_nonzero", "concatenate", "stack", "flip",
}  # fmt: skip
