"""Einstein's notation: NumPy's two forms, and the order of products."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw


@pytest.mark.parametrize(
    "operands",
    [
        ("ij,jk,kl->il", (3, 4), (4, 5), (5, 2)),
        ("ii,ij->j", (4, 4), (4, 3)),
        ("ij,ik,il->i", (3, 4), (3, 5), (3, 2)),
        ("abc,bd,ce,df,eg->afg", (2, 3, 4), (3, 2), (4, 2), (2, 5), (2, 3)),
        ("a,b,c->abc", (2,), (3,), (4,)),
        ("éi,iж->éж", (2, 3), (3, 4)),
    ],
)
def test_orders_do_not_change_values(operands):
    spec, *shapes = operands
    arrays = [np.random.default_rng(k).random(shape) for k, shape in enumerate(shapes)]
    # NumPy knows ASCII letters alone.
    expected = np.einsum(spec.translate(str.maketrans("éж", "xy")), *arrays)
    np.testing.assert_allclose(tw.einsum(spec, *map(tw.asarray, arrays)), expected)
    path, _ = tw.einsum_path(spec, *map(tw.asarray, arrays))
    np.testing.assert_allclose(np.einsum(spec.translate(str.maketrans("éж", "xy")), *arrays, optimize=path), expected)


def test_numbers_in_place_of_letters():
    a, b = np.random.default_rng(0).random((2, 3, 4)), np.random.default_rng(1).random((2, 4, 5))
    for form in [(a, [0, 1, 2], b, [0, 2, 3], [0, 1, 3]), (a, [0, 1, 2], b, [0, 2, 3]), (a, [..., 1, 2], b, [..., 2, 3], [..., 1, 3])]:
        lazy = [tw.asarray(x) if isinstance(x, np.ndarray) else x for x in form]
        np.testing.assert_allclose(tw.einsum(*lazy), np.einsum(*form))
    with pytest.raises(TypeError, match="list of integers"):
        tw.einsum(tw.asarray(a), "ijk", tw.asarray(b), "ikl")
    with pytest.raises(ValueError, match="subscripts"):
        tw.einsum()


def test_a_thousand_operands():
    draw = np.random.default_rng(0)
    sides = draw.integers(1, 6, 1001)
    matrices = [draw.standard_normal((sides[k], sides[k + 1])) / 2 for k in range(1000)]
    form = [x for k, matrix in enumerate(matrices) for x in (tw.asarray(matrix), [k, k + 1])]
    expected = matrices[0]
    for matrix in matrices[1:]:
        expected = expected @ matrix
    np.testing.assert_allclose(tw.einsum(*form, [0, 1000]), expected, rtol=1e-6)
    path, text = tw.einsum_path(*form, [0, 1000])
    assert len(path) == 1000 and "999 products" in text


@pytest.fixture(scope="module")
def benchmark():
    """The benchmark of orders, whose networks are the ones to look at. Its rival is not among what the tests need."""
    pytest.importorskip("opt_einsum")
    path = Path(__file__).parents[1] / "benchmarks" / "contraction_order.py"
    spec = importlib.util.spec_from_file_location("contraction_order", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("operands", [3, 4, 5, 6, 7, 8, 10, 12, 14, 15, 16, 17, 20, 30, 50, 100])
def test_orders_are_never_worse_than_those_of_opt_einsum(benchmark, operands):
    for seed in range(3):
        for name, (equation, shapes) in benchmark.cases(operands, seed).items():
            ratio, _, _ = benchmark.compare(equation, shapes)
            assert ratio <= 1, (name, seed, equation, shapes)


# Dense networks, where rules that keep finding new partners end badly.
@pytest.mark.parametrize("operands, seed", [(80, 17), (100, 9), (100, 23), (150, 35)])
def test_orders_of_large_dense_networks_are_not_worse_either(benchmark, operands, seed):
    ratio, _, _ = benchmark.compare(*benchmark.random_case(operands, 5, 0, seed))
    assert ratio <= 1
