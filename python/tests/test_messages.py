"""What errors say, and of which class they are."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
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
    with pytest.raises(OverflowError, match=r"astype"):
        tw.asarray(np.ones(3, dtype="uint8")) + 300
