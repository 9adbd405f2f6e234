"""Linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from . import _core, _rearranging
from ._array import Array
from ._creation import asarray, eye
from ._dtypes import floating
from ._elementwise import abs, conj, real, sqrt, unwrap_array
from ._factorisations import (
    LUResult, cholesky, cond, det, eig, eigh, eigvals, eigvalsh, inv, lstsq, lu, matrix_rank, pinv, qr, slogdet, solve,
    solve_triangular, svd, svd_compressed, svdvals, tsqr,
)  # fmt: skip
from ._linear import matmul, tensordot, vecdot
from ._manipulation import broadcast_arrays, broadcast_to, matrix_transpose, moveaxis, stack
from ._reductions import max, min, sum

__all__ = [
    "LUResult", "LinAlgError", "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv",
    "lstsq", "lu", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer",
    "pinv", "qr", "slogdet", "solve", "solve_triangular", "svd", "svd_compressed", "svdvals", "tensordot", "trace", "tsqr",
    "vecdot", "vector_norm",
]  # fmt: skip


def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Vector products in three dimensions."""
    x1, x2 = Array(unwrap_array(x1)), Array(unwrap_array(x2))
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError("vectors of a vector product have three components")
    a, b = broadcast_arrays(moveaxis(x1, axis, -1), moveaxis(x2, axis, -1))
    parts = [a[..., i] * b[..., j] - a[..., j] * b[..., i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return moveaxis(stack(parts, axis=-1), -1, axis)


def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    """Diagonals of matrices."""
    return _rearranging.diagonal(x, offset, -2, -1)


def trace(x: Array, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """Sums of diagonals of matrices."""
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def outer(x1: Array, x2: Array, /) -> Array:
    """All products of elements of two vectors."""
    x1, x2 = Array(unwrap_array(x1)), Array(unwrap_array(x2))
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError("an outer product is one of two vectors")
    return x1[:, None] * x2[None, :]


def matrix_power(x: Array, n: int, /) -> Array:
    """A square matrix multiplied with itself ``n`` times; its inverse if ``n`` is negative."""
    x = Array(unwrap_array(x))
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise LinAlgError("only square matrices have powers")
    if n < 0:
        x, n = inv(x), -n
    if n == 0:
        return broadcast_to(eye(x.shape[-1], dtype=x.dtype), x.shape)
    power = None
    while True:
        if n & 1:
            power = x if power is None else power @ x
        n >>= 1
        if not n:
            return power
        x = x @ x


def _numbers(x: Any) -> Array:
    x = floating(Array(unwrap_array(x)))
    if x.dtype.kind not in "fc":
        raise TypeError(f"norms of {x.dtype} are not defined; convert to a floating point type first")
    return x


def vector_norm(x: Array, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Array:
    """Norms of vectors along some axes, or of all elements."""
    x = _numbers(x)
    size = abs(x)
    options = {"axis": axis, "keepdims": keepdims}
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order {ord!r} for vectors")
    if ord == np.inf:
        return max(size, initial=0.0, **options) if 0 in size.shape else max(size, **options)
    if ord == -np.inf:
        return min(size, **options)
    if ord == 0:
        return sum(size != 0, dtype=size.dtype, **options)
    if ord == 1:
        return sum(size, **options)
    if ord == 2:
        return sqrt(sum(real(x * conj(x)) if x.dtype.kind == "c" else x * x, **options))
    return sum(size**ord, **options) ** (1.0 / ord)


def matrix_norm(x: Array, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """Norms of matrices: ``"fro"``, ``"nuc"``, 1, -1, 2, -2, inf or -inf."""
    x = _numbers(x)
    size = abs(x)
    if size.ndim < 2:
        raise ValueError(f"a matrix has two axes, not {size.ndim}")
    if ord == "fro":
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord in (1, -1, np.inf, -np.inf):
        along = -2 if ord in (1, -1) else -1
        sums = sum(size, axis=along, keepdims=True)
        if ord > 0:
            result = max(sums, axis=(-2, -1), keepdims=True, initial=0.0) if 0 in sums.shape else max(sums, axis=(-2, -1), keepdims=True)
        else:
            result = min(sums, axis=(-2, -1), keepdims=True)
        return result if keepdims else result[..., 0, 0]
    if ord in ("nuc", 2, -2):
        values = svdvals(x)
        # Of no singular values the largest is zero, as the norm is.
        result = sum(values, axis=-1) if ord == "nuc" or (ord == 2 and values.shape[-1] == 0) else (max if ord == 2 else min)(values, axis=-1)
        return result[..., None, None] if keepdims else result
    raise ValueError(f"there is no matrix norm of order {ord!r}")


def norm(x: Array, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """Norms of vectors or matrices, as NumPy has them.

    >>> import tilewright as tw
    >>> float(tw.linalg.norm(tw.asarray([3.0, 4.0])))
    5.0
    """
    x = asarray(x)
    if axis is None and (ord is None or x.ndim == 1):
        return vector_norm(x, keepdims=keepdims, ord=2 if ord is None else ord)
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if len(axes) == 1:
        return vector_norm(x, axis=axes, keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ValueError(f"norms of vectors or matrices, not of {len(axes)} axes")
    axes = tuple(np.lib.array_utils.normalize_axis_index(each, x.ndim) for each in axes)
    result = matrix_norm(moveaxis(x, axes, (-2, -1)), ord="fro" if ord is None else ord)
    if not keepdims:
        return result
    for each in sorted(axes):
        result = result[(slice(None),) * each + (None,)]
    return result


def multi_dot(arrays: Any) -> Array:
    """The product of several matrices; the planner chooses the order."""
    product = None
    for each in arrays:
        product = asarray(each) if product is None else product @ asarray(each)
    if product is None:
        raise ValueError("a product of no matrices")
    return product
