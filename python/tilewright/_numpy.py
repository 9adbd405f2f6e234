"""Calls of NumPy's functions on our arrays: which of ours is meant, and under which names its arguments go."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from ._array import Array

#: Functions of NumPy with other names here.
_RENAMED = {"row_stack": "vstack"}

#: Arguments of NumPy with other names here.
_ARGUMENTS = {"ddof": "correction", "a_min": "min", "a_max": "max"}

#: Arguments that tell NumPy how to compute, never what.
_HINTS = {"assume_unique", "kind", "optimize", "subok"}

#: What ufuncs reduce to, and what they accumulate to.
_REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any",
    "fmax": "nanmax", "fmin": "nanmin",
}  # fmt: skip
_RUNNING = {"add": "cumulative_sum", "multiply": "cumulative_prod"}


def ufunc(function: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of a NumPy ufunc; those without a counterpart are refused, never computed behind the user's back."""
    import tilewright

    name = function.__name__
    along_axis = {"reduce": _REDUCTIONS, "accumulate": _RUNNING}.get(method, {})
    if name in along_axis and "out" not in kwargs:
        # NumPy passes options by name, and a type that nobody asked for as None.
        options = {key: value for key, value in kwargs.items() if key != "dtype" or value is not None}
        return getattr(tilewright, along_axis[name])(*inputs, **{"axis": 0, **options})
    ours = getattr(tilewright, name, None)
    if ours is not None and "out" in kwargs:
        raise TypeError(f"results of {name} are lazy and do not go into a NumPy array: write `a = a + b` for `a += b`, or store(.., a)")
    if ours is None or kwargs:
        return NotImplemented
    if method == "__call__":
        return ours(*inputs)
    if method == "outer" and len(inputs) == 2:
        first, second = (tilewright.asarray(each) for each in inputs)
        return ours(tilewright.reshape(first, first.shape + (1,) * second.ndim), second)
    return NotImplemented


def function(function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of any other NumPy function."""
    import tilewright

    if not all(issubclass(each, (Array, np.ndarray)) for each in types):
        return NotImplemented
    if function is np.save:
        return args[1].to_npy(args[0])
    module = tilewright
    for name in function.__module__.split(".")[1:]:
        module = getattr(module, name, tilewright)
    return _call(module, _RENAMED.get(function.__name__, function.__name__), function, args, kwargs)


def _call(module: ModuleType, name: str, theirs: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls ours with the arguments of theirs."""
    ours = getattr(module, name, None)
    if not inspect.isfunction(ours):
        return NotImplemented
    signature = _signature(theirs)
    if signature is not None:
        args, kwargs = _translated(ours, signature, args, kwargs)
    return ours(*args, **kwargs)


@cache
def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    """The signature of a function; of some that are written in C, older versions of NumPy do not know it."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _translated(
    ours: Any, theirs: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """NumPy takes most arguments by position or name; what ours takes by position alone goes so, the rest by name."""
    known = _signature(ours).parameters
    n_by_position = sum(each.kind is inspect.Parameter.POSITIONAL_ONLY for each in known.values())
    by_position: list[Any] = []
    by_name: dict[str, Any] = {}
    for name, value in theirs.bind(*args, **kwargs).arguments.items():
        parameter = theirs.parameters[name]
        own_name = _ARGUMENTS.get(name, name) if name not in known else name
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            by_position.extend(value)
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            by_name.update(value)
        elif len(by_position) < n_by_position or (not by_name and (not by_position or parameter.kind is parameter.POSITIONAL_ONLY)):
            by_position.append(value)
        elif own_name in known:
            if value is not np._NoValue:
                by_name[own_name] = value
        elif name not in _HINTS and value is not parameter.default:
            raise TypeError(f"tilewright.{ours.__name__} has no argument {name!r}")
    return by_position, by_name
