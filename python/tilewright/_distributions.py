"""Random numbers of many distributions, each made from uniform or normal ones of the same position."""

from __future__ import annotations

import functools
import hashlib
import inspect
import math
import os
import threading
from typing import Any

import numpy as np

from . import _core
from ._array import Array, named
from ._creation import _shape, asarray, cut
from ._dtypes import as_dtype, astype
from ._elementwise import ceil, exp, expm1, log, log1p, maximum, sqrt, tan
from ._integer_bounds import first_and_last, integer_type
from ._manipulation import broadcast_shapes
from ._searching import checked, searchsorted, where


def _of_floats(dtype: Any, name: str) -> np.dtype:
    dtype = as_dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise TypeError(f"{name} draws float32 or float64, not {dtype}; convert what it draws")
    return dtype


def random_seed() -> int:
    """A seed from the entropy of the system."""
    return int.from_bytes(os.urandom(8), "little")


def in_chunks(drawing: type) -> type:
    """Gives the methods of a class that take a ``size`` an argument ``chunks``, which cuts what they draw into blocks."""
    for name, method in list(vars(drawing).items()):
        if not name.startswith("_") and inspect.isfunction(method) and "size" in inspect.signature(method).parameters:
            setattr(drawing, name, _in_chunks(method))
    return drawing


def _in_chunks(method: Any) -> Any:
    @functools.wraps(method)
    def drawn(self: Any, *args: Any, chunks: Any = None, **kwargs: Any) -> Array:
        return cut(method(self, *args, **kwargs), chunks)

    signature = inspect.signature(method)
    chunks = inspect.Parameter("chunks", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="Any")
    drawn.__signature__ = signature.replace(parameters=[*signature.parameters.values(), chunks])
    return named(drawn, method.__name__)


#: Held while a generator counts what it draws. All share it: a lock of its own would keep a generator from being pickled.
drawing = threading.Lock()


