"""Linear algebra against NumPy's: residuals within ten times LAPACK's, whatever the blocks."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import same
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw

TYPES = ["float32", "float64", "complex64", "complex128"]


def matrix(seed: int, *shape: int, dtype: str = "float64") -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def adjoint(x: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(x, -1, -2))


def eps(x: np.ndarray) -> float:
    return float(np.finfo(x.dtype).eps)


def size(x: np.ndarray) -> float:
    return float(np.max(np.abs(x))) if x.size else 0.0


def close(a: np.ndarray, b: np.ndarray, scale: float = 1.0) -> None:
    """Equal up to rounding of a computation on matrices of such a size."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape and a.dtype == b.dtype
    n = max([*b.shape[-2:], 1])
    assert size(a - b) <= 40 * n * eps(b) * max(size(b), scale), (size(a - b), a, b)


sides = st.integers(1, 9)
chunks = st.sampled_from([None, 2, 3, (2, 5)])
cases = st.tuples(st.integers(0, 10**6), st.sampled_from(TYPES), chunks)


def cut(x: np.ndarray, chunk) -> tw.Array:
    return tw.asarray(x) if chunk is None else tw.asarray(x).rechunk(chunk)


@given(cases, sides, sides, st.sampled_from(["reduced", "complete", "r"]))
def test_qr(case, m, n, mode):
    seed, dtype, chunk = case
    x = matrix(seed, m, n, dtype=dtype)
    if mode == "r":
        r = np.asarray(tw.linalg.qr(cut(x, chunk), mode="r"))
        close(adjoint(r) @ r, adjoint(x) @ x, size(x) ** 2)
    else:
        q, r = (np.asarray(each) for each in tw.linalg.qr(cut(x, chunk), mode=mode))
        expected = np.linalg.qr(x, mode=mode)
        assert q.shape == expected.Q.shape and r.shape == expected.R.shape
        close(q @ r, x)
        close(adjoint(q) @ q, np.eye(q.shape[1], dtype=dtype))
    assert size(np.tril(r, -1)) == 0


@given(cases, st.integers(20, 90), st.integers(1, 3), st.sampled_from(["direct", "indirect"]))
def test_tall_qr(case, m, n, method):
    seed, dtype, chunk = case
    x = matrix(seed, m, n, dtype=dtype)
    q, r = (np.asarray(each) for each in tw.linalg.tsqr(cut(x, chunk), method=method))
    close(q @ r, x)
    scale = 1.0 if method == "direct" else np.linalg.cond(x.astype("complex128")) ** 2
    close(adjoint(q) @ q, np.eye(n, dtype=dtype), scale)


@given(cases, sides, sides)
def test_svd(case, m, n):
    seed, dtype, chunk = case
    x = matrix(seed, m, n, dtype=dtype)
    u, s, vh = (np.asarray(each) for each in tw.linalg.svd(cut(x, chunk), full_matrices=False))
    expected = np.linalg.svd(x, compute_uv=False)
    close((u * s) @ vh, x)
    close(s, expected)
    close(np.asarray(tw.linalg.svdvals(cut(x, chunk))), expected)
    close(adjoint(u) @ u, np.eye(min(m, n), dtype=dtype))
    full = tw.linalg.svd(cut(x, chunk))
    u, s, vh = (np.asarray(each) for each in full)
    assert u.shape == (m, m) and vh.shape == (n, n)
    close((u[:, : len(s)] * s) @ vh[: len(s)], x)


@given(cases, st.integers(30, 60), st.integers(1, 4))
def test_tall_and_wide_svd(case, m, n):
    seed, dtype, chunk = case
    tall = matrix(seed, m, n, dtype=dtype)
    for x in (tall, adjoint(tall)):
        u, s, vh = (np.asarray(each) for each in tw.linalg.svd(cut(x, chunk), full_matrices=False))
        close((u * s) @ vh, x)
        close(s, np.linalg.svd(x, compute_uv=False))


