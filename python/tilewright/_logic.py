"""Questions about elements and about whole arrays. Answers are lazy: ``bool(..)`` of one computes it."""

from __future__ import annotations

from typing import Any

from . import _views
from ._array import Array
from ._creation import asarray, full
from ._dtypes import floating
from ._elementwise import abs, imag, isfinite, isinf, isnan, signbit
from ._manipulation import broadcast_arrays, broadcast_shapes
from ._out import like_ufunc, takes_out
from ._reductions import all


def isclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Array:
    """True where elements differ by no more than ``atol + rtol * abs(b)``."""
    a, b = floating(asarray(a)), floating(asarray(b))
    near = (abs(a - b) <= atol + rtol * abs(b)) & isfinite(b)
    close = near | (a == b)
    return close | (isnan(a) & isnan(b)) if equal_nan else close


def allclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Array:
    """True if all elements are close; see :func:`isclose`.

    >>> import tilewright as tw
    >>> bool(tw.allclose(tw.ones(3), 1 + 1e-9))
    True
    """
    return all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Array:
    """True if two arrays have the same shape and equal elements."""
    a1, a2 = asarray(a1), asarray(a2)
    if a1.shape != a2.shape:
        return full((), False)
    same = a1 == a2
    if equal_nan and a1.dtype.kind in "fcmM" and a2.dtype.kind in "fcmM":
        same = same | ((a1 != a1) & (a2 != a2))
    return all(same)


def array_equiv(a1: Any, a2: Any) -> Array:
    """True if the elements of two arrays are equal after they are repeated to one shape."""
    a1, a2 = asarray(a1), asarray(a2)
    try:
        broadcast_shapes(a1.shape, a2.shape)
    except ValueError:
        return full((), False)
    a1, a2 = broadcast_arrays(a1, a2)
    return all(a1 == a2)


def shares_memory(a: Any, b: Any, max_work: int | None = None) -> bool:
    """True if two arrays have elements in common, as views of one array may have.

    Nothing is computed. What others than Tilewright hold is a copy, so it never has.

    >>> import tilewright as tw
    >>> x = tw.zeros(6)
    >>> tw.shares_memory(x[::2], x[1:]), tw.shares_memory(x[::2], x[1::2]), tw.shares_memory(x, x + 1)
    (True, False, False)
    """
    return isinstance(a, Array) and isinstance(b, Array) and _views.shares(a, b, exactly=max_work != 0)


def may_share_memory(a: Any, b: Any, max_work: int | None = None) -> bool:
    """True if the ranges from the first to the last elements of two arrays have elements in common; see :func:`shares_memory`."""
    return isinstance(a, Array) and isinstance(b, Array) and _views.shares(a, b, exactly=bool(max_work))


def _ordered(x: Any, name: str) -> Array:
    x = asarray(x)
    if x.dtype.kind == "c":
        raise TypeError(f"{name} of complex numbers is not defined: their infinities have no sign")
    if x.dtype.kind in "Mm":
        raise TypeError(f"{name} of {x.dtype} is not defined")
    return x


@takes_out
def isposinf(x: Array) -> Array:
    """True for the positive infinity."""
    x = _ordered(x, "isposinf")
    return isinf(x) & ~signbit(x) if x.dtype.kind == "f" else full(x.shape, False)


@takes_out
def isneginf(x: Array) -> Array:
    """True for the negative infinity."""
    x = _ordered(x, "isneginf")
    return isinf(x) & signbit(x) if x.dtype.kind == "f" else full(x.shape, False)


def iscomplex(x: Array) -> Array:
    """True where the imaginary part is not zero."""
    x = asarray(x)
    return imag(x) != 0 if x.dtype.kind == "c" else full(x.shape, False)


def isreal(x: Array) -> Array:
    """True where the imaginary part is zero."""
    x = asarray(x)
    return imag(x) == 0 if x.dtype.kind == "c" else full(x.shape, True)


def iscomplexobj(x: Any) -> bool:
    """True if the array has a complex type, whatever its elements are."""
    return asarray(x).dtype.kind == "c"


def isrealobj(x: Any) -> bool:
    """True if the array has a type that is not complex."""
    return not iscomplexobj(x)


@like_ufunc
def isnat(x: Array, /) -> Array:
    """True for dates and durations that are none: NaT."""
    x = asarray(x)
    if x.dtype.kind not in "mM":
        raise TypeError(f"NaT is a date or a duration, not of {x.dtype}")
    return x != x
