"""Fourier transforms against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import same
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw

NORMS = ["backward", "ortho", "forward"]


def values(draw, kinds: str = "fc") -> np.ndarray:
    dtype = draw(st.sampled_from([t for t in ("float32", "float64", "complex64", "complex128", "int64") if np.dtype(t).kind in kinds]))
    shape = draw(st.lists(st.integers(1, 7), min_size=1, max_size=3))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    x = rng.standard_normal(shape) * 4
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def check(ours: tw.Array, theirs: np.ndarray) -> None:
    ours = np.asarray(ours)
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    assert np.allclose(ours, theirs, rtol=0, atol=200 * np.finfo(theirs.dtype).eps * max(1, np.max(np.abs(theirs))))


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@given(data=st.data())
def test_one_axis(name, data):
    x = values(data.draw, "fi" if name in ("rfft", "ihfft") else "fci")
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    n = data.draw(st.none() | st.integers(1, 9))
    if name in ("irfft", "hfft") and n is None and x.shape[axis] == 1:
        n = 1
    options = {"n": n, "axis": axis, "norm": data.draw(st.sampled_from(NORMS))}
    array = tw.asarray(x).rechunk(data.draw(st.integers(1, 4)))
    check(getattr(tw.fft, name)(array, **options), getattr(np.fft, name)(x, **options))


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
@given(data=st.data())
def test_several_axes(name, data):
    x = values(data.draw, "f" if name == "rfftn" else "fc")
    axes = data.draw(st.none() | st.permutations(range(x.ndim)).map(tuple))
    n = x.ndim if axes is None else len(axes)
    s = data.draw(st.none() | st.lists(st.integers(2, 6), min_size=n, max_size=n))
    if s is not None and axes is None:
        axes = tuple(range(x.ndim))
    if name == "irfftn" and s is None and x.shape[-1 if axes is None else axes[-1]] == 1:
        s, axes = [2] * n, tuple(range(x.ndim))
    norm = data.draw(st.sampled_from(NORMS))
    array = tw.asarray(x).rechunk(data.draw(st.integers(1, 4)))
    check(getattr(tw.fft, name)(array, s=s, axes=axes, norm=norm), getattr(np.fft, name)(x, s=s, axes=axes, norm=norm))


def test_two_axes():
    x = np.random.default_rng(1).standard_normal((3, 8, 6))
    for name in ("fft2", "ifft2", "rfft2", "irfft2"):
        check(getattr(tw.fft, name)(tw.asarray(x)), getattr(np.fft, name)(x))


@given(st.integers(1, 12), st.floats(0.1, 3))
def test_frequencies(n, d):
    same(tw.fft.fftfreq(n, d=d), np.fft.fftfreq(n, d), rtol=1e-12)
    same(tw.fft.rfftfreq(n, d=d), np.fft.rfftfreq(n, d), rtol=1e-12)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.data())
def test_shifts(shape, data):
    x = np.arange(np.prod(shape)).reshape(shape)
    axes = data.draw(st.none() | st.integers(0, x.ndim - 1))
    same(tw.fft.fftshift(tw.asarray(x), axes=axes), np.fft.fftshift(x, axes))
    same(tw.fft.ifftshift(tw.asarray(x), axes=axes), np.fft.ifftshift(x, axes))


def test_many_axes():
    x = np.random.default_rng(2).standard_normal((3,) + (1,) * 9 + (2,))
    check(tw.fft.fft(tw.asarray(x), axis=0), np.fft.fft(x, axis=0))


#: Lengths of fibres that take several steps: a power of two, an odd one, one whose factors are far apart, and two with a large prime factor.
LONG = [1 << 20, 3**12, 2 * 290_011, 524_309, 3 * 524_309]


@pytest.mark.parametrize("n", LONG)
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_long_fibres(name, n):
    rng = np.random.default_rng(n)
    x = rng.standard_normal(n // 2 + 1 if name == "irfft" else n)
    if name != "rfft":
        x = x + 1j * rng.standard_normal(x.shape)
    options = {"n": n} if name == "irfft" else {}
    ours, theirs = np.asarray(getattr(tw.fft, name)(tw.asarray(x), **options)), getattr(np.fft, name)(x, **options)
    # The error of a single amplitude is that of the whole vector.
    assert np.max(np.abs(ours - theirs)) <= 4e-15 * np.linalg.norm(theirs)
    assert np.linalg.norm(ours - theirs) <= 2e-15 * np.linalg.norm(theirs)


@pytest.mark.parametrize("axis", [0, 1])
def test_long_fibres_of_matrices(axis):
    shape = (600_000, 3) if axis == 0 else (3, 600_000)
    x = np.random.default_rng(3).standard_normal(shape)
    for kind, eps in (("float64", 2e-15), ("float32", 1e-6)):
        y = x.astype(kind)
        theirs = np.fft.rfft(y, axis=axis)
        ours = np.asarray(tw.fft.rfft(tw.asarray(y), axis=axis))
        assert ours.shape == theirs.shape and ours.dtype == np.result_type(kind, "complex64")
        assert np.linalg.norm(ours - theirs) <= eps * np.linalg.norm(theirs)
        back = np.asarray(tw.fft.irfft(tw.fft.rfft(tw.asarray(y), axis=axis), n=shape[axis], axis=axis))
        assert np.linalg.norm(back - y) <= eps * np.linalg.norm(y)


def test_long_fibres_need_less_memory_than_they_have(tmp_path):
    n = 1 << 22
    x = np.random.default_rng(4).standard_normal(n)
    np.save(tmp_path / "x.npy", x)
    expected = np.fft.rfft(x)
    with tw.Session(threads=1, memory="24MiB", spill=tmp_path) as session:
        tw.fft.rfft(tw.from_npy(tmp_path / "x.npy")).to_npy(tmp_path / "y.npy")
        assert session.report()["peak_bytes"] <= 24 << 20
    ours = np.load(tmp_path / "y.npy")
    assert np.linalg.norm(ours - expected) <= 2e-15 * np.linalg.norm(expected)
    # The bits are the same with ample memory.
    np.testing.assert_array_equal(np.asarray(tw.fft.rfft(tw.asarray(x))), ours)


def test_what_cannot_be():
    with pytest.raises(ValueError, match="0 elements"):
        tw.fft.fft(tw.ones(3), n=0)
    with pytest.raises(ValueError, match="norm"):
        tw.fft.fft(tw.ones(3), norm="other")
    with pytest.raises(TypeError, match="Fourier transform of complex128"):
        tw.fft.rfft(tw.ones(3, dtype="complex128"))
    with pytest.raises(IndexError):
        tw.fft.fft(tw.ones(3), axis=1)
