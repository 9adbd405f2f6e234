"""Programs of the language with arrays of Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp
from strategies import chunks

import tilewright as tw

GRAM = """
param n = 2
param m = 3
param scale = 1.0
input A: f64[n, m]
C[i, j] = sum[k](A[i, k] * A[j, k]) * scale
t = sum[i](C[i, i])
output C
output t
"""


@given(x=hnp.arrays("float64", hnp.array_shapes(min_dims=2, max_dims=2, max_side=5), elements={"min_value": -4, "max_value": 4}), chunk=chunks)
def test_against_numpy(x, chunk):
    ours = tw.asarray(x) if chunk is None else tw.asarray(x).rechunk(chunk)
    results = tw.program(GRAM, A=ours * 1.0, n=x.shape[0], m=x.shape[1], scale=0.5)
    assert list(results) == ["C", "t"] and all(isinstance(each, tw.Array) for each in results.values())
    np.testing.assert_allclose(results["C"].compute(), x @ x.T / 2, atol=1e-12)
    np.testing.assert_allclose(float(results["t"] + 1), (x * x).sum() / 2 + 1)


def test_numpy_arrays_and_shapes_that_depend_on_data():
    x = np.array([3.0, -1.0, 2.0])
    results = tw.program("input x: f64[3]\ny = x[x > 0]\noutput y\n", x=x)
    assert results["y"].shape == (2,)
    np.testing.assert_array_equal(np.asarray(results["y"]), [3.0, 2.0])


def test_files_are_written_and_read(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(4.0))
    results = tw.program(f'input a = "{tmp_path}/a.npy"\ns = sum(a)\noutput s\n')
    assert float(results["s"]) == 6.0


@pytest.mark.parametrize(
    ("text", "inputs", "shows"),
    [
        ("y = x + 1\noutput y\n", {}, ["test_program.py:", ">:1:5", "y = x + 1", "^"]),
        ("y = = 2\n", {}, ["<program at ", ">:1", "^"]),
        ("input A: f64[2]\noutput A\n", {}, ["`A`", "not bound"]),
        ("input A: f64[2]\noutput A\n", {"A": np.ones(3)}, [">:1", "f64[2]", "f64[3]"]),
        ("input A: f64[2]\noutput A\n", {"A": np.ones(2), "B": np.ones(2)}, ["no input `B`", "`A`"]),
        ("param n = 3\nx = zeros(n)\noutput x\n", {"m": 3}, ["no parameter", "`m`"]),
    ],
)
def test_what_is_wrong_with_a_program_shows_its_line(text, inputs, shows):
    with pytest.raises(ValueError) as caught:
        tw.program(text, **inputs)
    for part in shows:
        assert part in str(caught.value), str(caught.value)


def test_errors_of_the_data_keep_their_class():
    with pytest.raises(IndexError, match=r"<program at .*test_program.py:\d+>:3"):
        tw.program("input i: i64[2]\nx = zeros(3)\ny = x[i]\noutput y\n", i=np.array([0, 9]))


def test_numbers_of_numpy_set_parameters():
    text = "param n = 3\ninput A: f64[n]\nt = sum(A)\noutput t"
    assert float(tw.program(text, A=tw.ones(2), n=np.int64(2))["t"]) == 2.0
    with pytest.raises(TypeError, match="text"):
        tw.program(3)
    with pytest.raises(TypeError) as caught:
        tw.program(text, A=object(), n=2)
    assert "'A'" in caught.value.__notes__[0]
