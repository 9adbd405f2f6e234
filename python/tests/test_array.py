"""The array object: protocols, laziness, errors."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from conftest import same

import tilewright as tw


def test_numpy_calls_come_back():
    x = np.arange(6.0).reshape(2, 3)
    array = tw.asarray(x)
    same(np.sin(array), np.sin(x))
    same(x + array, x + x)
    same(np.add(array, 1), x + 1)
    same(np.mean(array, axis=0), x.mean(axis=0))
    same(np.concatenate([array, array]), np.concatenate([x, x]))
    same(np.transpose(array), x.T)
    assert np.asarray(array).tolist() == x.tolist()
    with pytest.raises(TypeError):
        np.roots(array[0])


def test_nothing_is_computed_before_it_is_asked_for():
    array = tw.ones((10**9, 10**3)).sum(axis=0) + 1
    assert array.shape == (1000,)
    assert "lazy" in repr(array)
    assert "<svg" in array._repr_html_()
    assert array.explain().to_dict()


def test_results_are_kept():
    x = tw.arange(10).sum()
    assert "lazy" in repr(x)
    assert float(x) == 45.0
    assert "value=45" in repr(x)


def test_loops_cost_the_same_at_every_step():
    with tw.Session(threads=1) as session:
        x, tasks = tw.zeros(10), []
        for _ in range(30):
            x = x / 2 + 1
            before = session.report()["tasks"]
            assert float(tw.max(x)) <= 2
            tasks.append(session.report()["tasks"] - before)
    assert tasks[5:] == tasks[4:-1]


def test_large_arrays_are_kept_when_computed_again():
    n = 3_000_000  # More than is kept at once.
    with tw.Session(threads=1) as session:
        x, tasks, held = tw.zeros(n), [], []
        for _ in range(12):
            x = x / 2 + 1
            before = session.report()["tasks"]
            assert float(tw.max(x)) <= 2
            tasks.append(session.report()["tasks"] - before)
            held.append(session.report()["held_bytes"])
    assert tasks[5:] == tasks[4:-1]
    assert max(held) <= 3 * 8 * n
    # What is computed once is not kept: nobody asked for it.
    with tw.Session(threads=1) as session:
        x = tw.zeros(n) + 1
        assert float(tw.sum(x)) == n
        assert session.report()["held_bytes"] < 8 * n
        assert float(tw.max(x)) == 1
        assert session.report()["held_bytes"] >= 8 * n


def test_lists_are_arrays_to_operators():
    x = tw.asarray([0, 1, 2, 3])
    same(x == [0, 1, 9, 3], np.array([True, True, False, True]))
    same([10, 20, 30, 40] - x, np.array([10, 19, 28, 37]))
    same(x[x != (0, 1, 9, 3)], np.array([2]))


def test_values_do_not_alias():
    source = np.zeros(3)
    array = tw.asarray(source)
    source[0] = 5
    assert array.compute().tolist() == [0, 0, 0]
    result = array.compute()
    result[1] = 7
    assert array.compute().tolist() == [0, 0, 0]
    part = array[:2].copy()
    array[0] = 9
    assert part.compute().tolist() == [0, 0]
    other = array
    array = array + 1
    assert other.compute().tolist() == [9, 0, 0]


def test_pickle_and_copy():
    array = tw.asarray(np.arange(6).reshape(2, 3)).rechunk((1, 3))
    again = pickle.loads(pickle.dumps(array))
    same(again, np.arange(6).reshape(2, 3))
    assert again.chunks == ((1, 1), (3,))
    same(copy.deepcopy(array), np.arange(6).reshape(2, 3))


def test_chunks():
    array = tw.zeros((10, 4))
    assert array.rechunk(4).chunks == ((4, 4, 2), (4,))
    assert array.rechunk({0: 5}).chunks == ((5, 5), (4,))
    assert array.rechunk((-1, (1, 3))).chunks == ((10,), (1, 3))
    assert array.rechunk("160B").chunks == ((5, 5), (4,))
    # 128 MiB at most, by halving the longest axis.
    assert tw.zeros((2**14, 2**14)).chunks == ((2**12,) * 4, (2**12,) * 4)
    assert tw.zeros((2**13, 2**11)).chunks == ((2**13,), (2**11,))
    for wrong in (0, -2, (3,), ((1, 2), 4), "many", {7: 1}):
        with pytest.raises(ValueError):
            array.rechunk(wrong)


def test_dlpack():
    same(tw.from_dlpack(np.arange(3)), np.arange(3))
    assert np.from_dlpack(tw.arange(3)).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: tw.asarray([object()]), TypeError),
        (lambda: tw.asarray(["text"]), TypeError),
        (lambda: tw.ones(3) + tw.ones(4), ValueError),
        (lambda: tw.ones(3)[5], IndexError),
        (lambda: tw.ones(3)[1.5], IndexError),
        (lambda: tw.ones(3)[0, 0], IndexError),
        (lambda: tw.ones(3)[tw.asarray([7])].compute(), IndexError),
        (lambda: tw.ones((2, 3)).reshape((4,)), ValueError),
        (lambda: tw.ones((2, 3)) @ tw.ones((2, 3)), ValueError),
        (lambda: tw.ones(3).sum(axis=2), ValueError),
        (lambda: tw.max(tw.ones(0)), ValueError),
        (lambda: ~tw.ones(3), TypeError),
        (lambda: tw.ones(3) & tw.ones(3), TypeError),
        (lambda: bool(tw.ones(3)), ValueError),
        (lambda: float(tw.ones(3)), TypeError),
        (lambda: tw.full(2, 2**70), OverflowError),
        (lambda: tw.zeros(-1), ValueError),
        (lambda: tw.arange(0, 5, 0), ValueError),
        (lambda: tw.zeros((2**62, 2**62)), ValueError),
    ],
)
def test_errors(call, error):
    with pytest.raises(error):
        call()


def test_errors_name_the_line():
    with pytest.raises(ValueError, match=r"test_array\.py:\d+"):
        tw.ones(3) + tw.ones(4)


def test_numpy_inputs_of_every_layout():
    base = np.arange(24).reshape(4, 6)
    for x in (base[::-1], base[:, ::-2], base.T, base[1:3, ::3], np.asfortranarray(base), base.astype(">i4")):
        same(tw.asarray(x), x.astype(x.dtype.newbyteorder("=")))
    frozen = np.arange(3)
    frozen.flags.writeable = False
    same(tw.asarray(frozen), frozen)
    times = np.array(["2020-01-01", "NaT"], "datetime64[s]")
    assert tw.asarray(times).compute().astype(str).tolist() == times.astype(str).tolist()


def test_sessions():
    with tw.Session(threads=1, memory="1MiB"):
        with pytest.raises(MemoryError):
            tw.ones((1000, 1000)).persist()
    assert float(tw.ones(3).sum()) == 3.0
    with pytest.raises(ValueError):
        tw.Session(threads=0)


def test_numbers_that_do_not_fit_are_refused():
    small = tw.arange(4, dtype=tw.uint8)
    for value, error in ((300, OverflowError), (-1, OverflowError), (float("nan"), ValueError), (1j, TypeError)):
        with pytest.raises(error):
            small[0] = value
    small[0] = 2.9
    assert small.compute().tolist() == [2, 1, 2, 3]


def test_methods_take_what_numpys_do():
    x = np.arange(12.0).reshape(3, 4)
    array = tw.asarray(x)
    same(array.sum(0), x.sum(0))
    same(array.std(ddof=1), x.std(ddof=1))
    same(array.reshape(4, 3), x.reshape(4, 3))
    same(array.transpose(), x.transpose())
    same(array.cumsum(), x.cumsum())
    same(array.cumsum(1), x.cumsum(1))
    same(np.squeeze(array[None]), x)
    assert np.shape(array) == (3, 4)
    assert f"{array.mean():.2f}" == "5.50"
    assert array.rechunk(2).rechunk({0: 3}).chunks == ((3,), (2, 2))
    with pytest.raises(TypeError):
        hash(array)


def test_files(tmp_path):
    x = np.arange(12.0).reshape(3, 4)
    np.save(tmp_path / "x.npy", tw.asarray(x))
    same(tw.from_npy(tmp_path / "x.npy"), x)
    with pytest.raises(FileNotFoundError):
        tw.from_npy(tmp_path / "none.npy")


def test_forks_are_refused():
    import os

    assert float(tw.ones(3).sum()) == 3.0
    child = os.fork()
    if child == 0:
        try:
            float(tw.ones(4).sum())
            os._exit(1)
        except RuntimeError:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_random_numbers():
    rng = tw.random.default_rng(3)
    low = 2**60
    drawn = rng.integers(low, low + 3, size=1000).compute()
    assert set(drawn.tolist()) == {low, low + 1, low + 2}
    again = tw.random.default_rng(3)
    assert (again.integers(low, low + 3, size=1000).rechunk(7).compute() == drawn).all()
    normal = rng.normal(5.0, 2.0, size=20_000)
    assert abs(float(normal.mean()) - 5.0) < 0.1 and abs(float(normal.std()) - 2.0) < 0.1


@pytest.mark.parametrize("x", [np.array(5.0), np.arange(3.0), np.arange(6.0).reshape(2, 3)])
@pytest.mark.parametrize("mask", [True, False, np.array(True), np.array(False)])
@pytest.mark.parametrize("value", [1, np.array([7.0]), np.array(7.0), np.array([1.0, 2.0, 3.0]), np.array([[1.0, 2.0, 3.0]])])
def test_assignment_under_one_truth_value(x, mask, value):
    expected, array = x.copy(), tw.asarray(x)
    try:
        expected[mask] = value
    except (ValueError, TypeError):
        with pytest.raises((ValueError, TypeError)):
            array[tw.asarray(mask)] = value
        return
    array[tw.asarray(mask)] = value
    same(array, expected)


ROW = np.arange(4.0)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (np.s_[:, None], 5),
        (np.s_[:, None], np.arange(3.0).reshape(3, 1, 1)),
        (np.s_[None, ..., 0], np.array([[1.0, 2.0, 3.0]])),
        (np.s_[0, None, 1:3], np.array([[8.0, 9.0]])),
        (np.s_[..., None], ROW[:, None]),
        (np.s_[None, None, 1, 2], np.ones((1, 1))),
        (np.s_[None], np.ones((1, 1, 4)) * 3),
        (np.s_[[0, 2], None], np.arange(8.0).reshape(2, 1, 4)),
        (np.s_[:, None], np.ones((3, 2, 4))),
    ],
)
def test_assignment_through_new_axes(key, value):
    expected, array = np.arange(12.0).reshape(3, 4), tw.arange(12.0).reshape(3, 4)
    try:
        expected[key] = value
    except ValueError:
        with pytest.raises(ValueError):
            array[key] = value
        return
    array[key] = value
    same(array, expected)


@pytest.mark.parametrize(
    "key", [0, -1, (0, 1), np.s_[:2], np.s_[1:, ::-1], np.s_[..., 0], [2, 0], (slice(None), [1]), np.s_[:0], (np.array([True, False, True]),)]
)
def test_blocks_by_number(key):
    x = np.arange(35).reshape(5, 7)
    found = tw.asarray(x, chunks=((2, 2, 1), (4, 3))).blocks[key]
    lengths = [np.array([2, 2, 1]), np.array([4, 3])]
    numbers = [np.arange(3), np.arange(2)]
    full = key if isinstance(key, tuple) else (key,)
    full = (*[slice(None)] * (2 - len(full) + 1), *full[1:]) if full[0] is Ellipsis else full
    for axis, each in enumerate(full):
        numbers[axis] = np.atleast_1d(numbers[axis][each])
    starts = [np.concatenate([[0], np.cumsum(own)]) for own in lengths]
    rows, columns = (
        [place for k in own for place in range(start[k], start[k + 1])] for own, start in zip(numbers, starts, strict=True)
    )
    same(found, x[np.ix_(rows, columns)])
    expected = tuple(tuple(own[k]) or (0,) for own, k in zip(lengths, numbers, strict=True))
    assert found.chunks == expected


def test_blocks_as_dask_has_them():
    x = tw.zeros((5, 7), chunks=(2, 4))
    assert x.blocks.shape == x.numblocks == (3, 2) and x.blocks.size == x.npartitions == 6 and x.chunksize == (2, 4)
    assert [block.shape for block in x.blocks.ravel()] == [(2, 4), (2, 3), (2, 4), (2, 3), (1, 4), (1, 3)]
    assert x.partitions[0].shape == (2, 7)
    for wrong in (3, (0, 2), None, (0, 0, 0), 1.5, [1.5]):
        with pytest.raises((IndexError, TypeError)):
            x.blocks[wrong]
    with pytest.raises(ValueError):
        x.blocks[[0], [0]]


def test_arrays_are_made_in_blocks():
    x = tw.ones((4, 4))
    for made in (
        tw.zeros((4, 4), chunks=3), tw.ones((4, 4), chunks=3), tw.empty((4, 4), chunks=3), tw.full((4, 4), 2, chunks=3), tw.eye(4, chunks=3),
        tw.identity(4, chunks=3), tw.zeros_like(x, chunks=3), tw.ones_like(x, chunks=3), tw.empty_like(x, chunks=3), tw.full_like(x, 2, chunks=3),
        tw.array(x, chunks=3), tw.asarray(x, chunks=3),
    ):  # fmt: skip
        assert made.chunks == ((3, 1), (3, 1))
    assert tw.arange(4, chunks=3).chunks == tw.linspace(0, 1, 4, chunks=3).chunks == ((3, 1),)


def test_conversions_by_rule():
    x = tw.ones(2)
    same(x.astype("float32", casting="same_kind"), np.ones(2, "float32"))
    for rule in ("safe", "same_kind"):
        with pytest.raises(TypeError, match=rule):
            x.astype("int64", casting=rule)
    assert x[x > 0].compute_chunk_sizes().shape == (2,)


# Indices and values that random comparisons with NumPy have found


@pytest.mark.parametrize(
    "key", [(np.array(1),), (None, np.array(-2), ...), (np.array(0), 1, slice(None, 0, -1)), (slice(None), np.array(1), tw.asarray(1)), (..., np.array(2, "u1")), (0, None, np.array(1, "i2"))]
)  # fmt: skip
def test_an_array_without_axes_is_an_integer(key):
    values = np.arange(24).reshape(2, 3, 4)
    plain = tuple(int(part) if isinstance(part, tw.Array) else part for part in key)
    x = tw.asarray(values)
    found = x[key]
    same(found, values[tuple(np.array(part) if isinstance(part, int) else part for part in plain)])
    # NumPy copies what such an index names.
    x[...] = -1
    same(found, values[plain])
    own, other = values.copy(), tw.asarray(values)
    own[plain], other[key] = 9, 9
    same(other, own)


def test_values_may_have_more_axes_of_length_one():
    values = np.arange(8).reshape(2, 2, 2)
    for key in ((None, 0, -1), (0,), ([0, 1],), (slice(None), None, 1)):
        for value in (np.array([[[[6]]]]), np.array([[6]])):
            own, x = values.copy(), tw.asarray(values)
            own[key] = value
            x[key] = tw.asarray(value)
            same(x, own)
    number = tw.asarray(-7)
    number[...] = tw.asarray([4.0])
    same(number, np.asarray(4))
    x = tw.zeros(3)
    for key, value in ((slice(2), tw.ones((2, 1, 2))), (0, tw.ones(1)), ([True, False, True], tw.ones((1, 2)))):
        with pytest.raises((ValueError, TypeError)):
            x[key] = value


@pytest.mark.parametrize(("shape", "mask"), [((0, 1), (0, 0)), ((1, 0), (0, 0)), ((3,), (0,)), ((2, 3), (0, 3)), ((2, 3), (0,))])
def test_masks_without_elements_select_nothing(shape, mask):
    values, none = np.ones(shape), np.zeros(mask, bool)
    for key in (none, tw.asarray(none)):
        same(tw.asarray(values)[key], values[none])
        x = tw.asarray(values)
        x[key] = 5
        same(x, values)
    with pytest.raises(IndexError):
        tw.zeros((2, 3))[np.zeros((1, 0), bool)]


def test_numbers_change_their_type_in_place_as_scalars_do():
    flags, own = tw.asarray([True, False]), np.array([True, False])
    flags[0] *= 8
    own[0] *= 8
    same(flags, own)
    flags[1] **= 2
    own[1] **= 2
    same(flags, own)
    flag = tw.asarray(True)
    flag **= 2
    same(flag, np.int64(1))
    total = tw.arange(4).sum()
    total *= 0.5
    same(total, np.float64(3.0))
    total += np.ones(2)
    same(total, np.array([4.0, 4.0]))
    # A view keeps its type.
    whole = tw.arange(4)
    row = whole[1:2].reshape(())
    with pytest.raises(TypeError):
        row += 0.5


def test_times_beside_other_types():
    spans, days = np.array([1, 5, 9], "m8[s]"), np.array([1, 5, 9], "M8[D]")
    numbers = np.array([5, 5, -1], "i4")
    x, y, n = (tw.asarray(each) for each in (spans, days, numbers))
    same(x < n, spans < numbers)
    same(x == 5, spans == 5)
    same(tw.minimum(x, n), np.minimum(spans, numbers))
    same(x >= tw.asarray([True]), spans >= np.array([True]))
    for mine, theirs in (((y, n), (days, numbers)), ((x, y), (spans, days)), ((y, 5), (days, 5)), ((x, tw.ones((2, 1))), (spans, np.ones((2, 1))))):
        same(mine[0] == mine[1], theirs[0] == theirs[1])
        same(mine[0] != mine[1], theirs[0] != theirs[1])
    with pytest.raises((TypeError, ValueError)):
        tw.equal(y, n)
    with pytest.raises((TypeError, ValueError)):
        x < tw.asarray(np.array([1, 2, 3], "u8"))


@pytest.mark.parametrize("key", [([0, 2],), (np.array([True, False, True]),), (slice(None, None, 2),), (np.array([True, False, True]), slice(None)), (tw.asarray([2, 2]), 0)])
def test_large_integers_are_written_as_they_are(key):
    values = np.array([[3], [10], [2**63 + 1]], "u8")
    for value in (np.int8(-6), np.int64(2**62 + 1), np.array([[2**62 + 1]]), np.float32(7.5)):
        if isinstance(value, np.ndarray) and len(key) == 1 and getattr(key[0], "dtype", None) == "bool":
            value = value[0]
        own, x = values.copy(), tw.asarray(values)
        own[tuple(np.asarray(part) if isinstance(part, tw.Array) else part for part in key)] = value
        x[key] = value
        same(x, own)
