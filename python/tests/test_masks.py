"""Selecting by masks, putting back, counting by key: values as NumPy's, plans that grow with the data and not with its square."""

import numpy as np
import pytest

import tilewright as tw

DENSITIES = [0.0, 0.01, 0.5, 0.99, 1.0]


def masks(rng, shape):
    for density in DENSITIES:
        yield rng.random(shape) < density


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "float32", "float64", "complex64", "complex128", "datetime64[s]"])
def test_selections_over_many_blocks(dtype):
    rng = np.random.default_rng(3)
    x = rng.integers(0, 100, 700_000).astype(dtype)
    for mask in masks(rng, x.shape):
        ours, lazy = tw.asarray(x), tw.asarray(mask)
        np.testing.assert_array_equal(ours[lazy].compute(), x[mask])
        np.testing.assert_array_equal(tw.nonzero(lazy)[0].compute(), np.nonzero(mask)[0])


@pytest.mark.parametrize("chunks", [(300, 1000), (1000, 300), (7, 5000), (250, 250)])
def test_matrices_cut_in_any_way(chunks):
    rng = np.random.default_rng(4)
    x = rng.standard_normal((1000, 1000))
    ours = tw.asarray(x).rechunk(chunks)
    np.testing.assert_array_equal(ours[ours > 0.5].compute(), x[x > 0.5])
    for found, expected in zip(tw.nonzero(ours > 2), np.nonzero(x > 2), strict=True):
        np.testing.assert_array_equal(found.compute(), expected)
    rows = rng.random(1000) < 0.3
    np.testing.assert_array_equal(ours[tw.asarray(rows)].compute(), x[rows])
    np.testing.assert_allclose(ours[tw.asarray(rows)].sum(axis=0).compute(), x[rows].sum(axis=0))


def test_values_are_put_back():
    rng = np.random.default_rng(5)
    x = rng.standard_normal((700, 1000))
    for mask in masks(rng, x.shape):
        expected, ours = x.copy(), tw.asarray(x)
        values = rng.standard_normal(int(mask.sum()))
        expected[mask] = values
        ours[tw.asarray(mask)] = tw.asarray(values)
        np.testing.assert_array_equal(ours.compute(), expected)
        expected[mask] *= -1
        ours[tw.asarray(mask)] *= -1
        np.testing.assert_array_equal(ours.compute(), expected)
    with pytest.raises(ValueError, match="values for"):
        ours[tw.asarray(mask)] = tw.zeros(3)


def test_selections_that_depend_on_selections():
    rng = np.random.default_rng(6)
    x = rng.standard_normal(900_000)
    y, expected = tw.asarray(x), x
    for limit in (-1.0, 0.0, 1.0):
        y, expected = y[y > limit] * 2, expected[expected > limit] * 2
    np.testing.assert_array_equal(y.compute(), expected)
    assert float(y.mean()) == pytest.approx(expected.mean())


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "std", "var", "prod", "any", "all", "argmax"])
def test_reductions_of_selections(name):
    x = np.random.default_rng(7).standard_normal((600, 700))
    ours = tw.asarray(x)
    found = getattr(tw, name)(ours[ours > 0.1] + 1)
    np.testing.assert_allclose(np.asarray(found), getattr(np, name)(x[x > 0.1] + 1), rtol=1e-12)


@pytest.mark.parametrize("part", [slice(5), slice(-1), slice(2, None), slice(None, None, 2), slice(3, 4)])
def test_reductions_of_parts_of_selections(part):
    x = np.arange(100.0) - 30
    ours = tw.asarray(x)
    selected, expected = ours[ours % 3 == 0], x[x % 3 == 0]
    for name in ("sum", "mean", "prod", "max", "argmin", "count_nonzero"):
        found = getattr(tw, name)(selected[part])
        assert float(found) == pytest.approx(getattr(np, name)(expected[part])), name
    assert float(selected[part] @ selected[part]) == expected[part] @ expected[part]
    assert float((selected * 2 + 1)[part].sum()) == (expected * 2 + 1)[part].sum()
    rows = ours.reshape((50, 2))[ours[::2] % 3 == 0]
    np.testing.assert_array_equal(rows[part].sum(axis=0), x.reshape(50, 2)[x[::2] % 3 == 0][part].sum(axis=0))


