"""What new users found to differ from NumPy and dask, each with its neighbours, and at random."""

from __future__ import annotations

import warnings
from collections import OrderedDict, namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
from conftest import agree, same
from hypothesis import given
from hypothesis import strategies as st
from strategies import arrays, chunks, ours

import tilewright as tw

NAN = float("nan")


# Derivatives and differences


@pytest.mark.parametrize("places", [np.arange(6) * 0.5, [0, 1, 2, 3, 4, 5], np.array([0.0, 1, 2, 3, 4, 5.5]), np.array([0.0, 1, 4, 5, 9, 9.5])])
@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradient_skips_the_centre_at_even_distances(places, edge_order):
    f = np.array([1.0, 2, NAN, 4, 16, 25])
    expected = np.gradient(f, places, edge_order=edge_order)
    same(tw.gradient(tw.asarray(f), places, edge_order=edge_order), expected)
    same(tw.gradient(tw.asarray(f), tw.asarray(places), edge_order=edge_order), expected)


@given(x=arrays(["int32", "float64", "bool", "complex128"], min_dims=1), n=st.integers(0, 3), edge=st.sampled_from([None, 0, 1]), chunk=chunks)
def test_diff(x, n, edge, chunk):
    options = {} if edge is None else {"prepend": edge, "append": edge}
    if x.dtype.kind == "b":
        options = {}
    with np.errstate(all="ignore"):
        same(tw.diff(ours(x, chunk), n, **options), np.diff(x, n, **options))


def test_no_difference_adds_no_edges():
    agree("diff", np.arange(5), n=0, prepend=0)
    agree("diff", np.arange(5.0), n=0, append=[1, 2])
    agree("diff", np.arange(5.0), n=-1)


# Ranges

LARGE = [0, 1, 5, 2**31, 2**53 - 1, 2**53 + 1, 2**62, 2**63 - 5, 2**63, 2**63 + 7, 2**64 - 9]


@given(start=st.sampled_from(LARGE), length=st.integers(0, 40), step=st.sampled_from([1, 2, 7, 0.5, 1.0, 1.5, 3.0, 1000.0]), sign=st.sampled_from([1, -1]))
def test_large_ranges(start, length, step, sign):
    stop = min(start + sign * length, 2**64 - 1)
    same(tw.arange(start, stop, sign * step), np.arange(start, stop, sign * step), rtol=0)


@given(start=st.sampled_from(LARGE), length=st.integers(0, 40), step=st.integers(1, 9))
def test_unsigned_ranges(start, length, step):
    stop = min(start + length, 2**64 - 1)
    same(tw.arange(start, stop, step, dtype="uint64"), np.arange(start, stop, step, dtype="uint64"))
    same(tw.arange(np.uint64(start), np.uint64(stop), np.uint64(step)), np.arange(np.uint64(start), np.uint64(stop), np.uint64(step)), rtol=0)


@given(
    start=st.integers(-9, 9) | st.floats(-9, 9), stop=st.integers(-20, 20) | st.floats(-20, 20), step=st.sampled_from([1, 2, -1, -3, 0.3, 1.5, -0.7]),
    dtype=st.sampled_from([None, "int8", "int64", "float16", "float32", "float64", "complex128"]),
)  # fmt: skip
def test_ranges(start, stop, step, dtype):
    try:
        expected = np.arange(start, stop, step, dtype=dtype)
    except Exception as error:
        with pytest.raises(type(error)):
            tw.arange(start, stop, step, dtype=dtype)
        return
    same(tw.arange(start, stop, step, dtype=dtype), expected, rtol=0 if expected.dtype.kind in "iu" else 1e-15)


@pytest.mark.parametrize("bounds", [(np.uint64(5),), (np.uint8(5),), (np.float32(5),), (True,), (np.int8(2), np.int8(5)), (0, np.uint64(9), 2.5)])
def test_types_of_ranges(bounds):
    same(tw.arange(*bounds), np.arange(*bounds))


def test_ranges_that_cannot_be():
    for call in (lambda: tw.arange(0, 5, 0), lambda: tw.arange(0, np.inf), lambda: tw.arange(0, NAN)):
        with pytest.raises(ValueError):
            call()
    for call in (lambda: tw.arange(0, 5, dtype=bool), lambda: tw.arange("a"), lambda: tw.arange(10**30, 10**30 + 2)):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(OverflowError):
        tw.arange(300, 302, dtype="uint8")
    same(tw.arange(2, dtype=bool), np.arange(2, dtype=bool))
    same(tw.arange(1, 9, 3, dtype="timedelta64[s]"), np.arange(1, 9, 3, dtype="timedelta64[s]"))


