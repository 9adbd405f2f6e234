"""Arguments of functions that NumPy has, too: the same names at the same places."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from conftest import same

import tilewright as tw

#: Arguments that say how NumPy is to use memory. Those by position that come after one of them go by name here.
OF_MEMORY = {"out", "order", "overwrite_input", "subok", "like", "device"}
#: Other names of NumPy's arguments, and arguments that are not there.
RENAMED = {("clip", "a_min"): "min", ("clip", "a_max"): "max", ("where", "x"): "x1", ("where", "y"): "x2"}
ABSENT = {("einsum_path", "einsum_call"), "casting", "ndmax", "weights"} | {("linspace", "axis"), ("logspace", "axis"), ("geomspace", "axis")}
ABSENT |= {(name, "mean") for name in ("var", "std", "nanvar", "nanstd")}


def shared(ours, theirs):
    for name in sorted(ours.__all__):
        own, other = getattr(ours, name), getattr(theirs, name, None)
        if inspect.isfunction(own) and callable(other) and not isinstance(other, (np.ufunc, type)):
            yield pytest.param(own, other, id=f"{ours.__name__}.{name}")


@pytest.mark.parametrize(("ours", "theirs"), [*shared(tw, np), *shared(tw.linalg, np.linalg), *shared(tw.fft, np.fft)])
def test_arguments_are_those_of_numpy(ours, theirs):
    try:
        wanted = list(inspect.signature(theirs).parameters.values())
    except ValueError:
        pytest.skip("this version of NumPy does not tell its arguments")
    found = inspect.signature(ours).parameters
    by_position = [each.name for each in found.values() if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    for place, parameter in enumerate(wanted):
        name = RENAMED.get((ours.__name__, parameter.name), parameter.name)
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or name in OF_MEMORY:
            # What follows is passed by name.
            by_position = None
        elif {parameter.name, (ours.__name__, parameter.name)} & ABSENT:
            continue
        elif by_position is not None and parameter.kind is not parameter.KEYWORD_ONLY:
            assert len(by_position) > place, name
            # The array itself has no name that anybody uses.
            assert place == 0 or by_position[place] == name or parameter.kind is parameter.POSITIONAL_ONLY
        elif parameter.kind is not parameter.POSITIONAL_ONLY:
            assert name in found, name


X = np.arange(12.0).reshape(3, 4) % 5

CALLS = [
    lambda xp, x: xp.sum(x, 0), lambda xp, x: xp.sum(x, 0, np.float32), lambda xp, x: xp.mean(x, 0), lambda xp, x: xp.max(x, 1),
    lambda xp, x: xp.std(x, ddof=1), lambda xp, x: xp.var(x, 0, ddof=1), lambda xp, x: xp.std(x, 0, correction=1),
    lambda xp, x: x.std(0, ddof=1), lambda xp, x: x.var(ddof=1), lambda xp, x: x.sum(0, np.float32), lambda xp, x: x.mean(0, np.float32),
    lambda xp, x: xp.nanvar(x, 0, ddof=1), lambda xp, x: xp.argmax(x, 0), lambda xp, x: xp.any(x, 0), lambda xp, x: xp.count_nonzero(x, 1),
    lambda xp, x: xp.amax(x, 0), lambda xp, x: xp.amin(x), lambda xp, x: xp.diff(x, 2, 0), lambda xp, x: xp.cumsum(x, 0),
    lambda xp, x: xp.zeros((2, 2), int), lambda xp, x: xp.ones(3, np.float32), lambda xp, x: xp.empty((0,), bool), lambda xp, x: xp.full(2, 7, float),
    lambda xp, x: xp.full((2, 3), [1, 2, 3]), lambda xp, x: xp.full(2, np.float32(1)), lambda xp, x: xp.full(2, np.int64(300), np.uint8),
    lambda xp, x: xp.zeros_like(x, np.int8), lambda xp, x: xp.ones_like(x, shape=(5,)), lambda xp, x: xp.full_like(x, 2, int),
    lambda xp, x: xp.eye(3, 4, 1, int), lambda xp, x: xp.eye(3, M=2), lambda xp, x: xp.identity(2), lambda xp, x: xp.arange(0, 4, 2, np.int8),
    lambda xp, x: xp.arange(np.int64(5)), lambda xp, x: xp.arange(np.float32(2.5)), lambda xp, x: xp.linspace(0, 1, 5, False),
    lambda xp, x: xp.linspace(np.float32(0), 1, 5, True, True), lambda xp, x: xp.linspace(0, 1, 1, retstep=True),
    lambda xp, x: xp.array([1, 2], float), lambda xp, x: xp.array(x, ndmin=4), lambda xp, x: xp.asanyarray([1]), lambda xp, x: xp.ascontiguousarray(3),
    lambda xp, x: xp.asarray(x, np.int8), lambda xp, x: xp.tril(x, -1), lambda xp, x: xp.triu(x, 1), lambda xp, x: xp.where(x > 2),
    lambda xp, x: xp.meshgrid(x[0], x[1], sparse=True), lambda xp, x: xp.concatenate((x, x), 1), lambda xp, x: xp.concatenate((x, x), dtype=np.float32),
    lambda xp, x: xp.stack((x, x), 1), lambda xp, x: xp.stack((x, x), 1, dtype=np.float32), lambda xp, x: xp.flip(x, 0), lambda xp, x: xp.roll(x, 1, 0),
    lambda xp, x: xp.repeat(x, 2, 0), lambda xp, x: xp.tile(x, 2), lambda xp, x: xp.tile(x, reps=(2, 1)), lambda xp, x: xp.moveaxis(x, source=0, destination=1),
    lambda xp, x: xp.sort(x, 0), lambda xp, x: xp.sort(x, 0, "stable"), lambda xp, x: xp.argsort(x, 0, "stable"), lambda xp, x: xp.take(x, [2, 0], 0),
    lambda xp, x: xp.take(x, indices=[7, -9], axis=0, mode="wrap"), lambda xp, x: xp.take(x, [7, -9], 1, mode="clip"),
    lambda xp, x: xp.take_along_axis(x, xp.argsort(x, 0), 0), lambda xp, x: xp.searchsorted(xp.sort(x[0]), x[1], "right"),
    lambda xp, x: xp.isin(x, [1, 2], False, True), lambda xp, x: xp.tensordot(x, x, ([0], [0])), lambda xp, x: xp.einsum("ij,ij->i", x, x, optimize=True),
    lambda xp, x: xp.clip(x, a_min=1, a_max=3), lambda xp, x: x.clip(1, 2), lambda xp, x: x.repeat(2, 0), lambda xp, x: x.argsort(0, "stable"), lambda xp, x: x.take([1], 0),
    lambda xp, x: xp.fft.fft(x, 16, 0), lambda xp, x: xp.fft.irfft(x, 7, 0, "ortho"), lambda xp, x: xp.fft.fftn(x, (4, 2), (0, 1)), lambda xp, x: xp.fft.fftshift(x, 0),
    lambda xp, x: xp.fft.fftfreq(5, 0.1), lambda xp, x: xp.fft.rfft(x, None, -1, None), lambda xp, x: xp.linalg.qr(x, "r") ** 2, lambda xp, x: xp.linalg.svd(x, False, False),
    lambda xp, x: xp.linalg.svd(x, compute_uv=False), lambda xp, x: xp.linalg.pinv(x, 0.5), lambda xp, x: xp.linalg.matrix_rank(x, 1.5), lambda xp, x: xp.linalg.matrix_rank(x, 1e9),
    lambda xp, x: xp.linalg.eigvalsh(x[:3, :3], "U"), lambda xp, x: xp.linalg.eigvalsh(x[:3, :3], UPLO="L"), lambda xp, x: xp.linalg.solve(a=xp.eye(3) * 2, b=x),
    lambda xp, x: xp.can_cast(np.float64, np.float32, "same_kind"), lambda xp, x: xp.finfo(np.float32).bits, lambda xp, x: xp.iinfo(np.int8).max,
    lambda xp, x: xp.result_type(np.int8, np.uint8, 1.0),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_calls_are_those_of_numpy(call):
    expected, found = call(np, X), call(tw, tw.asarray(X))
    if not isinstance(expected, tuple):
        expected, found = (expected,), (found,)
    assert len(found) == len(expected)
    for other, own in zip(expected, found, strict=True):
        if isinstance(own, tw.Array):
            same(own, other, rtol=1e-10)
        else:
            assert own == other or (own != own and other != other)


def test_arguments_with_two_names():
    x = tw.asarray(X)
    for call in (
        lambda: tw.std(x, ddof=1, correction=1), lambda: tw.clip(x, 1, a_min=1), lambda: tw.linalg.pinv(x, 1e-9, rtol=1e-9),
        lambda: tw.linalg.matrix_rank(x, 1e-9, rtol=1e-9), lambda: tw.where(x, 1), lambda: tw.linalg.eigh(x[:3, :3], "X"),
    ):  # fmt: skip
        with pytest.raises(ValueError):
            call()


def test_arrays_are_sorted_in_place():
    x = tw.asarray(X)
    x.sort(0)
    same(x, np.sort(X, 0))