@in_chunks
class Distributions:
    """What a generator draws. Parameters are numbers or arrays, as in NumPy; ``chunks`` cuts what is drawn into blocks."""

    def __init__(self, seed: int | str) -> None:
        self._seed = seed
        self._drawn = 0

    def _next(self) -> str:
        """What the next array depends on; threads that share a generator draw different ones."""
        with drawing:
            self._drawn += 1
            return f"{self._seed}/{self._drawn - 1}"

    def _draw(self, kind: str, size: Any, a: float | int, b: float | int) -> Array:
        # Seeds of arrays are far apart, whatever the seeds of generators are.
        seed = int.from_bytes(hashlib.blake2b(self._next().encode(), digest_size=8).digest(), "little")
        return Array(_core.random(kind, _shape(() if size is None else size), seed, a, b))

    def random(self, size: Any = None, dtype: Any = "float64") -> Array:
        """Uniform numbers in [0, 1)."""
        return astype(self._draw("uniform", size, 0.0, 1.0), _of_floats(dtype, "random"), copy=False)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Array:
        """Uniform numbers in [low, high)."""
        if np.ndim(low) == 0 == np.ndim(high):
            return self._draw("uniform", size, float(low), float(high))
        return asarray(low) + self.random(shape_of(size, (low, high))) * (asarray(high) - asarray(low))

    def standard_normal(self, size: Any = None, dtype: Any = "float64") -> Array:
        """Normal numbers of mean 0 and variance 1."""
        return astype(self._draw("normal", size, 0.0, 1.0), _of_floats(dtype, "standard_normal"), copy=False)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Array:
        """Normal numbers."""
        not_negative("scale", scale)
        if np.ndim(loc) == 0 == np.ndim(scale):
            return self._draw("normal", size, float(loc), float(scale))
        return asarray(loc) + self.standard_normal(shape_of(size, (loc, scale))) * asarray(scale)

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = "int64", endpoint: bool = False
    ) -> Array:
        """Whole numbers from ``low`` up to but not including ``high``, unless ``endpoint``; with one bound, from 0.

        Bounds may be arrays. Those of lazy ones are checked when numbers are computed: no number between them is an IndexError then.
        """
        low, high = (0, low) if high is None else (low, high)
        dtype = integer_type(dtype)
        if np.ndim(low) == 0 == np.ndim(high):
            low, high = (bound.item() if isinstance(bound, Array) else bound for bound in (low, high))
        first, last, wrong = first_and_last(low, high, dtype, bool(endpoint))
        if first.ndim == 0 == last.ndim and wrong is None:
            start, end = (int(each.astype(dtype)) for each in (first, last))
            if end < 2**63 - 1 and end - start < 2**63 - 1:
                return astype(self._draw("integers", size, start, end + 1), dtype, copy=False)
        # Counted from the first one in unsigned numbers, which wrap where differences and sums do.
        shape, first, last = shape_of(size, (first, last)), asarray(first), asarray(last)
        places = self._places(shape, last - first)
        drawn = first + (places if wrong is None else checked(places, wrong))
        return astype(drawn, dtype, copy=False)

    def _places(self, size: Any, last: Array) -> Array:
        """Whole numbers up to ``last``, which is uint64 as they are."""
        high, middle, low = (astype(self._draw("integers", size, 0, 2**32), "uint64") for _ in range(3))
        # The product of 96 random bits with last + 1, above its lowest 96 bits: by hand, in digits of 32 bits.
        digit = 2**32 - 1
        below = (last & digit) + 1
        above, below = (last >> 32) + (below >> 32), below & digit
        carry = ((low * below) >> 32) + ((middle * below) & digit) + ((low * above) & digit)
        carry = (carry >> 32) + ((middle * below) >> 32) + ((low * above) >> 32) + ((high * below) & digit) + ((middle * above) & digit)
        return (carry >> 32) + ((high * below) >> 32) + ((middle * above) >> 32) + high * above

    def _uniform(self, size: Any, *parameters: Any) -> Array:
        """Uniform numbers in (0, 1), in the given shape or in that of the parameters."""
        # Zero, which has no logarithm, is drawn as half the smallest number that is drawn otherwise.
        return maximum(self.random(shape_of(size, parameters)), 2.0**-54)

    def _exponential(self, size: Any, *parameters: Any) -> Array:
        return -log(self._uniform(size, *parameters))

    def standard_exponential(self, size: Any = None, dtype: Any = "float64") -> Array:
        """Exponential numbers of mean 1."""
        return astype(self._exponential(size), dtype, copy=False)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Array:
        """Exponential numbers of mean ``scale``.

        >>> import tilewright as tw
        >>> bool((tw.random.default_rng(1).exponential(2.0, 1000) > 0).all())
        True
        """
        return self._exponential(size, not_negative("scale", scale)) * scale

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Array:
        """Numbers whose distance from ``loc``, to either side, is exponential."""
        u = self._uniform(size, loc, not_negative("scale", scale))
        return where(u < 0.5, log(2 * u), -log(2 - 2 * u)) * scale + loc

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Array:
        """Numbers of the logistic distribution."""
        u = self._uniform(size, loc, not_negative("scale", scale))
        return log(u / (1 - u)) * scale + loc

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Array:
        """Numbers of Gumbel's distribution of extremes."""
        return loc - log(self._exponential(size, loc, not_negative("scale", scale))) * scale

    def rayleigh(self, scale: Any = 1.0, size: Any = None) -> Array:
        """Lengths of vectors of two normal numbers."""
        return sqrt(2 * self._exponential(size, not_negative("scale", scale))) * scale

    def weibull(self, a: Any, size: Any = None) -> Array:
        """Exponential numbers to the power ``1 / a``."""
        return self._exponential(size, not_negative("a", a)) ** (1 / asarray(a))

    def pareto(self, a: Any, size: Any = None) -> Array:
        """Numbers of Pareto's second distribution, of shape ``a``."""
        return expm1(self._exponential(size, positive("a", a)) / a)

    def power(self, a: Any, size: Any = None) -> Array:
        """Numbers in [0, 1] whose density grows with the power ``a - 1``."""
        return (-expm1(-self._exponential(size, positive("a", a)))) ** (1 / asarray(a))

    def standard_cauchy(self, size: Any = None) -> Array:
        """Ratios of two normal numbers."""
        return tan((self._uniform(size) - 0.5) * math.pi)

    def triangular(self, left: Any, mode: Any, right: Any, size: Any = None) -> Array:
        """Numbers whose density rises from ``left`` to ``mode`` and falls to ``right``."""
        left, mode, right = asarray(left), asarray(mode), asarray(right)
        u = self._uniform(size, left, mode, right)
        width = right - left
        rising = left + sqrt(u * width * (mode - left))
        falling = right - sqrt((1 - u) * width * (right - mode))
        return where(u * width < mode - left, rising, falling)

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Array:
        """Numbers whose logarithm is normal."""
        shape = shape_of(size, (mean, not_negative("sigma", sigma)))
        return exp(self.standard_normal(shape) * sigma + mean)

    def geometric(self, p: Any, size: Any = None) -> Array:
        """How many trials it takes until one succeeds that does so with probability ``p``."""
        if not isinstance(p, Array) and not np.all((np.asarray(p) > 0) & (np.asarray(p) <= 1)):
            raise ValueError(f"{p} is no probability of success: they lie in (0, 1]")
        trials = ceil(-self._exponential(size, p) / log1p(-asarray(p)))
        return astype(maximum(trials, 1), "int64")

    def poisson(self, lam: float = 1.0, size: Any = None) -> Array:
        """How many of many rare events happen, of which ``lam`` are expected: a number, no array."""
        mean = number("lam", lam)
        if not mean >= 0:
            raise ValueError(f"{mean} events are expected")
        if mean == 0:
            return astype(self._uniform(size), "int64") * 0
        first, last = _support(mean, mean, math.inf)
        k = np.arange(first, last + 1)
        return self._from_table(first, k * math.log(mean) - mean - _log_factorial(k), size)

    def binomial(self, n: int, p: float, size: Any = None) -> Array:
        """How many of ``n`` trials succeed that each do so with probability ``p``: numbers, no arrays."""
        trials, chance = int(number("n", n)), number("p", p)
        if trials < 0 or not 0 <= chance <= 1:
            raise ValueError(f"{trials} trials that succeed with probability {chance}")
        if chance in (0.0, 1.0) or trials == 0:
            return astype(self._uniform(size), "int64") * 0 + int(trials * chance)
        first, last = _support(trials * chance, trials * chance * (1 - chance), trials)
        k = np.arange(first, last + 1)
        ways = _log_factorial(np.array([trials])) - _log_factorial(k) - _log_factorial(trials - k)
        return self._from_table(first, ways + k * math.log(chance) + (trials - k) * math.log1p(-chance), size)

    def _from_table(self, first: int, log_weights: np.ndarray, size: Any) -> Array:
        """Whole numbers from ``first`` on, of which each has its weight."""
        sums = np.cumsum(np.exp(log_weights - log_weights.max()))
        return searchsorted(asarray(sums / sums[-1]), self.random(size), side="right") + first


