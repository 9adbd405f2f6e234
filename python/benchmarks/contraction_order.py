"""Orders of products against opt_einsum's ``auto``: operations, counted by opt_einsum for both, and the time it takes to find them.

Needs ``opt_einsum``. Networks are random (a seed each), chains, trees, rings, grids and products that share one index.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter

import numpy as np
import opt_einsum
from opt_einsum.testing import rand_equation

import tilewright as tw


def random_case(operands: int, regularity: int, outputs: int, seed: int) -> tuple[str, list[tuple[int, ...]]]:
    equation, shapes = rand_equation(operands, regularity, n_out=outputs, d_min=2, d_max=9, seed=seed, global_dim=seed % 3 == 0)
    return equation, [tuple(int(n) for n in shape) for shape in shapes]


def named_cases(operands: int, seed: int) -> dict[str, tuple[str, list[tuple[int, ...]]]]:
    draw = np.random.default_rng(seed)
    symbol = opt_einsum.get_symbol
    sides = draw.integers(2, 60, operands + 1)
    chain = [(k, k + 1) for k in range(operands)]
    ring = [(k, (k + 1) % operands) for k in range(operands)]
    tree = [[] for _ in range(operands)]
    for k in range(1, operands):
        for end in (k, int(draw.integers(k))):
            tree[end].append(k)
    width = max(2, int(operands**0.5))
    grid = [[] for _ in range(width * width)]
    edges = 0
    for row in range(width):
        for column in range(width):
            for down, right in ((1, 0), (0, 1)):
                if row + down < width and column + right < width:
                    grid[row * width + column].append(edges)
                    grid[(row + down) * width + column + right].append(edges)
                    edges += 1
    star = [(0, k + 1) for k in range(operands)]

    def case(terms: list, output: tuple[int, ...], extents: np.ndarray) -> tuple[str, list[tuple[int, ...]]]:
        equation = ",".join("".join(symbol(index) for index in term) for term in terms) + "->" + "".join(symbol(index) for index in output)
        return equation, [tuple(int(extents[index]) for index in term) for term in terms]

    few = draw.integers(2, 5, max(edges, operands) + 1)
    return {
        "chain": case(chain, (0, operands), sides),
        "ring": case(ring, (), sides),
        "tree": case(tree, (), few),
        "grid": case(grid, (), np.full(edges, 2)),
        "star": case(star, (0,), few),
    }


def cases(operands: int, seed: int) -> dict[str, tuple[str, list[tuple[int, ...]]]]:
    """Every family of networks, by name; what the tests look at too."""
    random = {"random 3": random_case(operands, 3, 2, seed), "random 5": random_case(operands, 5, 0, seed)}
    return named_cases(operands, seed) | random


def compare(equation: str, shapes: list[tuple[int, ...]]) -> tuple[float, float, float]:
    """Operations of our order over those of the rival's, and the seconds that both took to find them."""
    started = time.perf_counter()
    rival, _ = opt_einsum.contract_path(equation, *shapes, shapes=True, optimize="auto")
    middle = time.perf_counter()
    arrays = [tw.zeros(shape) for shape in shapes]
    prepared = time.perf_counter()
    path, _ = tw.einsum_path(equation, *arrays)
    ended = time.perf_counter()
    return float(operations_here(equation, shapes, path[1:]) / operations(equation, shapes, rival)), ended - prepared, middle - started


def operations(equation: str, shapes: list[tuple[int, ...]], path: list[tuple[int, ...]]) -> float:
    return opt_einsum.contract_path(equation, *shapes, shapes=True, optimize=path)[1].opt_cost


def operations_here(equation: str, shapes: list[tuple[int, ...]], path: list[tuple[int, ...]]) -> float:
    """As the planner runs it: indices that only one operand has are summed before anything else, an addition for every element."""
    left, output = equation.split("->")
    terms = left.split(",")
    uses = Counter(index for term in terms for index in set(term))
    early, reduced = 0, []
    for term, shape in zip(terms, shapes):
        needed = "".join(index for index in term if uses[index] > 1 or index in output)
        early += math.prod(shape) if len(needed) < len(term) else 0
        reduced.append((needed, tuple(n for index, n in zip(term, shape) if index in needed)))
    equation = ",".join(term for term, _ in reduced) + "->" + output
    return early + operations(equation, [shape for _, shape in reduced], path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--operands", type=int, nargs="*", default=[3, 4, 5, 6, 7, 8, 10, 12, 14, 15, 16, 17, 20, 30, 50, 100, 1000])
    arguments = parser.parse_args()
    print("operands  case       worst ratio   median ratio   longest here   longest rival")
    for operands in arguments.operands:
        rows: dict[str, list[tuple[float, float, float]]] = {}
        for seed in range(arguments.seeds):
            for name, (equation, shapes) in cases(operands, seed).items():
                rows.setdefault(name, []).append(compare(equation, shapes))
        for name, found in rows.items():
            ratios, ours, theirs = zip(*found)
            print(f"{operands:8}  {name:9}  {max(ratios):11.4g}  {np.median(ratios):13.4g}  {max(ours):11.3f} s  {max(theirs):12.3f} s", flush=True)


if __name__ == "__main__":
    main()
