"""Runs a program with both libraries and says how results differ."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as tw

from .case import Case, names_for

#: What a float may be off by, in units of the larger of 1 and the largest element.
TOLERANCES = {2: 4e-3, 4: 3e-5, 8: 1e-11}


def run(case: Case, code: Any, ours: bool) -> tuple[Any, Exception | None]:
    """What a program gives, computed, or raises."""
    names = names_for(case, ours)
    try:
        exec(code, names)
        return (computed(names["r"]) if ours else names["r"]), None
    except Exception as error:
        return None, error


def computed(found: Any) -> Any:
    """Results with their arrays computed, all in one run, after a look at what their shapes and types were said to be."""
    several = isinstance(found, (list, tuple))
    leaves = list(found) if several else [found]
    arrays = [each for each in leaves if isinstance(each, tw.Array)]
    types = [each.dtype for each in arrays]
    made = iter(tw.compute(*arrays))
    results = []
    for each in leaves:
        if isinstance(each, tw.Array):
            array = next(made)
            if array.shape != each.shape or array.dtype != types.pop(0):
                raise AssertionError(f"said to be {each.shape} of {each.dtype}, computed as {array.shape} of {array.dtype}")
            results.append(array)
        else:
            results.append(computed(each) if isinstance(each, (list, tuple)) else each)
    return results if several else results[0]


def difference(found: Any, expected: Any, loose: float) -> str | None:
    """How two results differ, or None."""
    if isinstance(expected, (list, tuple)):
        if not isinstance(found, (list, tuple)) or len(found) != len(expected):
            return f"{len(expected)} results expected"
        return next((text for pair in zip(found, expected, strict=True) if (text := difference(*pair, loose)) is not None), None)
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        return f"shape {found.shape}, not {expected.shape}"
    if found.dtype != expected.dtype:
        return f"type {found.dtype}, not {expected.dtype}"
    if expected.dtype.kind in "Mm":
        return None if np.array_equal(found.astype("i8"), expected.astype("i8")) else "values"
    if expected.dtype.kind not in "fc":
        return None if np.array_equal(found, expected) else "values"
    return None if near(found, expected, loose) else "values"


def near(found: np.ndarray, expected: np.ndarray, loose: float) -> bool:
    if found.size == 0:
        return True
    finite = np.abs(expected[np.isfinite(expected)])
    width = expected.dtype.itemsize // (2 if expected.dtype.kind == "c" else 1)
    tolerance = TOLERANCES[width] * (min(loose, 30) if width < 8 else loose)
    return bool(np.allclose(found.astype("c16"), expected.astype("c16"), rtol=tolerance,
                            atol=tolerance * max(1.0, finite.max(initial=0)), equal_nan=True))


def raised_alike(ours: Exception, theirs: Exception) -> bool:
    return isinstance(ours, (type(theirs), TypeError, ValueError, IndexError, OverflowError)) and not isinstance(ours, AssertionError)


def leaves(result: Any) -> list[Any]:
    return [leaf for each in result for leaf in leaves(each)] if isinstance(result, (list, tuple)) else [result]


def describe(error: Exception | None) -> str:
    return "nothing is raised" if error is None else f"{type(error).__name__}: {str(error)[:300]}"
