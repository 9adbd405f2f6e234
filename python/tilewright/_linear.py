"""Products of arrays."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from . import _core
from ._array import Array
from ._dtypes import result_type
from ._elementwise import conj, unwrap_array
from ._out import takes_out, takes_out_by_name


@takes_out
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


@takes_out
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


def _subscripts(operands: tuple[Any, ...]) -> tuple[str, list[Array]]:
    """A specification and its arrays from either of NumPy's forms: ``"ij,jk", a, b`` or ``a, [0, 1], b, [1, 2], [0, 2]``."""
    if operands and isinstance(operands[0], str):
        return operands[0], [Array(unwrap_array(x)) for x in operands[1:]]
    arrays, lists = list(operands[::2]), list(operands[1::2])
    output = arrays.pop() if len(operands) % 2 else None
    if not arrays:
        raise ValueError("einsum needs a string of subscripts, or arrays that are each followed by a list of indices")

    def term(indices: Any) -> str:
        try:
            # Beyond the letters, where every character is a subscript.
            return "".join("..." if index is Ellipsis else chr(0x4E00 + operator.index(index)) for index in indices)
        except TypeError:
            raise TypeError(f"indices of einsum are a list of integers, not {indices!r}") from None

    spec = ",".join(term(indices) for indices in lists)
    spec = spec if output is None else f"{spec}->{term(output)}"
    return spec, [Array(unwrap_array(x)) for x in arrays]


@takes_out_by_name
def einsum(*operands: Any, optimize: Any = True, order: str = "K") -> Array:
    """Sums of products in Einstein's notation. The planner chooses the order of products, so NumPy's ``optimize`` changes nothing; ``order`` is that of NumPy's memory.

    >>> import tilewright as tw
    >>> a, b = tw.ones((2, 3)), tw.ones((3, 4))
    >>> tw.einsum("ij,jk->ik", a, b).shape
    (2, 4)
    >>> tw.einsum(a, [0, 1], b, [1, 2], [0, 2]).shape
    (2, 4)
    """
    from ._manipulation import by_columns

    by_columns(order, "ACKF")
    spec, arrays = _subscripts(operands)
    tensors = [unwrap_array(x) for x in arrays]
    if len({x.dtype for x in tensors}) > 2:
        # The engine would let them meet two by two, which may be wider.
        common = result_type(*(x.dtype for x in tensors)).name
        tensors = [_core.cast(x, common) for x in tensors]
    return Array(_core.einsum(spec, tensors))


def einsum_path(*operands: Any, optimize: Any = True) -> tuple[list[Any], str]:
    """The order in which the planner multiplies the operands of :func:`einsum`, as NumPy writes it, and a line about it.

    Exact for up to 16 operands.

    >>> import tilewright as tw
    >>> a, b, c = tw.ones((2, 90)), tw.ones((90, 90)), tw.ones((90, 3))
    >>> path, text = tw.einsum_path("ij,jk,kl->il", a, b, c)
    >>> path
    ['einsum_path', (0, 1), (0, 1)]
    """
    spec, arrays = _subscripts(operands)
    pairs, operations = _core.einsum_path(spec, [unwrap_array(x) for x in arrays])
    # The planner numbers results onwards; NumPy takes operands out of its list and appends the result.
    places, path = list(range(len(arrays))), ["einsum_path"]
    for made, pair in enumerate(pairs, len(arrays)):
        path.append(tuple(sorted(places.index(term) for term in pair)))
        places = [term for term in places if term not in pair] + [made]
    if not pairs:
        path.append((0,))
    return path, f"{len(pairs)} products of two operands, {operations:.3e} operations"
