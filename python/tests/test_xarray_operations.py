"""Operations of xarray over our chunk manager: still lazy before they are computed, and equal to NumPy after it."""

from __future__ import annotations

import warnings

import pytest

xr = pytest.importorskip("xarray", reason="xarray is not installed")
pytest.importorskip("zarr", reason="zarr is not installed")

import xarray_operations as operations  # noqa: E402

from tilewright import Array  # noqa: E402

#: Operations that xarray itself computes early, whatever the chunk manager is.
LOADED: set[tuple[str, str]] = set()


@pytest.fixture(autouse=True)
def ours():
    with xr.set_options(chunk_manager="tilewright"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize(("part", "name"), operations.names())
def test_lazy_and_equal(part, name, tmp_path):
    ds = operations.dataset()
    (tmp_path / "numpy").mkdir()
    (tmp_path / "ours").mkdir()
    expected = operations.run(part, name, ds, tmp_path / "numpy", None)
    found = operations.run(part, name, ds.chunk(operations.CHUNKS), tmp_path / "ours", {})
    lazy = operations.chunked(found, lambda data: isinstance(data, Array))
    assert lazy or (part, name) in LOADED
    operations.assert_same(found, expected)


def test_most_are_lazy():
    assert len(operations.names()) >= 130
    assert len(LOADED) <= 0.05 * len(operations.names())
    assert all(len(each) >= 3 for each in operations.OPERATIONS.values())
