"""Making arrays."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from . import _core
from ._array import Array
from ._dtypes import astype, check_device, default_dtype, float64, int64, to_name


def _shape(shape: Any) -> list[int]:
    lengths = [shape] if hasattr(shape, "__index__") else list(shape)
    if not all(hasattr(n, "__index__") for n in lengths):
        raise TypeError(f"a shape is made of whole numbers, not {shape!r}")
    lengths = [n.__index__() for n in lengths]
    if any(n < 0 for n in lengths):
        raise ValueError(f"a shape with a negative length: {tuple(lengths)}")
    return lengths


# Bytes from which on it is worth reading a read-only array when it is needed, instead of copying it at once.
_LARGE = 1 << 20


def _is_never_written(array: np.ndarray) -> bool:
    """True if neither the array nor what it is a view of can be written."""
    memory: Any = array
    while isinstance(memory, np.ndarray):
        if memory.flags.writeable:
            return False
        memory = memory.base
    return memory is None


def asarray(
    obj: Any, /, *, dtype: Any = None, device: str | None = None, copy: bool | None = None, chunks: Any = None
) -> Array:
    """An array of a NumPy array, nested lists, numbers, or anything NumPy makes an array of.

    Elements are copied, so that later changes of ``obj`` do not show, unless ``copy=False`` or a large NumPy array is read-only: those are read when
    elements are needed, so whoever changes them all the same must expect either. ``chunks`` cuts the array into blocks.

    >>> import tilewright as tw
    >>> tw.asarray([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    check_device(device)
    if isinstance(obj, Array):
        made = obj if dtype is None else astype(obj, dtype, copy=bool(copy))
        made = Array(made._tensor) if copy and made is obj else made
    else:
        # NumPy refuses here what it cannot give without a copy.
        array = np.asarray(obj, dtype=dtype, copy=False if copy is False else None)
        name = to_name(array.dtype)
        kept = array is obj and array.nbytes >= _LARGE and _is_never_written(array)
        if copy is False or (copy is None and kept):
            from ._foreign import over

            # Blocks that stay in cache between the steps that read them.
            return over(array, "8MiB" if chunks is None else chunks)
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        # The order of memory is ours: C.
        made = Array(_core.from_numpy(np.require(array, requirements=("C", "A")), name))
    return made if chunks is None else made.rechunk(chunks)


def from_npy(path: Any) -> Array:
    """An array over an ``.npy`` file. Only the header is read now; blocks are read when they are needed."""
    os.stat(path)  # A file that is not there is Python's own error.
    return Array(_core.open_npy(path))


def from_dlpack(x: Any, /, *, device: str | None = None, copy: bool | None = None) -> Array:
    """An array of anything that speaks DLPack."""
    check_device(device)
    if isinstance(x, Array):
        return Array(x._tensor)
    # Whether others may write the memory cannot be seen from here.
    return asarray(np.from_dlpack(x), copy=True if copy is None else copy)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: str | None = None) -> Array:
    """One value everywhere.

    >>> import tilewright as tw
    >>> tw.full(3, 7).compute()
    array([7, 7, 7])
    """
    check_device(device)
    if isinstance(fill_value, (Array, np.generic, np.ndarray)):
        fill_value = fill_value.item()
    name = to_name(default_dtype(fill_value) if dtype is None else dtype)
    return Array(_core.full(_shape(shape), fill_value, name))


def zeros(shape: Any, *, dtype: Any = None, device: str | None = None) -> Array:
    """Zeros."""
    return full(shape, 0, dtype=float64 if dtype is None else dtype, device=device)


def ones(shape: Any, *, dtype: Any = None, device: str | None = None) -> Array:
    """Ones."""
    return full(shape, 1, dtype=float64 if dtype is None else dtype, device=device)


def empty(shape: Any, *, dtype: Any = None, device: str | None = None) -> Array:
    """Elements of no particular value: zeros."""
    return zeros(shape, dtype=dtype, device=device)


def full_like(x: Array, /, fill_value: Any, *, dtype: Any = None, device: str | None = None) -> Array:
    """One value everywhere, in the shape and type of another array."""
    return full(x.shape, fill_value, dtype=x.dtype if dtype is None else dtype, device=device)


def zeros_like(x: Array, /, *, dtype: Any = None, device: str | None = None) -> Array:
    """Zeros in the shape and type of another array."""
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x: Array, /, *, dtype: Any = None, device: str | None = None) -> Array:
    """Ones in the shape and type of another array."""
    return full_like(x, 1, dtype=dtype, device=device)


