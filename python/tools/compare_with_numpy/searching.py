"""Programs that sort, search, choose and treat arrays as sets."""

from __future__ import annotations

import numpy as np

from .case import NUMBERS, REAL, Case, call, sometimes
from .indexing import index_text

SEARCHES = """
    sort argsort partition argpartition searchsorted nonzero argwhere flatnonzero where1 take take_along_axis lexsort compress
    extract choose select unravel_index ravel_multi_index ix_
""".split()


def searching(case: Case) -> None:
    name = case.pick(SEARCHES)
    a = case.array(low=-5, high=5)
    values = case.of(a)
    axis = case.axis(values.ndim)
    case.name = name
    if name in ("sort", "argsort"):
        options = {"axis": sometimes(case, axis, 0.7), "stable": "True" if name == "argsort" else ...}
        if case.chance(0.3):
            method = f"{a}.sort()" if name == "sort" else f"{a}.argsort(stable=True)"
            case.line(f"s = {method}")
            case.line(f"r = {a}" if name == "sort" else "r = s")
        else:
            call(case, name, a, **options)
    elif name in ("partition", "argpartition"):
        n = values.shape[-1] if values.ndim else 1
        k = case.int(0, max(n - 1, 0))
        text = f"xp.partition({a}, {k})" if name == "partition" else f"xp.take_along_axis({a}, xp.argpartition({a}, {k}), -1)"
        case.line(f"r = {text}[..., {k}]")
    elif name == "searchsorted":
        if values.dtype.kind == "f":
            case.arrays[a] = np.nan_to_num(values)
        case.line(f"s = xp.sort({a}, axis=None)")
        v = case.array([values.dtype.str] if case.chance(0.6) or values.dtype.kind in "Mm" else NUMBERS, own=case.chance(0.7),
                       low=-6, high=6)
        case.line(f"r = xp.searchsorted(s, {v}, side={case.pick(['left', 'right'])!r})")
    elif name == "where1":
        case.line(f"r = xp.where({a})")
    elif name == "take":
        n = values.size if axis is None else values.shape[axis] if -values.ndim <= axis < values.ndim else 1
        mode = sometimes(case, repr(case.pick(["clip", "wrap"])), 0.3)
        call(case, name, a, index_text(case, n, case.pick([(2,), (3,), (2, 2), (0,)])), axis=axis, mode=mode)
    elif name == "take_along_axis":
        axis = case.int(0, max(values.ndim - 1, 0)) if case.chance(0.8) else None
        shape = list(values.shape) if axis is not None else [values.size]
        n = shape[axis or 0] if shape else 1
        if shape:
            shape[axis or 0] = case.int(0, 4)
        b = case.add(case.numbers.integers(-n, n, shape) if n else np.zeros(shape, "i8"))
        call(case, name, a, b, axis=axis)
    elif name == "lexsort":
        keys = [case.array(REAL, shape=(5,), low=0, high=2) for _ in range(case.int(1, 3))]
        call(case, name, f"({', '.join(keys)},)")
    elif name == "compress":
        n = values.size if axis is None else values.shape[axis] if -values.ndim <= axis < values.ndim else 1
        call(case, name, case.add(case.values("?", (max(n - case.int(0, 1), 0),)), own=case.chance(0.5)), a, axis=axis)
    elif name == "extract":
        call(case, name, case.add(case.values("?", values.shape), own=case.chance(0.5)), a)
    elif name == "choose":
        index = case.array(["i8", "u1", "?"], low=0, high=1)
        shape = case.of(index).shape
        choices = [case.array([values.dtype.str], shape=case.repeated(shape)) for _ in range(2)]
        call(case, name, index, f"[{', '.join(choices)}]", mode=sometimes(case, repr(case.pick(["wrap", "clip"])), 0.3))
    elif name == "select":
        conditions = [case.mask(values.shape, own=True) for _ in range(2)]
        choices = [a, case.array([values.dtype.str] if values.dtype.kind in "Mm" else NUMBERS, shape=case.repeated(values.shape))]
        call(case, name, f"[{', '.join(conditions)}]", f"[{', '.join(choices)}]", default=sometimes(case, case.number(values.dtype)))
    elif name == "unravel_index":
        shape = case.shape(1, 3, 1)
        index = case.add(case.numbers.integers(0, int(np.prod(shape)), case.shape(0, 2)))
        call(case, name, index, shape, order=sometimes(case, "'F'", 0.3))
    elif name == "ravel_multi_index":
        shape = case.shape(1, 3, 1)
        parts = [case.add(case.numbers.integers(0, n, (4,))) for n in shape]
        call(case, name, f"({', '.join(parts)},)", shape, mode=sometimes(case, repr(case.pick(["wrap", "clip"])), 0.3),
             order=sometimes(case, "'F'", 0.3))
    elif name == "ix_":
        case.arrays[a] = values = values.reshape(-1)
        case.chunks[a] = 2
        b = case.add(case.values("?", (3,)))
        case.line(f"r = xp.ix_({a}, {b})")
    else:
        call(case, name, a)


SETS = """
    unique unique_values unique_counts unique_inverse unique_all intersect1d union1d setdiff1d setxor1d isin
""".split()


def sets(case: Case) -> None:
    name = case.pick(SETS)
    a = case.array(low=-4, high=4)
    values = case.of(a)
    if name == "unique":
        options = {key: sometimes(case, True) for key in ("return_index", "return_inverse", "return_counts")}
        call(case, name, a, **options, axis=sometimes(case, case.axis(values.ndim), 0.3), equal_nan=sometimes(case, False, 0.2))
    elif name.startswith("unique"):
        if values.dtype.kind in "fMm":
            # Several NaN are distinct, and their order is nobody's affair.
            case.arrays[a] = np.nan_to_num(values, nan=2) if values.dtype.kind == "f" else np.where(np.isnat(values),
                values.dtype.type(2, "s"), values).astype(values.dtype)
        call(case, name, a)
        case.line("r = tuple(r)" if name != "unique_values" else "r = xp.sort(r)")
    else:
        b = case.array([values.dtype.str] if case.chance(0.7) or values.dtype.kind in "Mm" else NUMBERS, low=-4, high=4,
                       own=case.chance(0.8))
        invert = sometimes(case, True, 0.3) if name == "isin" else ...
        indices = sometimes(case, True, 0.3) if name == "intersect1d" else ...
        call(case, name, a, b, invert=invert, return_indices=indices)