@given(cases, sides, sides)
def test_lu(case, m, n):
    seed, dtype, chunk = case
    x = matrix(seed, m, n, dtype=dtype)
    p, lower, upper = (np.asarray(each) for each in tw.linalg.lu(cut(x, chunk)))
    close(p @ lower @ upper, x)
    assert size(np.triu(lower, 1)) == 0 and size(np.tril(upper, -1)) == 0
    # Pivots are the largest of their whole columns, so nothing below the diagonal is larger than 1. (The size of a complex number is that of its
    # parts together, as in LAPACK.)
    assert size(lower) <= (1 if x.dtype.kind == "f" else 2**0.5) + 4 * eps(x)
    moved, upper = (np.asarray(each) for each in tw.linalg.lu(cut(x, chunk), permute_l=True))
    close(moved @ upper, x)
    places, lower, upper = (np.asarray(each) for each in tw.linalg.lu(cut(x, chunk), p_indices=True))
    close(lower[places] @ upper, x)


@given(cases, sides, st.integers(0, 3))
def test_solve_and_inverse(case, n, columns):
    seed, dtype, chunk = case
    a = matrix(seed, n, n, dtype=dtype) + 3 * np.eye(n, dtype=dtype)
    b = matrix(seed + 1, n, columns, dtype=dtype) if columns else matrix(seed + 1, n, dtype=dtype)
    scale = np.linalg.cond(a.astype("complex128"))
    close(np.asarray(tw.linalg.solve(cut(a, chunk), tw.asarray(b))), np.linalg.solve(a, b), scale)
    close(np.asarray(tw.linalg.inv(cut(a, chunk))), np.linalg.inv(a), scale)
    for lower, half in ((True, np.tril(a)), (False, np.triu(a))):
        x = tw.linalg.solve_triangular(cut(a, chunk), tw.asarray(b), lower=lower)
        close(np.asarray(x), np.linalg.solve(half, b), np.linalg.cond(half.astype("complex128")))


@given(cases, sides)
def test_determinants(case, n):
    seed, dtype, chunk = case
    x = matrix(seed, n, n, dtype=dtype)
    expected = np.linalg.slogdet(x)
    sign, logarithm = (np.asarray(each) for each in tw.linalg.slogdet(cut(x, chunk)))
    scale = np.linalg.cond(x.astype("complex128"))
    close(sign, np.asarray(expected.sign), scale)
    close(logarithm, np.asarray(expected.logabsdet), scale)
    close(np.asarray(tw.linalg.det(cut(x, chunk))), np.asarray(np.linalg.det(x)), scale * np.exp(float(expected.logabsdet)))


@given(cases, sides, st.booleans())
def test_cholesky(case, n, upper):
    seed, dtype, chunk = case
    x = matrix(seed, n, n, dtype=dtype)
    x = x @ adjoint(x) + np.eye(n, dtype=dtype)
    factor = np.asarray(tw.linalg.cholesky(cut(x, chunk), upper=upper))
    close(adjoint(factor) @ factor if upper else factor @ adjoint(factor), x)
    close(factor, np.linalg.cholesky(x, upper=upper), np.linalg.cond(x))


@given(cases, sides)
def test_eigenvalues(case, n):
    seed, dtype, chunk = case
    x = matrix(seed, n, n, dtype=dtype)
    even = (x + adjoint(x)) / np.array(2, dtype)
    values, vectors = (np.asarray(each) for each in tw.linalg.eigh(cut(even, chunk)))
    close(values, np.linalg.eigvalsh(even))
    close(np.asarray(tw.linalg.eigvalsh(cut(even, chunk))), np.linalg.eigvalsh(even))
    close(even @ vectors, vectors * values.astype(dtype), size(even))
    close(adjoint(vectors) @ vectors, np.eye(n, dtype=dtype))
    values, vectors = (np.asarray(each) for each in tw.linalg.eig(cut(x, chunk)))
    close((x @ vectors).astype(values.dtype), vectors * values, size(x))
    assert np.allclose(np.linalg.norm(vectors, axis=0), 1)
    alone = np.asarray(tw.linalg.eigvals(cut(x, chunk)))
    assert np.allclose(np.sort_complex(alone), np.sort_complex(values), atol=1e-3)


