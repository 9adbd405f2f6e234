"""Cases of `plans.py` on tables of samples.

The cases are everyday programs, each as a NumPy user writes it, on inputs that would fill a few machines.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as tw
from plan_data import Data, distances, group, jacobi, sigmoid, softmax, standard


# Statistics.


@group("statistics")
def mean_of_columns(d: Data) -> Any:
    return d.tall.mean(axis=0)


@group("statistics")
def deviation_of_columns(d: Data) -> Any:
    return d.tall.std(axis=0)


@group("statistics")
def deviation_of_rows(d: Data) -> Any:
    return d.tall.std(axis=1)


@group("statistics")
def standardise(d: Data) -> Any:
    return standard(d.tall)


@group("statistics")
def standardise_and_gram(d: Data) -> Any:
    z = standard(d.tall)
    return z.T @ z


@group("statistics")
def covariance(d: Data) -> Any:
    return tw.cov(d.tall, rowvar=False)


@group("statistics")
def correlation(d: Data) -> Any:
    return tw.corrcoef(d.tall, rowvar=False)


@group("statistics")
def sum_of_a_vector(d: Data) -> Any:
    return d.vector.sum()


@group("statistics")
def product_of_vectors(d: Data) -> Any:
    return tw.vecdot(d.vector, d("other", 200_000_000))


@group("statistics")
def scale_to_unit_range(d: Data) -> Any:
    low, high = d.tall.min(axis=0), d.tall.max(axis=0)
    return (d.tall - low) / (high - low)


@group("statistics")
def soft_maximum_of_rows(d: Data) -> Any:
    return softmax(d.tall)


@group("statistics")
def histogram_of_a_vector(d: Data) -> Any:
    return tw.histogram(d.vector, bins=100, range=(-4.0, 4.0))[0]


@group("statistics")
def median_of_columns(d: Data) -> Any:
    return tw.median(d("samples", 200_000, 200), axis=0)


@group("statistics")
def weighted_average(d: Data) -> Any:
    return tw.average(d.tall, axis=0, weights=d.labels)


@group("statistics")
def skewness(d: Data) -> Any:
    return (standard(d.tall) ** 3).mean(axis=0)


@group("statistics")
def clipped_scores(d: Data) -> Any:
    return tw.clip(standard(d.tall), -3, 3).sum(axis=1)


@group("statistics")
def running_sum(d: Data) -> Any:
    return tw.cumsum(d.vector)


@group("statistics")
def largest_of_rows(d: Data) -> Any:
    return tw.argmax(d.tall, axis=1)


@group("statistics")
def cosine_with_a_vector(d: Data) -> Any:
    v = d("direction", 200)
    return (d.tall @ v) / (tw.sqrt((d.tall * d.tall).sum(axis=1)) * tw.sqrt((v * v).sum()))


@group("statistics")
def mahalanobis(d: Data) -> Any:
    z = d.tall - d.tall.mean(axis=0)
    return tw.sqrt(((z @ d("precision", 200, 200)) * z).sum(axis=1))


@group("statistics")
def autocorrelation(d: Data) -> Any:
    v = d.vector - d.vector.mean()
    return (v[100:] * v[:-100]).sum() / (v * v).sum()


@group("statistics")
def mean_of_everything_drawn(d: Data) -> Any:
    return d.random(2_000_000, 200).mean()


@group("statistics")
def covariance_of_draws(d: Data) -> Any:
    z = d.random(2_000_000, 200)
    z = z - z.mean(axis=0)
    return z.T @ z / 1_999_999


# Regressions.


@group("regression")
def normal_equations(d: Data) -> Any:
    x, y = d.tall, d.labels
    return tw.linalg.solve(x.T @ x, x.T @ y)


@group("regression")
def ridge(d: Data) -> Any:
    x, y = d.tall, d.labels
    return tw.linalg.solve(x.T @ x + 0.1 * tw.eye(200), x.T @ y)


@group("regression")
def ridge_standardised(d: Data) -> Any:
    x, y = standard(d.tall), d.labels - d.labels.mean()
    return tw.linalg.solve(x.T @ x + 0.1 * tw.eye(200), x.T @ y)


@group("regression")
def ridge_of_many_targets(d: Data) -> Any:
    x = d.tall
    return tw.linalg.solve(x.T @ x + 0.1 * tw.eye(200), x.T @ d("targets", 2_000_000, 50))


@group("regression")
def least_squares(d: Data) -> Any:
    return tw.linalg.lstsq(d.tall, d.labels)[0]


@group("regression")
def weighted_least_squares(d: Data) -> Any:
    x, y, w = d.tall, d.labels, d("weights", 2_000_000)
    xw = x * w[:, None]
    return tw.linalg.solve(xw.T @ x, xw.T @ y)


@group("regression")
def logistic_gradient(d: Data) -> Any:
    x, y, w = d.tall, d.labels, d("w", 200)
    return x.T @ (sigmoid(x @ w) - y) / 2_000_000


@group("regression")
def logistic_newton(d: Data) -> Any:
    x, y, w = d.tall, d.labels, d("w", 200)
    p = sigmoid(x @ w)
    h = (x * (p * (1 - p))[:, None]).T @ x + 0.001 * tw.eye(200)
    return w - tw.linalg.solve(h, x.T @ (p - y))


@group("regression")
def logistic_three_steps(d: Data) -> Any:
    x, y, w = d.tall, d.labels, d("w", 200)
    for _ in range(3):
        w = w - 0.1 * (x.T @ (sigmoid(x @ w) - y)) / 2_000_000
    return w


@group("regression")
def logistic_loss(d: Data) -> Any:
    x, y, w = d.tall, d.labels, d("w", 200)
    z = x @ w
    return (tw.log1p(tw.exp(-tw.abs(z))) + tw.maximum(z, 0) - y * z).mean()


@group("regression")
def poisson_newton(d: Data) -> Any:
    x, y, w = d.tall, d.labels, d("w", 200)
    mu = tw.exp(x @ w)
    return w - tw.linalg.solve((x * mu[:, None]).T @ x, x.T @ (mu - y))


@group("regression")
def five_steps_of_descent(d: Data) -> Any:
    x, y, w = d.tall, d.labels, d("w", 200)
    for _ in range(5):
        w = w - 1e-7 * (x.T @ (x @ w - y))
    return w


@group("regression")
def lasso(d: Data) -> Any:
    x, y, w = d.tall, d.labels, d("w", 200)
    for _ in range(3):
        v = w - 1e-7 * (x.T @ (x @ w - y))
        w = tw.sign(v) * tw.maximum(tw.abs(v) - 0.01, 0)
    return w


@group("regression")
def many_classes(d: Data) -> Any:
    x, w = d.points, d("classes", 64, 100)
    target = d("target", 1_000_000, 100)
    return x.T @ (softmax(x @ w) - target)


@group("regression")
def predictions(d: Data) -> Any:
    return d.tall @ d("coefficients", 200, 10)


@group("regression")
def residual_sum_of_squares(d: Data) -> Any:
    r = d.labels - d.tall @ d("w", 200)
    return 1 - (r * r).sum() / ((d.labels - d.labels.mean()) ** 2).sum()


@group("regression")
def huber_gradient(d: Data) -> Any:
    r = d.tall @ d("w", 200) - d.labels
    return d.tall.T @ tw.clip(r, -1.0, 1.0)


@group("regression")
def kernel_ridge(d: Data) -> Any:
    x = d("few", 8000, 50)
    k = tw.exp(-0.1 * distances(x, x))
    return tw.linalg.solve(k + tw.eye(8000), d("few labels", 8000))


@group("regression")
def network_forward(d: Data) -> Any:
    x = d.points
    h = tw.maximum(x @ d("w1", 64, 512) + d("b1", 512), 0)
    return softmax(h @ d("w2", 512, 10) + d("b2", 10))


@group("regression")
def network_gradient(d: Data) -> Any:
    x, w1, w2 = d.points, d("w1", 64, 512), d("w2", 512, 10)
    h = tw.maximum(x @ w1, 0)
    e = softmax(h @ w2) - d("target10", 1_000_000, 10)
    g = (e @ w2.T) * (h > 0)
    return w1 - 0.1 * (x.T @ g)


# Clustering.


@group("clustering")
def nearest_centres(d: Data) -> Any:
    return tw.argmin(distances(d.points, d("centres", 100, 64)), axis=1)


@group("clustering")
def nearest_centres_by_differences(d: Data) -> Any:
    x, c = d("planar", 2_000_000, 3), d("planar centres", 50, 3)
    return tw.argmin(((x[:, None, :] - c[None, :, :]) ** 2).sum(axis=2), axis=1)


@group("clustering")
def means_step(d: Data) -> Any:
    x, c = d.points, d("centres", 100, 64)
    near = tw.argmin(distances(x, c), axis=1)
    member = (near[:, None] == tw.arange(100)).astype("f8")
    return (member.T @ x) / tw.maximum(member.sum(axis=0), 1)[:, None]


@group("clustering")
def means_two_steps(d: Data) -> Any:
    x, c = d.points, d("centres", 100, 64)
    for _ in range(2):
        near = tw.argmin(distances(x, c), axis=1)
        member = (near[:, None] == tw.arange(100)).astype("f8")
        c = (member.T @ x) / tw.maximum(member.sum(axis=0), 1)[:, None]
    return c


@group("clustering")
def inertia(d: Data) -> Any:
    return distances(d.points, d("centres", 100, 64)).min(axis=1).sum()


@group("clustering")
def pairs_of_points(d: Data) -> Any:
    x = d("some", 16_000, 64)
    return distances(x, x)


@group("clustering")
def gaussian_kernel(d: Data) -> Any:
    x = d("some", 16_000, 64)
    return tw.exp(-distances(x, x) / 2)


@group("clustering")
def neighbours_within_reach(d: Data) -> Any:
    x = d("some", 16_000, 64)
    return (distances(x, x) < 1.0).sum(axis=1)


@group("clustering")
def nearest_of_a_library(d: Data) -> Any:
    return tw.argmin(distances(d("queries", 100_000, 128), d("library", 50_000, 128)), axis=1)


@group("clustering")
def responsibilities(d: Data) -> Any:
    x, m, v = d.points, d("means", 20, 64), d("variances", 20, 64)
    quadratic = (x * x) @ (1 / v).T - 2 * (x @ (m / v).T) + (m * m / v).sum(axis=1)
    return softmax(-0.5 * (quadratic + tw.log(v).sum(axis=1)))


@group("clustering")
def mixture_step(d: Data) -> Any:
    x, m, v = d.points, d("means", 20, 64), d("variances", 20, 64)
    quadratic = (x * x) @ (1 / v).T - 2 * (x @ (m / v).T) + (m * m / v).sum(axis=1)
    r = softmax(-0.5 * (quadratic + tw.log(v).sum(axis=1)))
    n = r.sum(axis=0)[:, None]
    mean = (r.T @ x) / n
    return (r.T @ (x * x)) / n - mean * mean


@group("clustering")
def fuzzy_step(d: Data) -> Any:
    x = d.points
    u = 1 / (distances(x, d("centres", 100, 64)) + 1e-9)
    u = (u / u.sum(axis=1, keepdims=True)) ** 2
    return (u.T @ x) / u.sum(axis=0)[:, None]


@group("clustering")
def normalised_laplacian(d: Data) -> Any:
    a = d.square
    s = 1 / tw.sqrt(a.sum(axis=1))
    return tw.eye(16_000) - s[:, None] * a * s


# Groups.


def labels_of(n: int, n_groups: int) -> Any:
    return np.random.default_rng(5).integers(0, n_groups, n)


@group("groups")
def sums_of_few_groups(d: Data) -> Any:
    return tw.group_reduce("sum", d("table", 1_000_000, 100), labels_of(1_000_000, 20))


@group("groups")
def means_of_many_groups(d: Data) -> Any:
    return tw.group_reduce("mean", d("table", 1_000_000, 100), labels_of(1_000_000, 5000))


@group("groups")
def deviations(d: Data) -> Any:
    return tw.group_reduce("std", d("table", 1_000_000, 100), labels_of(1_000_000, 20))


@group("groups")
def centred_by_group(d: Data) -> Any:
    x, labels = d("table", 1_000_000, 100), labels_of(1_000_000, 20)
    return x - tw.take(tw.group_reduce("mean", x, labels), tw.asarray(labels), axis=0)


@group("groups")
def anomaly_of_days(d: Data) -> Any:
    x, day = d.days, np.arange(7300) % 365
    return x - tw.take(tw.group_reduce("mean", x, day), tw.asarray(day), axis=0)


@group("groups")
def means_of_years(d: Data) -> Any:
    return d.days.reshape((20, 365, 180, 360)).mean(axis=1)


@group("groups")
def means_of_the_map(d: Data) -> Any:
    return (d.days * tw.cos(tw.linspace(-1.5, 1.5, 180))[:, None]).mean(axis=(1, 2))


@group("groups")
def counts(d: Data) -> Any:
    return tw.bincount(d("keys", 100_000_000, dtype="i8") % 1000, minlength=1000)


@group("groups")
def weighted_counts(d: Data) -> Any:
    return tw.bincount(d("keys", 100_000_000, dtype="i8") % 1000, weights=d("amounts", 100_000_000), minlength=1000)


@group("groups")
def sums_by_membership(d: Data) -> Any:
    member = (d("keys of rows", 2_000_000, dtype="i8")[:, None] == tw.arange(30)).astype("f8")
    return member.T @ d.tall


@group("groups")
def sums_where(d: Data) -> Any:
    x = d.tall
    return tw.where(x[:, :1] > 0, x, 0.0).sum(axis=0) / (x[:, 0] > 0).sum()


# The same on arrays that are drawn or come in chunks: their blocks do not fall on the borders of workers.


def drawn(d: Data) -> Any:
    return d.random(2_000_000, 200)


def chunked(d: Data) -> Any:
    return d.tall.rechunk((90_000, 200))


@group("drawn")
def standardise_and_gram_of_draws(d: Data) -> Any:
    z = standard(drawn(d))
    return z.T @ z


@group("drawn")
def svd_of_draws(d: Data) -> Any:
    return tw.linalg.svd(d.random(1_000_000, 100), full_matrices=False)[0]


@group("drawn")
def singular_values_of_draws(d: Data) -> Any:
    return tw.linalg.svdvals(d.random(2_000_000, 50))


@group("drawn")
def nearest_centres_of_draws(d: Data) -> Any:
    x, c = d.random(1_000_000, 64), tw.random.default_rng(4).normal(size=(100, 64))
    return tw.argmin(((x[:, None, :] - c[None, :, :]) ** 2).sum(axis=2), axis=1)


@group("drawn")
def means_step_of_draws(d: Data) -> Any:
    x, c = d.random(1_000_000, 64), d.random(100, 64)
    near = tw.argmin(distances(x, c), axis=1)
    member = (near[:, None] == tw.arange(100)).astype("f8")
    return (member.T @ x) / tw.maximum(member.sum(axis=0), 1)[:, None]


@group("drawn")
def normal_equations_of_draws(d: Data) -> Any:
    x, w = drawn(d), d.random(200)
    y = x @ w + d.random(2_000_000)
    return tw.linalg.solve(x.T @ x, x.T @ y)


@group("drawn")
def logistic_gradient_of_draws(d: Data) -> Any:
    x, w = drawn(d), d.random(200)
    y = (d.random(2_000_000) > 0).astype("f8")
    return x.T @ (sigmoid(x @ w) - y)


@group("drawn")
def product_of_draws(d: Data) -> Any:
    return d.random(10_000, 10_000) @ d.random(10_000, 10_000)


@group("chunked")
def standardise_and_gram_of_chunks(d: Data) -> Any:
    z = standard(chunked(d))
    return z.T @ z


@group("chunked")
def scores_of_chunks(d: Data) -> Any:
    return standard(chunked(d)) @ d("w", 200)


@group("chunked")
def normal_equations_of_chunks(d: Data) -> Any:
    x, y = chunked(d), d.labels.rechunk(90_000)
    return tw.linalg.solve(x.T @ x, x.T @ y)


@group("chunked")
def nearest_centres_of_chunks(d: Data) -> Any:
    return tw.argmin(distances(d.points.rechunk((45_000, 64)), d("centres", 100, 64)), axis=1)


@group("chunked")
def jacobi_of_chunks(d: Data) -> Any:
    return jacobi(d.image.rechunk((1500, 1500)))


@group("chunked")
def function_of_chunks(d: Data) -> Any:
    x = chunked(d).map_blocks(np.sqrt, dtype="f8")
    return (x - x.mean(axis=0)).T @ x
