"""What errors say, and of which class they are."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from conftest import same
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw


def test_a_budget_that_does_not_suffice_names_the_line_and_what_to_do():
    with tw.Session(memory=1000):
        x = tw.ones((100, 100))
        line = inspect.currentframe().f_lineno + 1
        y = tw.sort(x * 2, axis=0)
        with pytest.raises(MemoryError) as caught:
            y.compute()
    text = str(caught.value)
    assert f"test_messages.py:{line}" in text
    assert "smallest budget that works" in text and "tw.Session(memory=..)" in text


def test_the_smallest_budget_works():
    def run(memory):
        with tw.Session(memory=memory, threads=1):
            return tw.sort(tw.ones((50, 50)) * 2, axis=0).compute()

    with pytest.raises(MemoryError) as caught:
        run(100)
    needed = int(str(caught.value).split("smallest budget that works is ")[1].split()[0])
    assert run(needed).shape == (50, 50)


INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


@given(st.sampled_from(INTEGERS), st.integers(-(2**65), 2**65), st.sampled_from(["add", "subtract", "multiply", "bitwise_and", "maximum"]))
def test_python_integers_that_do_not_fit(dtype, number, name):
    x = np.array([1, 2], dtype=dtype)
    fits = np.iinfo(dtype).min <= number <= np.iinfo(dtype).max
    if fits:
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(x, number)
        found = getattr(tw, name)(tw.asarray(x), number)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found.compute(), expected)
    else:
        with pytest.raises(OverflowError):
            getattr(np, name)(x, number)
        with pytest.raises(OverflowError):
            getattr(tw, name)(tw.asarray(x), number)


@given(st.sampled_from(INTEGERS), st.integers(-(2**63), 2**64 - 1), st.sampled_from(["less", "greater_equal", "equal", "not_equal"]))
def test_comparisons_take_any_integer(dtype, number, name):
    x = np.array([0, 1, 100], dtype=dtype)
    np.testing.assert_array_equal(getattr(tw, name)(tw.asarray(x), number).compute(), getattr(np, name)(x, number))


def test_overflow_says_what_to_do():
    with pytest.raises(OverflowError, match=r"(?s)into uint8.*astype"):
        tw.asarray(np.ones(3, dtype="uint8")) + 300


OF_PAIRS = ["fmax", "fmin", "fmod", "gcd", "lcm", "floor_divide", "minimum"]


@pytest.mark.parametrize("number", [300, -1])
def test_integers_that_do_not_fit_are_refused_wherever_numpy_does(number):
    x = np.array([1, 2], dtype="uint8")
    calls = [lambda xp, a, name=name: getattr(xp, name)(a, number) for name in OF_PAIRS]
    calls += [lambda xp, a, name=name: getattr(xp, name)(a, initial=number) for name in ("max", "min")]
    calls += [
        lambda xp, a: xp.full(2, number, dtype="uint8"),
        lambda xp, a: xp.full_like(a, number),
        lambda xp, a: xp.insert(a, 1, number),
        lambda xp, a: xp.insert(a, 1, [number]),
    ]
    for call in calls:
        for xp, array in ((np, x), (tw, tw.asarray(x))):
            with pytest.raises(OverflowError):
                call(xp, array)


@pytest.mark.parametrize("number", [300, -1])
def test_integers_that_do_not_fit_are_converted_wherever_numpy_does(number):
    x = np.array([1, 2], dtype="uint8")
    for call in (
        lambda xp, a: xp.pad(a, 1, constant_values=number),
        lambda xp, a: xp.select([a > 1], [a], number),
        lambda xp, a: xp.insert(a, 1, np.int64(number)),
        lambda xp, a: xp.full(2, np.int64(number), dtype="uint8"),
    ):
        same(call(tw, tw.asarray(x)), call(np, x))
    np.testing.assert_allclose(tw.heaviside(tw.asarray(x) - 1, number).compute(), np.heaviside(x - 1, number))
    np.testing.assert_allclose(tw.logaddexp2(tw.asarray(x), number).compute(), np.logaddexp2(x, number), rtol=1e-3)


@pytest.mark.parametrize("axis", ["a", 1.0, (0, "a")])
@pytest.mark.parametrize("name", ["sum", "mean", "max", "argmax", "std", "any", "flip", "squeeze", "expand_dims", "median", "nanmax", "cumsum", "sort", "diff"])
def test_axes_are_whole_numbers(name, axis):
    for xp in (np, tw):
        with pytest.raises(TypeError):
            getattr(xp, name)(xp.ones((1, 2)), axis=axis)


def test_axes_that_are_not_there():
    for name in ("sum", "mean", "argmax", "any", "sort", "argsort", "cumsum", "flip", "squeeze", "diff", "nanmax", "median", "count_nonzero", "cumulative_sum"):
        for axis in (2, -3):
            for xp in (np, tw):
                with pytest.raises(np.exceptions.AxisError, match="out of bounds"):
                    getattr(xp, name)(xp.ones((1, 2)), axis=axis)
    for call in (
        lambda xp, x: xp.concatenate((x, x), axis=2), lambda xp, x: xp.stack((x, x), axis=3), lambda xp, x: xp.take(x, [0], axis=2),
        lambda xp, x: xp.transpose(x, (0, 2)), lambda xp, x: xp.expand_dims(x, 4), lambda xp, x: xp.moveaxis(x, 2, 0),
    ):  # fmt: skip
        for xp in (np, tw):
            with pytest.raises(np.exceptions.AxisError):
                call(xp, xp.ones((1, 2)))
    for order in ((0,), (0, 0), (0, 1, 2)):
        for xp in (np, tw):
            with pytest.raises(ValueError):
                xp.transpose(xp.ones((1, 2)), order)


@pytest.mark.parametrize("chunks", [2.5, True, (1.5,), ((1.0, 1.0),), {0: 1.5}])
def test_lengths_of_blocks_are_whole_numbers(chunks):
    with pytest.raises(TypeError, match="whole numbers"):
        tw.ones(2).rechunk(chunks)


def test_options_of_sessions():
    for wrong in ({"memory": 0}, {"memory": -1}, {"memory": "0B"}, {"threads": 0}, {"threads": -1}):
        with pytest.raises(ValueError):
            tw.Session(**wrong)
    for wrong in ({"memory": 1.5}, {"memory": True}, {"threads": 1.0}, {"threads": "2"}):
        with pytest.raises(TypeError):
            tw.Session(**wrong)


def test_results_do_not_go_into_numpy_arrays():
    x = np.ones(2)
    with pytest.raises(TypeError, match="lazy"):
        x += tw.ones(2)


def test_masks_of_masked_arrays_are_not_lost():
    masked = np.ma.masked_array([1, 2, 3], [False, True, False])
    for call in (tw.asarray, tw.array, tw.sum, lambda x: tw.arange(3) + x, lambda x: tw.from_array(x, chunks=2).compute()):
        with pytest.raises(TypeError, match="mask"):
            call(masked)
    with pytest.raises(TypeError, match="mask"):
        tw.map_blocks(lambda block: np.ma.masked_less(block, 2), tw.arange(4), dtype="int64").compute()
    same(tw.asarray(np.ma.masked_array([1, 2])), np.array([1, 2]))


def test_types_have_the_names_of_numpy():
    with pytest.raises(TypeError, match=r"^`and` does not take float64 and int32"):
        tw.asarray([1.0]) & tw.asarray(np.ones(1, dtype="int32"))


def test_arguments_that_are_no_whole_numbers_or_floats():
    for call in (
        lambda: tw.round(tw.asarray([1.26]), 1.5),
        lambda: tw.zeros(3.0),
        lambda: tw.random.default_rng(1).standard_normal(3, dtype="int32"),
        lambda: tw.random.default_rng(1).random(3, dtype="int32"),
    ):
        with pytest.raises(TypeError):
            call()
    for level in (101, -1, float("nan")):
        with pytest.raises(ValueError, match="between 0 and 100"):
            tw.percentile(tw.asarray([1.0, 2.0]), level)


def test_masks_of_numpy_have_known_shapes():
    x = np.arange(60.0).reshape(5, 4, 3)
    mask = np.array([True, False, True, True, False])
    pairs = np.arange(20).reshape(5, 4) % 3 == 0
    for key in (mask, (mask, slice(None), 1), (slice(None), [True, False, False, True]), pairs, (pairs, [2])):
        found = tw.asarray(x)[key]
        # No count of what is selected has to be computed first.
        assert "nan" not in str(found.chunks) and found.shape == x[key].shape
        np.testing.assert_array_equal(found.compute(), x[key])
    with pytest.raises(IndexError, match="mask"):
        tw.asarray(x)[np.ones(4, bool)]


def test_lengths_of_blocks_in_the_place_of_a_type():
    rng = tw.random.default_rng(1)
    calls = (
        lambda *given: tw.random.random((256, 256), *given),
        lambda *given: rng.standard_normal((256, 256), *given),
        lambda *given: tw.zeros((256, 256), *given),
    )
    for call in calls:
        for chunks in ((4, 4), ((128, 128), (256,))):
            with pytest.raises(TypeError, match=r"by name, as in chunks="):
                call(chunks)
        assert call("float32").dtype == np.float32
