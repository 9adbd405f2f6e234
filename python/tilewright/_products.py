"""Products of arrays as NumPy defines them."""

from __future__ import annotations

from typing import Any

from ._array import Array
from ._creation import arange, asarray, zeros
from ._dtypes import astype, result_type
from ._elementwise import conj, multiply, pow
from ._linear import tensordot
from ._manipulation import moveaxis, reshape
from ._out import takes_out
from ._rearranging import ravel
from .linalg import cross as _cross


@takes_out
def dot(a: Array, b: Any) -> Array:
    """Sums of products over the last axis of one array and the last but one of the other; plain products with numbers.

    >>> import tilewright as tw
    >>> int(tw.dot(tw.arange(3), tw.arange(3)))
    5
    """
    a, b = asarray(a), asarray(b)
    if a.ndim == 0 or b.ndim == 0:
        return multiply(a, b)
    return tensordot(a, b, axes=([a.ndim - 1], [max(b.ndim - 2, 0)]))


def inner(a: Array, b: Any, /) -> Array:
    """Sums of products over the last axes of both."""
    a, b = asarray(a), asarray(b)
    if a.ndim == 0 or b.ndim == 0:
        return multiply(a, b)
    return tensordot(a, b, axes=([a.ndim - 1], [b.ndim - 1]))


def vdot(a: Array, b: Any, /) -> Array:
    """The sum of products of all elements, with the first array conjugated."""
    return tensordot(conj(ravel(a)), ravel(b), axes=1)


@takes_out
def outer(a: Array, b: Any) -> Array:
    """All products of an element of one array with one of the other, as a matrix."""
    return ravel(a)[:, None] * ravel(b)[None, :]


def kron(a: Array, b: Any) -> Array:
    """The second array once for every element of the first, times that element, side by side.

    >>> import tilewright as tw
    >>> tw.kron(tw.asarray([1, 10]), tw.asarray([1, 2])).compute()
    array([ 1,  2, 10, 20])
    """
    a, b = asarray(a), asarray(b)
    rank = max(a.ndim, b.ndim)
    first, second = ((1,) * (rank - x.ndim) + x.shape for x in (a, b))
    # Axes alternate: one of the first, one of the second.
    apart = reshape(a, tuple(n for length in first for n in (length, 1)))
    inside = reshape(b, tuple(n for length in second for n in (1, length)))
    return reshape(apart * inside, tuple(n * m for n, m in zip(first, second, strict=True)))


def cross(a: Array, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Array:
    """Vector products in three dimensions, of vectors along given axes."""
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = asarray(a), asarray(b)
    return moveaxis(_cross(moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)), -1, axisc)


def vander(x: Array, N: int | None = None, increasing: bool = False) -> Array:
    """Powers of a vector as columns: from the ``N - 1``-th down to the 0-th, or up."""
    x = asarray(x)
    if x.ndim != 1:
        raise ValueError(f"powers are those of a vector, not of {x.ndim} axes")
    n = x.size if N is None else N
    if n < 0:
        raise ValueError(f"{n} powers")
    x = astype(x, result_type(x.dtype, "int64"), copy=False)
    powers = arange(n) if increasing else arange(n - 1, -1, -1)
    return pow(x[:, None], astype(powers, x.dtype, copy=False)[None, :])


def polyval(p: Array, x: Any) -> Array:
    """Values of the polynomial whose coefficients, of the highest power first, are ``p``.

    >>> import tilewright as tw
    >>> tw.polyval(tw.asarray([1, 0, 2]), tw.asarray([1, 3])).compute()
    array([ 3, 11])
    """
    p, x = asarray(p), asarray(x)
    value = zeros(x.shape, dtype=x.dtype)
    for k in range(p.shape[0]):
        value = value * x + p[k]
    return value
