"""Cases of `plans.py` on matrices, images, sequences and signals.

The cases are everyday programs, each as a NumPy user writes it, on inputs that would fill a few machines.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as tw
from plan_data import Data, group, jacobi, sigmoid, softmax


# Factorisations.


@group("factorisation")
def tall_svd(d: Data) -> Any:
    return tw.linalg.svd(d("tall svd", 2_000_000, 100), full_matrices=False)[0]


@group("factorisation")
def tall_svd_right(d: Data) -> Any:
    return tw.linalg.svd(d("tall svd", 2_000_000, 100), full_matrices=False)[2]


@group("factorisation")
def singular_values(d: Data) -> Any:
    return tw.linalg.svdvals(d("tall svd", 2_000_000, 100))


@group("factorisation")
def tall_qr(d: Data) -> Any:
    return tw.linalg.qr(d("tall svd", 2_000_000, 100))[0]


@group("factorisation")
def tall_qr_triangle(d: Data) -> Any:
    return tw.linalg.qr(d("tall svd", 2_000_000, 100), mode="r")


@group("factorisation")
def indirect_qr(d: Data) -> Any:
    return tw.linalg.tsqr(d("tall svd", 2_000_000, 100), method="indirect")[0]


@group("factorisation")
def principal_components(d: Data) -> Any:
    z = d("tall svd", 2_000_000, 100)
    z = z - z.mean(axis=0)
    _, _, vh = tw.linalg.svd(z, full_matrices=False)
    return z @ vh[:10].T


@group("factorisation")
def components_of_the_covariance(d: Data) -> Any:
    z = d.tall - d.tall.mean(axis=0)
    _, v = tw.linalg.eigh(z.T @ z)
    return z @ v[:, -10:]


@group("factorisation")
def cholesky(d: Data) -> Any:
    a = d("positive", 8192, 8192)
    return tw.linalg.cholesky(a)


@group("factorisation")
def solve(d: Data) -> Any:
    return tw.linalg.solve(d("system", 8192, 8192), d("right", 8192))


@group("factorisation")
def triangular_solve(d: Data) -> Any:
    return tw.linalg.solve_triangular(d("lower", 8192, 8192), d("rights", 8192, 512), lower=True)


@group("factorisation")
def inverse(d: Data) -> Any:
    return tw.linalg.inv(d("small system", 4096, 4096))


@group("factorisation")
def compressed_svd(d: Data) -> Any:
    return tw.linalg.svd_compressed(d("large", 100_000, 5000), 10, seed=1)[1]


@group("factorisation")
def range_finder(d: Data) -> Any:
    a = d("large", 100_000, 5000)
    return tw.linalg.qr(a @ d.random(5000, 20))[0]


@group("factorisation")
def pseudoinverse(d: Data) -> Any:
    return tw.linalg.pinv(d("tall pinv", 500_000, 100))


@group("factorisation")
def non_negative_step(d: Data) -> Any:
    v, w, h = d("large", 100_000, 5000), d("nmf w", 100_000, 20), d("nmf h", 20, 5000)
    return h * (w.T @ v) / ((w.T @ w) @ h + 1e-9)


@group("factorisation")
def alternating_least_squares(d: Data) -> Any:
    r, v = d("ratings", 200_000, 4000), d("item factors", 4000, 32)
    u = tw.linalg.solve(v.T @ v + 0.1 * tw.eye(32), (r @ v).T).T
    return tw.linalg.solve(u.T @ u + 0.1 * tw.eye(32), u.T @ r).T


@group("factorisation")
def tensor_times_factors(d: Data) -> Any:
    return tw.einsum("ijk,jf,kf->if", d.cube, d("second", 800, 32), d("third", 800, 32))


@group("factorisation")
def tucker_core(d: Data) -> Any:
    a, b, c = (d(f"mode {k}", 800, 16) for k in range(3))
    return tw.einsum("ijk,ia,jb,kc->abc", d.cube, a, b, c)


@group("factorisation")
def power_iteration(d: Data) -> Any:
    a, v = d.square, d("start", 16_000)
    for _ in range(4):
        v = a @ v
        v = v / tw.sqrt((v * v).sum())
    return v


@group("factorisation")
def many_small_systems(d: Data) -> Any:
    return tw.linalg.solve(d("stack", 100_000, 16, 16), d("stack right", 100_000, 16, 1))


@group("factorisation")
def many_small_svds(d: Data) -> Any:
    return tw.linalg.svdvals(d("stack", 100_000, 16, 16))


@group("factorisation")
def conjugate_gradients(d: Data) -> Any:
    a, b = d.square, d("start", 16_000)
    x, r = tw.zeros(16_000), b
    p, rr = r, (r * r).sum()
    for _ in range(3):
        ap = a @ p
        alpha = rr / (p * ap).sum()
        x, r = x + alpha * p, r - alpha * ap
        new = (r * r).sum()
        p, rr = r + (new / rr) * p, new
    return x


# Stencils.


@group("stencil")
def interior_of_five_points(d: Data) -> Any:
    u = d.image
    return 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])


@group("stencil")
def jacobi_sweep(d: Data) -> Any:
    return jacobi(d.image)


@group("stencil")
def three_jacobi_sweeps(d: Data) -> Any:
    u = d.image
    for _ in range(3):
        u = jacobi(u)
    return u


@group("stencil")
def periodic_laplacian(d: Data) -> Any:
    u = d.image
    return tw.roll(u, 1, 0) + tw.roll(u, -1, 0) + tw.roll(u, 1, 1) + tw.roll(u, -1, 1) - 4 * u


@group("stencil")
def residual_norm(d: Data) -> Any:
    u, f = d.image, d("force", 16_384, 16_384)
    r = f[1:-1, 1:-1] - (4 * u[1:-1, 1:-1] - u[:-2, 1:-1] - u[2:, 1:-1] - u[1:-1, :-2] - u[1:-1, 2:])
    return tw.sqrt((r * r).sum())


@group("stencil")
def blur(d: Data) -> Any:
    u = tw.pad(d.image, 1, mode="edge")
    return sum(u[i : i + 16_384, j : j + 16_384] for i in range(3) for j in range(3)) / 9


@group("stencil")
def edges(d: Data) -> Any:
    u = d.image
    gx = u[:-2, 2:] + 2 * u[1:-1, 2:] + u[2:, 2:] - u[:-2, :-2] - 2 * u[1:-1, :-2] - u[2:, :-2]
    gy = u[2:, :-2] + 2 * u[2:, 1:-1] + u[2:, 2:] - u[:-2, :-2] - 2 * u[:-2, 1:-1] - u[:-2, 2:]
    return tw.hypot(gx, gy)


@group("stencil")
def slope(d: Data) -> Any:
    gy, gx = tw.gradient(d.image)
    return tw.sqrt(gx * gx + gy * gy)


@group("stencil")
def seven_points(d: Data) -> Any:
    u = d.cube
    c = (slice(1, -1),) * 3
    faces = [tuple(slice(1 + s, s - 1 or None) if a == k else slice(1, -1) for a in range(3)) for k in range(3) for s in (-1, 1)]
    return sum(u[face] for face in faces) - 6 * u[c]


@group("stencil")
def life(d: Data) -> Any:
    u = d("cells", 32_768, 32_768, dtype="u1")
    n = sum(tw.roll(tw.roll(u, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    return ((n == 3) | ((u == 1) & (n == 2))).astype("u1")


@group("stencil")
def wave_step(d: Data) -> Any:
    u, before = d.image, d("before", 16_384, 16_384)
    lap = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
    return 2 * u[1:-1, 1:-1] - before[1:-1, 1:-1] + 0.1 * lap


@group("stencil")
def pooling(d: Data) -> Any:
    return tw.coarsen(tw.mean, d.image, {0: 4, 1: 4})


@group("stencil")
def diffusion_on_a_line(d: Data) -> Any:
    u = d.vector
    for _ in range(4):
        u = tw.pad(u[1:-1] + 0.1 * (u[:-2] - 2 * u[1:-1] + u[2:]), 1, mode="edge")
    return u


@group("stencil")
def image_convolution(d: Data) -> Any:
    """A layer of a network for images."""
    x, w = d("images", 256, 128, 128, 16, dtype="f4"), d("filters", 3, 3, 16, 32, dtype="f4")
    return sum(tw.einsum("bijc,cf->bijf", x[:, a : a + 126, b : b + 126], w[a, b]) for a in range(3) for b in range(3))


# Attention.


def heads(d: Data, batch: int = 0) -> tuple[Any, Any, Any]:
    shape = (batch, 8, 1024, 64) if batch else (8, 4096, 64)
    return tuple(d(name, *shape, dtype="f4") for name in ("query", "key", "value"))  # type: ignore[return-value]


@group("attention")
def one_head(d: Data) -> Any:
    q, k, v = (d(name, 16_384, 128, dtype="f4") for name in ("query", "key", "value"))
    return softmax(q @ k.T / 11.3) @ v


@group("attention")
def several_heads(d: Data) -> Any:
    q, k, v = heads(d)
    return tw.einsum("htu,hue->hte", softmax(tw.einsum("hte,hue->htu", q, k) / 8), v)


@group("attention")
def a_batch(d: Data) -> Any:
    q, k, v = heads(d, 64)
    return softmax(q @ tw.matrix_transpose(k) / 8) @ v


@group("attention")
def causal(d: Data) -> Any:
    q, k, v = heads(d)
    t = tw.arange(4096)
    s = tw.where(t[:, None] >= t, q @ tw.matrix_transpose(k) / 8, -tw.inf)
    return softmax(s) @ v


@group("attention")
def linear(d: Data) -> Any:
    q, k, v = (d(name, 1_000_000, 128, dtype="f4") for name in ("query", "key", "value"))
    k, q = tw.exp(k), softmax(q)
    return (q @ (k.T @ v)) / (q @ k.sum(axis=0))[:, None]


@group("attention")
def projections(d: Data) -> Any:
    x = d("tokens", 32_768, 1024, dtype="f4")
    q, k = x @ d("wq", 1024, 1024, dtype="f4"), x @ d("wk", 1024, 1024, dtype="f4")
    return (q * k).sum(axis=1)


@group("attention")
def a_block(d: Data) -> Any:
    x = d("tokens", 4096, 1024, dtype="f4")
    q, k, v = (tw.einsum("td,dhe->hte", x, d(name, 1024, 16, 64, dtype="f4")) for name in ("wq", "wk", "wv"))
    a = tw.einsum("htu,hue->hte", softmax(tw.einsum("hte,hue->htu", q, k) / 8), v)
    y = x + tw.einsum("hte,hed->td", a, d("wo", 16, 64, 1024, dtype="f4"))
    return y + tw.maximum(y @ d("up", 1024, 4096, dtype="f4"), 0) @ d("down", 4096, 1024, dtype="f4")


@group("attention")
def normalise_tokens(d: Data) -> Any:
    x = d("many tokens", 500_000, 1024, dtype="f4")
    m = x.mean(axis=1, keepdims=True)
    return (x - m) / tw.sqrt(((x - m) ** 2).mean(axis=1, keepdims=True) + 1e-5) * d("gain", 1024, dtype="f4")


@group("attention")
def feed_forward(d: Data) -> Any:
    x = d("tokens", 32_768, 1024, dtype="f4")
    h = x @ d("up", 1024, 4096, dtype="f4")
    return (h * sigmoid(h)) @ d("down", 4096, 1024, dtype="f4")


@group("attention")
def embedding(d: Data) -> Any:
    return tw.take(d("words", 50_000, 512, dtype="f4"), d("ids", 200_000, dtype="i8"), axis=0)


@group("attention")
def cross_entropy(d: Data) -> Any:
    s = d("hidden", 32_768, 512, dtype="f4") @ d("vocabulary", 512, 20_000, dtype="f4")
    m = s.max(axis=1)
    return (m + tw.log(tw.exp(s - m[:, None]).sum(axis=1))).mean()


# Fourier transforms.


@group("fourier")
def rows(d: Data) -> Any:
    return tw.fft.rfft(d("signals", 100_000, 2048))


@group("fourier")
def columns(d: Data) -> Any:
    return tw.fft.fft(d("waves", 4096, 20_000), axis=0)


@group("fourier")
def plane(d: Data) -> Any:
    return tw.fft.fft2(d("plane", 8192, 8192))


@group("fourier")
def planes(d: Data) -> Any:
    return tw.fft.fft2(d("planes", 512, 512, 512))


@group("fourier")
def filtered_plane(d: Data) -> Any:
    f = tw.fft.fft2(d("plane", 8192, 8192))
    return tw.real(tw.fft.ifft2(f * d("mask", 8192, 8192)))


@group("fourier")
def mean_spectrum(d: Data) -> Any:
    f = tw.fft.rfft(d("signals", 100_000, 2048) * d("window", 2048))
    return (tw.real(f) ** 2 + tw.imag(f) ** 2).mean(axis=0)


@group("fourier")
def convolution_of_rows(d: Data) -> Any:
    f = tw.fft.rfft(d("signals", 100_000, 2048)) * tw.fft.rfft(d("window", 2048))
    return tw.fft.irfft(f, n=2048)


@group("fourier")
def frames(d: Data) -> Any:
    f = tw.fft.rfft(d("sound", 51_200_000).reshape((100_000, 512)) * d("hann", 512))
    return tw.log1p(tw.abs(f))


@group("fourier")
def volume(d: Data) -> Any:
    return tw.fft.fftn(d("volume", 512, 512, 512))


# Windows.


@group("windows")
def moving_mean(d: Data) -> Any:
    return tw.sliding_window_view(d.vector, 7).mean(axis=-1)


@group("windows")
def moving_mean_of_series(d: Data) -> Any:
    return tw.sliding_window_view(d.series, 24, axis=1).mean(axis=-1)


@group("windows")
def moving_maximum_of_samples(d: Data) -> Any:
    return tw.sliding_window_view(d.tall, 5, axis=0).max(axis=-1)


@group("windows")
def convolution(d: Data) -> Any:
    return tw.convolve(d.vector, np.ones(9), mode="same")


@group("windows")
def differences(d: Data) -> Any:
    return tw.diff(d.vector)


@group("windows")
def volatility(d: Data) -> Any:
    r = tw.diff(tw.log(d.series), axis=1)
    return tw.sqrt(tw.sliding_window_view(r * r, 20, axis=1).mean(axis=-1))


@group("windows")
def moving_mean_by_sums(d: Data) -> Any:
    c = tw.cumsum(d.series, axis=1)
    return (c[:, 100:] - c[:, :-100]) / 100


@group("windows")
def correlation_with_a_shift(d: Data) -> Any:
    z = d.series - d.series.mean(axis=1, keepdims=True)
    return z[:, 24:] @ z[:, :-24].T


@group("windows")
def local_deviation(d: Data) -> Any:
    v = tw.sliding_window_view(d("small image", 8192, 8192), (3, 3))
    return v.std(axis=(-2, -1))


@group("windows")
def correlation_of_series(d: Data) -> Any:
    return tw.corrcoef(d.series)


# Chains of products and of element-wise operations.


@group("chain")
def product(d: Data) -> Any:
    return d.square @ d("other square", 16_000, 16_000)


@group("chain")
def three_factors(d: Data) -> Any:
    return d("a", 20_000, 2000) @ d("b", 2000, 10_000) @ d("c", 10_000, 500)


@group("chain")
def four_factors(d: Data) -> Any:
    return tw.linalg.multi_dot([d("a", 20_000, 2000), d("b", 2000, 10_000), d("c", 10_000, 500), d("e", 500, 8000)])


@group("chain")
def factors_and_a_vector(d: Data) -> Any:
    return d.square @ (d("other square", 16_000, 16_000) @ d("start", 16_000))


@group("chain")
def gram(d: Data) -> Any:
    return d.tall.T @ d.tall


@group("chain")
def outer_gram(d: Data) -> Any:
    a = d("wide", 8000, 40_000)
    return a @ a.T


@group("chain")
def tall_times_tall(d: Data) -> Any:
    return d.tall.T @ d("targets", 2_000_000, 50)


@group("chain")
def sum_times(d: Data) -> Any:
    return (d.square + d("other square", 16_000, 16_000)) @ d("narrow", 16_000, 2000)


@group("chain")
def transposed_sum(d: Data) -> Any:
    return (d.square + d.square.T) / 2


@group("chain")
def fourth_power(d: Data) -> Any:
    b = d("system", 8192, 8192)
    b = b @ b
    return b @ b


@group("chain")
def rank_one_update(d: Data) -> Any:
    return d.square - tw.outer(d("start", 16_000), d("end", 16_000))


@group("chain")
def trace_of_a_product(d: Data) -> Any:
    return (d.square * d("other square", 16_000, 16_000).T).sum()


@group("chain")
def bilinear_form(d: Data) -> Any:
    return d("start", 16_000) @ (d.square @ d("end", 16_000))


@group("chain")
def element_wise(d: Data) -> Any:
    a, b = d.square, d("other square", 16_000, 16_000)
    return tw.sqrt(a * a + b * b) * tw.exp(-a) + tw.sin(b)


@group("chain")
def scaled_rows_and_columns(d: Data) -> Any:
    a = d.square
    return a / a.sum(axis=0) / a.sum(axis=1)[:, None]


@group("chain")
def page_rank(d: Data) -> Any:
    a, r = d.square, tw.full(16_000, 1 / 16_000)
    a = a / a.sum(axis=0)
    for _ in range(3):
        r = 0.85 * (a @ r) + 0.15 / 16_000
    return r


@group("chain")
def batch_of_products(d: Data) -> Any:
    return d("left stack", 2000, 256, 256) @ d("right stack", 2000, 256, 256)


@group("chain")
def contraction_of_tensors(d: Data) -> Any:
    return tw.einsum("ijk,jkf->if", d("tensor", 2000, 500, 200), d("core", 500, 200, 100))
