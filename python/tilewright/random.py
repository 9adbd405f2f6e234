"""Random arrays.

An element depends on the seed, on how many arrays were drawn before, and on its position alone: not on blocks or threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from ._array import Array
from ._creation import _shape, arange, asarray
from ._distributions import Distributions, drawing, in_chunks, random_seed
from ._dtypes import astype
from ._elementwise import log
from ._manipulation import reshape
from ._out import rebind
from ._reductions import cumulative_sum
from ._searching import argsort, argtopk, searchsorted, take, take_along_axis

__all__ = [
    "Generator", "binomial", "choice", "default_rng", "exponential", "geometric", "gumbel", "laplace", "logistic",
    "lognormal", "normal", "pareto", "permutation", "permuted", "poisson", "power", "rand", "randint", "randn",
    "random", "rayleigh", "seed", "shuffle", "standard_cauchy", "standard_exponential", "standard_normal", "triangular",
    "uniform", "weibull",
]  # fmt: skip


@in_chunks
class Generator(Distributions):
    """A source of random arrays; see :func:`default_rng`."""

    def choice(
        self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0, shuffle: bool = True
    ) -> Array:
        """Elements of an array, or parts along an axis, or whole numbers below ``a``, drawn with or without putting them back.

        >>> import tilewright as tw
        >>> drawn = tw.random.default_rng(1).choice(5, 5, replace=False)
        >>> tw.sort(drawn).compute()
        array([0, 1, 2, 3, 4])
        """
        whole = np.ndim(a) == 0
        n = int(a) if whole else asarray(a).shape[axis]
        size = () if size is None else size
        count = int(np.prod(_shape(size), dtype=np.int64))
        if n < 1 and count:
            raise ValueError(f"there is nothing to choose from {n} elements")
        if not replace and count > n:
            raise ValueError(f"{count} of {n} elements without putting any back")
        p = None if p is None else _probabilities(p, n)
        if replace and p is None:
            places = self.integers(n, size=size) if count else reshape(arange(0), tuple(_shape(size)))
        elif replace:
            sums = cumulative_sum(p)
            places = searchsorted(sums / sums[-1], self.random(size), side="right")
        else:
            # The smallest of random numbers; of exponential ones by weights, if there are weights.
            keys = self.random(n) if p is None else -log(self._uniform(n)) / p
            places = reshape(argtopk(keys, count, largest=False), tuple(_shape(size)))
        return places if whole else take(asarray(a), places, axis=axis)

    def permutation(self, x: Any, axis: int = 0) -> Array:
        """The numbers below ``x``, or the parts of an array along an axis, in random order."""
        if np.ndim(x) == 0:
            return argsort(self.random(int(x)))
        x = asarray(x)
        axis = normalize_axis_index(axis, x.ndim)
        return take(x, argsort(self.random(x.shape[axis])), axis=axis)

    def permuted(self, x: Any, axis: int | None = None) -> Array:
        """The elements along an axis in random order, another one in every row; or all elements."""
        x = asarray(x)
        if axis is None:
            return reshape(self.permutation(reshape(x, (-1,))), x.shape)
        return take_along_axis(x, argsort(self.random(x.shape), axis=axis), axis=axis)

    def shuffle(self, x: Array, axis: int = 0) -> None:
        """Brings the parts of an array along an axis into random order, as ``x[..] = ..`` would."""
        if not isinstance(x, Array):
            raise TypeError("only arrays of tilewright are shuffled in place; permutation(x) gives a new one of anything")
        rebind(x, self.permutation(x, axis))


def _probabilities(p: Any, n: int) -> Array:
    """One for every element; those that are known are checked."""
    if not isinstance(p, Array):
        known = np.asarray(p, dtype=np.float64)
        if known.ndim == 1 and ((known < 0).any() or abs(known.sum() - 1) > 1e-8):
            raise ValueError("probabilities are not negative and their sum is 1")
    p = astype(asarray(p), "float64", copy=False)
    if p.shape != (n,):
        raise ValueError(f"probabilities of shape {p.shape} for {n} elements")
    return p


def default_rng(seed: Any = None) -> Generator:
    """A generator; without a seed, another one at every call. A seed is a whole number or several of them, none negative.

    >>> import tilewright as tw
    >>> rng = tw.random.default_rng(7)
    >>> rng.standard_normal((3, 2)).shape
    (3, 2)
    """
    if isinstance(seed, Generator):
        return seed
    return Generator(random_seed() if seed is None else _seed(seed))


def _seed(seed: Any) -> int | str:
    """What every array that a generator draws has in common."""
    if isinstance(seed, np.random.SeedSequence):
        return _seed(seed.generate_state(4))
    words = np.asarray(seed, dtype=object).reshape(-1).tolist()
    if not all(hasattr(word, "__index__") for word in words):
        raise TypeError(f"a seed is a whole number or several of them, not {seed!r}")
    words = [word.__index__() for word in words]
    if any(word < 0 for word in words):
        raise ValueError(f"expected non-negative integers for a seed, not {seed!r}")
    return words[0] if len(words) == 1 else ",".join(map(str, words))


#: What the functions of the module draw from.
_shared = Generator(random_seed())


def seed(seed: Any = None) -> None:
    """Makes the functions of this module, which share one generator, draw from the beginning; see :func:`default_rng`.

    >>> import tilewright as tw
    >>> tw.random.seed(1)
    >>> first = float(tw.random.random())
    >>> tw.random.seed(1)
    >>> first == float(tw.random.random())
    True
    """
    fresh = default_rng(seed)
    with drawing:
        _shared._seed, _shared._drawn = fresh._seed, fresh._drawn


def rand(*lengths: int, chunks: Any = None) -> Array:
    """Uniform numbers in [0, 1) in a shape of the given lengths."""
    return _shared.random(lengths, chunks=chunks)


def randn(*lengths: int, chunks: Any = None) -> Array:
    """Normal numbers of mean 0 and variance 1 in a shape of the given lengths."""
    return _shared.standard_normal(lengths, chunks=chunks)


def randint(low: int, high: int | None = None, size: Any = None, dtype: Any = "int64", *, chunks: Any = None) -> Array:
    """Whole numbers from ``low`` up to but not including ``high``; with one bound, from 0."""
    return _shared.integers(low, high, size, dtype, chunks=chunks)


# The other functions are methods of the shared generator, as in NumPy and dask.
binomial = _shared.binomial
choice = _shared.choice
exponential = _shared.exponential
geometric = _shared.geometric
gumbel = _shared.gumbel
laplace = _shared.laplace
logistic = _shared.logistic
lognormal = _shared.lognormal
normal = _shared.normal
pareto = _shared.pareto
permutation = _shared.permutation
permuted = _shared.permuted
poisson = _shared.poisson
power = _shared.power
random = _shared.random
rayleigh = _shared.rayleigh
shuffle = _shared.shuffle
standard_cauchy = _shared.standard_cauchy
standard_exponential = _shared.standard_exponential
standard_normal = _shared.standard_normal
triangular = _shared.triangular
uniform = _shared.uniform
weibull = _shared.weibull
