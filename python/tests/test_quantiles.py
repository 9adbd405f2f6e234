"""Order statistics against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import agree, same
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright._quantiles import METHODS


@st.composite
def arrays(draw, nans: bool = True) -> np.ndarray:
    dtype = draw(st.sampled_from(["float32", "float64", "int64", "uint8", "bool"]))
    shape = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    x = np.random.default_rng(draw(st.integers(0, 10**6))).integers(0, 6, shape)
    x = (x * 1.25).astype(dtype) if dtype != "bool" else x > 3
    if nans and x.dtype.kind == "f" and draw(st.booleans()):
        x[x == 2.5] = np.nan
    return x


levels = st.floats(0, 1) | st.sampled_from([0.0, 0.5, 1.0]) | st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]), max_size=4)
chunks = st.integers(1, 4)


def axis_of(draw, x: np.ndarray):
    several = st.sets(st.integers(0, x.ndim - 1), min_size=1).map(lambda axes: tuple(sorted(axes)))
    return draw(st.none() | st.integers(-x.ndim, x.ndim - 1) | several)


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
@given(data=st.data())
@pytest.mark.filterwarnings("ignore:All-NaN:RuntimeWarning")
def test_quantiles(name, data):
    x, q = data.draw(arrays()), data.draw(levels)
    if x.dtype.kind == "b":
        x = x.astype("uint8")
    options = {"axis": axis_of(data.draw, x), "method": data.draw(st.sampled_from(METHODS)), "keepdims": data.draw(st.booleans())}
    # Where a fibre is NaN throughout, the type of NumPy's result depends on it, which a lazy array cannot know: ours is the type without NaN.
    expected = np.asarray(getattr(np, name)(x, q, **options)).astype(np.asarray(getattr(np, name)(np.ones_like(x), q, **options)).dtype)
    ours = getattr(tw, name)(tw.asarray(x).rechunk(data.draw(chunks)), q, **options)
    same(ours, expected, rtol=1e-5 if x.dtype == "float32" else 1e-12)


@given(arrays(), st.data())
@pytest.mark.filterwarnings("ignore:All-NaN:RuntimeWarning")
def test_medians_and_percentiles(x, data):
    x = x.astype("float64")
    axis, keepdims = axis_of(data.draw, x), data.draw(st.booleans())
    array = tw.asarray(x).rechunk(data.draw(chunks))
    for name in ("median", "nanmedian"):
        same(getattr(tw, name)(array, axis, keepdims=keepdims), np.asarray(getattr(np, name)(x, axis, keepdims=keepdims)), rtol=1e-12)
    for name in ("percentile", "nanpercentile"):
        same(getattr(tw, name)(array, [10, 75], axis), np.asarray(getattr(np, name)(x, [10, 75], axis)), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "int8", "uint16"])
def test_long_vectors_are_counted(dtype):
    x = (np.random.default_rng(1).standard_normal(2_200_000) * 1000).astype(dtype)
    q = [0, 0.001, 0.25, 0.5, 0.9, 1]
    for array in (tw.asarray(x), tw.asarray(x).rechunk(300_000)):
        same(tw.quantile(array, q), np.quantile(x, q), rtol=1e-6)
    # So many are sorted for.
    many = np.linspace(0, 1, 101)
    same(tw.quantile(array, many), np.quantile(x, many), rtol=1e-6)
    if dtype.startswith("float"):
        x[::3] = np.nan
        same(tw.nanquantile(tw.asarray(x), q), np.nanquantile(x, q), rtol=1e-6)
        assert np.isnan(float(tw.median(tw.asarray(x))))


@given(arrays(nans=False), st.data())
def test_partitions(x, data):
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    n = x.size if axis is None else x.shape[axis]
    kth = data.draw(st.integers(-n, n - 1))
    flat, along = (x.reshape(-1), 0) if axis is None else (x, axis)
    place = kth % n
    ours = np.asarray(tw.partition(tw.asarray(x).rechunk(2), kth, axis))
    assert np.array_equal(np.take(ours, place, along), np.take(np.sort(flat, along), place, along))
    where = np.asarray(tw.argpartition(tw.asarray(x).rechunk(2), kth, axis))
    assert np.array_equal(np.take_along_axis(flat, where, along), ours)


def test_infinities_in_the_middle():
    inf = np.inf
    for values in ([1, 2, inf, inf], [inf, inf], [1, inf], [-inf, inf], [-1.7e308, 1.7e308]):
        with np.errstate(invalid="ignore"):
            same(tw.median(tw.asarray(values)), np.asarray(np.median(values)))
    same(tw.quantile(tw.asarray([-inf, -inf, -inf, 3.0, 4.0, 5.0]), 0.6), np.asarray(3.0))


def test_many_levels_of_a_long_vector():
    x = np.random.default_rng(3).standard_normal(2_200_000)
    q = np.linspace(0, 1, 60)
    same(tw.quantile(tw.asarray(x), q), np.quantile(x, q), rtol=1e-12)


def test_what_cannot_be():
    with pytest.raises(TypeError, match="times"):
        tw.median(tw.asarray(np.array(["2020-01-01"], dtype="datetime64[D]")))
    with pytest.raises(ValueError, match="between 0 and 1"):
        tw.quantile(tw.ones(3), 1.5)
    with pytest.raises(ValueError, match="method"):
        tw.quantile(tw.ones(3), 0.5, method="other")
    with pytest.raises(IndexError, match="no elements"):
        tw.quantile(tw.ones((0, 3)), 0.5, axis=0)
    with pytest.raises(TypeError, match="complex"):
        tw.quantile(tw.ones(3, dtype="complex128"), 0.5)
    with pytest.raises(ValueError, match="out of bounds"):
        tw.partition(tw.ones(3), 3)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint64", "float16", "float32"])
@pytest.mark.parametrize("method", ["lower", "higher", "nearest", "inverted_cdf", "closest_observation", "midpoint", "linear", "hazen"])
@pytest.mark.parametrize("q", [0.3, [0.25, 0.5]])
def test_types_are_those_of_numpy(dtype, method, q):
    x = np.array([[5, 1, 3, 2, 0], [2, 0, 0, 1, 1]]).astype(dtype)
    for name in ("quantile", "nanquantile"):
        agree(name, x, q, axis=1, method=method, rtol=1e-3)


def test_large_integers_are_not_rounded():
    x = np.array([2**62 + 1, 2**62 + 3, 2**62 + 2])
    for method in ("lower", "higher", "nearest"):
        agree("quantile", x, 0.5, method=method)


@pytest.mark.parametrize("name", ["median", "nanmedian"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
def test_medians_of_nothing(name, dtype):
    for shape, axis in (((0,), None), ((0, 3), 0), ((0, 3), 1), ((2, 0), None)):
        agree(name, np.zeros(shape, dtype), axis=axis)
    with pytest.warns(RuntimeWarning, match="empty"):
        getattr(tw, name)(tw.zeros(0))


def test_quantiles_of_nothing():
    agree("quantile", np.zeros(0), 0.5)
    agree("percentile", np.zeros((0, 3)), 50, axis=0)
    agree("nanquantile", np.zeros((0, 3)), 0.5, axis=0)
    agree("quantile", np.zeros((0, 3)), 0.5, axis=1)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "uint8", "int32"])
@pytest.mark.parametrize("name", ["quantile", "nanquantile", "percentile", "nanpercentile"])
@pytest.mark.parametrize("method", ["linear", "hazen", "lower"])
def test_types_of_elements_and_shares(dtype, name, method):
    x = np.arange(7).astype(dtype)
    shares = [0.25, 1, [0.25], [0, 1], *(np.array(share, kind) for kind in ("float16", "float32", "float64") for share in (0.25, [0.25, 0.5]))]
    for q in [*shares, np.float16(0.25), np.float32(0.25), np.int8(1), np.array([0, 1])]:
        same(getattr(tw, name)(tw.asarray(x), q, method=method), getattr(np, name)(x, q, method=method), rtol=1e-2)


@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_medians_of_spans(name):
    x = np.array([[5, 1, 8, 2], [7, -(2**63), -3, 4], [-(2**63)] * 4]).view("m8[s]")
    for axis in (None, 0, 1):
        agree(name, x, axis=axis)
        agree(name, x[:1], axis=axis, keepdims=True)
    agree("median", x.view("M8[s]"))
    agree(name, np.zeros((0, 2), "m8[s]"), axis=0)


@pytest.mark.parametrize("axis", [0, 1])
def test_long_fibres_of_matrices(axis, tmp_path):
    n = (1 << 21) + 7
    x = np.random.default_rng(axis).standard_normal((n, 2) if axis == 0 else (2, n))
    x.reshape(-1)[: n // 5] = 0.25
    np.save(tmp_path / "x.npy", x)
    for q in (0.5, [0.0, 0.1, 0.9], np.linspace(0, 1, 70)):
        expected = np.quantile(x, q, axis=axis)
        with tw.Session(threads=1, memory="12MiB", spill=tmp_path) as session:
            ours = tw.quantile(tw.from_npy(tmp_path / "x.npy"), q, axis=axis).compute()
            assert session.report()["peak_bytes"] <= 12 << 20
        np.testing.assert_allclose(ours, expected, rtol=1e-14, atol=1e-14)
