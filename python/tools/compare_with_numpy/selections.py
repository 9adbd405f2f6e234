"""Programs that select by elements and go on with the selection; gathers and scatters between ragged blocks."""

from __future__ import annotations

import numpy as np

from .case import NUMBERS, REAL, Case
from .indexing import value_for

#: What makes a result whose length depends on elements: of an array, a mask of its shape, and a mask of its first axis.
SELECTIONS = [
    "{0}[{1}]", "{0}[{1}]", "{0}[{2}]", "{0}[{0} > 0]", "xp.nonzero({0})[0]", "xp.nonzero({1})[-1]", "xp.flatnonzero({1})", "xp.argwhere({1})",
    "xp.unique({0})", "xp.unique({0}, return_counts=True)[1]", "xp.unique({0}, return_inverse=True)[1]", "xp.extract({1}, {0})", "xp.compress({2}, {0}, axis=0)",
    "xp.union1d({0}, {0} * 2)", "xp.intersect1d({0}, {0} + 1)", "xp.setdiff1d({0}, {0} * 2)", "xp.repeat({0}, {2}.astype('i8') * 2, axis=0)", "xp.where({1})[0]",
    "{0}[xp.flatnonzero({2})]", "{0}[{1}] + {0}[{1}]", "{0}[{1}] * 2", "xp.cumsum({0}[{1}])", "xp.sort({0}[{1}])",
]  # fmt: skip

PARTS = ["r[:k]", "r[k:]", "r[1:]", "r[:-1]", "r[::2]", "r[1::2]", "r[::-1]", "r[-k:]", "r[k : k + 3]", "r[k:][:3]", "r[[0, -1]]", "r[r > 0]", "r * 2", "r + r", "r[::3] - 1"]

ENDS = [
    "r.sum()", "r.sum(axis=0)", "r.mean()", "r.max()", "r.min()", "r.prod()", "r.argmax()", "r.any()", "xp.dot(r, r)", "r @ r", "(r * r).sum()", "xp.linalg.norm(r)", "xp.cumsum(r)",
    "xp.sort(r, axis=None)", "xp.unique(r)", "xp.count_nonzero(r)", "xp.concatenate([r, r])", "r.reshape(-1)[:2]", "xp.var(r)", "xp.median(r)", "xp.diff(r, axis=0)", "r.shape",
    "xp.histogram(r, bins=3)[0]", "r", "r[0]", "r[-1]", "len(r)",
]  # fmt: skip


def ragged(case: Case, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Blocks of different small lengths."""
    cuts = []
    for n in shape:
        cut = []
        while sum(cut) < n:
            cut.append(min(case.pick([1, 1, 2, 3, 5]), n - sum(cut)))
        cuts.append(tuple(cut) or (0,))
    return tuple(cuts)


def cut_array(case: Case, dtypes: list[str], shape: tuple[int, ...], low: int = -9, high: int = 9) -> str:
    name = case.array(dtypes, shape=shape, finite=True, low=low, high=high)
    if case.chance(0.7) and shape:
        case.chunks[name] = ragged(case, shape)
    return name


def selection(case: Case) -> None:
    """A selection, one or two parts of it, and what is made of them."""
    shape = case.pick([(case.int(0, 30),), (case.int(1, 30),), (case.int(1, 30),), (case.int(1, 8), case.int(1, 5))])
    a = cut_array(case, ["i4", "i8", "i8", "f8", "f8", "u1", "?"] if case.chance(0.8) else NUMBERS, shape)
    mask, first = (cut_array(case, ["?"], each) for each in (shape, shape[:1]))
    step = case.pick(SELECTIONS)
    case.name, case.loose = "selection", 1e2
    case.line(f"k = {case.int(0, 6)}")
    case.line(f"r = {step.format(a, mask, first)}")
    for _ in range(case.pick([1, 1, 2])):
        if case.chance(0.1):
            # The shape is asked for on the way, so that it is known from here on.
            case.line("s = r.shape")
        case.line(f"r = {case.pick(PARTS)}")
        if case.peek("r") is None:
            case.lines.pop()
    case.line(f"r = {case.pick(ENDS)}")


GATHERS = [
    "{a}[{i}]", "{a}[{i}, {j}]", "{a}[:, {j}]", "{a}[{i}[:, None], {j}]", "{a}[{i}][{j}[:0]]", "xp.take({a}, {i}, axis=0)", "xp.take({a}, {j}, axis=-1)",
    "xp.take_along_axis({a}, xp.argsort({a}, axis=0, stable=True), axis=0)", "{a}[{i}].sum(axis=0)", "{a}[{i}] @ {a}.T", "{a}[{i}] * {i}[:, None]", "{a}[{i}, {j}].sum()", "{a}[{i} % 2]",
    "{a}[xp.sort({i})]", "{a}[{i}[::2]]", "{a}[{i}][::2]", "{a}.ravel()[{i}]", "xp.searchsorted(xp.sort({a}.ravel()), {a}[{i}])", "{a}[..., {j}][{i}]",
]  # fmt: skip

SCATTERS = [
    "{a}[{i}] = {v}", "{a}[{i}, {j}] = {v}", "{a}[:, {j}] = {v}", "{a}[{i}] += {v}", "{a}[{i}, {j}] *= {v}", "{a}[{i}[::2]] = {v}", "{a}[1:][{i} % ({a}.shape[0] - 1)] = {v}", "{a}.T[{j}] = {v}",
]  # fmt: skip


def gathers(case: Case) -> None:
    """Gathers and scatters whose data and indices are cut into ragged small blocks."""
    shape = (case.int(2, 25), case.int(1, 6))
    a = cut_array(case, REAL, shape)
    n = case.int(1, 20)
    i, j = (cut_array(case, ["i8", "i8", "i4", "i2"], (n,), low=-side, high=side - 1) for side in shape)
    if case.chance(0.55):
        case.name = "gather"
        case.loose = 1e2
        case.line(f"r = {case.pick(GATHERS).format(a=a, i=i, j=j)}")
        return
    case.name = "scatter"
    if case.chance(0.25):
        case.name = "bincount"
        case.loose = 1e2
        weights = cut_array(case, ["f8", "i8"], (n,))
        case.line(f"r = xp.bincount(abs({i}){case.pick(['', f', weights={weights}'])}, minlength={case.int(0, 9)})")
        return
    step = case.pick(SCATTERS)
    target = step.split("] ")[0] + "]"
    part = case.peek(target.format(a=a, i=i, j=j))
    v = value_for(case, case.of(a).dtype, () if part is None else part.shape)
    case.line(step.format(a=a, i=i, j=j, v=v))
    case.line(f"r = {a}")
