"""Programs that index: parts, masks, lists and arrays of indices; assignments to them; and views."""

from __future__ import annotations

import numpy as np

from .case import NUMBERS, Case

# Indices


def slice_text(case: Case, n: int) -> str:
    if case.chance(0.25):
        return ":"
    start, stop = (case.int(-n - 1, n + 1) if case.chance(0.6) else "" for _ in range(2))
    step = case.pick(["", "", 1, 2, 3, -1, -1, -2])
    return f"{start}:{stop}:{step}"


def basic_part(case: Case, n: int) -> str:
    if n and case.chance(0.35):
        return str(case.int(-n, n - 1))
    return slice_text(case, n) if case.chance(0.98) else str(n + 1)


def decorated(case: Case, parts: list[str]) -> str:
    """Parts of an index with new axes and an ellipsis among them, or with trailing full slices left out."""
    if case.chance(0.2):
        parts.insert(case.int(0, len(parts)), "None")
    if case.chance(0.25):
        parts.insert(case.int(0, len(parts)), "...")
    while parts and parts[-1] == ":" and case.chance(0.7):
        parts.pop()
    return ", ".join(parts) or "()" if len(parts) != 1 or case.chance(0.7) else f"{parts[0]},"


def basic_key(case: Case, shape: tuple[int, ...]) -> str:
    parts = [basic_part(case, n) for n in shape]
    return decorated(case, parts[: case.int(1, len(parts))] if parts and case.chance(0.3) else parts)


def index_text(case: Case, n: int, shape: tuple[int, ...]) -> str:
    """An array of indices of an axis: a list, or an array of either library."""
    outside = case.chance(0.02)
    values = case.numbers.integers(-n, n, shape) if n else np.zeros(shape, "i8")
    if outside:
        values = values + n
    if case.chance(0.4) and shape:
        return str(values.tolist())
    dtype = case.pick(["i8", "i8", "i4", "i2", "u1"])
    return case.add((values % max(n, 1) if dtype == "u1" and not outside else values).astype(dtype), own=case.chance(0.6))


def fancy_key(case: Case, shape: tuple[int, ...]) -> str:
    if not shape:
        return case.pick(["None, ...", "()", "True", "False", "np.array(True)"])
    parts = [basic_part(case, n) for n in shape]
    at = case.int(0, len(shape) - 1)
    if case.chance(0.3):
        # A mask of one or two axes.
        width = case.int(1, min(2, len(shape) - at))
        mask = case.values("?", shape[at : at + width])
        text = str(mask.tolist()) if case.chance(0.3) and mask.size else case.add(mask, own=case.chance(0.6))
        parts[at : at + width] = [text]
        meets: tuple[int, ...] = (int(mask.sum()),) if case.chance(0.5) else (1,)
        others = range(at + 1, len(parts))
        lengths = dict(zip(others, shape[at + width :], strict=True))
    else:
        meets = case.pick([(), (1,), (2,), (3,), (3,), (5,), (2, 2), (2, 3), (0,)])
        parts[at] = index_text(case, shape[at], meets)
        lengths = {i: shape[i] for i in range(len(shape)) if i != at}
    for i, n in lengths.items():
        if case.chance(0.35):
            parts[i] = index_text(case, n, case.repeated(meets))
    return decorated(case, parts)


def any_key(case: Case, shape: tuple[int, ...]) -> str:
    return basic_key(case, shape) if case.chance(0.4) else fancy_key(case, shape)


def basic_index(case: Case) -> None:
    a = case.array()
    case.name = "a[slices]"
    case.line(f"r = {a}[{basic_key(case, case.of(a).shape)}]")


def fancy_index(case: Case) -> None:
    a = case.array()
    case.name = "a[fancy]"
    case.line(f"r = {a}[{fancy_key(case, case.of(a).shape)}]")
    follow_up(case)


def mask_index(case: Case) -> None:
    a = case.array(low=1) if case.chance(0.9) else case.array()
    shape = case.of(a).shape
    case.name = "a[mask]"
    if case.chance(0.4):
        key = f"{a} {case.pick(['>', '<=', '!=', '=='])} {case.number(case.of(a).dtype)}"
    else:
        key = case.add(case.values("?", shape[: case.int(1, max(len(shape), 1))]), own=case.chance(0.7))
    case.line(f"r = {a}[{key}]")
    follow_up(case)


