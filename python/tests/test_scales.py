"""Factorisations of matrices near both ends of the range of numbers: in one block, in stacks, in panels, and of tall blocks of rows."""

from __future__ import annotations

import numpy as np
import pytest
from test_linalg import adjoint, matrix

import tilewright as tw

SCALES = [1e-300, 1e-200, 1e-170, 1e-150, 1e-30, 1.0, 1e30, 1e150, 1e170, 1e200, 1e300]
TYPES = ["float64", "complex128"]
#: Shapes, and how they are cut: one block, a stack, several panels, blocks of rows (TSQR).
SQUARE = [((5, 5), None), ((3, 4, 4), None), ((9, 9), 3)]
ANY = [*SQUARE, ((3, 7), None), ((40, 3), (8, 3)), ((3, 40), (3, 8)), ((12, 8), 3)]

square = pytest.mark.parametrize("shape, chunk", SQUARE)
shapes = pytest.mark.parametrize("shape, chunk", ANY)
scales = pytest.mark.parametrize("scale", SCALES)
types = pytest.mark.parametrize("dtype", TYPES)


def operand(shape, chunk, scale, dtype, prepare=lambda x: x):
    """A matrix of moderate numbers, and its multiple as an array of ours. The scale is a power of two, so that nothing is rounded."""
    plain = prepare(matrix(5, *shape, dtype=dtype))
    scale = 2.0 ** np.round(np.log2(scale))
    x = tw.asarray(plain * scale)
    return plain, scale, x if chunk is None else x.rechunk(chunk)


def near(found, expected, tolerance=1e-12):
    found = np.asarray(found)
    assert found.shape == np.shape(expected)
    assert np.all(np.isfinite(found))
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * np.max(np.abs(expected), initial=1e-3))


def positive(x):
    return x @ adjoint(x) + 3 * np.eye(x.shape[-1])


@shapes
@scales
@types
def test_svd(shape, chunk, scale, dtype):
    plain, scale, x = operand(shape, chunk, scale, dtype)
    values = np.linalg.svd(plain, compute_uv=False)
    near(tw.linalg.svdvals(x) / scale, values)
    u, s, vh = tw.linalg.svd(x, full_matrices=False)
    near(s / scale, values)
    u, s, vh = np.asarray(u), np.asarray(s) / scale, np.asarray(vh)
    near((u * s[..., None, :]) @ vh, plain)
    near(adjoint(u) @ u, np.broadcast_to(np.eye(u.shape[-1]), (*u.shape[:-2], u.shape[-1], u.shape[-1])))
    near(tw.linalg.matrix_norm(x, ord=2) / scale, np.linalg.norm(plain, 2, axis=(-2, -1)))
    near(tw.linalg.cond(x), np.linalg.cond(plain), 1e-9)
    assert np.all(np.asarray(tw.linalg.matrix_rank(x)) == np.linalg.matrix_rank(plain))
    u, s, vh = (np.asarray(each) for each in tw.linalg.svd(x))
    near(s / scale, values)
    near((u[..., : s.shape[-1]] * (s / scale)[..., None, :]) @ vh[..., : s.shape[-1], :], plain)


@shapes
@scales
@types
def test_pinv(shape, chunk, scale, dtype):
    plain, scale, x = operand(shape, chunk, scale, dtype)
    near(tw.linalg.pinv(x) * scale, np.linalg.pinv(plain), 1e-9)


@shapes
@scales
@types
def test_qr(shape, chunk, scale, dtype):
    plain, scale, x = operand(shape, chunk, scale, dtype)
    for mode in ("reduced", "complete"):
        q, r = (np.asarray(each) for each in tw.linalg.qr(x, mode=mode))
        near(q @ (r / scale), plain)
        near(adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], q.shape[-1], q.shape[-1])))
    r = np.asarray(tw.linalg.qr(x, mode="r")) / scale
    near(adjoint(r) @ r, adjoint(plain) @ plain)


@square
@scales
@types
def test_eigh(shape, chunk, scale, dtype):
    plain, scale, x = operand(shape, chunk, scale, dtype, lambda x: x + adjoint(x))
    values = np.linalg.eigvalsh(plain)
    near(tw.linalg.eigvalsh(x) / scale, values)
    found, vectors = (np.asarray(each) for each in tw.linalg.eigh(x))
    near(found / scale, values)
    near(plain @ vectors, vectors * (found / scale)[..., None, :])