@given(cases, sides, sides, st.integers(1, 3))
def test_ranks_and_least_squares(case, m, n, rank):
    seed, dtype, chunk = case
    rank = min(rank, m, n)
    x = matrix(seed, m, rank, dtype=dtype) @ matrix(seed + 1, rank, n, dtype=dtype)
    scale = np.linalg.norm(np.linalg.pinv(x))
    if np.linalg.matrix_rank(x) == rank and scale < 1e3:
        assert int(tw.linalg.matrix_rank(cut(x, chunk))) == rank
        assert int(tw.linalg.matrix_rank(cut(x, chunk), rtol=10.0)) == 0
        close(np.asarray(tw.linalg.pinv(cut(x, chunk))), np.linalg.pinv(x), scale**2)
        b = matrix(seed + 2, m, 2, dtype=dtype)
        for right in (b, b[:, 0]):
            ours, theirs = tw.linalg.lstsq(cut(x, chunk), tw.asarray(right)), np.linalg.lstsq(x, right)
            close(np.asarray(ours.x), theirs[0], scale**2)
            assert int(ours.rank) == theirs[2]
            close(np.asarray(ours.s), theirs[3])
            if theirs[1].size:
                close(np.asarray(ours.residuals).reshape(-1), theirs[1].reshape(-1), size(right) ** 2)


def test_stacks_broadcast():
    a, b = matrix(1, 4, 1, 3, 3), matrix(2, 5, 3, 2)
    same(tw.linalg.solve(tw.asarray(a), tw.asarray(b)), np.linalg.solve(a, b), rtol=1e-10)
    # Right-hand sides that are wider than the matrices, in stacks that are cut.
    wide = matrix(4, 1000, 4, 40)
    many = matrix(5, 1000, 4, 4) + 4 * np.eye(4)
    same(tw.linalg.solve(tw.asarray(many), tw.asarray(wide)), np.linalg.solve(many, wide), rtol=1e-9)
    assert tw.linalg.solve(tw.asarray(many), tw.zeros((4, 0))).shape == (1000, 4, 0)
    with pytest.raises(ValueError, match="one matrix"):
        tw.linalg.lu(tw.asarray(many))
    x = matrix(3, 70, 6, 4)
    q, r = tw.linalg.qr(tw.asarray(x))
    close(np.asarray(q @ r), x)
    same(tw.linalg.svdvals(tw.asarray(x)), np.linalg.svdvals(x), rtol=1e-10)
    same(tw.linalg.det(tw.asarray(x[:, :4])), np.linalg.det(x[:, :4]), rtol=1e-10)
    same(tw.linalg.matrix_rank(tw.asarray(x)), np.linalg.matrix_rank(x))
    same(tw.linalg.pinv(tw.asarray(x)), np.linalg.pinv(x), rtol=1e-9)


def test_pivots_cross_blocks():
    """A leading block of 1e-13 gives pivots inside it that are far too small; the largest are further down."""
    n = 256
    a, b = matrix(5, n, n), matrix(6, n)
    a[:64, :64] *= 1e-13
    ours = np.asarray(tw.linalg.solve(tw.asarray(a).rechunk(64), tw.asarray(b)))
    theirs = np.linalg.solve(a, b)
    assert size(a @ ours - b) <= 10 * size(a @ theirs - b)
    p, lower, upper = (np.asarray(each) for each in tw.linalg.lu(tw.asarray(a).rechunk(64)))
    assert size(p @ lower @ upper - a) <= 1e-13 * n
    # A permutation has zeros where pivots inside a block would be.
    swap = np.eye(n)[np.random.default_rng(7).permutation(n)]
    same(tw.linalg.inv(tw.asarray(swap).rechunk(32)), swap.T)