def shape_of(size: Any, parameters: Any) -> Any:
    """The shape that is asked for, or else that of the parameters."""
    shapes = [asarray(each).shape for each in parameters]
    if size is None:
        return broadcast_shapes(*shapes) if shapes else ()
    size = (size,) if hasattr(size, "__index__") else tuple(size)
    if shapes and broadcast_shapes(size, *shapes) != size:
        raise ValueError(f"parameters of shapes {shapes} do not fit into numbers of shape {size}")
    return size


def not_negative(name: str, value: Any) -> Any:
    """The parameter; refused if it is known to be negative."""
    if not isinstance(value, Array) and np.any(np.asarray(value) < 0):
        raise ValueError(f"{name} is negative")
    return value


def positive(name: str, value: Any) -> Any:
    """The parameter; refused if it is known not to be positive."""
    if not isinstance(value, Array) and np.any(np.asarray(value) <= 0):
        raise ValueError(f"{name} is not positive")
    return value


def number(name: str, value: Any) -> float:
    """A parameter of which a table is made, which is why it is a single number."""
    if np.ndim(value) > 0:
        raise TypeError(f"{name} is a number here, not an array")
    return float(value)


#: Of whole numbers that are drawn from a table, which has some 24 standard deviations of them.
_LARGEST_VARIANCE = 1e8


def _support(mean: float, variance: float, limit: float) -> tuple[int, int]:
    """Numbers outside of which less lies than a uniform number can tell."""
    if not variance <= _LARGEST_VARIANCE:
        raise ValueError(f"whole numbers of variance {variance} are drawn from a table, which would be too long; round normal ones")
    reach = 12 * math.sqrt(variance) + 60
    return max(int(mean - reach), 0), int(min(mean + reach, limit))


def _log_factorial(k: np.ndarray) -> np.ndarray:
    return np.array([math.lgamma(each + 1) for each in k.tolist()])
