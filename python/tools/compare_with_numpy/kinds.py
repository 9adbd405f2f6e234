"""All kinds of programs and how often each is drawn; and chains of several steps."""

from __future__ import annotations

import numpy as np

from . import elementwise, indexing, linear, manipulation, reductions, searching, selections
from .case import Case
from .indexing import any_key

STEPS = [
    "xp.abs({0})", "{0} * 2", "{0} + {1}", "{0} - {1}", "xp.where({0} > {1}, {0}, {1})", "xp.maximum({0}, {1})", "{0}[::-1]",
    "{0}[..., 1:]", "{0}.T", "xp.cumsum({0}, axis=0)", "{0}.sum(axis=-1, keepdims=True)", "{0}.mean(axis=0)", "xp.sort({0}, axis=-1)",
    "{0}[{0} > 0]", "{0}.reshape(-1)", "xp.flip({0}, axis=0)", "xp.roll({0}, 1)", "xp.concatenate([{0}, {1}])",
    "xp.stack([{0}, {0}])", "{0}.max(axis=0)", "xp.clip({0}, -2, 3)", "{0} ** 2", "xp.diff({0}, axis=0)", "{0}[[0, -1]]",
    "xp.repeat({0}, 2, axis=0)", "xp.unique({0})", "xp.argsort({0}, axis=-1, stable=True)", "xp.tile({0}, 2)",
    "xp.add({0}, {1}, where={0} > 0, out=xp.zeros_like({0}))", "{0}.sum(where={0} > 1)", "xp.outer({0}, {0})[:4]", "{0}[None, ...]",
    "xp.nonzero({0})[0]", "xp.pad({0}, 1)", "{0}.var()", "{0} // 3", "xp.isin({0}, [1, 2])", "xp.take({0}, [0, 0], axis=0)",
    "{0} @ {1}.T", "{0}.argmax()", "{0}.astype('f4')", "xp.bincount(xp.abs({0}).astype('i8').ravel())",
]


def chain(case: Case) -> None:
    case.name, case.loose = "chain", 1e3
    # Whole numbers, so that rounding decides no comparison.
    values = case.values(case.pick(["i4", "i8", "i8", "f8"]), case.shape(1, 3, 1), finite=True, low=-6, high=6)
    names = [case.add(np.round(values))]
    for i in range(case.int(2, 6)):
        step = case.pick(STEPS).format(case.pick(names[-2:]), case.pick(names))
        found = case.peek(step)
        if found is None or np.size(found) > 500 or np.asarray(found).dtype.kind == "c":
            continue
        if np.size(found) and not np.all(np.abs(found) < 1e4):
            continue
        case.line(f"v{i} = {step}")
        names.append(f"v{i}")
        # Of what NumPy gives as a number there are no views, and which of its reshapes are some depends on how elements lie.
        scalars = any(isinstance(case.peek(each), np.generic) for each in names) or any("reshape" in each for each in case.lines)
        if case.chance(0.15) and np.ndim(found) and np.size(found) and not scalars:
            case.line(f"v{i}[{any_key(case, np.shape(found))}] = {case.int(0, 5)}")
            if case.peek("1") is None:
                case.lines.pop()
    case.line(f"r = ({', '.join(names)},)")


#: Every kind of program with its weight. The order is part of what a seed means: add new kinds at the end.
KINDS = [
    (indexing.basic_index, 5),
    (indexing.fancy_index, 12),
    (indexing.mask_index, 8),
    (indexing.assignment, 12),
    (indexing.mask_assignment, 8),
    (indexing.views, 6),
    (elementwise.unary, 9),
    (elementwise.binary, 14),
    (elementwise.operator, 7),
    (elementwise.further_elementwise, 4),
    (reductions.reduction, 14),
    (reductions.cumulative, 4),
    (manipulation.shapes, 10),
    (manipulation.joining, 7),
    (manipulation.padding, 3),
    (searching.searching, 8),
    (searching.sets, 5),
    (reductions.statistics, 8),
    (linear.products, 6),
    (linear.linear_algebra, 4),
    (linear.transforms, 3),
    (manipulation.creation, 3),
    (chain, 12),
    (selections.selection, 14),
    (selections.gathers, 8),
]


def make(seed: int, number: int) -> Case:
    """The program of a seed and a number: the same at every call."""
    case = Case(seed, number)
    chosen = case.random.choices([each for each, _ in KINDS], [weight for _, weight in KINDS])[0]
    chosen(case)
    return case