def test_large_matrices_by_panels():
    """Larger than one task by the automatic rule."""
    x = matrix(8, 1500, 1300)
    square = x[:1300]
    q, r = (np.asarray(each) for each in tw.linalg.qr(tw.asarray(x)))
    theirs = np.linalg.qr(x)
    assert size(q @ r - x) <= 10 * size(theirs.Q @ theirs.R - x)
    assert size(q.T @ q - np.eye(1300)) <= 10 * size(theirs.Q.T @ theirs.Q - np.eye(1300))
    b = matrix(9, 1300, 3)
    ours = np.asarray(tw.linalg.solve(tw.asarray(square), tw.asarray(b)))
    assert size(square @ ours - b) <= 10 * size(square @ np.linalg.solve(square, b) - b)
    positive = square @ square.T + np.eye(1300)
    factor = np.asarray(tw.linalg.cholesky(tw.asarray(positive)))
    theirs = np.linalg.cholesky(positive)
    assert size(factor @ factor.T - positive) <= 10 * size(theirs @ theirs.T - positive)


def test_compressed():
    x = matrix(10, 300, 5) @ matrix(11, 5, 200)
    u, s, vh = (np.asarray(each) for each in tw.linalg.svd_compressed(tw.asarray(x).rechunk(64), 5, seed=1))
    close((u * s) @ vh, x, 100.0)
    close(s, np.linalg.svdvals(x)[:5])


