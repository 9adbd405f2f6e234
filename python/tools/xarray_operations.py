"""Counts how many operations of xarray are lazy and equal to NumPy under several chunk managers, in one run.

    python python/tools/xarray_operations.py            # tilewright and dask
    python python/tools/xarray_operations.py tilewright

The operations are those of ``python/tests/xarray_operations.py``. Needs xarray, zarr, netCDF4, h5netcdf, scipy and bottleneck; dask and flox for the comparison.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import xarray as xr

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import xarray_operations as operations  # noqa: E402


def outcome(manager: str, part: str, name: str) -> tuple[str, str]:
    """``lazy``, ``loaded`` or ``failed``, and why."""
    ds = operations.dataset()
    with tempfile.TemporaryDirectory() as folder, xr.set_options(chunk_manager=manager):
        places = [Path(folder) / each for each in ("numpy", "chunked")]
        for place in places:
            place.mkdir()
        expected = operations.run(part, name, ds, places[0], None)
        try:
            found = operations.run(part, name, ds.chunk(operations.CHUNKS), places[1], {})
            own = xr.namedarray.parallelcompat.guess_chunkmanager(manager)
            lazy = operations.chunked(found, own.is_chunked_array)
            operations.assert_same(found, expected)
        except Exception as error:
            return "failed", f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
    return ("lazy", "") if lazy else ("loaded", "")


def main() -> None:
    warnings.simplefilter("ignore")
    for manager in sys.argv[1:] or ["tilewright", "dask"]:
        counts: Counter[str] = Counter()
        for part, name in operations.names():
            what, why = outcome(manager, part, name)
            counts[what] += 1
            if what != "lazy":
                print(f"  {manager}: {part}: {name}: {what} {why[:160]}")
        print(f"{manager}: {counts['lazy']} lazy and equal, {counts['loaded']} equal but computed early, {counts['failed']} failed, of {len(operations.names())}", flush=True)


main()
