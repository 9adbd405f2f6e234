"""Spacings and indices of grids."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _core
from ._array import Array
from ._chunks import normalize_chunks
from ._creation import _shape, arange, asarray, cut, full, linspace
from ._dtypes import astype, float64, int64
from ._elementwise import log10, pow
from ._manipulation import concat, reshape, stack
from ._searching import nonzero


def logspace(
    start: float, stop: float, num: int = 50, endpoint: bool = True, base: float = 10.0, dtype: Any = None, *, chunks: Any = None
) -> Array:
    """Powers of a base, whose exponents are evenly spaced from ``start`` to ``stop``."""
    powers = pow(base, linspace(start, stop, num, endpoint=endpoint, chunks=chunks))
    return powers if dtype is None else astype(powers, dtype)


def geomspace(start: float, stop: float, num: int = 50, endpoint: bool = True, dtype: Any = None, *, chunks: Any = None) -> Array:
    """Numbers in a constant ratio from ``start`` to ``stop``.

    >>> import tilewright as tw
    >>> tw.geomspace(1, 100, 3).compute()
    array([  1.,  10., 100.])
    """
    start, stop = float(start), float(stop)
    if start == 0 or stop == 0:
        raise ValueError("a constant ratio does not lead to or from zero")
    if (start < 0) != (stop < 0):
        raise ValueError("a constant ratio does not lead from one sign to the other")
    sign = -1.0 if start < 0 else 1.0
    bounds = [float(log10(asarray(sign * bound))) for bound in (start, stop)]
    powers = sign * logspace(*bounds, num, endpoint)
    # The ends are exact, whatever the logarithms are.
    if num > 0:
        powers = concat((full(1, start), powers[1:]))
    if num > 1 and endpoint:
        powers = concat((powers[:-1], full(1, stop)))
    return cut(powers if dtype is None else astype(powers, dtype), chunks)


def indices(dimensions: Any, dtype: Any = int64, sparse: bool = False, *, chunks: Any = None) -> Any:
    """The index along every axis at every place of a grid, one array in front of the other; or lines of them, if ``sparse``. ``chunks`` are those of the grid."""
    lengths = _shape(dimensions)
    if sparse:
        cuts = [None] * len(lengths) if chunks is None else [(each,) for each in normalize_chunks(chunks, tuple(lengths), np.dtype(dtype))]
        lines = []
        for axis, n in enumerate(lengths):
            line = [1] * len(lengths)
            line[axis] = n
            lines.append(arange(n, dtype=dtype, chunks=cuts[axis]).reshape(tuple(line)))
        return tuple(lines)
    if not lengths:
        return full((0,), 0, dtype=dtype)
    return astype(stack([_coordinate(lengths, axis, chunks) for axis in range(len(lengths))]), dtype, copy=False)


def _coordinate(lengths: list[int], axis: int, chunks: Any) -> Array:
    """The index along an axis at every place of a grid."""
    return cut(Array(_core.coordinate(lengths, axis)), chunks)


def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: Any = float64, chunks: Any = None, **kwargs: Any) -> Any:
    """What a function gives that is called once, with the index along every axis at every place; ``chunks`` cuts those arrays.

    >>> import tilewright as tw
    >>> tw.fromfunction(lambda i, j: i + j, (2, 2), dtype=int).compute()
    array([[0, 1],
           [1, 2]])
    """
    lengths = _shape(shape)
    places = [astype(_coordinate(lengths, axis, chunks), dtype, copy=False) for axis in range(len(lengths))]
    return function(*places, **kwargs)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = float64, *, chunks: Any = None) -> Array:
    """Ones on and below the ``k``-th diagonal, zeros above."""
    lengths = _shape((N, N if M is None else M))
    below = _coordinate(lengths, 1, chunks) - _coordinate(lengths, 0, chunks) <= k
    return astype(below, dtype, copy=False)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, ...]:
    """Indices of the places on and below the ``k``-th diagonal of a matrix."""
    return nonzero(tri(n, m, k, dtype=builtins.bool))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, ...]:
    """Indices of the places on and above the ``k``-th diagonal of a matrix."""
    return nonzero(~tri(n, m, k - 1, dtype=builtins.bool))


def tril_indices_from(arr: Array, k: int = 0) -> tuple[Array, ...]:
    """Indices of the places on and below the ``k``-th diagonal of a given matrix."""
    return tril_indices(*_rows_columns(arr, k))


def triu_indices_from(arr: Array, k: int = 0) -> tuple[Array, ...]:
    """Indices of the places on and above the ``k``-th diagonal of a given matrix."""
    return triu_indices(*_rows_columns(arr, k))


def _rows_columns(arr: Any, k: int) -> tuple[int, int, int]:
    arr = asarray(arr)
    if arr.ndim != 2:
        raise ValueError(f"a matrix has two axes, not {arr.ndim}")
    return arr.shape[0], k, arr.shape[1]


def diag_indices_from(arr: Array) -> tuple[Array, ...]:
    """Indices of the places on the diagonal of a given array, whose axes all have one length."""
    lengths = asarray(arr).shape
    if len(lengths) < 2 or len(set(lengths)) != 1:
        raise ValueError(f"a diagonal of shape {lengths}: it takes two axes or more, all of one length")
    return diag_indices(lengths[0], len(lengths))


def ix_(*args: Any) -> tuple[Array, ...]:
    """Index vectors, each along an axis of its own, so that ``x[ix_(rows, columns)]`` is the part where they meet."""
    lines = []
    for axis, each in enumerate(asarray(each) for each in args):
        if each.ndim != 1:
            raise ValueError(f"an index along an axis is a vector, not of {each.ndim} axes")
        each = nonzero(each)[0] if each.dtype.kind == "b" else each
        lines.append(reshape(each, tuple(-1 if k == axis else 1 for k in range(len(args)))))
    return tuple(lines)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """Indices of the places on the diagonal of an array whose axes all have the length ``n``."""
    return (arange(n),) * ndim