@pytest.mark.parametrize("ord", [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_norms(ord):
    x = matrix(12, 5, 4)
    same(tw.linalg.norm(tw.asarray(x), ord), np.linalg.norm(x, ord), rtol=1e-12)
    y = matrix(13, 3, 5, 4)
    same(tw.linalg.norm(tw.asarray(y), ord, axis=(0, 2), keepdims=True), np.linalg.norm(y, ord, axis=(0, 2), keepdims=True), rtol=1e-12)
    if ord not in ("fro", "nuc"):
        same(tw.linalg.norm(tw.asarray(y), ord, axis=1), np.linalg.norm(y, ord, axis=1), rtol=1e-12)
    if ord not in ("fro", "nuc"):
        same(tw.linalg.cond(tw.asarray(x[:4]), ord), np.linalg.cond(x[:4], ord), rtol=1e-9)


def test_powers():
    x = matrix(14, 4, 4)
    for n in (-2, 0, 1, 5):
        same(tw.linalg.matrix_power(tw.asarray(x), n), np.linalg.matrix_power(x, n), rtol=1e-9)
    same(tw.linalg.multi_dot([x, x, x]), np.linalg.multi_dot([x, x, x]), rtol=1e-9)


def test_what_cannot_be():
    singular = tw.asarray(np.ones((6, 6)))
    for chunk in (6, 2):
        with pytest.raises(tw.linalg.LinAlgError, match="singular"):
            tw.linalg.inv(singular.rechunk(chunk)).compute()
        with pytest.raises(tw.linalg.LinAlgError, match="positive definite"):
            tw.linalg.cholesky(-tw.eye(6).rechunk(chunk)).compute()
    with pytest.raises(tw.linalg.LinAlgError, match="NaN"):
        tw.linalg.svd(tw.full((3, 3), np.nan)).S.compute()
    with pytest.raises(ValueError, match="square"):
        tw.linalg.inv(tw.ones((2, 3)))
    with pytest.raises(ValueError, match="equations"):
        tw.linalg.solve(tw.eye(3), tw.ones(4))
    with pytest.raises(TypeError, match="linear algebra on float16"):
        tw.linalg.inv(tw.eye(3, dtype="float16"))
    with pytest.raises(ValueError, match="two axes"):
        tw.linalg.det(tw.ones(3))
    # Pivots may leave the range of numbers on the way.
    huge = np.diag([1e200, 1e200, 1e-200, 1e-200])
    for chunk in (4, 2):
        assert np.isclose(float(tw.linalg.det(tw.asarray(huge).rechunk(chunk))), 1)
    # The determinant of a singular matrix is a number, not an error; and it has factors.
    for dtype in TYPES:
        for x in (np.zeros((5, 5), dtype), np.ones((5, 5), dtype)):
            for chunk in (5, 2):
                array = tw.asarray(x).rechunk(chunk)
                assert complex(tw.linalg.det(array)) == 0
                sign, logarithm = tw.linalg.slogdet(array)
                assert complex(sign) == 0 and float(logarithm) == -np.inf
                p, lower, upper = tw.linalg.lu(array)
                close(np.asarray(p @ lower @ upper), x)


def test_empty_matrices():
    assert float(tw.linalg.det(tw.zeros((0, 0)))) == 1
    assert tw.linalg.inv(tw.zeros((0, 0))).shape == (0, 0)
    assert tw.linalg.inv(tw.zeros((0, 3, 3))).compute().shape == (0, 3, 3)
    q, r = tw.linalg.qr(tw.zeros((3, 0)), mode="complete")
    same(q, np.eye(3))
    assert r.shape == (3, 0)
    assert tw.linalg.svdvals(tw.zeros((0, 3))).compute().shape == (0,)
    assert int(tw.linalg.matrix_rank(tw.zeros((0, 3)))) == 0
    # All singular vectors of nothing are any vectors; its least squares are zeros.
    for shape in [(3, 0), (0, 3), (0, 0), (2, 3, 0), (2, 0, 3), (0, 3, 2), (0, 2, 3)]:
        x = np.zeros(shape)
        for full in (True, False):
            for found, expected in zip(tw.linalg.svd(tw.asarray(x), full_matrices=full), np.linalg.svd(x, full_matrices=full), strict=True):
                same(found, expected)
        same(tw.linalg.pinv(tw.asarray(x)), np.linalg.pinv(x))
    for shape, right in [((3, 0), (3,)), ((3, 0), (3, 2)), ((0, 3), (0,)), ((0, 3), (0, 2)), ((0, 0), (0,)), ((3, 2), (3, 0))]:
        found, expected = tw.linalg.lstsq(tw.zeros(shape), tw.ones(right)), np.linalg.lstsq(np.zeros(shape), np.ones(right))
        same(found.x, expected[0])
        same(found.s, expected[3])
        assert int(found.rank) == expected[2]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("chunk", [3, 1])
@pytest.mark.parametrize("scale", [1e-310, 5e-324, 1e-200, 1e300])
def test_pivots_at_the_ends_of_the_range(dtype, chunk, scale):
    """A pivot whose reciprocal, or the square of whose size, is no number."""
    unit = 1 if dtype == "float64" else 1 + 1j
    x = np.array([[unit * scale, 0, 0], [0.5 * unit * scale if scale > 1e-320 else 0, 2, 1], [0, 1, 3]], dtype=dtype)
    array = tw.asarray(x).rechunk(chunk)
    p, lower, upper = (np.asarray(each) for each in tw.linalg.lu(array))
    assert np.all(np.isfinite(lower)) and np.all(np.isfinite(upper))
    np.testing.assert_allclose(p @ lower @ upper, x, rtol=1e-12)
    # Beside a huge element there are no digits left for others.
    expected = np.array([1, 2, -1] if scale < 1 else [1, 0, 0], dtype=dtype)
    np.testing.assert_allclose(np.asarray(tw.linalg.solve(array, tw.asarray(x @ expected))), expected, rtol=1e-12)
    for is_lower, half in ((True, np.tril(x)), (False, np.triu(x))):
        found = tw.linalg.solve_triangular(array, tw.asarray(half @ expected), lower=is_lower)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)
    sign, logarithm = tw.linalg.slogdet(array)
    np.testing.assert_allclose(complex(sign), unit / abs(unit), rtol=1e-12)
    # The size of the smallest numbers has no digits.
    np.testing.assert_allclose(float(logarithm), np.log(abs(unit)) + np.log(scale) + np.log(5), rtol=1e-12 if scale > 1e-320 else 1e-3)


def test_imaginary_parts_of_diagonals_are_not_looked_at():
    x = matrix(15, 5, 5, dtype="complex128")
    x = x @ adjoint(x) + np.eye(5)
    disturbed = x + 1j * np.diag(np.arange(5.0))
    for chunk in (5, 2):
        close(np.asarray(tw.linalg.cholesky(tw.asarray(disturbed).rechunk(chunk))), np.linalg.cholesky(disturbed), 100.0)
        close(np.asarray(tw.linalg.eigvalsh(tw.asarray(disturbed).rechunk(chunk))), np.linalg.eigvalsh(disturbed))
        close(np.asarray(tw.linalg.eigh(tw.asarray(disturbed).rechunk(chunk)).eigenvalues), np.linalg.eigvalsh(disturbed))


@pytest.mark.parametrize("chunk", [(2, 4, 4), (2, 2, 2), (1, 2, 4), ((1, 2, 3), (1, 3), 4)])
def test_stacks_of_several_blocks(chunk):
    x = matrix(16, 6, 4, 4) + 4 * np.eye(4)
    array = tw.asarray(x).rechunk(chunk)
    for name in ("det", "inv", "slogdet", "pinv", "svdvals", "matrix_rank"):
        found, expected = getattr(tw.linalg, name)(array), getattr(np.linalg, name)(x)
        for ours, theirs in zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]:
            same(ours, theirs, rtol=1e-10)
    for right in (x[:, :, :2], x[0, :, :2]):
        same(tw.linalg.solve(array, tw.asarray(right).rechunk(2)), np.linalg.solve(x, right), rtol=1e-10)


