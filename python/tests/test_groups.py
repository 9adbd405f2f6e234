"""Reductions of groups along an axis."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw

RNG = np.random.default_rng(3)
LABELS = RNG.integers(0, 7, size=400)
FUNCTIONS = {
    "sum": np.sum, "prod": np.prod, "min": np.min, "max": np.max, "any": np.any, "all": np.all, "mean": np.mean, "var": np.var, "std": np.std,
}  # fmt: skip
SKIPPING = {"sum": np.nansum, "prod": np.nanprod, "min": np.nanmin, "max": np.nanmax, "mean": np.nanmean, "var": np.nanvar, "std": np.nanstd}


def by_numpy(function, x, labels, axis, **options):
    groups = [np.compress(labels == k, x, axis=axis) for k in range(labels.max() + 1)]
    return np.stack([function(group, axis=axis, **options) for group in groups], axis=axis)


@pytest.mark.parametrize("kind", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u1", "?", "c16"])
@pytest.mark.parametrize("chunks", [(400, 33), (64, 20)])
def test_every_reduction(kind, dtype, chunks):
    if dtype == "c16" and kind in ("min", "max"):
        pytest.skip("complex numbers have no order here")
    x = (RNG.normal(size=(400, 33)) * 2).astype("f8")
    x = (x > 1) if dtype == "?" else np.abs(x).astype(dtype) if dtype == "u1" else x.astype(dtype)
    found = tw.group_reduce(kind, tw.asarray(x, chunks=chunks), LABELS)
    expected = by_numpy(FUNCTIONS[kind], x, LABELS, 0)
    assert found.shape == expected.shape
    # Means of groups of whole numbers are float64, as in NumPy; so are sums int64.
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found.compute(), expected, rtol=2e-4 if dtype == "f4" else 1e-10, atol=1e-5)


@pytest.mark.parametrize("kind", SKIPPING)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_missing_values_and_axes(kind, axis):
    x = np.moveaxis(RNG.normal(size=(400, 5, 4)), 0, axis)
    x[RNG.random(x.shape) < 0.2] = np.nan
    found = tw.group_reduce(kind, tw.asarray(x, chunks=50), LABELS, axis=axis, skipna=True).compute()
    np.testing.assert_allclose(found, by_numpy(SKIPPING[kind], x, LABELS, axis), rtol=1e-10)
    np.testing.assert_array_equal(
        tw.group_reduce("count", tw.asarray(x, chunks=50), LABELS, axis=axis).compute(), by_numpy(np.sum, ~np.isnan(x), LABELS, axis)
    )


def test_rows_long_and_short():
    # Rows of several strips, of less than one, and of a few elements, which are folded in other ways.
    for width in (1, 5, 16, 17, 700, 5000):
        x = RNG.integers(-9, 9, size=(400, width))
        found = tw.group_reduce("sum", tw.asarray(x, chunks=(90, 4000)), LABELS).compute()
        np.testing.assert_array_equal(found, by_numpy(np.sum, x, LABELS, 0))


def test_elements_of_no_group_and_groups_of_none():
    x, labels = np.arange(6.0), np.array([0, -1, 2, 2, -1, 0])
    np.testing.assert_array_equal(tw.group_reduce("sum", x, labels).compute(), [5, 0, 5])
    np.testing.assert_array_equal(tw.group_reduce("count", x, labels, 4).compute(), [2, 0, 2, 0])
    np.testing.assert_array_equal(tw.group_reduce("mean", x, labels, skipna=True).compute(), [2.5, np.nan, 2.5])
    with pytest.raises(ValueError, match="a group has no elements"):
        tw.group_reduce("max", x, labels)


def test_groups_of_missing_values_alone():
    x = np.array([np.nan, 1.0, np.nan])
    for kind, expected in {"sum": [0, 1], "prod": [1, 1], "min": [np.nan, 1], "max": [np.nan, 1], "mean": [np.nan, 1]}.items():
        np.testing.assert_array_equal(tw.group_reduce(kind, x, [0, 1, 0], skipna=True).compute(), expected, err_msg=kind)


def test_degrees_of_freedom():
    x = RNG.normal(size=(400, 3))
    np.testing.assert_allclose(tw.group_reduce("var", x, LABELS, ddof=1).compute(), by_numpy(np.var, x, LABELS, 0, ddof=1))
    np.testing.assert_array_equal(tw.group_reduce("var", [1.0, 2.0], [0, 1], ddof=1).compute(), [np.nan, np.nan])


def test_one_pass_over_the_array():
    reads = []

    class Source:
        shape, dtype = (4000, 50), np.dtype("f8")

        def __getitem__(self, key):
            reads.append(key)
            return np.ones([len(range(*part.indices(n))) for part, n in zip(key, self.shape, strict=True)])

    x = tw.from_array(Source(), chunks=(500, 50))
    reads.clear()
    labels = np.arange(4000) % 366
    np.testing.assert_array_equal(tw.group_reduce("mean", x, labels, skipna=True).compute(), np.ones((366, 50)))
    assert len(reads) == 8


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ([0, 1], ValueError, "2 labels for axis 0, which has 3 elements"),
        ([0.0, 1.0, 2.0], TypeError, "a vector of integers"),
        ([[0, 1, 2]], TypeError, "a vector of integers"),
        ([-1, -1, -1], ValueError, "no groups"),
    ],
)
def test_bad_labels(labels, error, message):
    with pytest.raises(error, match=message):
        tw.group_reduce("sum", tw.ones(3), labels)


def test_bad_arguments():
    with pytest.raises(ValueError, match="no reduction of groups 'mode'"):
        tw.group_reduce("mode", tw.ones(3), [0, 1, 0])
    with pytest.raises(ValueError, match="label 5 for 3 groups"):
        tw.group_reduce("sum", tw.ones(3), [0, 5, 0], 3)


def test_rows_by_many_indices():
    # Rows by known indices, whatever their number.
    x, places = RNG.normal(size=(40, 3000)), RNG.integers(0, 40, size=2000)
    np.testing.assert_array_equal(tw.asarray(x)[places].compute(), x[places])
    np.testing.assert_array_equal(tw.take(tw.asarray(x.T), places, axis=1).compute(), x.T[:, places])


@pytest.mark.parametrize("reduce", ["nanmean", "std"])
def test_anomalies_hold_one_column_of_blocks(reduce):
    """What is gathered for a block of the array is as long as the block, not as the whole axis."""
    data = np.random.default_rng(3).random((1460, 64, 64)).astype("f4")
    labels = np.arange(1460) % 365
    with tw.Session(threads=1) as session:
        x = tw.from_array(_Sliced(data), chunks=(146, 32, 32), lock=False)
        means = tw.group_reduce("mean", x, labels, 365, skipna=True)
        found = getattr(tw, reduce)(x - tw.take(means, labels, axis=0), axis=0).compute()
        # A column of the array, with sums, counts and means, each of a quarter of that.
        assert session.report()["peak_bytes"] < 1.9 * data.nbytes / 4
    expected = data - data.reshape(4, 365, 64, 64).mean(axis=0)[labels]
    np.testing.assert_allclose(found, getattr(np, reduce)(expected, axis=0), rtol=1e-4, atol=1e-6)


class _Sliced:
    """Something that is read by slices."""

    def __init__(self, data):
        self.data, self.shape, self.dtype = data, data.shape, data.dtype

    def __getitem__(self, key):
        return self.data[key]
