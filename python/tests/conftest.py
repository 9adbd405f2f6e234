"""What the tests share."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import tilewright as tw

settings.register_profile("check", max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
settings.register_profile("full", max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile("check")


def same(ours: object, theirs: object, rtol: float = 1e-12) -> None:
    """Fails unless both have the same type, shape and elements, NaN and signs of zero included."""
    expected = np.asarray(theirs)
    assert isinstance(ours, tw.Array), type(ours)
    assert ours.shape == expected.shape, (ours.shape, expected.shape)
    assert ours.dtype == expected.dtype, (ours.dtype, expected.dtype)
    found = ours.compute()
    assert found.shape == expected.shape and found.dtype == expected.dtype
    if expected.dtype.kind in "fc":
        rtol = max(rtol, 1e-5) if expected.dtype.itemsize // (1 + (expected.dtype.kind == "c")) < 8 else rtol
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)
    else:
        np.testing.assert_array_equal(found, expected)


def agree(name: str, *args: object, chunk: int | None = None, rtol: float = 1e-12, **kwargs: object) -> None:
    """Fails unless a function does to our arrays what NumPy's does to its own: results, or the class of the exception.

    Our function is called twice, by itself and through NumPy's.
    """
    theirs = getattr(np, name)
    own_args = [_own(arg, chunk) for arg in args]
    own_kwargs = {key: _own(value, chunk) for key, value in kwargs.items()}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = theirs(*args, **kwargs)
        except Exception as error:
            # NumPy says of the same mistake now that an index is wrong, now that a value is.
            kinds = [(ValueError, IndexError), (TypeError,)]
            wanted = next((kind for kind in kinds if isinstance(error, kind)), type(error))
            for function in (getattr(tw, name), theirs):
                with pytest.raises(wanted):
                    _computed(function(*own_args, **own_kwargs))
            return
    for function in (getattr(tw, name), theirs):
        _compare(function(*own_args, **own_kwargs), expected, rtol)


def _own(value: object, chunk: int | None) -> object:
    if isinstance(value, (np.ndarray, np.generic)):
        array = tw.asarray(value)
        return array if chunk is None or array.ndim == 0 else array.rechunk(chunk)
    if isinstance(value, (list, tuple)) and any(isinstance(each, (np.ndarray, list)) for each in value):
        return type(value)(_own(each, chunk) for each in value)
    return value


def _computed(found: object) -> None:
    for each in found if isinstance(found, (list, tuple)) else [found]:
        np.asarray(each)


def _compare(found: object, expected: object, rtol: float) -> None:
    if isinstance(expected, (list, tuple)):
        assert isinstance(found, (list, tuple)) and len(found) == len(expected)
        for each, other in zip(found, expected, strict=True):
            _compare(each, other, rtol)
    elif isinstance(found, tw.Array):
        same(found, expected, rtol)
    else:
        assert type(found) is type(expected) and found == expected
