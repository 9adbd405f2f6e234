"""Blocks with their neighbours, and functions of parts of arrays, against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from conftest import same
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import arrays, chunks, ours

import tilewright as tw

BORDERS = {"none": None, "reflect": "symmetric", "periodic": "wrap", "nearest": "edge", 7: "constant"}


def widened(x, axis, before, after, boundary):
    mode = BORDERS[boundary]
    if mode is None:
        return x
    widths = [(0, 0)] * x.ndim
    widths[axis] = (before, after)
    return np.pad(x, widths, mode=mode, **({"constant_values": boundary} if mode == "constant" else {}))


@given(data=st.data(), boundary=st.sampled_from(list(BORDERS)))
def test_overlap(data, boundary):
    x = data.draw(arrays(["int64", "float64"], min_dims=1, min_side=1))
    axis = data.draw(st.integers(0, x.ndim - 1))
    depth = tuple(data.draw(st.integers(0, min(2, x.shape[axis]))) for _ in range(2))
    cut = data.draw(st.sampled_from(["one", "two", "ragged"]))
    n = x.shape[axis]
    lengths = {"one": (n,), "two": None, "ragged": (1, n - 1) if n > 1 else (n,)}[cut]
    array = tw.asarray(x).rechunk(2 if lengths is None else {axis: lengths})
    found = tw.overlap(array, {axis: depth}, {axis: boundary})
    wide = widened(x, axis, *depth, boundary)
    parts, low = [], 0
    for length in found.chunks[axis]:
        parts.append(wide[(slice(None),) * axis + (slice(low, low + length),)])
        # The next block begins with what the end of this one and its own begin have in common.
        low += length - sum(depth)
    same(found, np.concatenate(parts, axis=axis))


@given(data=st.data(), boundary=st.sampled_from([each for each in BORDERS if each != "none"]))
def test_map_overlap(data, boundary):
    """A sum over neighbours is the same as one over the whole array with a border."""
    x = data.draw(arrays(["int64"], min_dims=1, max_dims=2, min_side=2))
    depth = data.draw(st.integers(1, 2))
    array = ours(x, data.draw(chunks))

    def neighbours(block):
        found = block.copy()
        for axis in range(block.ndim):
            for shift in range(1, depth + 1):
                found = found + np.roll(block, shift, axis) + np.roll(block, -shift, axis)
        return found

    wide = x
    for axis in range(x.ndim):
        wide = widened(wide, axis, depth, depth, boundary)
    inside = (slice(depth, -depth),) * x.ndim
    same(tw.map_overlap(neighbours, array, depth=depth, boundary=boundary), neighbours(wide)[inside])
    same(array.map_overlap(neighbours, depth, boundary), neighbours(wide)[inside])
    cut = lambda block: neighbours(block)[inside]  # noqa: E731
    same(tw.map_overlap(cut, array, depth=depth, boundary=boundary, trim=False, dtype="int64"), cut(wide))


@given(data=st.data())
def test_open_ends(data):
    x = data.draw(arrays(["float64"], min_dims=1, max_dims=1, min_side=2))
    array = ours(x, data.draw(chunks))
    # Every block sees all that is near its elements: a running maximum over three.
    padded = np.pad(x, 1, constant_values=-np.inf)
    expected = np.maximum(np.maximum(padded[:-2], padded[1:-1]), padded[2:])

    def near(block):
        block = np.pad(block, 1, constant_values=-np.inf)
        return np.maximum(np.maximum(block[:-2], block[1:-1]), block[2:])

    same(tw.map_overlap(near, array, depth=1), expected)
    both = lambda a, b, block_id=None: near(a) - near(b) if block_id is None else near(a)  # noqa: E731
    same(tw.map_overlap(both, array, array, depth=1), expected)


def test_wrong_overlaps():
    x = tw.ones((4, 4)).rechunk(2)
    for depth, boundary in ((5, "none"), (-1, "none"), (1, "mirror"), ((1,), "none"), (1, ("none",))):
        with pytest.raises(ValueError):
            tw.overlap(x, depth, boundary)
    with pytest.raises(TypeError):
        tw.overlap(x, 1.5)
    with pytest.raises(ValueError, match="trim"):
        tw.map_overlap(lambda block: block.sum(0), x, depth=1, drop_axis=0)
    with pytest.raises(ValueError):
        tw.map_overlap(np.add, x, tw.ones(3), depth=1)
    with pytest.raises(ValueError, match="2 arrays"):
        tw.map_overlap(np.add, x, x, depth=[1])


def test_gufuncs_see_large_blocks_in_parts():
    shapes = []

    def both(rows):
        shapes.append(rows.shape)
        return rows.mean(axis=-1), rows[..., ::-1]

    x = tw.random.default_rng(1).normal(size=(400_000, 20))
    means, turned = tw.apply_gufunc(both, "(i)->(),(i)", x, output_dtypes=["f8", "f8"])
    assert means.chunks == ((400_000,),) and turned.chunks == x.chunks == ((400_000,), (20,))
    found = tw.compute(means, turned, x)
    assert np.array_equal(found[0], found[2].mean(axis=1)) and np.array_equal(found[1], found[2][:, ::-1])
    assert len(shapes) == 8 and all(math.prod(shape) * 8 <= 16 << 20 for shape in shapes)


@given(data=st.data())
def test_apply_gufunc(data):
    x = data.draw(arrays(["float64", "int32"], min_dims=1, finite=True))
    assume(x.shape[-1] > 0)
    array = ours(x, data.draw(chunks))
    same(tw.apply_gufunc(lambda rows: rows.sum(-1), "(i)->()", array), x.sum(-1))
    same(tw.apply_gufunc(lambda rows: rows.sum(-1), "(i)->()", array, keepdims=True), x.sum(-1, keepdims=True))
    low, high = tw.apply_gufunc(lambda rows: (rows.min(-1), rows.max(-1)), "(i)->(),()", array)
    same(low, x.min(-1))
    same(high, x.max(-1))
    same(tw.apply_gufunc(lambda rows: np.repeat(rows, 2, -1), "(i)->(j)", array, output_sizes={"j": 2 * x.shape[-1]}), np.repeat(x, 2, -1))
    line = np.arange(x.shape[-1], dtype=x.dtype)
    same(tw.apply_gufunc(np.multiply, "(i),(i)->(i)", array, tw.asarray(line)), x * line)
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    if x.shape[axis]:
        same(tw.apply_gufunc(lambda rows: rows.max(-1), "(i)->()", array, axis=axis), x.max(axis))
        same(tw.apply_gufunc(lambda rows: rows.max(-1), "(i)->()", array, axis=axis, keepdims=True), x.max(axis, keepdims=True))
        same(tw.apply_gufunc(np.sort, "(i)->(i)", array, axes=[axis, axis]), np.sort(x, axis))
        same(tw.apply_gufunc(max, "(i)->()", array, axis=axis, vectorize=True, output_dtypes=[x.dtype]), x.max(axis))


def test_loops_of_gufuncs_broadcast():
    a, b = np.arange(24.0).reshape(4, 1, 2, 3), np.arange(15.0).reshape(5, 3)
    product = lambda m, v: np.einsum("...ij,...j->...i", m, v)  # noqa: E731
    for chunk in (1, 2, 5):
        found = tw.apply_gufunc(product, "(i,j),(j)->(i)", tw.asarray(a, chunks=chunk), tw.asarray(b, chunks=chunk))
        same(found, product(a, b))


def test_wrong_gufuncs():
    x = tw.ones((4, 4)).rechunk(2)
    add = np.add
    wrong = [
        ("(i)", (x,), {}), ("(i)->()", (x, x), {}), ("(i),(j)->()", (x,), {}), ("(i)->(k)", (x,), {}), ("(i,j,k)->()", (x,), {}),
        ("(i),(i)->()", (x, tw.ones(3)), {}), ("(i)->()", (x,), {"axis": 0, "axes": [0]}), ("(i)->(i)", (x,), {"keepdims": True}),
        ("(i,j)->()", (x,), {"axis": 0}), ("(i)->()", (x,), {"output_dtypes": ["f8", "f8"]}), ("(i)->()", (x,), {"axes": [(0, 1)]}),
    ]  # fmt: skip
    for signature, operands, options in wrong:
        with pytest.raises(ValueError):
            tw.apply_gufunc(add, signature, *operands, **options)


@given(data=st.data())
def test_functions_of_vectors_and_numbers(data):
    x = data.draw(arrays(["float64", "int64"], min_dims=1, min_side=1, finite=True))
    array = ours(x, data.draw(chunks))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    for func, *extra in ((np.sum,), (np.cumsum,), (lambda v: np.outer(v, v),), (lambda v, k: v[:k], 1)):
        same(tw.apply_along_axis(func, axis, array, *extra), np.apply_along_axis(func, axis, x, *extra))
    step = lambda a, b: a if a > b else b  # noqa: E731
    same(tw.vectorize(step)(array, x.dtype.type(1)), np.maximum(x, 1))
    same(tw.vectorize(step, otypes=["float32"])(array, x.dtype.type(1)), np.maximum(x, 1).astype("float32"))
    quotient, rest = tw.frompyfunc(divmod, 2, 2)(array, x.dtype.type(3))
    same(quotient, np.divmod(x, 3)[0])
    same(rest, np.divmod(x, 3)[1])


def test_wrong_functions_of_numbers():
    with pytest.raises(TypeError):
        tw.frompyfunc(divmod, 2, 2)(tw.ones(2))
    with pytest.raises(ValueError):
        tw.frompyfunc(divmod, 2, 2, otypes=["f8"])
    with pytest.raises(IndexError):
        tw.apply_along_axis(np.sum, 2, tw.ones((2, 2)))


def test_types_of_results_hold_for_all_calls():
    mixed = lambda v: 1 if v < 2 else 2.5  # noqa: E731
    x = tw.arange(6).rechunk(2)
    for call in (
        lambda: tw.vectorize(mixed)(x),
        lambda: tw.frompyfunc(mixed, 1, 1)(x),
        lambda: tw.apply_gufunc(mixed, "()->()", x, vectorize=True),
        lambda: tw.vectorize(lambda v: v.sum() if v[0] < 2 else 0.5, signature="(i)->()")(x.reshape((3, 2))),
        lambda: tw.vectorize(lambda v: (v, 1 if v < 2 else 1j))(x)[1],
    ):
        with pytest.raises(TypeError, match="first call gave int64"):
            call().compute()
    same(tw.vectorize(mixed, otypes=[float])(x), np.vectorize(mixed, otypes=[float])(np.arange(6)))
    # Python numbers have no width: these fit.
    same(tw.vectorize(lambda v: v * np.float32(2) if v < 2 else 0)(x.astype("float32")), np.array([0, 2, 0, 0, 0, 0], "float32"))
    same(tw.vectorize(lambda v: v / 2 if v < 2 else 7)(x), np.array([0, 0.5, 7, 7, 7, 7]))


def test_types_of_results_by_example():
    x = tw.arange(6).rechunk(2)
    half = lambda block: block / 2  # noqa: E731
    same(tw.map_blocks(half, x, meta=np.zeros(0)), np.arange(6) / 2)
    same(tw.blockwise(half, "i", x, "i", meta=np.zeros(0), align_arrays=False), np.arange(6) / 2)
    same(tw.map_overlap(half, x, depth=1, meta=np.zeros(0)), np.arange(6) / 2)
    same(tw.apply_gufunc(lambda rows: rows.mean(-1), "(i)->()", x.reshape((3, 2)).rechunk(1), meta=np.zeros(0), allow_rechunk=True), np.arange(6).reshape(3, 2).mean(-1))
    with pytest.raises(ValueError, match="align_arrays"):
        tw.blockwise(np.add, "i", x, "i", x.rechunk(3), "i", align_arrays=False)


@given(data=st.data(), depths=st.tuples(st.integers(0, 2), st.integers(0, 2)), boundary=st.sampled_from(["none", "reflect", "periodic", 3]))
def test_depths_of_several_arrays(data, depths, boundary):
    x = data.draw(arrays(["int64"], min_dims=1, max_dims=2, min_side=3))
    array = ours(x, data.draw(chunks))
    seen = []

    def middle(a, b):
        seen.append([n - m for n, m in zip(a.shape, b.shape, strict=True)])
        cut = tuple(slice((n - m) // 2, (n + m) // 2) for n, m in zip(b.shape, a.shape, strict=True))
        return a + (b[cut] if all(n >= m for n, m in zip(b.shape, a.shape, strict=True)) else 0)

    found = tw.map_overlap(middle, array, array, depth=[depths[0], depths[1]], boundary=[boundary, boundary], dtype="int64")
    assert found.shape == x.shape
    if boundary != "none" and depths[1] >= depths[0]:
        same(found, x + x)
        assert all(difference == [2 * (depths[0] - depths[1])] * x.ndim for difference in seen)


def test_arrays_that_are_broadcast_overlap():
    x, y = np.arange(12.0).reshape(3, 4), np.arange(4.0)
    add = lambda a, b: a + b  # noqa: E731
    for second in (y, y[None], np.array([[2.0]]), np.arange(3.0)[:, None]):
        found = tw.map_overlap(add, tw.asarray(x, chunks=2), tw.asarray(second), depth=1, boundary="reflect")
        same(found, x + second)


def test_functions_of_neighbours_are_told_where_they_are():
    x = tw.arange(6).rechunk(3)
    told = []

    def keep(block, block_info=None, block_id=None):
        told.append((block_id, block_info[0]["array-location"], block_info[0]["shape"], block_info[None]["array-location"]))
        return block

    same(tw.map_overlap(keep, x, depth=1, boundary="reflect", dtype="int64"), np.arange(6))
    assert sorted(told) == [((0,), [(0, 5)], (10,), [(0, 3)]), ((1,), [(5, 10)], (10,), [(3, 6)])]
    same(tw.map_overlap(keep, x, depth=1, boundary="reflect"), np.arange(6))


@pytest.mark.parametrize("boundary", [*BORDERS])
@pytest.mark.parametrize(("first", "second"), [((1, 4), (6, 4)), ((1, 4), (6, 1)), ((1, 1), (6,)), ((6, 1, 1), (4, 1)), ((1, 6), (1, 6))])
def test_repeated_axes_in_any_order_of_arrays(first, second, boundary):
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 9, first), rng.integers(0, 9, second)
    a, b = tw.asarray(x).rechunk(3), tw.asarray(y).rechunk(3)
    for pair in ((a, b), (b, a)):
        same(tw.map_overlap(np.add, *pair, depth=1, boundary=boundary), x + y)


def test_what_is_cut_off_must_be_there():
    x = tw.arange(12).rechunk(4)
    shorter = lambda block: block[1:-1]  # noqa: E731
    with pytest.raises(ValueError, match=r"`shorter` gave a block of shape \(4,\) .* \(6,\): use trim=False"):
        tw.map_overlap(shorter, x, depth=1, boundary="reflect", name="shorter").compute()
    with pytest.raises(ValueError, match=r"\(\)"):
        tw.map_overlap(np.sum, x, depth=1, boundary="reflect").compute()
    with pytest.raises(ValueError, match="trim=False"):
        tw.map_overlap(lambda a, b: a[1:-1] + b, x, x, depth=[1, 0], boundary="reflect", dtype="int64").compute()


def test_the_function_that_is_tried_has_its_name():
    def fails(block):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no") as caught:
        tw.map_overlap(fails, tw.ones(4), depth=1)
    assert "`fails`" in caught.value.__notes__[0]