# Reductions


@given(x=arrays(["int8", "int64", "uint8", "bool", "float64", "float32"], min_dims=1, min_side=1, finite=True), dtype=st.sampled_from(["i8", "i4", "u1", "f4", "f8"]), chunk=chunks, data=st.data())
def test_means_and_variances_in_a_type(x, dtype, chunk, data):
    if x.dtype.kind == "f" and dtype == "u1":
        # What negative fractions become there is not defined.
        x = abs(x)
    axis = data.draw(st.sampled_from([None, *range(x.ndim)]))
    options = {"axis": axis, "dtype": dtype, "keepdims": data.draw(st.booleans())}
    own, rtol = ours(x, chunk), 1e-5 if dtype == "f4" else 1e-12
    same(tw.mean(own, **options), np.mean(x, **options), rtol=rtol)
    if dtype != "u1" or x.dtype.kind in "iub":
        same(tw.var(own, **options), np.var(x, **options), rtol=rtol)


def test_means_of_whole_numbers_lose_their_fractions():
    x = np.array([1, 2, 4])
    for name in ("mean", "var", "std"):
        agree(name, x, dtype="i8")
        agree(name, x + 0.5, dtype="i8")
    same(tw.mean(tw.asarray(-x), dtype="i8"), np.mean(-x, dtype="i8"))
    same(tw.asarray(x).mean(dtype="i4", where=x > 1), x.mean(dtype="i4", where=x > 1))
    same(tw.asarray(x).std(dtype="f4"), x.std(dtype="f4"))


#: Complex numbers with equal real parts, infinities and NaN in either part.
PARTS = st.sampled_from([0.0, 1.0, -1.0, 2.5, np.inf, -np.inf])
WITH_NAN = PARTS | st.just(NAN)


@st.composite
def complex_arrays(draw, parts=PARTS, min_side=1):
    shape = draw(st.sampled_from([(7,), (1,), (3, 4), (2, 3, 2)]))
    n = int(np.prod(shape))
    values = draw(st.lists(st.builds(complex, parts, parts), min_size=n, max_size=n))
    return np.array(values, dtype=draw(st.sampled_from(["complex64", "complex128"]))).reshape(shape)


@given(x=complex_arrays(), chunk=chunks, data=st.data())
def test_order_of_complex_numbers(x, chunk, data):
    axis = data.draw(st.sampled_from([None, *range(x.ndim)]))
    own = ours(x, chunk)
    with np.errstate(all="ignore"):
        for name in ("min", "max", "argmin", "argmax", "nanmax", "nanargmin"):
            same(getattr(tw, name)(own, axis=axis), getattr(np, name)(x, axis=axis))
        # Where NumPy divides an infinity by one, it makes a NaN of it.
        finite = np.clip(x.real, -9, 9) + 1j * np.clip(x.imag, -9, 9)
        same(tw.median(ours(finite, chunk), axis=axis), np.median(finite, axis=axis))
        for name in ("maximum", "minimum", "less", "less_equal", "greater", "greater_equal", "fmax", "fmin"):
            same(getattr(tw, name)(own, own[..., ::-1]), getattr(np, name)(x, x[..., ::-1]))
        same(tw.max(own, axis=axis, keepdims=True, initial=1 + 1j), np.max(x, axis=axis, keepdims=True, initial=1 + 1j))
        same(tw.sort(own, axis=-1), np.sort(x, axis=-1))


@given(x=complex_arrays(WITH_NAN), chunk=chunks, data=st.data())
def test_order_of_complex_numbers_with_nan(x, chunk, data):
    axis = data.draw(st.sampled_from([None, *range(x.ndim)]))
    own = ours(x, chunk)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("argmin", "argmax"):
            same(getattr(tw, name)(own, axis=axis), getattr(np, name)(x, axis=axis))
        # Which of several NaN is found is not promised.
        for name in ("min", "max"):
            found, expected = getattr(tw, name)(own, axis=axis).compute(), getattr(np, name)(x, axis=axis)
            np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
            np.testing.assert_array_equal(found[~np.isnan(found)], expected[~np.isnan(expected)])
        for name in ("less", "greater_equal"):
            same(getattr(tw, name)(own, own[..., ::-1]), getattr(np, name)(x, x[..., ::-1]))
        some = np.where(np.isnan(x), x, np.arange(x.size).reshape(x.shape) % 3)
        for name in ("median", "nanmedian"):
            same(getattr(tw, name)(ours(some, chunk), axis=axis), getattr(np, name)(some, axis=axis))