def follow_up(case: Case) -> None:
    """Now and then, one step more with the result."""
    if case.chance(0.5):
        return
    r = case.peek("r")
    if not isinstance(r, np.ndarray):
        return
    steps = ["r.sum()", "r + r", "r.ravel()[::-1]", "xp.sort(r, axis=None)", "r == r", "r.T", "r.max()", "r.reshape(-1)",
             "xp.concatenate([r.ravel(), r.ravel()])", "xp.cumsum(r)", "r.shape"]
    case.line(f"r = {case.pick(steps)}")


# Assignment


def value_for(case: Case, dtype: np.dtype, shape: tuple[int, ...]) -> str:
    """What may be assigned to a part of a shape: a number, a list, or an array of some type."""
    if case.chance(0.35):
        return case.number(dtype)
    kinds = [dtype.str] if dtype.kind in "Mm" or case.chance(0.6) else NUMBERS
    if case.chance(0.02):
        shape = (*shape, 2)
    return case.array(kinds, shape=case.repeated(shape), own=case.chance(0.7), finite=True, low=0, high=9)


def assignment(case: Case) -> None:
    a = case.array(finite=True)
    key = any_key(case, case.of(a).shape)
    part = case.peek(f"{a}[{key}]")
    case.name = "a[key] = b"
    value = value_for(case, case.of(a).dtype, () if part is None else part.shape)
    operation = "="
    if case.chance(0.35):
        operation = case.pick(["+=", "-=", "*=", "*=", "|=", "//="])
        case.name = f"a[key] {operation} b"
    case.line(f"{a}[{key}] {operation} {value}")
    case.line(f"r = {a}")


def mask_assignment(case: Case) -> None:
    a = case.array(finite=True)
    values = case.of(a)
    if case.chance(0.4):
        key = f"{a} > {case.number(values.dtype)}"
    else:
        key = case.add(case.values("?", values.shape[: case.int(1, max(values.ndim, 1))]), own=case.chance(0.7))
    part = case.peek(f"{a}[{key}]")
    operation = case.pick(["=", "=", "*=", "+=", "-="])
    case.name = f"a[mask] {operation} b"
    case.line(f"{a}[{key}] {operation} {value_for(case, values.dtype, () if part is None else part.shape)}")
    case.line(f"r = {a}")


VIEWS = [
    "{0}.T", "{0}[::-1]", "{0}[1:]", "{0}[..., ::2]", "{0}[None]", "{0}.reshape(-1)", "{0}.ravel()", "{0}[...]", "xp.flip({0})",
    "{0}.swapaxes(0, -1)", "xp.squeeze({0})", "{0}.real", "xp.expand_dims({0}, 0)", "xp.moveaxis({0}, 0, -1)", "xp.atleast_2d({0})",
    "{0}.flatten()", "{0}.copy()", "{0} + 0", "xp.rot90({0})", "xp.split({0}, 1)[0]", "{0}[:, 0]", "{0}[[0]]",
]


def views(case: Case) -> None:
    a = case.array(finite=True, low=-9, high=9, shape=case.shape(1, 3, 1))
    case.name = "views"
    names = [a]
    for i in range(case.int(1, 3)):
        step = case.pick(VIEWS).format(case.pick(names))
        # The order of the elements of what is no view is NumPy's own affair, and decides which of its reshapes are views.
        reordered = any(text in each for each in case.lines for text in ("+ 0", "[[0]]", "copy"))
        if not isinstance(case.peek(step), np.ndarray) or (reordered and ("reshape" in step or "ravel" in step)):
            continue
        case.line(f"v{i} = {step}")
        names.append(f"v{i}")
    for _ in range(case.int(1, 2)):
        target = case.pick(names)
        key = basic_key(case, np.shape(case.peek(target)))
        operation = case.pick(["=", "=", "+=", "*="])
        value = value_for(case, case.of(a).dtype, np.shape(case.peek(f"{target}[{key}]")))
        case.line(f"{target}[{key}] {operation} {value}")
    case.line(f"r = ({', '.join(names)},)")
