"""Compiled functions, such as numba's ``cfunc``, over all elements: they run without Python's lock."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from . import _core
from ._array import Array
from ._block_call import common_cut, name_of
from ._dtypes import to_name


def is_compiled(func: Any) -> bool:
    """True of objects that know the address of their code and its signature as ctypes has it."""
    return hasattr(func, "address") and hasattr(func, "ctypes")


def apply(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Array:
    """Applies ``void f(in *, .., out *, intp n)`` to every element of arrays that are broadcast.

    The code at the address cannot be checked: its types must be those that are declared.
    """
    from ._manipulation import broadcast_arrays

    if kwargs or not args or not all(isinstance(argument, Array) for argument in args):
        raise TypeError("a compiled function takes arrays and nothing else")
    *inputs, output = _signature(func)
    found = [array.dtype for array in args]
    if found != inputs:
        text = ", ".join(str(dtype) for dtype in found)
        raise TypeError(f"`{name_of(func)}` takes pointers to {', '.join(map(str, inputs))}, not arrays of {text}")
    arrays = broadcast_arrays(*args)
    cuts = [common_cut([array.chunks[axis] for array in arrays], "axes") for axis in range(arrays[0].ndim)]
    tensors = [_core.rechunk(array._tensor, cuts) for array in arrays]
    return Array(_core.compiled_function(func, name_of(func), func.address, tensors, to_name(output)))


def _signature(func: Any) -> list[np.dtype]:
    """The types behind the pointers: those of the operands, then that of the result."""
    *pointers, count = func.ctypes.argtypes or [None]
    is_pointer = [isinstance(each, type) and issubclass(each, ctypes._Pointer) for each in pointers]
    counts = isinstance(count, type) and issubclass(count, ctypes._SimpleCData) and ctypes.sizeof(count) == ctypes.sizeof(ctypes.c_ssize_t)
    if func.ctypes.restype is not None or len(pointers) < 2 or not all(is_pointer) or not counts or np.dtype(count).kind != "i":
        raise TypeError(f"`{name_of(func)}` is not of the form void(in *, .., out *, intp n)")
    return [np.dtype(pointer._type_) for pointer in pointers]
