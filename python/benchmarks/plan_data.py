"""Inputs and names of the cases of `plans.py`, and what several of them compute.

A case is named by its group and what it computes. Its function is given :class:`Data` and gives one array.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as tw


class Data:
    """Inputs: files of the right length with nothing in them, since only plans are made."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def __call__(self, name: str, *shape: int, dtype: str = "f8") -> Any:
        path = self.directory / f"{name}-{'x'.join(map(str, shape))}-{dtype}.npy"
        if not path.exists():
            del np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)._mmap  # type: ignore[union-attr]
        return tw.from_npy(path)

    @property
    def tall(self) -> Any:
        """A table of two million samples."""
        return self("tall", 2_000_000, 200)

    @property
    def points(self) -> Any:
        return self("points", 1_000_000, 64)

    @property
    def vector(self) -> Any:
        return self("vector", 200_000_000)

    @property
    def labels(self) -> Any:
        return self("labels", 2_000_000)

    @property
    def square(self) -> Any:
        return self("square", 16_000, 16_000)

    @property
    def image(self) -> Any:
        return self("image", 16_384, 16_384)

    @property
    def cube(self) -> Any:
        return self("cube", 800, 800, 800)

    @property
    def series(self) -> Any:
        """Four hundred long series."""
        return self("series", 400, 500_000)

    @property
    def days(self) -> Any:
        """Twenty years of days on a map."""
        return self("days", 7300, 180, 360)

    def random(self, *shape: int) -> Any:
        return tw.random.default_rng(3).normal(size=shape)


Case = Callable[[Data], Any]
CASES: dict[str, Case] = {}


def group(name: str) -> Callable[[Case], Case]:
    """Adds a function to a group; its own name and its first line say the rest."""

    def add(function: Case) -> Case:
        CASES[f"{name}: {function.__name__.strip('_').replace('_', ' ')}"] = function
        return function

    return add


def sigmoid(x: Any) -> Any:
    return 1 / (1 + tw.exp(-x))


def standard(x: Any) -> Any:
    return (x - x.mean(axis=0)) / x.std(axis=0)


def softmax(x: Any, axis: int = -1) -> Any:
    e = tw.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def distances(x: Any, c: Any) -> Any:
    """Squares of distances between rows, by their products."""
    return (x * x).sum(axis=1)[:, None] - 2 * (x @ c.T) + (c * c).sum(axis=1)


def jacobi(u: Any) -> Any:
    inner = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
    return tw.pad(inner, 1)
