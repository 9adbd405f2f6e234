"""Factorisations and systems of equations.

Large matrices are factored panel by panel, in parallel; the blocks of the array are the panels (``x.rechunk``). Singular values and eigenvalues
of a square matrix are one task. Singles are computed in doubles.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError

from . import _core
from ._array import Array
from ._creation import asarray, eye
from ._distributions import random_seed
from ._dtypes import astype
from ._elementwise import conj, isnan, unwrap_array
from ._manipulation import broadcast_to, matrix_transpose, reshape
from ._reductions import any, count_nonzero, max, min
from ._searching import where


class QRResult(NamedTuple):
    """Factors of ``x = Q @ R``."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """Factors of ``x = (U * S) @ Vh``."""

    U: Array
    S: Array
    Vh: Array


class EighResult(NamedTuple):
    """Eigenvalues, and eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


class SlogdetResult(NamedTuple):
    """The sign (or direction) of determinants, and the logarithm of their magnitude."""

    sign: Array
    logabsdet: Array


class LUResult(NamedTuple):
    """Factors of ``x = P @ L @ U``."""

    P: Array
    L: Array
    U: Array


class LstsqResult(NamedTuple):
    """A solution by least squares, squared distances, the rank and the singular values."""

    x: Array
    residuals: Array
    rank: Array
    s: Array


def _apply(name: str, *arrays: Any) -> list[Array]:
    tensors = [unwrap_array(array) for array in arrays]
    if name in _OF_SQUARE:
        _check_square(tensors[0])
    return [Array(each) for each in _core.linalg(name, tensors)]


#: Routines of square matrices.
_OF_SQUARE = {"cholesky", "solve", "inv", "det", "slogdet", "eigh", "eigvalsh", "eig", "eigvals"}


def _check_square(tensor: _core.Tensor) -> None:
    if tensor.ndim < 2:
        raise LinAlgError(f"a matrix has two axes at least, this array has {tensor.ndim}")
    # Lengths that depend on elements are checked where they are known.
    rows, columns = tensor.extents[-2:]
    if rows is not None and columns is not None and rows != columns:
        raise LinAlgError(f"the last two axes must be a square matrix, not one of {rows} by {columns}")


def cholesky(x: Array, /, *, upper: bool = False) -> Array:
    """The lower triangle L with ``x = L @ L^H`` (or the upper one), of a positive definite matrix.

    >>> import tilewright as tw
    >>> tw.linalg.cholesky(tw.asarray([[4.0, 2.0], [2.0, 5.0]])).compute()
    array([[2., 0.],
           [1., 2.]])
    """
    x = asarray(x)
    lower = _apply("cholesky", conj(matrix_transpose(x)) if upper else x)[0]
    return conj(matrix_transpose(lower)) if upper else lower


def qr(x: Array, /, mode: str = "reduced") -> QRResult | Array:
    """Orthogonal columns Q and an upper triangle R with ``x = Q @ R``: ``"reduced"``, ``"complete"`` (Q is square) or ``"r"``.

    >>> import tilewright as tw
    >>> q, r = tw.linalg.qr(tw.random.default_rng(1).standard_normal((1000, 3)))
    >>> q.shape, r.shape
    ((1000, 3), (3, 3))
    """
    if mode == "r":
        return _apply("qr_r", x)[0]
    if mode not in ("reduced", "complete"):
        raise ValueError(f"mode is 'reduced', 'complete' or 'r', not {mode!r}")
    return QRResult(*_apply("qr" if mode == "reduced" else "qr_complete", x))


def tsqr(x: Array, /, *, method: str = "direct") -> QRResult:
    """QR of a tall matrix by blocks of rows. ``"indirect"`` makes Q from R: less work, but Q is only as orthogonal as ``x`` is well conditioned."""
    if method not in ("direct", "indirect"):
        raise ValueError(f"method is 'direct' or 'indirect', not {method!r}")
    return QRResult(*_apply("qr" if method == "direct" else "qr_indirect", x))


