"""Random arrays: distributions against NumPy's, and what does not depend on blocks."""

from __future__ import annotations

import pickle
import threading
import time

import numpy as np
import pytest
from conftest import same

import tilewright as tw

#: Methods of generators and parameters to try them with.
DRAWS = {
    "random": (), "standard_normal": (), "standard_exponential": (), "standard_cauchy": (), "uniform": (2.0, 5.0),
    "normal": (1.0, 3.0), "exponential": (2.0,), "laplace": (1.0, 2.0), "logistic": (1.0, 0.5), "gumbel": (1.0, 2.0),
    "rayleigh": (2.0,), "weibull": (1.5,), "pareto": (3.0,), "power": (2.5,), "triangular": (-1.0, 0.5, 2.0),
    "lognormal": (0.5, 0.75), "geometric": (0.3,), "poisson": (4.5,), "binomial": (12, 0.3), "integers": (3, 9),
}  # fmt: skip
N = 40_000


def furthest_apart(first, second):
    """The largest distance of two distribution functions."""
    both = np.sort(np.concatenate([first, second]))
    ranks = [np.searchsorted(np.sort(each), both, side="right") / each.size for each in (first, second)]
    return np.abs(ranks[0] - ranks[1]).max()


@pytest.mark.parametrize("name", DRAWS)
def test_distributions(name):
    found = getattr(tw.random.default_rng(5), name)(*DRAWS[name], size=N)
    expected = getattr(np.random.default_rng(5), name)(*DRAWS[name], size=N)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    # Of two samples of one distribution, this is exceeded once in 10^6 cases.
    assert furthest_apart(found.compute(), expected) < 2.7 * np.sqrt(2 / N)
    other = getattr(tw.random.default_rng(6), name)(*DRAWS[name], size=N)
    assert (other.compute() != found.compute()).any()


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("size", [None, 0, 3, (2, 3)])
def test_shapes_and_seeds(name, size):
    draw = getattr(tw.random.default_rng(3), name)(*DRAWS[name], size=size)
    expected = getattr(np.random.default_rng(3), name)(*DRAWS[name], size=size)
    assert draw.shape == np.shape(expected)
    assert draw.dtype == np.asarray(expected).dtype
    again = getattr(tw.random.default_rng(3), name)(*DRAWS[name], size=size).rechunk(1) if draw.ndim else draw
    same(again, draw.compute())


def test_large_means():
    for draw in (lambda rng: rng.poisson(1e6, N), lambda rng: rng.binomial(10**7, 0.2, N)):
        found = draw(tw.random.default_rng(1)).compute()
        assert furthest_apart(found, draw(np.random.default_rng(1))) < 2.7 * np.sqrt(2 / N)


def test_parameters_of_every_element():
    rng = tw.random.default_rng(2)
    scale = tw.asarray([1.0, 100.0])
    draws = rng.exponential(scale, (N, 2)).mean(axis=0).compute()
    np.testing.assert_allclose(draws, [1, 100], rtol=0.05)
    assert rng.normal(scale).shape == (2,)
    assert rng.uniform(0, scale, (5, 2)).shape == (5, 2)
    with pytest.raises(ValueError):
        rng.exponential(scale, 3)


def test_integers_with_their_end():
    drawn = tw.random.default_rng(1).integers(1, 3, 1000, endpoint=True).compute()
    assert set(drawn.tolist()) == {1, 2, 3}


def test_permutations():
    rng = tw.random.default_rng(4)
    assert sorted(rng.permutation(50).tolist()) == list(range(50))
    x = np.arange(60).reshape(20, 3)
    rows = rng.permutation(tw.asarray(x)).compute()
    assert sorted(rows[:, 0].tolist()) == x[:, 0].tolist() and (rows - rows[:, :1] == [0, 1, 2]).all()
    each = rng.permuted(tw.asarray(x), axis=0).compute()
    assert (np.sort(each, axis=0) == x).all() and (each != x).any()
    assert sorted(rng.permuted(tw.asarray(x)).compute().reshape(-1).tolist()) == list(range(60))
    array = tw.arange(50)
    rng.shuffle(array)
    assert sorted(array.tolist()) == list(range(50)) != array.tolist()
    with pytest.raises(TypeError):
        rng.shuffle([1, 2, 3])


def test_choice():
    rng = tw.random.default_rng(4)
    drawn = rng.choice(4, N, p=[0.1, 0.0, 0.6, 0.3]).compute()
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / N, [0.1, 0.0, 0.6, 0.3], atol=0.015)
    drawn = np.stack([rng.choice(3, 2, replace=False, p=[0.5, 0.3, 0.2]).compute() for _ in range(300)])
    assert (drawn[:, 0] != drawn[:, 1]).all()
    np.testing.assert_allclose(np.bincount(drawn[:, 0]) / 300, [0.5, 0.3, 0.2], atol=0.12)
    assert set(rng.choice(tw.asarray([5, 7]), 100).tolist()) == {5, 7}
    assert rng.choice(np.ones((2, 3)), (4,), axis=1).shape == (2, 4)
    assert rng.choice(6, (2, 2), replace=False).shape == (2, 2)
    assert rng.choice(5).shape == ()


