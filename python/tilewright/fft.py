"""Discrete Fourier transforms.

An axis that is transformed is in one block while it is; the other axes stay cut, so transforms run side by side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _core
from ._array import Array, seen_in
from ._creation import arange, asarray
from ._elementwise import conj
from ._manipulation import concat, roll

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft", "irfft2",
    "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

Axes = Sequence[int] | None


def _scale(norm: str | None, n: int, inverse: bool) -> float:
    """What a transform that is not scaled is multiplied with."""
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f"norm is 'backward', 'ortho' or 'forward', not {norm!r}")
    if norm == "ortho":
        return 1 / math.sqrt(n)
    return 1 / n if (norm == "forward") != inverse else 1.0


def _transform(kind: str, x: Any, n: int | None, axis: int, norm: str | None, inverse: bool) -> Array:
    x = asarray(x)
    axis = np.lib.array_utils.normalize_axis_index(axis, x.ndim)
    if n is None:
        n = 2 * (x.shape[axis] - 1) if kind == "to_real" else x.shape[axis]
    if n < 1:
        raise ValueError(f"a transform of {n} elements")
    result = Array(_core.fourier(kind, x._tensor, axis, n))
    result = seen_in(result, tuple((result.shape[k],) if k == axis else cut for k, cut in enumerate(x.chunks)))
    scale = _scale(norm, n, inverse)
    return result if scale == 1.0 else result * scale


def fft(x: Array, /, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Array:
    """Amplitudes along an axis, cut or filled with zeros to ``n`` elements first.

    >>> import tilewright as tw
    >>> tw.fft.fft(tw.ones(4)).compute()
    array([4.+0.j, 0.+0.j, 0.+0.j, 0.+0.j])
    """
    return _transform("forward", x, n, axis, norm, False)


def ifft(x: Array, /, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Array:
    """The inverse of :func:`fft`."""
    return _transform("inverse", x, n, axis, norm, True)


def rfft(x: Array, /, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Array:
    """The first half of the amplitudes of real numbers: the other half is its mirror image."""
    return _transform("from_real", x, n, axis, norm, False)


def irfft(x: Array, /, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Array:
    """The inverse of :func:`rfft`; say ``n`` if it is odd."""
    return _transform("to_real", x, n, axis, norm, True)


def hfft(x: Array, /, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Array:
    """Real amplitudes of numbers of which the other half is the mirror image."""
    return _transform("to_real", conj(asarray(x)), n, axis, norm, False)


def ihfft(x: Array, /, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Array:
    """The inverse of :func:`hfft`."""
    return conj(_transform("from_real", x, n, axis, norm, True))


def _along(x: Any, s: Axes, axes: Axes) -> tuple[Array, list[tuple[int, int]]]:
    """The axes of a transform in several, and how long each is."""
    x = asarray(x)
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    axes = [np.lib.array_utils.normalize_axis_index(axis, x.ndim) for axis in axes]
    lengths = [x.shape[axis] for axis in axes] if s is None else [x.shape[k] if n == -1 else n for n, k in zip(s, axes, strict=True)]
    return x, list(zip(lengths, axes, strict=True))


def _each(transform: Any, x: Array, along: list[tuple[int, int]], norm: str | None) -> Array:
    """One transform after the other, from the last axis on."""
    for n, axis in reversed(along):
        x = transform(x, n=n, axis=axis, norm=norm)
    return x


def fftn(x: Array, /, s: Axes = None, axes: Axes = None, norm: str | None = "backward") -> Array:
    """Amplitudes along several axes, by default all."""
    return _each(fft, *_along(x, s, axes), norm)


def ifftn(x: Array, /, s: Axes = None, axes: Axes = None, norm: str | None = "backward") -> Array:
    """The inverse of :func:`fftn`."""
    return _each(ifft, *_along(x, s, axes), norm)


def rfftn(x: Array, /, s: Axes = None, axes: Axes = None, norm: str | None = "backward") -> Array:
    """Amplitudes of real numbers along several axes; of the last, the first half."""
    x, along = _along(x, s, axes)
    if not along:
        raise ValueError("a transform along no axis")
    n, axis = along[-1]
    return _each(fft, rfft(x, n=n, axis=axis, norm=norm), along[:-1], norm)


def irfftn(x: Array, /, s: Axes = None, axes: Axes = None, norm: str | None = "backward") -> Array:
    """The inverse of :func:`rfftn`; say ``s`` if its last element is odd."""
    x, along = _along(x, s, axes)
    if not along:
        raise ValueError("a transform along no axis")
    x = _each(ifft, x, along[:-1], norm)
    return irfft(x, n=None if s is None else along[-1][0], axis=along[-1][1], norm=norm)


def fft2(x: Array, /, s: Axes = None, axes: Axes = (-2, -1), norm: str | None = "backward") -> Array:
    """Amplitudes along two axes."""
    return fftn(x, s=s, axes=axes, norm=norm)


def ifft2(x: Array, /, s: Axes = None, axes: Axes = (-2, -1), norm: str | None = "backward") -> Array:
    """The inverse of :func:`fft2`."""
    return ifftn(x, s=s, axes=axes, norm=norm)


def rfft2(x: Array, /, s: Axes = None, axes: Axes = (-2, -1), norm: str | None = "backward") -> Array:
    """Amplitudes of real numbers along two axes."""
    return rfftn(x, s=s, axes=axes, norm=norm)


def irfft2(x: Array, /, s: Axes = None, axes: Axes = (-2, -1), norm: str | None = "backward") -> Array:
    """The inverse of :func:`rfft2`."""
    return irfftn(x, s=s, axes=axes, norm=norm)


def fftfreq(n: int, /, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """Frequencies of the amplitudes of ``n`` samples at distance ``d``: from zero up, then the negative ones."""
    dtype = _frequency_type(n, dtype)
    positive = arange((n + 1) // 2, dtype=dtype, device=device)
    return concat((positive, arange(-(n // 2), 0, dtype=dtype, device=device))) / (n * d)


def rfftfreq(n: int, /, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """Frequencies of the amplitudes that :func:`rfft` gives."""
    return arange(n // 2 + 1, dtype=_frequency_type(n, dtype), device=device) / (n * d)


def _frequency_type(n: int, dtype: Any) -> np.dtype:
    if n < 1:
        raise ValueError(f"frequencies of {n} samples")
    dtype = np.dtype("float64" if dtype is None else dtype)
    if dtype.kind != "f":
        raise TypeError(f"frequencies are of a floating point type, not {dtype}")
    return dtype


def fftshift(x: Array, /, axes: int | Sequence[int] | None = None) -> Array:
    """Amplitudes with frequency zero in the middle."""
    x, axes = _shifted_axes(x, axes)
    return roll(x, tuple(x.shape[axis] // 2 for axis in axes), axis=axes)


def ifftshift(x: Array, /, axes: int | Sequence[int] | None = None) -> Array:
    """The inverse of :func:`fftshift`."""
    x, axes = _shifted_axes(x, axes)
    return roll(x, tuple(-(x.shape[axis] // 2) for axis in axes), axis=axes)


def _shifted_axes(x: Any, axes: int | Sequence[int] | None) -> tuple[Array, tuple[int, ...]]:
    x = asarray(x)
    if axes is None:
        return x, tuple(range(x.ndim))
    return x, (axes.__index__(),) if hasattr(axes, "__index__") else tuple(axes)