@pytest.mark.parametrize("name", ["unique", "setdiff1d", "intersect1d", "union1d"])
def test_parts_of_sets(name):
    a, b = np.arange(10.0), np.arange(5.0, 15.0)
    args = (a,) if name == "unique" else (a, b)
    found = getattr(tw, name)(*(tw.asarray(arg) for arg in args))
    assert float(found[:3].sum()) == getattr(np, name)(*args)[:3].sum()


def test_a_reduction_of_a_selection_moves_nothing():
    x = tw.random.default_rng(1).standard_normal(3_000_000)
    plan = str(x[x > 0].sum().explain())
    assert "select" not in plan and "reduction" in plan
    # Nothing is counted either: the plan is one section.
    assert plan.count("by line") == 1 and "segment" not in plan


def test_empty_selections_of_reductions_are_as_in_numpy():
    x = tw.asarray(np.ones(10))
    assert float(x[x > 2].sum()) == 0
    with pytest.raises(ValueError, match="empty|no elements|nothing"):
        x[x > 2].max().compute()


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_repeats(axis):
    rng = np.random.default_rng(8)
    x = rng.standard_normal((900, 400))
    n = x.size if axis is None else x.shape[axis]
    times = rng.integers(0, 4, n)
    np.testing.assert_array_equal(tw.repeat(tw.asarray(x), tw.asarray(times), axis=axis).compute(), np.repeat(x, times, axis))
    with pytest.raises((ValueError, IndexError)):
        tw.repeat(tw.asarray(x), tw.asarray(times - 1), axis=axis).compute()


@pytest.mark.parametrize("n_keys", [1, 500, 1_000_000])
def test_counts_by_key(n_keys):
    rng = np.random.default_rng(9)
    keys, weights = rng.integers(0, n_keys, 500_000), rng.standard_normal(500_000)
    ours = tw.asarray(keys)
    np.testing.assert_array_equal(tw.bincount(ours).compute(), np.bincount(keys))
    np.testing.assert_allclose(tw.bincount(ours, weights=weights).compute(), np.bincount(keys, weights=weights), atol=1e-9)


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint64", "float64"])
def test_membership(dtype):
    rng = np.random.default_rng(10)
    x = rng.integers(-100 if dtype[0] != "u" else 0, 100, 300_000).astype(dtype)
    for test in ([5, 7, -3], [], [2**62], [100, 101], np.arange(-300, 300, 7)):
        np.testing.assert_array_equal(tw.isin(tw.asarray(x), test).compute(), np.isin(x, test))
    extremes = np.array([-(2**63), 2**63 - 1, 0, 5])
    np.testing.assert_array_equal(tw.isin(tw.asarray(extremes), [5, 9]).compute(), np.isin(extremes, [5, 9]))


def test_planning_grows_with_the_data():
    tasks = []
    for n in (10**6, 10**7, 10**8):
        x = tw.random.default_rng(1).standard_normal(n)
        tasks.append(x[x > 0].explain().to_dict()["tasks"])
    assert tasks[1] < 12 * tasks[0] + 100 and tasks[2] < 12 * tasks[1] + 100, tasks


class Chunks:
    """An array that says which of its rows are read."""

    def __init__(self, n, rows):
        self.shape, self.dtype, self.chunks = (n, 8), np.dtype("f8"), (rows, 8)
        self.read = []

    ndim = 2

    def __getitem__(self, key):
        rows = range(*key[0].indices(self.shape[0]))
        # An empty slice only asks for the type.
        if rows:
            self.read.append((rows.start, rows.stop))
        return np.repeat(np.arange(rows.start, rows.stop, dtype="f8"), 8).reshape(-1, 8)[:, key[1]]


def test_known_indices_read_what_they_name():
    source = Chunks(1000, 10)
    x = tw.from_array(source, chunks=(10, 8))
    np.testing.assert_array_equal(x[[30, 41]].compute()[:, 0], [30, 41])
    assert sorted(source.read) == [(30, 40), (40, 50)]
    source.read.clear()
    np.testing.assert_array_equal(tw.take(x, np.array([-1, 5]), axis=0).compute()[:, 0], [999, 5])
    assert sorted(source.read) == [(0, 10), (990, 1000)]
    source.read.clear()
    np.testing.assert_array_equal(x[35:37].compute()[:, 0], [35, 36])
    assert source.read == [(30, 40)] or source.read == [(35, 37)]
    for part, expected in ((x[5::500], [5, 505]), (x[995::-495], [995, 500, 5])):
        source.read.clear()
        np.testing.assert_array_equal(part.compute()[:, 0], expected)
        assert len(source.read) == len(expected), source.read