def test_refused():
    rng = tw.random.default_rng(4)
    for call in (
        lambda: rng.exponential(-1.0), lambda: rng.geometric(0.0), lambda: rng.binomial(-1, 0.5), lambda: rng.binomial(3, 1.5),
        lambda: rng.poisson(-1.0), lambda: rng.poisson(1e12), lambda: rng.pareto(0.0), lambda: rng.choice(3, 4, replace=False), lambda: rng.choice(0, 1),
        lambda: rng.choice(2, p=[0.5, 0.6]), lambda: rng.choice(2, p=[1.0]), lambda: rng.normal(0, -1), lambda: rng.integers(3, 3),
    ):  # fmt: skip
        with pytest.raises(ValueError):
            call()
    with pytest.raises(TypeError):
        rng.poisson(tw.ones(3))


def test_integers_between_arrays():
    rng = tw.random.default_rng(2)
    low, high = np.array([0, -5, 100]), np.array([2, 5, 101])
    drawn = rng.integers(low, high, size=(2000, 3), dtype="int16").compute()
    assert drawn.dtype == "int16" and (drawn >= low).all() and (drawn < high).all()
    assert [len(np.unique(column)) for column in drawn.T] == [2, 10, 1]
    assert rng.integers(0, high).shape == (3,) and set(rng.integers(low, low, size=(50, 3), endpoint=True).compute().ravel().tolist()) == {0, -5, 100}
    with pytest.raises(ValueError):
        rng.integers(high, low)


def test_seeds():
    for wrong, error in ((-1, ValueError), (1.7, TypeError), ("a", TypeError), ([1, -2], ValueError), ([1.5], TypeError)):
        for xp in (np, tw):
            with pytest.raises(error):
                xp.random.default_rng(wrong)
    draw = lambda seed: tw.random.default_rng(seed).random(3).compute().tolist()  # noqa: E731
    assert draw([1, 2]) == draw((1, 2)) == draw(np.array([1, 2])) != draw([2, 1])
    assert draw(5) == draw([5]) == draw(np.int64(5))
    assert draw(np.random.SeedSequence(3)) == draw(np.random.SeedSequence(3))
    rng = tw.random.default_rng(1)
    assert tw.random.default_rng(rng) is rng


WIDEST = [(0, 2**63), (0, 2**64), (2**63, 2**64), (5, 2**64 - 1), (0, 2**63 + 2**61), (-(2**63), 2**63), (-(2**63), 2**63 - 1), (-(2**62), 2**63)]


