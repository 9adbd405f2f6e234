"""Random arrays. An element depends on the seed, on how many arrays were drawn before, and on its position alone: not on blocks or threads."""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

from . import _core
from ._array import Array
from ._creation import _shape
from ._dtypes import astype

__all__ = ["Generator", "default_rng"]


class Generator:
    """A source of random arrays; see :func:`default_rng`."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._drawn = 0

    def _draw(self, kind: str, size: Any, a: float | int, b: float | int) -> Array:
        # Seeds of arrays are far apart, whatever the seeds of generators are.
        text = f"{self._seed}/{self._drawn}".encode()
        self._drawn += 1
        seed = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
        return Array(_core.random(kind, _shape(() if size is None else size), seed, a, b))

    def random(self, size: Any = None, dtype: Any = "float64") -> Array:
        """Uniform numbers in [0, 1)."""
        return astype(self._draw("uniform", size, 0.0, 1.0), dtype, copy=False)

    def uniform(self, low: float = 0.0, high: float = 1.0, size: Any = None) -> Array:
        """Uniform numbers in [low, high)."""
        return self._draw("uniform", size, low, high)

    def standard_normal(self, size: Any = None, dtype: Any = "float64") -> Array:
        """Normal numbers of mean 0 and variance 1."""
        return astype(self._draw("normal", size, 0.0, 1.0), dtype, copy=False)

    def normal(self, loc: float = 0.0, scale: float = 1.0, size: Any = None) -> Array:
        """Normal numbers."""
        return self._draw("normal", size, loc, scale)

    def integers(self, low: int, high: int | None = None, size: Any = None, dtype: Any = "int64") -> Array:
        """Whole numbers from ``low`` up to but not including ``high``; with one bound, from 0."""
        low, high = (0, low) if high is None else (low, high)
        if low >= high:
            raise ValueError(f"no whole numbers from {low} to {high}")
        return astype(self._draw("integers", size, low, high), dtype, copy=False)


def default_rng(seed: int | None = None) -> Generator:
    """A generator; without a seed, another one at every call.

    >>> import tilewright as tw
    >>> rng = tw.random.default_rng(7)
    >>> rng.standard_normal((3, 2)).shape
    (3, 2)
    """
    return Generator(secrets.randbits(64) if seed is None else int(seed))
