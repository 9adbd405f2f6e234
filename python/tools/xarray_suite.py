"""A plugin of pytest that runs xarray's own tests with Tilewright's chunk manager, in an environment that has dask, too: ``requires_dask`` guards most tests of chunks.

    python -m pytest -p xarray_suite --pyargs xarray.tests.test_rolling xarray.tests.test_coarsen xarray.tests.test_missing \\
        xarray.tests.test_weighted xarray.tests.test_groupby xarray.tests.test_interp xarray.tests.test_computation

with ``python/tools`` on ``PYTHONPATH``. ``raise_if_dask_computes``, by which xarray's tests say that nothing may be computed, counts what our chunk manager computes, too.
"""

from __future__ import annotations

import contextlib
from typing import Any

import pytest


def pytest_configure(config: pytest.Config) -> None:
    import numpy as np
    import tilewright
    import xarray
    import xarray.tests

    xarray.set_options(chunk_manager="tilewright")
    # Some tests ask dask's arrays for an empty array of their type, among other things that they check.
    tilewright.Array._meta = property(lambda self: np.empty((0,) * self.ndim, dtype=self.dtype))  # type: ignore[attr-defined]
    theirs = xarray.tests.raise_if_dask_computes

    @contextlib.contextmanager
    def raise_if_computes(max_computes: int = 0) -> Any:
        from tilewright.xarray import TilewrightManager

        computes, original = 0, TilewrightManager.compute

        def counted(self: Any, *data: Any, **kwargs: Any) -> Any:
            nonlocal computes
            computes += 1
            if computes > max_computes:
                raise RuntimeError(f"Too many computes. Total: {computes} > max: {max_computes}.")
            return original(self, *data, **kwargs)

        TilewrightManager.compute = counted  # type: ignore[method-assign]
        try:
            with theirs(max_computes):
                yield
        finally:
            TilewrightManager.compute = original  # type: ignore[method-assign]

    xarray.tests.raise_if_dask_computes = raise_if_computes
