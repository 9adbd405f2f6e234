"""Daily anomalies: 30 years of daily float32 in a Zarr file, less the mean of every day of the year, written to another Zarr file.

    python python/benchmarks/anomaly.py [--grid 256] [--years 30] [--methods numpy,tilewright,dask] [--folder DIR]

With a grid of 256 the data is 2.9 GB. Three methods: NumPy by hand, one chunk after the other; xarray over Tilewright; xarray over dask with flox. The last two run the same code. Each runs in
a process of its own. Reported: CPU seconds and peak of anonymous memory, both above what the imports take, and the wall time. Needs xarray and zarr; dask and flox for the comparison.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

#: Days, rows and columns of a chunk.
CHUNK = (120, 128, 128)


def days(years: int) -> np.ndarray:
    return np.arange(np.datetime64("1990-01-01"), np.datetime64(f"{1990 + years}-01-01"))


def make(path: Path, grid: int, years: int) -> None:
    """Random values with some missing, written chunk by chunk."""
    import xarray as xr
    import zarr

    time_axis = days(years)
    chunk = tuple(min(a, b) for a, b in zip(CHUNK, (len(time_axis), grid, grid), strict=True))
    coords = {"time": time_axis.astype("M8[ns]"), "lat": np.linspace(-90, 90, grid), "lon": np.linspace(0, 360, grid)}
    xr.Dataset(coords=coords).to_zarr(path, zarr_format=2)
    group = zarr.open_group(path, mode="r+")
    array = group.create_array("t", shape=(len(time_axis), grid, grid), chunks=chunk, dtype="f4", compressors=None, fill_value=float("nan"))
    array.attrs["_ARRAY_DIMENSIONS"] = ["time", "lat", "lon"]
    rng = np.random.default_rng(0)
    for start in range(0, len(time_axis), chunk[0]):
        block = rng.standard_normal((min(chunk[0], len(time_axis) - start), grid, grid), dtype="f4")
        block[0, 0, :3] = np.nan
        array[start : start + chunk[0]] = block
    zarr.consolidate_metadata(path)


def by_numpy(source: Path, target: Path) -> None:
    import xarray as xr
    import zarr

    x = zarr.open_group(source, mode="r")["t"]
    day = xr.open_zarr(source, chunks=None).time.dt.dayofyear.values - 1
    total, number = np.zeros((366, *x.shape[1:]), "f4"), np.zeros((366, *x.shape[1:]), "i4")
    out = zarr.open_group(target, mode="w", zarr_format=2).create_array("t", shape=x.shape, chunks=x.chunks, dtype="f4", compressors=None, fill_value=float("nan"))
    step = x.chunks[0]
    for start in range(0, x.shape[0], step):
        block, places = x[start : start + step], day[start : start + step]
        missing = np.isnan(block)
        block[missing] = 0
        # No day is twice in a chunk.
        total[places] += block
        number[places] += ~missing
    with np.errstate(invalid="ignore"):
        clim = total / number
    for start in range(0, x.shape[0], step):
        out[start : start + step] = x[start : start + step] - clim[day[start : start + step]]


def by_xarray(source: Path, target: Path, manager: str) -> None:
    import xarray as xr

    xr.set_options(chunk_manager=manager)
    ds = xr.open_zarr(source)
    clim = ds.groupby("time.dayofyear").mean()
    anomaly = (ds.groupby("time.dayofyear") - clim).drop_vars("dayofyear")
    anomaly = anomaly.chunk({dim: n for dim, n in zip(("time", "lat", "lon"), ds.t.encoding["chunks"], strict=True)})
    anomaly.t.encoding = {"chunks": ds.t.encoding["chunks"], "compressors": None}
    anomaly.to_zarr(target, mode="w", zarr_format=2)


def run(method: str, source: Path, target: Path) -> None:
    """In a process of its own: tells what it used."""
    import xarray  # noqa: F401
    import zarr  # noqa: F401

    if method == "tilewright":
        import tilewright  # noqa: F401
    if method == "dask":
        import dask.array  # noqa: F401
        import flox.xarray  # noqa: F401
    base, start, cpu = anonymous(), time.perf_counter(), time.process_time()
    peak, stop = [base], threading.Event()

    def watch() -> None:
        while not stop.wait(0.01):
            peak[0] = max(peak[0], anonymous())

    watcher = threading.Thread(target=watch)
    watcher.start()
    by_numpy(source, target) if method == "numpy" else by_xarray(source, target, method)
    stop.set()
    watcher.join()
    print(f"{method:12} {time.process_time() - cpu:8.1f} s CPU {time.perf_counter() - start:8.1f} s wall {(peak[0] - base) / 2**20:8.0f} MiB", flush=True)


def anonymous() -> int:
    """Bytes of anonymous memory of this process."""
    with open("/proc/self/status") as status:
        return sum(int(line.split()[1]) * 1024 for line in status if line.startswith(("RssAnon", "RssShmem")))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--grid", type=int, default=256)
    parser.add_argument("--years", type=int, default=30)
    parser.add_argument("--methods", default="numpy,tilewright,dask")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        run(args.one[0], Path(args.one[1]), Path(args.one[2]))
        return
    folder = Path(args.folder or tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / f"daily-{args.years}-{args.grid}.zarr"
    if not source.exists():
        make(source, args.grid, args.years)
    results = {}
    for method in args.methods.split(","):
        target = folder / f"anomaly-{method}.zarr"
        subprocess.run([sys.executable, os.path.abspath(__file__), "--one", method, source, target], check=True)
        import zarr

        written = zarr.open_group(target, mode="r")["t"]
        results[method] = written[::97]
        shutil.rmtree(target)
    first = next(iter(results.values()))
    for method, found in results.items():
        np.testing.assert_allclose(found, first, atol=1e-5, err_msg=method)
    if args.folder is None:
        shutil.rmtree(folder)


main()
