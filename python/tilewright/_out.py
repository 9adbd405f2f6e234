"""NumPy's ``out=`` and ``where=``: results that go into an array which is there already."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from . import _core, _views
from ._array import Array, named, unwrap
from ._dtypes import astype


def rebind(target: Array, new: Array) -> Array:
    """Gives an array object other elements: all names of the object show them, and all arrays that share its elements. Every ``out=`` ends here."""
    _views.write(target, new._tensor)
    return target


def into(out: Any, result: Array) -> Array:
    """A result as it is, or put into the array ``out``, which must have its shape and be of a type that it converts to."""
    out = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    if out is None:
        return result
    result = _converted(result, out, "same_kind")
    if not result._tensor.fits(out._tensor) and result.shape != out.shape:
        raise ValueError(f"a result of shape {result.shape} does not go into an array of shape {out.shape}")
    return rebind(out, result)


def _converted(result: Array, out: Any, casting: str) -> Array:
    """A result in the type of the array that it goes into, if NumPy's rule allows that."""
    if not isinstance(out, Array):
        raise TypeError(
            f"a lazy result goes into an array of tilewright, not into {type(out).__name__}: "
            "write `a = a + b` for `a += b`, or store(.., a) to compute it"
        )
    if not np.can_cast(result.dtype, out.dtype, casting):
        raise TypeError(f"a result of {result.dtype} does not go into an array of {out.dtype} by the rule {casting!r}: convert it with astype first")
    return astype(result, out.dtype, copy=False)


def elementwise_into(found: Any, out: Any, where: Any, casting: str = "same_kind") -> Any:
    """The results of a ufunc, computed only where a mask holds, in the arrays that are given for them.

    Elsewhere those keep their elements. Without an array to keep them from, NumPy leaves there what was in memory; here it is zero.
    """
    if out is None and where is True:
        return found
    several = isinstance(found, tuple)
    results = found if several else (found,)
    outs = (None,) * len(results) if out is None else out if isinstance(out, tuple) else (out,)
    if len(outs) != len(results):
        raise ValueError(f"{len(outs)} arrays for {len(results)} results")
    made = tuple(_one_into(result, each, where, casting) for result, each in zip(results, outs, strict=True))
    return made if several else made[0]


def _one_into(result: Array, out: Any, where: Any, casting: str) -> Array:
    from ._manipulation import broadcast_shapes, broadcast_to

    mask = None if where is True else _mask(where)
    if out is None:
        return result if mask is None else Array(_core.where_(mask, result._tensor, _core.full([], 0, result._tensor.dtype)))
    result = _converted(result, out, casting)

    def change(own: _core.Tensor) -> _core.Tensor:
        made = result if mask is None else Array(_core.where_(mask, result._tensor, own))
        if not made._tensor.fits(own) and made.shape != own.shape:
            # Results are repeated to the shape of an array, which does not grow.
            if broadcast_shapes(made.shape, own.shape) != own.shape:
                raise ValueError(f"a result of shape {made.shape} does not go into an array of shape {own.shape}")
            made = broadcast_to(made, own.shape)
        return made._tensor

    # What lies outside of the mask may be written by another thread meanwhile.
    _views.update(out, change)
    return out


def _mask(where: Any) -> Any:
    mask = unwrap(where)
    dtype = np.dtype(mask.dtype) if isinstance(mask, _core.Tensor) else np.asarray(mask).dtype
    if dtype.kind != "b":
        raise TypeError(f"a mask is made of bools, not of {dtype}")
    return mask


def takes_out(function: Callable[..., Array]) -> Callable[..., Array]:
    """Gives a function the argument ``out``, an array that its result goes into: as in NumPy the last by position."""
    n_by_position = _n_by_position(function)

    @wraps(function)
    def called(*args: Any, out: Any = None, **options: Any) -> Array:
        args, out = _split(args, out, n_by_position)
        found = function(*args, **options)
        return found if out is None else into(out, found)

    return _with_parameters(called, function, n_by_position, {"out": None})


def takes_out_by_name(function: Callable[..., Array]) -> Callable[..., Array]:
    """Gives a function the same argument, by name alone."""

    @wraps(function)
    def called(*args: Any, out: Any = None, **options: Any) -> Array:
        found = function(*args, **options)
        return found if out is None else into(out, found)

    return _with_parameters(called, function, None, {"out": None})


def like_ufunc(function: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a function of every element the arguments ``out`` and ``where`` of NumPy's ufuncs."""
    n_by_position = _n_by_position(function)

    @wraps(function)
    def called(*args: Any, out: Any = None, where: Any = True, **options: Any) -> Any:
        args, out = _split(args, out, n_by_position)
        found = function(*args, **options)
        return found if out is None and where is True else elementwise_into(found, out, where)

    return _with_parameters(called, function, n_by_position, {"out": None, "where": True})


def _n_by_position(function: Callable[..., Any]) -> int:
    parameters = inspect.signature(function).parameters.values()
    return sum(each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in parameters)


def _split(args: tuple[Any, ...], out: Any, n: int) -> tuple[tuple[Any, ...], Any]:
    """The arguments of a function, and the array that follows them by position or is given by name."""
    return (args[:n], args[n]) if len(args) == n + 1 and out is None else (args, out)


def _with_parameters(called: Any, function: Callable[..., Any], place: int | None, defaults: dict[str, Any]) -> Any:
    """The wrapped function, telling its new arguments: ``out`` at a place, or by name; others by name."""
    signature = inspect.signature(function)
    own = list(signature.parameters.values())
    # A parameter that takes all other names stays the last.
    end = len(own) - (bool(own) and own[-1].kind is inspect.Parameter.VAR_KEYWORD)
    by_name = inspect.Parameter.KEYWORD_ONLY
    new = [inspect.Parameter(name, by_name, default=value, annotation="Any") for name, value in defaults.items()]
    parameters = [*own[:end], *new, *own[end:]]
    if place is not None:
        out = parameters.pop(end)
        parameters.insert(place, out.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD))
    called.__signature__ = signature.replace(parameters=parameters)
    return named(called, function.__name__)
