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


def difference(found: Any, expected: Any, loose: float, exact: bool = False) -> str | None:
    """How two results differ, or None. Floats may be rounded differently, unless ``exact``: then signs of zeros count, too."""
    if isinstance(expected, (list, tuple)):
        if not isinstance(found, (list, tuple)) or len(found) != len(expected):
            return f"{len(expected)} results expected"
        return next((text for pair in zip(found, expected, strict=True) if (text := difference(*pair, loose, exact)) is not None), None)
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        return f"shape {found.shape}, not {expected.shape}"
    if found.dtype != expected.dtype:
        return f"type {found.dtype}, not {expected.dtype}"
    if expected.dtype.kind in "Mm":
        return None if np.array_equal(found.astype("i8"), expected.astype("i8")) else "values"
    if expected.dtype.kind not in "fc":
        return None if np.array_equal(found, expected) else "values"
    if not exact:
        return None if near(found, expected, loose) else "values"
    if not np.array_equal(found, expected, equal_nan=True):
        return "values"
    return None if np.array_equal(zero_signs(found), zero_signs(expected)) else "signs of zeros"


def zero_signs(values: np.ndarray) -> np.ndarray:
    """Where an element, or a part of a complex one, is a negative zero."""
    parts = np.stack([values.real, values.imag]) if values.dtype.kind == "c" else values
    return (parts == 0) & np.signbit(parts)


#: What moves elements, or computes each so that there is one right result: nothing is rounded in two ways, and zeros keep their signs.
EXACT = set(
    """
    a[slices] a[fancy] a[mask] views where astype positive negative conj real imag floor ceil trunc rint fix copysign
    reshape ravel transpose moveaxis swapaxes rollaxis expand_dims squeeze flip fliplr flipud roll rot90 tile repeat broadcast_to
    atleast_1d atleast_2d atleast_3d diag diagflat diagonal tril triu resize permute_dims matrix_transpose unstack
    concatenate stack hstack vstack dstack column_stack block append insert delete split array_split hsplit vsplit dsplit
    broadcast_arrays meshgrid take take_along_axis compress extract choose select ix_ full_like ones_like zeros_like full array
    asarray copy linalg.diagonal linalg.matrix_transpose fft.fftshift fft.ifftshift
    """.split()
) | {"a[key] = b", "a[mask] = b", "pad constant", "pad edge", "pad wrap"}


def is_exact(case: Case) -> bool:
    """Whether floats of a program must be the same to the last bit. Steps after an index may add or sort, and products of complex numbers are rounded in two places."""
    steps = ("r.sum(", "r + r", "cumsum", "xp.sort", ".max(", " *= ")
    return case.name.removesuffix(" where=") in EXACT and not any(step in line for line in case.lines for step in steps)


def near(found: np.ndarray, expected: np.ndarray, loose: float) -> bool:
    if found.size == 0:
        return True
    finite = np.abs(expected[np.isfinite(expected)])
    width = expected.dtype.itemsize // (2 if expected.dtype.kind == "c" else 1)
    tolerance = TOLERANCES[width] * (min(loose, 30) if width < 8 else loose)
    return bool(np.allclose(found.astype("c16"), expected.astype("c16"), rtol=tolerance,
                            atol=tolerance * max(1.0, finite.max(initial=0)), equal_nan=True))


def raised_alike(ours: Exception, theirs: Exception) -> bool:
    """Whether two exceptions have a class of Python's in common that says more than ``Exception``."""
    return any(isinstance(ours, each) and each not in (Exception, BaseException, object) for each in type(theirs).__mro__)


def leaves(result: Any) -> list[Any]:
    return [leaf for each in result for leaf in leaves(each)] if isinstance(result, (list, tuple)) else [result]


def describe(error: Exception | None) -> str:
    return "nothing is raised" if error is None else f"{type(error).__name__}: {str(error)[:300]}"
