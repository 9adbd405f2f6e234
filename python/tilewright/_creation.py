"""Making arrays."""

from __future__ import annotations

import math
import os
from operator import index
from typing import Any

import numpy as np

from . import _core
from ._array import Array
from ._dtypes import astype, check_device, check_fits, default_dtype, float64, int64, refuse_mask, to_name


def _shape(shape: Any) -> list[int]:
    """Lengths of axes: a whole number, or any sequence of them."""
    shape = shape.tolist() if isinstance(shape, (Array, np.ndarray)) else shape
    lengths = list(shape) if hasattr(shape, "__iter__") else [shape]
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
    obj: Any, /, dtype: Any = None, *, device: str | None = None, copy: bool | None = None, chunks: Any = None
) -> Array:
    """An array of a NumPy array, nested lists, numbers, or anything NumPy makes an array of.

    Elements are copied, so that later changes of ``obj`` do not show, unless ``copy=False`` or a large NumPy array is read-only: those are read when
    elements are needed, so a change in between may or may not be seen. ``chunks`` cuts the array into blocks.

    >>> import tilewright as tw
    >>> tw.asarray([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    check_device(device)
    if isinstance(obj, Array):
        made = obj if dtype is None else astype(obj, dtype, copy=bool(copy))
        made = Array(made._tensor) if copy and made is obj else made
    else:
        refuse_mask(obj)
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
    return cut(made, chunks)


def from_rank(obj: Any, rank: int = 0, dtype: Any = None) -> Array:
    """An array that one of several ranks has: ``obj`` there, which is taken as by :func:`asarray`; the other ranks give anything, such as None.

    All ranks call it. The array is cut into blocks, and each is sent to the ranks that read it. A process that is alone is rank 0.

    >>> import tilewright as tw
    >>> tw.from_rank([1, 2, 3]).sum().compute()
    array(6)
    """
    if index(rank) < 0:
        raise ValueError(f"rank {rank}: ranks are numbered from 0")
    if _core.current_rank() != index(rank):
        return Array(_core.from_rank(index(rank)))
    refuse_mask(obj)
    array = np.asarray(obj, dtype=dtype)
    name = to_name(array.dtype)
    array = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    return Array(_core.from_rank(index(rank), np.require(array, requirements=("C", "A")), name))


def array(
    object: Any, dtype: Any = None, *, copy: bool | None = True, ndmin: int = 0, device: str | None = None, chunks: Any = None
) -> Array:
    """An array as :func:`asarray` makes it, with ``ndmin`` axes at least.

    >>> import tilewright as tw
    >>> tw.array([1, 2], ndmin=2).shape
    (1, 2)
    """
    made = asarray(object, dtype, device=device, copy=copy)
    missing = ndmin - made.ndim
    return cut(made if missing <= 0 else made[(None,) * missing], chunks)


def asanyarray(a: Any, dtype: Any = None, *, device: str | None = None, copy: bool | None = None, chunks: Any = None) -> Array:
    """The same as :func:`asarray`: there is one kind of arrays."""
    return asarray(a, dtype, device=device, copy=copy, chunks=chunks)


def ascontiguousarray(a: Any, dtype: Any = None, *, chunks: Any = None) -> Array:
    """The array, with one axis at least. The order of memory is always C's."""
    return array(a, dtype, copy=None, ndmin=1, chunks=chunks)


def from_npy(path: Any) -> Array:
    """An array over an ``.npy`` file. Only the header is read now; blocks are read when they are needed."""
    os.stat(path)  # A file that is not there is Python's own error.
    return Array(_core.open_file(path))


def from_dlpack(x: Any, /, *, device: str | None = None, copy: bool | None = None) -> Array:
    """An array of anything that speaks DLPack."""
    check_device(device)
    if isinstance(x, Array):
        return Array(x._tensor) if copy else x[...]
    # Whether others may write the memory cannot be seen from here.
    return asarray(np.from_dlpack(x), copy=True if copy is None else copy)


def cut(made: Array, chunks: Any) -> Array:
    """The array in blocks of the given lengths, if any are given."""
    return made if chunks is None else made.rechunk(chunks)


