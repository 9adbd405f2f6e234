"""Products of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from ._array import Array
from ._elementwise import conj, unwrap_array


def matmul(x1: Array, x2: Array, /) -> Array:
    """Products of matrices, of stacks of them, and of matrices with vectors."""
    return Array(_core.matmul(unwrap_array(x1), unwrap_array(x2)))


def tensordot(a: Array, b: Array, axes: Any = 2) -> Array:
    """Sums of products over pairs of axes: the last of one with the first of the other, or those given."""
    a, b = Array(unwrap_array(a)), Array(unwrap_array(b))
    if isinstance(axes, (int, np.integer)):
        if axes < 0 or axes > min(a.ndim, b.ndim):
            raise ValueError(f"{axes} axes of arrays with {a.ndim} and {b.ndim}")
        pairs = [(a.ndim - axes + k, k) for k in range(axes)]
    else:
        first, second = ([each] if isinstance(each, int) else list(each) for each in axes)
        if len(first) != len(second):
            raise ValueError(f"{len(first)} axes of one array and {len(second)} of the other")
        normalize = np.lib.array_utils.normalize_axis_index
        pairs = [(normalize(i, a.ndim), normalize(j, b.ndim)) for i, j in zip(first, second, strict=True)]
    return Array(_core.tensordot(a._tensor, b._tensor, pairs))


def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Sums of products along one axis, with the first array conjugated."""
    from ._manipulation import broadcast_arrays, moveaxis
    from ._reductions import sum

    x1, x2 = Array(unwrap_array(x1)), Array(unwrap_array(x2))
    if axis >= 0 or axis < -min(x1.ndim, x2.ndim):
        axis = np.lib.array_utils.normalize_axis_index(axis, min(x1.ndim, x2.ndim))
    x1, x2 = moveaxis(x1, axis, -1), moveaxis(x2, axis, -1)
    if x1.shape[-1] != x2.shape[-1]:
        raise ValueError(f"vectors of lengths {x1.shape[-1]} and {x2.shape[-1]}")
    x1, x2 = broadcast_arrays(conj(x1), x2)
    product = x1 * x2
    return sum(product, axis=-1, dtype=product.dtype)


def einsum(spec: str, /, *arrays: Array, optimize: Any = True) -> Array:
    """Sums of products in Einstein's notation. The planner chooses the order of products, so NumPy's ``optimize`` changes nothing.

    >>> import tilewright as tw
    >>> a, b = tw.ones((2, 3)), tw.ones((3, 4))
    >>> tw.einsum("ij,jk->ik", a, b).shape
    (2, 4)
    """
    return Array(_core.einsum(spec, [unwrap_array(x) for x in arrays]))