@pytest.mark.parametrize(("low", "high"), WIDEST)
def test_widest_ranges_of_integers(low, high):
    dtype = "int64" if low < 0 or high <= 2**63 else "uint64"
    drawn = tw.random.default_rng(4).integers(low, high, 40_000, dtype=dtype)
    assert drawn.dtype == dtype
    places = [int(each) - low for each in drawn.compute()]
    assert 0 <= min(places) and max(places) < high - low
    eighths = np.bincount([place * 8 // (high - low) for place in places], minlength=8)
    assert abs(eighths - 5000).max() < 400


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_ends_of_integer_types(dtype):
    limits = np.iinfo(dtype)
    same(tw.random.default_rng(1).integers(limits.max, limits.max, 3, dtype, endpoint=True), np.full(3, limits.max, dtype))
    same(tw.random.default_rng(1).integers(limits.min, limits.min + 1, 3, dtype), np.full(3, limits.min, dtype))
    for low, high in ((limits.min, limits.max + 2), (limits.min - 1, limits.max), (3, 3), (4, 3)):
        for xp in (np, tw):
            with pytest.raises(ValueError):
                xp.random.default_rng(1).integers(low, high, 3, dtype)


def test_blocks_do_not_change_what_is_drawn():
    for name, args in (("normal", (0.0, 1.0)), ("random", ()), ("integers", (5,)), ("exponential", ()), ("choice", (9,)), ("poisson", (3.0,))):
        whole = getattr(tw.random.default_rng(1), name)(*args, size=10)
        cut = getattr(tw.random.default_rng(1), name)(*args, size=10, chunks=4)
        assert cut.chunks == ((4, 4, 2),)
        assert cut.compute().tolist() == whole.compute().tolist()


def test_functions_of_the_module_share_a_generator():
    tw.random.seed(3)
    first = [tw.random.random(2).compute().tolist(), tw.random.rand(2, 2).compute().tolist(), tw.random.randn(2, chunks=1).compute().tolist()]
    tw.random.seed(3)
    assert [tw.random.random(2).compute().tolist(), tw.random.rand(2, 2).compute().tolist(), tw.random.randn(2).compute().tolist()] == first
    assert tw.random.normal(5.0, 2.0, size=(3, 4), chunks=2).chunks == ((2, 1), (2, 2))
    assert tw.random.randint(5, size=3, dtype="int8").dtype == "int8"
    missing = [name for name in dir(tw.random.Generator) if not name.startswith("_") and name not in tw.random.__all__]
    assert missing == ["integers"]


BOUNDS = {"lists": lambda low, high: ([low], [high]), "lazy": lambda low, high: (_lazy(low), _lazy(high - 1)), "mixed": lambda low, high: (low, np.array([high], dtype=object))}


def _lazy(bound):
    return tw.asarray(np.array([bound], "uint64" if bound > 0 else "int64"))


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize(("low", "high"), [*WIDEST, (-3, 2**62), (-(2**40), 2**41), (0, 8)])
def test_widest_ranges_between_arrays(low, high, bounds):
    dtype = "int64" if low < 0 or high <= 2**63 else "uint64"
    first, last = BOUNDS[bounds](low, high)
    drawn = tw.random.default_rng(4).integers(first, last, 40_000, dtype=dtype, endpoint=bounds == "lazy")
    assert drawn.dtype == dtype
    places = [int(each) - low for each in drawn.compute()]
    assert 0 <= min(places) and max(places) < high - low
    eighths = np.bincount([place * 8 // (high - low) for place in places], minlength=8)
    assert abs(eighths - 5000).max() < 400


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_bounds_that_are_arrays_are_checked_as_numbers_are(dtype):
    least, most = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    for low, high, endpoint in ((least, most, True), (least, most + 1, False), (most, most, True), (most, most + 1, False), (least, least + 1, False)):
        for xp in (np, tw):
            drawn = np.asarray(xp.random.default_rng(1).integers([low], [high], 50, dtype, endpoint))
            assert drawn.dtype == dtype and (drawn >= low).all() and (drawn <= high - (not endpoint)).all()
    for low, high, endpoint in ((least, most + 1, True), (least, most + 2, False), (least - 1, most, True), (1, 1, False), (1, 0, True), (1, least, False)):
        for bounds in ((low, high), ([low], [high]), (low, [high]), ([low, least], high)):
            for xp in (np, tw):
                with pytest.raises(ValueError):
                    xp.random.default_rng(1).integers(*bounds, dtype=dtype, endpoint=endpoint)


def test_types_of_bounds():
    rng = tw.random.default_rng(1)
    for call in (
        lambda: rng.integers([0], [3], dtype="float64"), lambda: rng.integers([0.5], [3.7]), lambda: rng.integers(0, np.array([2.5])),
        lambda: rng.integers(0, tw.asarray([2.0])), lambda: rng.integers(["a"], [3]), lambda: rng.integers(0, tw.asarray([2]), dtype="complex64"),
    ):  # fmt: skip
        with pytest.raises(TypeError):
            call()
    assert set(rng.integers([0.0], np.array([2.0]), 50).compute().tolist()) == {0, 1}
    assert set(rng.integers(np.int8([-128]), np.uint8([0]), 3000, "int16").compute().tolist()) == set(range(-128, 0))
    assert set(rng.integers(-2, tw.asarray([0], dtype="uint64"), 50).compute().tolist()) == {-2, -1}
    assert set(rng.integers(tw.asarray([-128], dtype="int8"), tw.asarray(-126, dtype="int8"), 50).compute().tolist()) == {-128, -127}


@pytest.mark.parametrize(("low", "high", "dtype"), [(3, 3, "int64"), (4, 3, "int64"), (0, 300, "uint8"), (-1, 3, "uint64"), (3, -5, "uint8")])
def test_lazy_bounds_are_checked_when_they_are_computed(low, high, dtype):
    for bounds in ((tw.asarray([0, low]), [1, high] if dtype == "int64" else tw.asarray([1, high])), (tw.asarray([low]), tw.asarray(high))):
        drawn = tw.random.default_rng(1).integers(*bounds, dtype=dtype)
        with pytest.raises(IndexError):
            drawn.compute()


class SlowCount(int):
    """A count that other threads see before it has grown."""

    def __add__(self, more):
        time.sleep(0.01)
        return SlowCount(int(self) + more)


def test_threads_that_share_a_generator_draw_different_numbers():
    rng, drawn = tw.random.default_rng(1), []
    rng._drawn = SlowCount(0)
    threads = [threading.Thread(target=lambda: drawn.append(float(rng.random()))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = tw.random.default_rng(1)
    assert sorted(drawn) == sorted(float(expected.random()) for _ in range(8))


def test_generators_can_be_pickled():
    rng = tw.random.default_rng(1)
    rng.random(3)
    again = pickle.loads(pickle.dumps(rng))
    assert again.random(3).compute().tolist() == rng.random(3).compute().tolist()
