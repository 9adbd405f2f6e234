"""Calls of NumPy's functions on our arrays: which of ours is meant, and under which names its arguments go."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from ._array import Array
from ._out import elementwise_into

#: Functions of NumPy with other names here.
_RENAMED = {"row_stack": "vstack"}

#: Arguments of NumPy with other names here.
_ARGUMENTS = {"ddof": "correction", "a_min": "min", "a_max": "max"}

#: Arguments that tell NumPy how to compute, never what.
_HINTS = {"assume_unique", "kind", "optimize", "order", "subok", "writeable"}


def ufunc(function: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of a ufunc. Those of NumPy have a counterpart here; any other is called with every block when its result is computed."""
    import tilewright

    name = function.__name__
    # Other libraries have functions of the same name that give something else, as scipy.special.round does.
    ours = getattr(tilewright, name, None) if getattr(np, name, None) is function else None
    if method == "outer" and len(inputs) == 2:
        first, second = (tilewright.asarray(each) for each in inputs)
        inputs, method = (tilewright.reshape(first, first.shape + (1,) * second.ndim), second), "__call__"
    if method != "__call__":
        from ._ufunc_methods import method_of

        return method_of(function, method, inputs, kwargs)
    options = {key: value for key, value in kwargs.items() if key not in ("out", "where", *_HINTS)}
    if ours is None:
        found = by_blocks(function, inputs, options)
    elif function.signature is None:
        casting = options.pop("casting", "same_kind")
        types = _given_types(function, options)
        if options:
            return NotImplemented
        found = ours(*inputs) if types is None else _in_types(ours, function, inputs, types, casting)
    else:
        found = ours(*inputs, **options)
    where = kwargs.get("where", True)
    return elementwise_into(found, kwargs.get("out"), True if where is np.True_ else where, kwargs.get("casting", "same_kind"))


def _given_types(function: np.ufunc, options: dict[str, Any]) -> tuple[Any, ...] | None:
    """The types that a call asks for, as NumPy's ``signature`` has them: one per operand and result, None where it does not say."""
    dtype, signature = options.pop("dtype", None), options.pop("signature", None)
    if dtype is not None:
        return (None,) * function.nin + (np.dtype(dtype),) * function.nout
    if isinstance(signature, str):
        signature = tuple(signature.replace("->", ""))
    return None if signature is None else tuple(None if each is None else np.dtype(each) for each in signature)


def _in_types(ours: Any, function: np.ufunc, inputs: tuple[Any, ...], types: tuple[Any, ...], casting: str) -> Any:
    """Our function of operands in the types in which NumPy would compute."""
    import tilewright

    known = [type(each) if type(each) in (int, float, complex) else tilewright.asarray(each).dtype for each in inputs]
    resolved = function.resolve_dtypes((*known, *(None,) * function.nout), signature=types, casting=casting)
    operands = (tilewright.astype(tilewright.asarray(each), dtype) for each, dtype in zip(inputs, resolved, strict=False))
    found = ours(*operands)
    if not isinstance(found, tuple):
        return tilewright.astype(found, resolved[-1], copy=False)
    return tuple(tilewright.astype(each, dtype, copy=False) for each, dtype in zip(found, resolved[function.nin :], strict=True))


def by_blocks(function: Any, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The results of a ufunc that is called with every block: one of scipy.special, or compiled by numba."""
    import tilewright

    signature = getattr(function, "signature", None)
    numbers = {place: each for place, each in enumerate(inputs) if type(each) in (bool, int, float, complex)} if signature is None else {}
    arrays = [each for place, each in enumerate(inputs) if place not in numbers]
    if signature is None:
        signature = f"{','.join(['()'] * len(arrays))}->{','.join(['()'] * function.nout)}"
    axes = {name: options[name] for name in ("axes", "axis", "keepdims") if name in options}
    rest = {name: value for name, value in options.items() if name not in axes}
    return tilewright.apply_gufunc(_Called(function, numbers, rest), signature, *arrays, **axes)


class _Called:
    """A ufunc with its options and with those operands that are Python numbers, which have no type of their own."""

    def __init__(self, function: Any, numbers: dict[int, Any], options: dict[str, Any]) -> None:
        self.function, self.numbers, self.options = function, numbers, options
        self.__name__ = function.__name__

    def __call__(self, *blocks: np.ndarray) -> Any:
        waiting = iter(blocks)
        args = [self.numbers[place] if place in self.numbers else next(waiting) for place in range(len(blocks) + len(self.numbers))]
        return self.function(*args, **self.options)


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