def empty_like(x: Array, /, *, dtype: Any = None, device: str | None = None) -> Array:
    """Elements of no particular value in the shape and type of another array."""
    return zeros_like(x, dtype=dtype, device=device)


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: str | None = None
) -> Array:
    """``start, start + step, ..`` up to but not including ``stop``.

    >>> import tilewright as tw
    >>> tw.arange(2, 8, 3).compute()
    array([2, 5])
    """
    check_device(device)
    if stop is None:
        start, stop = 0, start
    whole = all(isinstance(bound, int) for bound in (start, stop, step))
    name = to_name((int64 if whole else float64) if dtype is None else dtype)
    if np.dtype(name).kind == "f" and whole:
        start, stop, step = float(start), float(stop), float(step)
    return Array(_core.arange(start, stop, step, name))


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int = 50,
    *,
    dtype: Any = None,
    device: str | None = None,
    endpoint: bool = True,
) -> Array:
    """Evenly spaced values from ``start`` to ``stop``, which is one of them unless ``endpoint`` is false."""
    check_device(device)
    if isinstance(start, complex) or isinstance(stop, complex):
        from ._elementwise import add, multiply

        start, stop = complex(start), complex(stop)
        real = linspace(start.real, stop.real, num, endpoint=endpoint)
        made = add(real, multiply(linspace(start.imag, stop.imag, num, endpoint=endpoint), 1j))
        return made if dtype is None else astype(made, dtype)
    if num < 0:
        raise ValueError(f"{num} values")
    name = to_name(float64 if dtype is None else dtype)
    if np.dtype(name).kind in "fiu" and name != "float16":
        return Array(_core.linspace(float(start), float(stop), num, endpoint, name))
    return astype(Array(_core.linspace(float(start), float(stop), num, endpoint, "float64")), name)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: str | None = None
) -> Array:
    """Ones on the ``k``-th diagonal, zeros elsewhere."""
    check_device(device)
    n_cols = n_rows if n_cols is None else n_cols
    # Diagonals beyond the corners are all alike, and some of their numbers are too large to pass on.
    k = max(-n_rows, min(k, n_cols))
    return Array(_core.eye(*_shape((n_rows, n_cols)), k, to_name(float64 if dtype is None else dtype)))


def tril(x: Array, /, *, k: int = 0) -> Array:
    """The elements on and below the ``k``-th diagonal of matrices; zeros above."""
    return Array(_core.tril(x._tensor, k))


def triu(x: Array, /, *, k: int = 0) -> Array:
    """The elements on and above the ``k``-th diagonal of matrices; zeros below."""
    return Array(_core.triu(x._tensor, k))


def meshgrid(*arrays: Array, indexing: str = "xy") -> tuple[Array, ...]:
    """Coordinate arrays of a grid, one per vector."""
    from ._manipulation import broadcast_to, reshape

    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing is 'xy' or 'ij', not {indexing!r}")
    if any(x.ndim > 1 for x in arrays):
        raise ValueError("a grid is made of vectors")
    n = len(arrays)
    axes = list(range(n))
    if indexing == "xy" and n > 1:
        axes[:2] = [1, 0]
    shape = [0] * n
    for x, axis in zip(arrays, axes, strict=True):
        shape[axis] = x.size
    grids = []
    for x, axis in zip(arrays, axes, strict=True):
        line = [1] * n
        line[axis] = x.size
        grids.append(broadcast_to(reshape(x, tuple(line)), tuple(shape)))
    return tuple(grids)