def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: str | None = None, chunks: Any = None) -> Array:
    """One value everywhere, or an array repeated. ``chunks`` cuts it into blocks, here and in the functions below.

    >>> import tilewright as tw
    >>> tw.full(3, 7).compute()
    array([7, 7, 7])
    """
    check_device(device)
    if isinstance(fill_value, np.generic) and fill_value.dtype.kind in "biufc":
        # Numbers that have a type convert as arrays of that type do.
        dtype = np.dtype(fill_value.dtype if dtype is None else dtype)
        with np.errstate(all="ignore"):
            fill_value = (fill_value.astype(to_name(dtype)) if dtype.kind in "biufc" else fill_value).item()
    if type(fill_value) not in (bool, int, float, complex):
        from ._manipulation import broadcast_to

        value = asarray(fill_value)
        value = value if dtype is None else astype(value, dtype, copy=False)
        return cut(broadcast_to(value, tuple(_shape(shape))).copy(), chunks)
    name = to_name(default_dtype(fill_value) if dtype is None else dtype)
    check_fits(fill_value, np.dtype(name))
    return cut(Array(_core.full(_shape(shape), fill_value, name)), chunks)


def zeros(shape: Any, dtype: Any = None, *, device: str | None = None, chunks: Any = None) -> Array:
    """Zeros."""
    return full(shape, 0, float64 if dtype is None else dtype, device=device, chunks=chunks)


def ones(shape: Any, dtype: Any = None, *, device: str | None = None, chunks: Any = None) -> Array:
    """Ones."""
    return full(shape, 1, float64 if dtype is None else dtype, device=device, chunks=chunks)


def empty(shape: Any, dtype: Any = None, *, device: str | None = None, chunks: Any = None) -> Array:
    """Elements of no particular value: zeros."""
    return zeros(shape, dtype, device=device, chunks=chunks)


def full_like(
    x: Array, /, fill_value: Any, dtype: Any = None, *, device: str | None = None, shape: Any = None, chunks: Any = None
) -> Array:
    """One value everywhere, in the shape, type and blocks of another array unless others are given."""
    x = asarray(x)
    made = full(x.shape if shape is None else shape, fill_value, x.dtype if dtype is None else dtype, device=device, chunks=chunks)
    if chunks is not None or made.shape != x.shape or made.chunks == x.chunks:
        return made
    # Only functions of blocks make it in these; a value that is the same everywhere is otherwise made where it is used.
    return Array(_core.seen_as(made._tensor, _core.rechunk(made._tensor, x.chunks)))


def zeros_like(x: Array, /, dtype: Any = None, *, device: str | None = None, shape: Any = None, chunks: Any = None) -> Array:
    """Zeros in the shape and type of another array."""
    return full_like(x, 0, dtype, device=device, shape=shape, chunks=chunks)


def ones_like(x: Array, /, dtype: Any = None, *, device: str | None = None, shape: Any = None, chunks: Any = None) -> Array:
    """Ones in the shape and type of another array."""
    return full_like(x, 1, dtype, device=device, shape=shape, chunks=chunks)


def empty_like(x: Array, /, dtype: Any = None, *, device: str | None = None, shape: Any = None, chunks: Any = None) -> Array:
    """Elements of no particular value in the shape and type of another array."""
    return zeros_like(x, dtype, device=device, shape=shape, chunks=chunks)


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: str | None = None, chunks: Any = None
) -> Array:
    """``start, start + step, ..`` up to but not including ``stop``.

    >>> import tilewright as tw
    >>> tw.arange(2, 8, 3).compute()
    array([2, 5])
    """
    check_device(device)
    if stop is None:
        start, stop = 0, start
    bounds = [_number(bound) for bound in (start, stop, step)]
    for bound in bounds:
        if not isinstance(bound, (int, float, complex)):
            raise TypeError(f"a range is one of numbers, not of {type(bound).__name__}")
    if dtype is None:
        # As in NumPy: where the types of all three meet that of whole numbers, so unsigned ones of 64 bits become doubles.
        dtype = np.result_type(int64, *(np.asarray(bound).dtype for bound in (start, stop, step)))
    name = to_name(dtype)
    n = _n_steps(*bounds)
    ends = np.zeros(2, dtype=name)
    # Numbers are converted one by one, and refused if the type does not hold them. The difference of the first two is the step of all.
    if n > 0:
        ends[0] = bounds[0]
    if n > 1:
        ends[1] = bounds[0] + bounds[2]
    if ends.dtype.kind == "b" and n > 2:
        raise TypeError("a range of truth values has two elements at most")
    first, second = (ends.view("int64") if ends.dtype.kind in "mM" else ends).tolist()
    return cut(Array(_core.progression(first, second, n, name)), chunks)