@pytest.mark.parametrize("name", ["inv", "det", "slogdet", "eig", "eigvals", "eigh", "eigvalsh", "cholesky"])
def test_square_matrices_are_asked_for(name):
    for shape in ((2, 3), (4, 2, 3), (3,)):
        for xp in (np, tw):
            with pytest.raises(np.linalg.LinAlgError):
                getattr(xp.linalg, name)(xp.ones(shape))
    for xp in (np, tw):
        with pytest.raises(np.linalg.LinAlgError):
            xp.linalg.solve(xp.ones((2, 3)), xp.ones(2))


@pytest.mark.parametrize("p", [None, 1, -1, 2, np.inf, "fro"])
def test_condition_of_singular_matrices(p):
    stack = np.stack([np.eye(2), np.diag([1.0, 0.0]), np.array([[1.0, 2.0], [3.0, 5.0]]), np.zeros((2, 2))])
    same(tw.linalg.cond(tw.asarray(stack), p), np.linalg.cond(stack, p))
    assert float(tw.linalg.cond(tw.asarray([[1.0, 2.0], [2.0, 4.0]]), p)) > 1e15


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("chunk", [None, (40, 40), (64, 33)])
def test_inverses_put_columns_in_their_places(dtype, chunk):
    # Every panel exchanges rows, so an inverse whose columns stay where pivots were is wrong.
    n = 150
    x = np.eye(n)[np.random.default_rng(3).permutation(n)] * np.arange(1, n + 1) + 0.01 * matrix(18, n, n, dtype=dtype)
    array = tw.asarray(x) if chunk is None else tw.asarray(x).rechunk(chunk)
    same(tw.linalg.inv(array), np.linalg.inv(x), rtol=1e-9)
    same(tw.linalg.solve(array, tw.asarray(x[:, :3])), np.linalg.solve(x, x[:, :3]), rtol=1e-9)


def test_a_matrix_in_memory_is_factored_where_it_lies():
    x = tw.asarray(matrix(19, 900, 900))
    figures = tw.linalg.inv(x).explain().to_dict()
    # It is lent to one task, which reads it and writes the result.
    assert figures["tasks"] == 2 and figures["moved_bytes"] == 3 * x.nbytes


def test_bits_of_systems_do_not_depend_on_threads():
    x = matrix(20, 1100, 1100)
    found = []
    for threads in (1, 3):
        with tw.Session(threads=threads):
            array = tw.asarray(x)
            found.append(tw.compute(tw.linalg.inv(array), tw.linalg.solve(array, array[:, :5])))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("ord", [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf, 3])
@pytest.mark.parametrize("shape, axis", [((0, 3), None), ((3, 0), None), ((0, 0), None), ((0,), None), ((2, 0, 3), (0, 1)), ((2, 0, 3), (1, 2)), ((3,), None)])
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_norms_of_nothing_and_orders_that_are_none(ord, shape, axis):
    try:
        expected = np.linalg.norm(np.zeros(shape), ord, axis)
    except ValueError:
        with pytest.raises(ValueError):
            tw.linalg.norm(tw.zeros(shape), ord, axis)
    else:
        assert np.array_equal(tw.linalg.norm(tw.zeros(shape), ord, axis).compute(), expected)