def test_nothing_has_no_extreme():
    for name in ("max", "min", "argmax", "argmin"):
        agree(name, np.zeros((0, 3), dtype=complex), axis=0)
        agree(name, np.zeros((0, 3), dtype=complex), axis=1)
    agree("median", np.zeros((0, 3), dtype=complex), axis=0)


def test_weights_that_add_up_to_zero():
    x = np.arange(4.0)
    agree("average", x, weights=[1, -1, 1, -1])
    agree("average", x, weights=np.array([1, -1, 1, -1]))
    agree("average", x.reshape(2, 2), axis=0, weights=np.array([[1.0, 1], [-1, 1]]))
    agree("average", x.reshape(2, 2), axis=1, weights=np.array([[1.0, 1], [-1, 2]]), returned=True)
    with pytest.raises(ZeroDivisionError):
        tw.average(tw.asarray(x), weights=[0, 0, 0, 0])
    lazily = tw.average(tw.asarray(x), weights=tw.zeros(4))
    with pytest.raises(ZeroDivisionError):
        lazily.compute()


# Linear algebra


@pytest.mark.parametrize("shape", [(5, 3), (3, 3), (3, 5), (4, 1)])
@pytest.mark.parametrize("columns", [None, 1, 2])
@pytest.mark.parametrize("deficient", [False, True])
def test_residuals_of_lstsq(shape, columns, deficient):
    rng = np.random.default_rng(1)
    a = rng.normal(size=shape)
    if deficient:
        a[:, -1] = a[:, 0] if shape[1] > 1 else 0
    b = rng.normal(size=shape[:1] if columns is None else (shape[0], columns))
    expected = np.linalg.lstsq(a, b, rcond=None)
    for found in (tw.linalg.lstsq(tw.asarray(a), tw.asarray(b)), np.linalg.lstsq(tw.asarray(a), tw.asarray(b), rcond=None)):
        same(found[0], expected[0], rtol=1e-9)
        same(found[1], expected[1], rtol=1e-9)
        assert int(found[2]) == expected[2]


# Grids and choices


@pytest.mark.parametrize("options", [{}, {"indexing": "ij"}, {"sparse": True}])
def test_grids_of_matrices(options):
    agree("meshgrid", np.arange(4).reshape(2, 2), np.arange(3.0), **options)
    agree("meshgrid", np.array(1), np.arange(6).reshape(3, 2), **options)


def test_stacked_conditions():
    x = np.arange(6)
    conditions = np.stack([x < 2, x > 3])
    expected = np.select(conditions, [x, x * 10], -1)
    same(tw.select(tw.asarray(conditions), [x, x * 10], -1), expected)
    same(tw.select(conditions, tw.asarray(np.stack([x, x * 10])), -1), expected)
    same(np.select(tw.asarray(conditions), [tw.asarray(x), x * 10], -1), expected)
    with pytest.raises(ValueError):
        tw.select([], [])


# Classes of errors


def test_classes_of_errors():
    x = tw.arange(5)
    for call in (lambda: tw.tile(x, -1), lambda: tw.tile(x, (2, -1)), lambda: tw.topk(x, -2), lambda: tw.argtopk(x, -1)):
        with pytest.raises(ValueError):
            call()
    for call in (lambda: x[np.float64(1) :], lambda: x[:1.5], lambda: x[::2.0], lambda: x["a":], lambda: tw.topk(x, 1.5)):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(ValueError, match="largest=False"):
        tw.topk(x, -2)
    same(x[np.int8(1) :], np.arange(1, 5))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x[[5]], lambda x: x[[0, -6]], lambda x: x[np.array([1, 9])], lambda x: x[[0, 9], 0], lambda x: x[0, [9]], lambda x: x[..., [9]], lambda x: x[None, [9]],
        lambda x: x[[True, False, True, False, False], [0, 9]], lambda x: np.take(x, [9], axis=0), lambda x: np.take(x, 99), lambda x: np.take(x, [[0, -99]]),
        lambda x: np.take_along_axis(x, np.array([[9]]), axis=0), lambda x: x.__setitem__([9], 0), lambda x: x.__setitem__((0, [0, -9]), 1), lambda x: x.take([9], 0),
    ],
)  # fmt: skip
def test_a_list_of_indices_outside_is_an_error_of_the_call(call):
    values = np.arange(20).reshape(5, 4)
    for x in (values.copy(), tw.asarray(values)):
        with pytest.raises(IndexError):
            call(x)