def svd(x: Array, /, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> SVDResult | Array:
    """Singular vectors and values with ``x = (U * S) @ Vh``; ``full_matrices=False`` for as many vectors as values.

    With ``compute_uv=False`` the singular values alone. That a matrix is ``hermitian`` changes nothing.
    """
    if not compute_uv:
        return svdvals(x)
    return SVDResult(*_apply("svd_full" if full_matrices else "svd", x))


def svdvals(x: Array, /) -> Array:
    """Singular values, largest first."""
    return _apply("svdvals", x)[0]


def svd_compressed(
    x: Array, k: int, /, *, n_power_iter: int = 2, n_oversamples: int = 10, seed: int | None = None
) -> SVDResult:
    """The ``k`` largest singular values and their vectors, by random projections: for matrices too large for :func:`svd`."""
    seed = random_seed() if seed is None else seed
    results = _core.svd_compressed(unwrap_array(x), k, n_oversamples, n_power_iter, seed)
    return SVDResult(*(Array(each) for each in results))


def lu(x: Array, /, *, permute_l: bool = False, p_indices: bool = False) -> Any:
    """A permutation P, a lower triangle L with ones on its diagonal and an upper triangle U with ``x = P @ L @ U``.

    With ``p_indices``, P is an index vector and ``x = L[P] @ U``; with ``permute_l`` the result is ``P @ L, U``. Pivots are the largest of their
    whole columns, across blocks.
    """
    x = asarray(x)
    order, lower, upper = _apply("lu", x)
    # ``order`` says where rows came from; going back is its inverse.
    back = order.argsort()
    if permute_l:
        return lower[back], upper
    if p_indices:
        return LUResult(back, lower, upper)
    return LUResult(eye(x.shape[0], dtype=lower.dtype)[back], lower, upper)


def solve(a: Array, b: Array) -> Array:
    """x with ``a @ x = b``.

    >>> import tilewright as tw
    >>> tw.linalg.solve(tw.asarray([[2.0, 0.0], [0.0, 4.0]]), tw.asarray([2.0, 2.0])).compute()
    array([1. , 0.5])
    """
    return _apply("solve", a, b)[0]


def solve_triangular(a: Array, b: Array, /, *, lower: bool = False) -> Array:
    """x with ``a @ x = b``, of one half of ``a``."""
    return _apply("solve_lower" if lower else "solve_upper", a, b)[0]


def inv(x: Array, /) -> Array:
    """Inverses of matrices."""
    return _apply("inv", x)[0]


def det(x: Array, /) -> Array:
    """Determinants."""
    return _apply("det", x)[0]


def slogdet(x: Array, /) -> SlogdetResult:
    """Determinants that would be too large or too small: as a sign, and the logarithm of the magnitude."""
    return SlogdetResult(*_apply("slogdet", x))


def eigh(x: Array, /, UPLO: str = "L") -> EighResult:
    """Eigenvalues, smallest first, and eigenvectors of symmetric (or self-adjoint) matrices, of which the lower half is read (``"L"``) or the upper (``"U"``)."""
    return EighResult(*_apply("eigh", _lower_half(x, UPLO)))


def eigvalsh(x: Array, /, UPLO: str = "L") -> Array:
    """Eigenvalues of symmetric (or self-adjoint) matrices, smallest first, of which one half is read as in :func:`eigh`."""
    return _apply("eigvalsh", _lower_half(x, UPLO))[0]


def _lower_half(x: Any, half: str) -> Any:
    """A matrix whose lower half is the one that is meant: the adjoint of the upper half is a lower one."""
    if half.upper() not in ("L", "U"):
        raise ValueError(f"UPLO is 'L' or 'U', not {half!r}")
    return x if half.upper() == "L" else conj(matrix_transpose(asarray(x)))


def eig(x: Array, /) -> EigResult:
    """Eigenvalues and eigenvectors of square matrices, complex."""
    return EigResult(*_apply("eig", x))


def eigvals(x: Array, /) -> Array:
    """Eigenvalues of square matrices, complex."""
    return _apply("eigvals", x)[0]


def pinv(x: Array, /, rcond: float | Array | None = None, hermitian: bool = False, *, rtol: float | Array | None = None) -> Array:
    """Pseudoinverses; singular values up to ``rtol`` times the largest count as zero. ``rcond`` is NumPy's older name of it."""
    if rcond is not None and rtol is not None:
        raise ValueError("rcond and rtol are two names of one argument: give one of them")
    return _apply("pinv", x, *_tolerance(rtol if rcond is None else rcond))[0]


def matrix_rank(
    x: Array, /, tol: float | Array | None = None, hermitian: bool = False, *, rtol: float | Array | None = None
) -> Array:
    """How many singular values are larger than ``tol``, or than ``rtol`` times the largest."""
    if tol is not None and rtol is not None:
        raise ValueError("give tol or rtol, not both")
    x = asarray(x)
    if x.ndim < 2:
        return astype(any(x != 0), "int64")
    if tol is not None:
        return count_nonzero(svdvals(x) > asarray(tol)[..., None], axis=-1)
    return _apply("matrix_rank", x, *_tolerance(rtol))[0]


def lstsq(a: Array, b: Array, rcond: float | None = None) -> LstsqResult:
    """The shortest x that brings ``a @ x`` closest to ``b``.

    As in NumPy there are squared distances, one per column of ``b``, only if the columns of ``a`` are independent and fewer than its rows. How many there are is
    known with the rank, so the length of ``residuals`` stays open until then.
    """
    found = LstsqResult(*_apply("lstsq", a, b, *_tolerance(rcond)))
    rows, columns = asarray(a).shape
    residuals = reshape(found.residuals, (-1,))
    if rows <= columns:
        return found._replace(residuals=residuals[:0])
    return found._replace(residuals=residuals[broadcast_to(found.rank == columns, residuals.shape)])


def cond(x: Array, p: Any = None) -> Array:
    """How much errors may grow when a system of equations is solved: without bound, if the matrix is singular."""
    from .linalg import norm

    x = asarray(x)
    if x.ndim >= 2 and 0 in x.shape[-2:]:
        raise LinAlgError("cond is not defined on empty arrays")
    if p in (None, 2, -2):
        values = svdvals(x)
        largest, smallest = max(values, axis=-1), min(values, axis=-1)
        growth = smallest / largest if p == -2 else largest / smallest
    else:
        is_singular = (slogdet(x).sign == 0)[..., None, None]
        growth = norm(x, p, axis=(-2, -1)) * norm(inv(where(is_singular, eye(x.shape[-1], dtype=x.dtype), x)), p, axis=(-2, -1))
        growth = where(is_singular[..., 0, 0], np.inf, growth)
    # Zero divided by zero, unless the matrix has a NaN.
    return where(isnan(growth) & ~any(isnan(x), axis=(-2, -1)), np.inf, growth)


def _tolerance(value: Any) -> tuple[Array, ...]:
    return () if value is None else (asarray(value, dtype=None if isinstance(value, (Array, np.ndarray)) else "float64"),)
