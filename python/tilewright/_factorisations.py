"""Factorisations and systems of equations.

Large matrices are factored panel by panel, in parallel; the blocks of the array are the panels (``x.rechunk``). Singular values and eigenvalues
of a square matrix are one task. Singles are computed in doubles.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import _core
from ._array import Array
from ._creation import asarray, eye
from ._distributions import random_seed
from ._elementwise import conj, unwrap_array
from ._manipulation import matrix_transpose
from ._reductions import max, min


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
    return [Array(each) for each in _core.linalg(name, [unwrap_array(array) for array in arrays])]


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


def qr(x: Array, /, *, mode: str = "reduced") -> QRResult | Array:
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


def svd(x: Array, /, *, full_matrices: bool = True) -> SVDResult:
    """Singular vectors and values with ``x = (U * S) @ Vh``; ``full_matrices=False`` for as many vectors as values."""
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


def solve(x1: Array, x2: Array, /) -> Array:
    """x with ``x1 @ x = x2``.

    >>> import tilewright as tw
    >>> tw.linalg.solve(tw.asarray([[2.0, 0.0], [0.0, 4.0]]), tw.asarray([2.0, 2.0])).compute()
    array([1. , 0.5])
    """
    return _apply("solve", x1, x2)[0]


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


def eigh(x: Array, /) -> EighResult:
    """Eigenvalues, smallest first, and eigenvectors of symmetric (or self-adjoint) matrices, of which the lower half is read."""
    return EighResult(*_apply("eigh", x))


def eigvalsh(x: Array, /) -> Array:
    """Eigenvalues of symmetric (or self-adjoint) matrices, smallest first."""
    return _apply("eigvalsh", x)[0]


def eig(x: Array, /) -> EigResult:
    """Eigenvalues and eigenvectors of square matrices, complex."""
    return EigResult(*_apply("eig", x))


def eigvals(x: Array, /) -> Array:
    """Eigenvalues of square matrices, complex."""
    return _apply("eigvals", x)[0]


def pinv(x: Array, /, *, rtol: float | Array | None = None) -> Array:
    """Pseudoinverses; singular values up to ``rtol`` times the largest count as zero."""
    return _apply("pinv", x, *_tolerance(rtol))[0]


def matrix_rank(x: Array, /, *, rtol: float | Array | None = None) -> Array:
    """How many singular values are larger than ``rtol`` times the largest."""
    return _apply("matrix_rank", x, *_tolerance(rtol))[0]


def lstsq(a: Array, b: Array, rcond: float | None = None) -> LstsqResult:
    """The shortest x that brings ``a @ x`` closest to ``b``.

    Unlike NumPy's, the squared distances are given whatever the rank: their number would otherwise depend on data.
    """
    return LstsqResult(*_apply("lstsq", a, b, *_tolerance(rcond)))


def cond(x: Array, p: Any = None) -> Array:
    """How much errors may grow when a system of equations is solved."""
    from .linalg import norm

    x = asarray(x)
    if p in (None, 2, -2):
        values = svdvals(x)
        largest, smallest = max(values, axis=-1), min(values, axis=-1)
        return smallest / largest if p == -2 else largest / smallest
    return norm(x, p, axis=(-2, -1)) * norm(inv(x), p, axis=(-2, -1))


def _tolerance(value: Any) -> tuple[Array, ...]:
    return () if value is None else (asarray(value, dtype=None if isinstance(value, (Array, np.ndarray)) else "float64"),)