def test_lists_of_indices_inside():
    values = np.arange(20).reshape(5, 4)
    x = tw.asarray(values)
    same(x[[4, -5]], values[[4, -5]])
    same(x[[]], values[[]])
    same(x[[4, 0], [3, -4]], values[[4, 0], [3, -4]])
    same(tw.take(x, [99, -99], axis=0, mode="clip"), np.take(values, [99, -99], axis=0, mode="clip"))
    x[[0, -1], [1, 2]] = 7
    values[[0, -1], [1, 2]] = 7
    same(x, values)


# From dask


def test_chunks():
    x = tw.zeros((10, 6), chunks=(3, 2))
    assert x.rechunk({0: None}).chunks == x.chunks
    assert x.rechunk({0: None, 1: 3}).chunks == ((3, 3, 3, 1), (3, 3))
    assert x.rechunk({-1: None, 0: -1}).chunks == ((10,), (2, 2, 2))
    long = tw.zeros((50_000, 100_000), dtype="f8", chunks=(-1, "auto"))
    assert long.chunks[0] == (50_000,) and long.chunksize[1] * 50_000 * 8 <= 128 << 20
    assert len(long.chunks[1]) < 1000
    cut = tw.zeros((1000, 1000, 1000), chunks=(10, "auto", "auto"))
    assert 32 << 20 <= 10 * cut.chunksize[1] * cut.chunksize[2] * 8 <= 128 << 20
    small = tw.zeros((1000, 1000), chunks=("1MiB", -1))
    assert small.chunksize[1] == 1000 and 256 << 10 <= small.chunksize[0] * 8000 <= 1 << 20
    assert tw.zeros((0, 5), chunks=("auto", -1)).chunks == ((0,), (5,))
    assert tw.zeros((5, 0), chunks=("auto", -1)).chunks == ((5,), (0,))


def test_topk_gives_values_alone():
    x = np.array([[3.0, 9, 5, 1], [0, 2, 8, 4]])
    own = tw.asarray(x)
    same(tw.topk(own, 2), np.sort(x)[:, ::-1][:, :2])
    same(tw.argtopk(own, 2), np.argsort(x)[:, ::-1][:, :2])
    same(tw.topk(own, 1, axis=0, largest=False), x.min(axis=0, keepdims=True))
    same(tw.argtopk(own, 1, axis=0, largest=False), x.argmin(axis=0)[None])
    same(tw.topk(own, 0), np.zeros((2, 0)))


Pair = namedtuple("Pair", "first second")


@dataclass
class Held:
    array: object
    name: str


def test_containers_are_computed():
    x = tw.arange(4)
    (pair,) = tw.compute([x, x + 1])
    assert [type(each) for each in pair] == [np.ndarray] * 2 and pair[1].tolist() == [1, 2, 3, 4]
    nested, plain = tw.compute({"a": x.sum(), "b": [x.max(), ("text", {"c": x.min()})]}, 7)
    assert nested["a"] == 6 and nested["b"][0] == 3 and nested["b"][1][0] == "text" and nested["b"][1][1]["c"] == 0 and plain == 7
    (named, ordered, held) = tw.compute(Pair(x.sum(), 1), OrderedDict(k=x.max()), Held(x.min(), "m"))
    assert type(named) is Pair and named == (6, 1) and type(ordered) is OrderedDict and ordered["k"] == 3
    assert type(held) is Held and held.array == 0 and held.name == "m" and isinstance(held.array, np.ndarray)
    other = Held(1, "n")
    assert tw.compute(other)[0] is other
    assert tw.compute([x, {"k": x}], block=False).result()[0][1]["k"].tolist() == [0, 1, 2, 3]
    (kept,) = tw.persist([x * 2])
    assert "computed" in repr(kept[0])
    assert tw.compute() == () and tw.compute([]) == ([],)