def _n_steps(start: Any, stop: Any, step: Any) -> int:
    """How many steps lie between two numbers: of whole ones exactly, however large they are."""
    if step == 0:
        raise ValueError("a range with step 0")
    if all(isinstance(each, int) for each in (start, stop, step)):
        n = -((start - stop) // step)
    else:
        # A difference of whole numbers is exact, though the numbers may have no exact double.
        length = (stop - start) / step
        if isinstance(length, complex):
            length = min(length.real, length.imag)
        if not math.isfinite(length):
            raise ValueError(f"the range from {start} to {stop} with step {step} has no length")
        n = math.ceil(length)
    if n >= 2**63:
        raise ValueError(f"a range of {n} elements is longer than can be counted")
    return max(n, 0)


def _number(value: Any) -> Any:
    """A Python number of what may be one of NumPy, or an array of one element."""
    return value.item() if isinstance(value, (Array, np.ndarray, np.number)) and value.dtype.kind in "biufc" else value


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    *,
    device: str | None = None,
    chunks: Any = None,
) -> Any:
    """Evenly spaced values from ``start`` to ``stop``, which is one of them unless ``endpoint`` is false.

    With ``retstep``, also their distance.
    """
    check_device(device)
    num = index(num)
    if num < 0:
        raise ValueError(f"{num} values")
    exact = np.result_type(*(getattr(bound, "dtype", bound) for bound in (start, stop)), float(num))
    if dtype is None and any(isinstance(bound, (Array, np.ndarray, np.generic)) for bound in (start, stop)):
        dtype = exact
    start, stop = _number(start), _number(stop)
    made = cut(_evenly_spaced(start, stop, num, endpoint, dtype), chunks)
    if not retstep:
        return made
    gaps = num - bool(endpoint)
    return made, exact.type(stop - start) / gaps if gaps > 0 else np.float64("nan")


def _evenly_spaced(start: Any, stop: Any, num: int, endpoint: bool, dtype: Any) -> Array:
    if isinstance(start, complex) or isinstance(stop, complex):
        from ._elementwise import add, multiply

        start, stop = complex(start), complex(stop)
        real = linspace(start.real, stop.real, num, endpoint=endpoint)
        made = add(real, multiply(linspace(start.imag, stop.imag, num, endpoint=endpoint), 1j))
        return made if dtype is None else astype(made, dtype)
    name = to_name(float64 if dtype is None else dtype)
    if np.dtype(name).kind in "fiu" and name != "float16":
        return Array(_core.linspace(float(start), float(stop), num, endpoint, name))
    return astype(Array(_core.linspace(float(start), float(stop), num, endpoint, "float64")), name)


def eye(
    N: int, M: int | None = None, k: int = 0, dtype: Any = None, *, device: str | None = None, chunks: Any = None
) -> Array:
    """A matrix of ``N`` rows and ``M`` columns with ones on the ``k``-th diagonal, zeros elsewhere."""
    check_device(device)
    n_rows, n_cols = _shape((N, N if M is None else M))
    # Diagonals beyond the corners are all alike, and some of their numbers are too large to pass on.
    k = max(-n_rows, min(index(k), n_cols))
    return cut(Array(_core.eye(n_rows, n_cols, k, to_name(float64 if dtype is None else dtype))), chunks)


def identity(n: int, dtype: Any = None, *, chunks: Any = None) -> Array:
    """The square matrix with ones on its diagonal, zeros elsewhere."""
    return eye(n, dtype=dtype, chunks=chunks)


def tril(x: Array, /, k: int = 0) -> Array:
    """The elements on and below the ``k``-th diagonal of matrices; zeros above."""
    return Array(_core.tril(_matrices(x), k))


def triu(x: Array, /, k: int = 0) -> Array:
    """The elements on and above the ``k``-th diagonal of matrices; zeros below."""
    return Array(_core.triu(_matrices(x), k))


def _matrices(x: Any) -> _core.Tensor:
    """The array; a vector as the rows of a square matrix, as in NumPy."""
    tensor = asarray(x)._tensor
    return _core.broadcast_to(tensor, [tensor.shape[0]] * 2) if tensor.ndim == 1 else tensor


def meshgrid(*arrays: Array, indexing: str = "xy", sparse: bool = False, copy: bool = True) -> tuple[Array, ...]:
    """Coordinate arrays of a grid, one per vector; ``sparse`` ones are as long as their vector, and 1 along other axes.

    Of arrays with more axes all elements in a row are taken.
    """
    from ._manipulation import broadcast_to, reshape

    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing is 'xy' or 'ij', not {indexing!r}")
    arrays = tuple(asarray(x) for x in arrays)
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
        placed = reshape(x, tuple(line))
        grid = placed if sparse else broadcast_to(placed, tuple(shape))
        grids.append(grid.copy() if copy else grid)
    return tuple(grids)
