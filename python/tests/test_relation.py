"""Relations against NumPy and maps of blocks."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright as tw
from hypothesis import given, settings
from hypothesis import strategies as st


def blocks_of(x: np.ndarray, tiles: tuple[int, ...]) -> dict[tuple[int, ...], np.ndarray]:
    counts = [n // t for n, t in zip(x.shape, tiles, strict=True)]
    keys = itertools.product(*map(range, counts))
    return {key: x[tuple(slice(k * t, (k + 1) * t) for k, t in zip(key, tiles, strict=True))] for key in keys}


def check(relation: tw.Relation, expected: dict[tuple[int, ...], Any]) -> None:
    assert relation.keys == sorted(expected) and relation.count == len(expected)
    computed = relation.compute()
    assert list(computed) == relation.keys
    for key, block in expected.items():
        np.testing.assert_array_equal(computed[key], block)
        assert computed[key].shape == relation.bound and computed[key].dtype == relation.dtype
    if expected:
        assert relation.frontier == tuple(max(component) + 1 for component in zip(*expected, strict=True))


def pair(shape: tuple[int, ...], tiles: tuple[int, ...], seed: int = 0) -> tuple[tw.Relation, dict[tuple[int, ...], np.ndarray]]:
    x = np.random.default_rng(seed).integers(-4, 5, shape)
    return tw.Relation.of(tw.asarray(x), tiles), blocks_of(x, tiles)


@pytest.mark.parametrize("kernel", ["matmul", "ab,bc->ac", np.matmul, lambda x, y: x @ y])
def test_matrix_products(kernel: Any) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(-4, 5, (6, 8)), rng.integers(-4, 5, (8, 10))
    left, right = tw.Relation.of(tw.asarray(a), (3, 2)), tw.Relation.of(tw.asarray(b), (2, 5))
    joined = left.join(right, 1, 0, kernel)
    assert (joined.frontier, joined.bound, joined.count) == ((2, 4, 2), (3, 5), 16)
    np.testing.assert_array_equal(joined.aggregate((0, 2), "add").to_array().compute(), a @ b)
    np.testing.assert_array_equal(joined.aggregate((2, 0), np.add).to_array((1, 0)).compute(), a @ b)


@settings(deadline=None)
@given(st.data())
def test_operators(data: st.DataObject) -> None:
    tiles = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    counts = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    shape = (tiles[0] * counts[0], tiles[1] * counts[1])
    relation, blocks = pair(shape, tiles, data.draw(st.integers(0, 5)))
    kept = data.draw(st.sets(st.sampled_from(sorted(blocks))))
    relation, blocks = relation.filter(lambda *key: key in kept), {key: block for key, block in blocks.items() if key in kept}
    check(relation, blocks)
    by_name = data.draw(st.booleans())
    other, others = pair(shape, tiles, 7)
    on = data.draw(st.sampled_from([((), ()), ((0,), (0,)), ((1,), (0,)), ((0, 1), (1, 0))]))
    joined = relation.join(other, *on, "subtract" if by_name else lambda x, y: x - y)
    expected = {
        (*a, *(at for k, at in enumerate(b) if k not in on[1])): x - y
        for (a, x), (b, y) in itertools.product(blocks.items(), others.items())
        if all(a[left] == b[right] for left, right in zip(*on, strict=True))
    }
    check(joined, expected)
    by = data.draw(st.permutations(range(joined.arity)))[: data.draw(st.integers(0, joined.arity))]
    sums: dict[tuple[int, ...], Any] = {}
    for key, block in expected.items():
        group = tuple(key[k] for k in by)
        sums[group] = sums[group] + block if group in sums else block
    aggregated = joined.aggregate(by, "add" if by_name else np.add)
    assert sorted(sums) == aggregated.keys
    check_blocks = aggregated.compute()
    for key, block in sums.items():
        np.testing.assert_array_equal(check_blocks[key], block)


def test_tile_and_concat_are_inverse() -> None:
    relation, blocks = pair((6, 8), (6, 4))
    tiled = relation.tile(0, 2)
    check(tiled, {(*key, part): block[2 * part : 2 * part + 2] for key, block in blocks.items() for part in range(3)})
    check(tiled.concat(-1, 0), blocks)
    some = relation.filter(lambda i, j: j == 1)
    check(some.tile(1, 2).concat(2, 1), {(0, 1): blocks[0, 1]})


def test_transforms() -> None:
    relation, blocks = pair((4, 6), (2, 3))
    check(relation.transform("neg"), {key: -block for key, block in blocks.items()})
    check(relation.transform("mul", 3), {key: 3 * block for key, block in blocks.items()})
    check(relation.transform("max", axis=1), {key: block.max(axis=1) for key, block in blocks.items()})
    check(relation.transform("sum"), {key: block.sum() for key, block in blocks.items()})
    check(relation.transform("ab->ba"), {key: block.T for key, block in blocks.items()})
    check(relation.transform(lambda block: block.sum(axis=0) / 2), {key: block.sum(axis=0) / 2 for key, block in blocks.items()})
    check(relation.astype("float32"), {key: block.astype("float32") for key, block in blocks.items()})


def test_only_what_is_kept_is_computed() -> None:
    relation, blocks = pair((8, 8), (2, 2))
    seen = []

    def watched(block: np.ndarray) -> np.ndarray:
        seen.append(block.copy())
        return block

    some = relation.transform(watched, bound=(2, 2), dtype=relation.dtype).filter(lambda i, j: i == j)
    check(some, {key: block for key, block in blocks.items() if key[0] == key[1]})
    assert len(seen) == some.count == 4


def test_blocks_by_key() -> None:
    relation, blocks = pair((4, 6), (2, 3))
    np.testing.assert_array_equal(relation[1, 0].compute(), blocks[1, 0])
    assert (1, 1) in relation and (2, 0) not in relation and len(relation) == 4 and list(relation) == sorted(blocks)
    for key in [(2, 0), (-1, 0), 3]:
        with pytest.raises(IndexError, match="no block for key"):
            relation[key]


def test_plans_are_drawn(tmp_path: Path) -> None:
    a = pair((40, 40), (10, 10))[0]
    a.visualize(tmp_path / "plan.svg", nodes=2)
    assert (tmp_path / "plan.svg").read_text().startswith("<svg")


def test_plans_are_explained() -> None:
    a, b = pair((40, 40), (10, 10))[0], pair((40, 20), (10, 10), 1)[0]
    product = a.join(b, 1, 0, "matmul").aggregate((0, 2), "add")
    assert "tasks" in str(product.explain())
    assert "algebraic" in str(product.explain(nodes=2, workers=2))
    some = a.filter(lambda i, k: i >= k).join(b, 1, 0, "matmul").aggregate((0, 2), "add")
    assert "algebraic" in str(some.explain(nodes=2, workers=2))


def test_other_types() -> None:
    for x in [
        np.arange(8).astype("timedelta64[s]"),
        np.arange(8).astype("datetime64[D]"),
        np.arange(8).astype("complex64"),
        np.arange(8).astype("float16"),
        np.arange(8) % 3 == 0,
    ]:
        relation, blocks = tw.Relation.of(tw.asarray(x), 2), blocks_of(x, (2,))
        check(relation.filter(lambda i: i % 2 == 1), {key: block for key, block in blocks.items() if key[0] % 2})
        check(relation.transform(lambda block: block[::-1]), {key: block[::-1] for key, block in blocks.items()})
        check(relation.filter(lambda i: i != 1).rekey(lambda i: i // 2 + i % 2), {(k,): blocks[at,] for k, at in enumerate([0, 2, 3])})
        if x.dtype.kind != "M":
            some = relation.filter(lambda i: i != 2).aggregate((), "add").compute()
            np.testing.assert_array_equal(some[()], blocks[0,] + blocks[1,] + blocks[3,])
            assert some[()].dtype == x.dtype


def test_what_breaks_keys_is_named() -> None:
    relation, _ = pair((4, 6), (2, 2))
    with pytest.raises(ValueError, match=r"rekey maps both \(0, 0\) and \(1, 0\) to key \(0,\)[^\0]*test_relation.py"):
        relation.rekey(lambda i, j: j)
    with pytest.raises(ValueError, match=r"rekey leaves a hole at key \(1, 0\)"):
        relation.rekey(lambda i, j: (2 * i, j))
    with pytest.raises(ValueError, match=r"rekey maps \(0, 0\) to \(-1,\)"):
        relation.rekey(lambda i, j: -1)
    holes = relation.filter(lambda i, j: (i, j) != (1, 1))
    with pytest.raises(ValueError, match=r"to_array of a relation with a hole at key \(1, 1\)"):
        holes.to_array()
    with pytest.raises(ValueError, match=r"hole at key \(1, 1\)"):
        holes.concat(0, 0)
    with pytest.raises(ZeroDivisionError):
        relation.filter(lambda i, j: 1 / 0)


def test_wrong_arguments() -> None:
    relation, _ = pair((4, 6), (2, 3))
    array = tw.zeros((4, 6))
    for wrong, error, text in [
        (lambda: tw.Relation.of(array, (3, 3)), ValueError, "tiles of 3 along axis 0, which has 4 elements"),
        (lambda: tw.Relation.of(array, 0), ValueError, "must be positive"),
        (lambda: tw.Relation.of(array, (2,)), ValueError, "1 tile lengths for an array with 2 axes"),
        (lambda: tw.Relation.of(np.zeros(3), 1), TypeError, "an array of tilewright"),
        (lambda: relation.tile(1, 2), ValueError, "tiles of 2 along axis 1, which has 3 elements"),
        (lambda: relation.tile(2, 1), IndexError, "axis 2 of 2 axes of a block"),
        (lambda: relation.join(relation, 2, 0, "add"), IndexError, "component 2 of 2 components"),
        (lambda: relation.join(relation, (0, 1), 0, "add"), ValueError, "2 components of the left key with 1 of the right"),
        (lambda: relation.join(relation, (0, 0), (0, 1), "add"), ValueError, "component 0 of the key twice"),
        (lambda: relation.join(array, 0, 0, "add"), TypeError, "no relation"),
        (lambda: relation.aggregate(0, "subtract"), ValueError, "aggregate by `sub`"),
        (lambda: relation.transform("no such thing"), ValueError, "no kernel `no such thing`"),
        (lambda: relation.transform(3), TypeError, "a kernel is a name or a function"),
        (lambda: relation.transform("exp", axis=0), ValueError, "no axis"),
        (lambda: relation.transform("exp", 2), ValueError, "exp"),
    ]:
        with pytest.raises(error, match=text):
            wrong()


def test_functions_that_give_something_else() -> None:
    relation, _ = pair((4, 6), (2, 3))
    with pytest.raises(ValueError, match=r"gave a block of shape \(2,\) instead of \(2, 3\)"):
        relation.transform(lambda block: block[:, 0], bound=(2, 3), dtype="int64").compute()
    with pytest.raises(TypeError, match="float64 instead of int64"):
        relation.aggregate((), lambda x, y: x / 2 + y / 2).compute()

    def fails(block: np.ndarray) -> np.ndarray:
        if block.min() < 1:
            raise RuntimeError("too small")
        return block

    with pytest.raises(RuntimeError, match="too small"):
        relation.transform(fails).compute()