@square
@scales
@types
def test_eig(shape, chunk, scale, dtype):
    plain, scale, x = operand(shape, chunk, scale, dtype)
    found, vectors = (np.asarray(each) for each in tw.linalg.eig(x))
    near(plain @ vectors, vectors * (found / scale)[..., None, :], 1e-11)
    sizes = np.sort(np.abs(np.asarray(tw.linalg.eigvals(x)) / scale), axis=-1)
    near(sizes, np.sort(np.abs(np.linalg.eigvals(plain)), axis=-1), 1e-11)


@square
@scales
@types
def test_cholesky(shape, chunk, scale, dtype):
    # The root of the scale is a power of two as well.
    plain, _, _ = operand(shape, chunk, 1.0, dtype, positive)
    root = 2.0 ** np.round(np.log2(scale) / 2)
    x = tw.asarray(plain * root * root)
    near(tw.linalg.cholesky(x if chunk is None else x.rechunk(chunk)) / root, np.linalg.cholesky(plain))


@square
@scales
@types
def test_systems(shape, chunk, scale, dtype):
    plain, scale, x = operand(shape, chunk, scale, dtype)
    right = matrix(7, *shape, dtype=dtype)[..., :2]
    near(tw.linalg.inv(x) * scale, np.linalg.inv(plain), 1e-10)
    near(tw.linalg.solve(x, tw.asarray(right)) * scale, np.linalg.solve(plain, right), 1e-10)
    near(tw.linalg.solve(x, tw.asarray(right) * scale), np.linalg.solve(plain, right), 1e-10)
    sign, logarithm = np.linalg.slogdet(plain)
    found = tw.linalg.slogdet(x)
    near(found[0], sign, 1e-10)
    near(found[1] - shape[-1] * np.log(scale), logarithm, 1e-9)
    if scale == 1:
        near(tw.linalg.det(x), np.linalg.det(plain), 1e-10)
    if len(shape) == 2:
        p, lower, upper = (np.asarray(each) for each in tw.linalg.lu(x))
        near(p @ lower @ (upper / scale), plain)


@pytest.mark.parametrize("shape, chunk", [case for case in ANY if len(case[0]) == 2])
@scales
@types
def test_least_squares(shape, chunk, scale, dtype):
    plain, scale, x = operand(shape, chunk, scale, dtype)
    right = matrix(8, shape[0], 2, dtype=dtype)
    expected = np.linalg.lstsq(plain, right)
    found = tw.linalg.lstsq(x, tw.asarray(right))
    near(found[0] * scale, expected[0], 1e-9)
    near(found[3] / scale, expected[3])
    assert int(found[2]) == expected[2]


def test_small_and_large_examples():
    small = np.array([[1.0, 2.0], [3.0, 4.0]]) * 1e-170
    np.testing.assert_allclose(tw.linalg.svdvals(tw.asarray(small)).compute(), np.linalg.svd(small)[1], rtol=1e-14)
    near(tw.linalg.svdvals(tw.asarray([[0.0, 1e308]])) / 1e308, [1.0])
    near(tw.linalg.matrix_norm(tw.asarray([[0.0, 1e308]]), ord=2) / 1e308, 1.0)
    near(tw.linalg.pinv(tw.asarray([[0.0, 1e300]])) * 1e300, [[0.0], [1.0]])


@pytest.mark.parametrize("value", [5e-324, 1e-310, 2.2e-308, 1.7e308])
def test_the_very_ends(value):
    x = tw.asarray(np.diag([value, value]))
    np.testing.assert_array_equal(tw.linalg.svdvals(x).compute(), [value, value])
    np.testing.assert_array_equal(tw.linalg.eigvalsh(x).compute(), [value, value])


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("scale", [2.0**-140, 2.0**-120, 2.0**120])
def test_singles(dtype, scale):
    plain = matrix(3, 5, 4, dtype=dtype)
    x = tw.asarray(plain * np.float32(scale))
    tolerance = 1e-4 if scale > 2.0**-130 else 2e-2
    near(np.asarray(tw.linalg.svdvals(x)).astype("f8") / scale, np.linalg.svd(plain)[1].astype("f8"), tolerance)
    q, r = (np.asarray(each) for each in tw.linalg.qr(x))
    near(q @ (r.astype("c16") / scale), plain.astype("c16"), tolerance)
