"""What the tests share."""

from __future__ import annotations

import numpy as np
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