class Squares(Chunks):
    """A matrix in square chunks that notes which are read."""

    def __init__(self, n, length):
        super().__init__(n, length)
        self.shape, self.chunks = (n, n), (length, length)

    def __getitem__(self, key):
        rows, columns = (range(*part.indices(n)) for part, n in zip(key, self.shape, strict=True))
        if rows and columns:
            self.read.append((rows.start // self.chunks[0], columns.start // self.chunks[1]))
        return np.add.outer(np.array(rows) * 1000.0, np.array(columns))


def test_known_indices_along_two_axes_read_what_they_name():
    source = Squares(1000, 10)
    x = tw.from_array(source, chunks=(10, 10))
    np.testing.assert_array_equal(x[[3, 995], [7, 21]].compute(), [3007, 995021])
    assert sorted(source.read) == [(0, 0), (99, 2)]
    source.read.clear()
    np.testing.assert_array_equal(x[np.ix_([5, 702], [31, 990])].compute(), [[5031, 5990], [702031, 702990]])
    assert sorted(source.read) == [(0, 3), (0, 99), (70, 3), (70, 99)]
    # Neighbouring chunks, each once.
    source.read.clear()
    places = np.arange(400)
    np.testing.assert_array_equal(x[places, places].compute(), places * 1001)
    assert sorted(source.read) == [(k, k) for k in range(40)]
    r = tw.random.default_rng(1).standard_normal((10**6, 10**6))
    few = r[[5, 10**6 - 1], [1, 10**5]].compute()
    assert few[0] == r[5, 1].compute() and few[1] == r[10**6 - 1, 10**5].compute()


def test_known_masks_read_what_they_name():
    source = Chunks(1000, 10)
    x = tw.from_array(source, chunks=(10, 8))
    mask = np.zeros(1000, dtype=bool)
    mask[[17, 423]] = True
    picked = x[mask]
    assert picked.shape == (2, 8)
    np.testing.assert_array_equal(picked.compute()[:, 0], [17, 423])
    assert sorted(source.read) == [(10, 20), (420, 430)]
    source = Squares(200, 10)
    whole = np.zeros((200, 200), dtype=bool)
    whole[3, 150] = whole[190, 2] = True
    np.testing.assert_array_equal(tw.from_array(source, chunks=(10, 10))[whole].compute(), [3150, 190002])
    assert sorted(source.read) == [(0, 15), (19, 0)]


def test_a_few_elements_of_very_many():
    x = tw.arange(10**12)
    places = np.linspace(0, 10**12 - 1, 20).astype("int64")
    np.testing.assert_array_equal(tw.take(x, places).compute(), places)
    np.testing.assert_array_equal(x[places[::-1]].compute(), places[::-1])


def test_known_indices_outside_are_errors_at_the_call():
    x = tw.zeros((5, 6))
    for wrong in ([5], [-6], np.array([[0, 7]])):
        with pytest.raises(IndexError, match="out of bounds"):
            x[wrong]
    with pytest.raises(IndexError, match="out of bounds"):
        tw.take(x, [6], axis=1)
    assert x[[], :].shape == (0, 6)
    np.testing.assert_array_equal(x[[[0, 1]], [[2], [3]]].compute(), np.zeros((2, 2)))


def test_plans_of_assignments_under_a_mask_have_as_many_places_as_values():
    rng = np.random.default_rng(12)
    x = rng.standard_normal(1_000_000)
    mask = rng.random(x.size) < 0.9
    y = tw.asarray(x).copy()
    y[tw.asarray(mask)] = tw.asarray(x[mask] + 1)
    assert "segment 2" in str(y.explain())
    np.testing.assert_array_equal(y.compute(), np.where(mask, x + 1, x))


def test_values_under_a_mask_may_lie_in_many_blocks():
    rng = np.random.default_rng(13)
    x = rng.standard_normal(700_000)
    mask = rng.random(x.size) < 0.7
    values = rng.standard_normal(int(mask.sum()))
    expected = x.copy()
    expected[mask] = values
    for chunk in (70_001, 20_000, 300_000):
        y = tw.asarray(x, chunks=100_000).copy()
        y[tw.asarray(mask, chunks=90_000)] = tw.asarray(values, chunks=chunk)
        np.testing.assert_array_equal(y.compute(), expected)


def test_taking_elements_copies_no_data_first():
    x, places = tw.asarray(np.arange(1e6)), tw.asarray(np.random.default_rng(14).integers(0, 10**6, 10**6))
    # Sixteen blocks each: both inputs are loaded, indices are counted from the start, and elements are taken.
    assert x[places].explain().to_dict()["tasks"] == 4 * 16
    np.testing.assert_array_equal(x[places].compute(), np.asarray(places).astype("float64"))


KEYS = [
    (None, True), (True, 0), (False, 0), (True, slice(1, 3)), (slice(1, 3), True), (True, [0, 1]), (..., True), (..., False), (0, None, True), (True, True), (True, False), (True, ..., 1),
    (np.True_, 1, slice(None)), ([0, 2], True), (True, np.array([True, False, True])), (slice(None), True, 1), (0, True, 1), (0, slice(None), True), ([1], slice(None), True), (True, 0, 0, 0), (np.array(False), None),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_single_truth_values_among_other_indices(key):
    values = np.arange(12).reshape(3, 4)
    x = tw.asarray(values, chunks=2)
    try:
        expected = values[key]
    except IndexError:
        with pytest.raises(IndexError):
            x[key]
        return
    found = x[key]
    assert found.shape == expected.shape and np.array_equal(found.compute(), expected)
    lazy = tuple(tw.asarray(each) if isinstance(each, (bool, np.bool_)) else each for each in key)
    assert np.array_equal(x[lazy].compute(), expected)
    x[key] = values[key] = 9
    assert np.array_equal(x.compute(), values)


KEYS = [
    (slice(None), [3, -1, 3, 0]), (np.array([[5, 5], [1, -6]]),), (..., [2, 2, 1]), (slice(None), np.array([1, 0, 1]), slice(None)), ([],),
    (np.array([True, False, True, True, False, True]),), (slice(None), np.array([False, True, True, False, True])), ([0, 0, 5], [1, 1, 2]),
    (slice(1, 5), [4, 4, 0]), (np.array([4, 1, 4]), slice(None), 2),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("chunk", [None, 2])
@pytest.mark.parametrize("lazy", [False, True])
def test_values_at_indices(key, chunk, lazy):
    rng = np.random.default_rng(6)
    x = rng.standard_normal((6, 5, 4))
    own = tuple(tw.asarray(part) if lazy and isinstance(part, np.ndarray) else part for part in key)
    part = x[key]
    for values in (7, -2.5, rng.standard_normal(part.shape), rng.standard_normal(part.shape[1:]), rng.standard_normal(part.shape[-1:]), np.float32(3)):
        ours, theirs = tw.asarray(x), x.copy()
        ours = ours if chunk is None else ours.rechunk(chunk)
        theirs[key] = values
        ours[own] = values
        np.testing.assert_array_equal(ours.compute(), theirs)
        whole, expected = tw.asarray(x.astype("i2")), x.astype("i2")
        whole[own], expected[key] = values, values
        np.testing.assert_array_equal(whole.compute(), expected)
    with pytest.raises(ValueError):
        ours[own] = np.zeros((part.shape[0] + 2, *part.shape[1:]))


def test_writes_to_nothing():
    for shape, key in [((2, 0), (slice(None), np.zeros(0, bool))), ((0, 3), ([],)), ((3, 0), ([1, 1],)), ((0,), (np.zeros(0, bool),))]:
        for value in (1, np.ones(np.zeros(shape)[key].shape)):
            x = tw.zeros(shape)
            x[key] = value
            assert x.compute().shape == shape


def test_indices_of_writes_outside_are_errors():
    x = tw.zeros((3, 4))
    for key in ([3], (slice(None), [4, 0]), (..., np.array([-5]))):
        with pytest.raises(IndexError, match="out of bounds"):
            x[key] = 1
    x[tw.asarray([0, 3])] = np.ones((2, 4))
    with pytest.raises(IndexError):
        x.compute()


def test_values_at_indices_over_many_blocks():
    """The last write to a place wins; plans sort nothing, and have a few tasks per block."""
    rng = np.random.default_rng(7)
    x, places = rng.standard_normal(2_000_000), rng.integers(-2_000_000, 2_000_000, 1_500_000)
    values = rng.standard_normal(places.size)
    ours, theirs = tw.asarray(x), x.copy()
    ours[tw.asarray(places)] = values
    theirs[places] = values
    plan = str(ours.explain("tree"))
    assert "scatter" in plan and "sort" not in plan
    np.testing.assert_array_equal(ours.compute(), theirs)
