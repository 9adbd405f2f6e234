"""NumPy's functions called on our arrays."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import same

import tilewright as tw

X = np.arange(6.0).reshape(2, 3)


def test_arguments_by_position():
    x = tw.asarray(X)
    same(np.sum(x, 1, np.float32), np.sum(X, 1, np.float32))
    same(np.std(x, 0, ddof=1), np.std(X, 0, ddof=1))
    same(np.clip(x, 1, 3), np.clip(X, 1, 3))
    same(np.clip(x, a_min=None, a_max=3), np.clip(X, None, 3))
    same(np.roll(x, 1, 1), np.roll(X, 1, 1))
    same(np.reshape(x, (3, 2)), np.reshape(X, (3, 2)))
    same(np.take(x, [1, 0], 1), np.take(X, [1, 0], 1))
    same(np.diff(x, 1, 0), np.diff(X, 1, 0))
    same(np.concatenate([x, X], 1), np.concatenate([X, X], 1))
    same(np.argsort(x, 0, kind="stable"), np.argsort(X, 0, kind="stable"))
    same(np.tensordot(x, x, ([1], [1])), np.tensordot(X, X, ([1], [1])))
    same(np.linalg.vecdot(x, x, axis=0), np.linalg.vecdot(X, X, axis=0))
    same(np.round(x / 7, 2), np.round(X / 7, 2))
    same(np.isin(x, [1, 2], assume_unique=True), np.isin(X, [1, 2]))
    same(np.transpose(x), X.T)
    same(np.squeeze(x[:1]), X[0])
    same(np.where(x)[0], np.where(X)[0])
    same(np.where(x > 2, x, 0), np.where(X > 2, X, 0))


def test_ufuncs():
    x = tw.asarray(X)
    same(np.add(x, X), X + X)
    same(np.add.reduce(x), np.add.reduce(X))
    same(np.maximum.reduce(x, axis=1, keepdims=True), np.maximum.reduce(X, axis=1, keepdims=True))
    same(np.logical_and.reduce(x, axis=None), np.logical_and.reduce(X, axis=None))
    same(np.add.accumulate(x, 1), np.add.accumulate(X, 1))
    same(np.multiply.outer(x, x), np.multiply.outer(X, X))
    same(np.multiply.outer(X, x[0]), np.multiply.outer(X, X[0]))


def test_what_is_not_there_is_refused():
    x = tw.asarray(X)
    for call in (
        lambda: np.unwrap(x),
        lambda: np.sum(x, out=np.zeros(())),
        lambda: np.add(x, x, out=np.zeros((2, 3))),
        lambda: np.add.at(x, [0], 1),
        lambda: np.add.reduceat(x, [0, 1]),
    ):
        with pytest.raises(TypeError):
            call()


@pytest.mark.parametrize("name", ["StandardScaler", "MinMaxScaler", "RobustScaler", "KMeans"])
def test_scikit_learn_takes_arrays_as_it_comes(name):
    pytest.importorskip("sklearn")
    from sklearn import cluster, preprocessing

    values = np.random.default_rng(0).normal(size=(40, 3))
    make = getattr(preprocessing, name, None) or (lambda: cluster.KMeans(3, n_init=1, random_state=0))
    before = tw.asarray(values)
    assert np.allclose(make().fit_transform(before), make().fit_transform(values))
    assert np.array_equal(before.compute(), values)
