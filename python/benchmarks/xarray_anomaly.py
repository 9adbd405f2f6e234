"""Daily anomalies under a memory budget: 30 years of daily float32 in a Zarr store, less the mean of every day of the year.

    python python/benchmarks/xarray_anomaly.py --gigabytes 2.8 --memory 1GiB --repeats 3

Two programs: `store` writes climatology and anomaly to another Zarr store, `moments` computes the mean and the standard deviation of the anomaly at every place. Three methods: NumPy by
hand over the arrays of zarr; xarray over Tilewright; xarray over dask with flox. The last two run the same code. Every run is a process of its own, and the methods take turns. Reported are, of each
method, the least CPU time (user and system) of its runs, the peak of RssAnon + RssShmem, both above what imports take, the wall time, and the bytes read and written (rchar and wchar of /proc/PID/io) in
sizes of the data. Results of all methods are compared.

The store is what `Dataset.to_zarr` writes by default (format 3, zstd), but for the chunks: by default 365 days of 64 x 64 places, 6 MB. With --codec none nothing is compressed. The values are those of an annual
cycle with noise, some of them missing. Needs xarray and zarr; dask and flox for the comparison.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np

METHODS = ("numpy", "tilewright", "dask")
PROGRAMS = ("store", "moments")


def make(path: Path, grid: int, years: int, chunk: tuple[int, ...], codec: str) -> None:
    """An annual cycle with noise, written a year at a time."""
    import xarray as xr

    days = np.arange(np.datetime64("1990-01-01"), np.datetime64(f"{1990 + years}-01-01")).astype("M8[ns]")
    coords = {"time": days, "lat": np.linspace(-90, 90, grid), "lon": np.linspace(0, 360, grid, endpoint=False)}
    rng = np.random.default_rng(0)
    chunks = tuple(min(a, b) for a, b in zip(chunk, (len(days), grid, grid), strict=True))
    encoding = {"t": {"chunks": chunks} | ({"compressors": None} if codec == "none" else {})}
    for start in range(0, len(days), chunks[0]):
        part = days[start : start + chunks[0]]
        season = np.sin(2 * np.pi * (np.arange(start, start + len(part)) % 365.25) / 365.25).astype("f4")
        block = 280 + 10 * season[:, None, None] + 4 * rng.standard_normal((len(part), grid, grid), dtype="f4")
        block[0, 0, :3] = np.nan
        piece = xr.Dataset({"t": (("time", "lat", "lon"), block.astype("f4"))}, coords={**coords, "time": part})
        piece.to_zarr(path, **({"mode": "w", "encoding": encoding} if start == 0 else {"append_dim": "time"}))


def by_numpy(program: str, source: Path, target: Path) -> dict[str, np.ndarray]:
    """One column of chunks after the other, so that every chunk is read once."""
    import pandas as pd
    import zarr

    group = zarr.open_group(source, mode="r")
    x, axis = group["t"], group["time"]
    start = pd.Timestamp(axis.attrs["units"].partition("since ")[2])
    day = (start + pd.to_timedelta(axis[:], unit="D")).day_of_year.values - 1
    n_days, places = x.shape[0], x.shape[1:]
    if program == "store":
        out = zarr.open_group(target, mode="w")
        codecs = {"compressors": None} if not x.compressors else {}
        written = out.create_array("t", shape=x.shape, chunks=x.chunks, dtype="f4", fill_value=float("nan"), **codecs)
        climatology = out.create_array("clim", shape=(366, *places), chunks=(366, *x.chunks[1:]), dtype="f4", fill_value=float("nan"), **codecs)
    found = {name: np.empty(places, "f4") for name in ("mean", "std")}
    step = x.chunks[0]
    for row in range(0, places[0], x.chunks[1]):
        for column in range(0, places[1], x.chunks[2]):
            here = (slice(row, row + x.chunks[1]), slice(column, column + x.chunks[2]))
            blocks = [x[(slice(k, k + step), *here)] for k in range(0, n_days, step)]
            total, number = np.zeros((366, *blocks[0].shape[1:]), "f4"), np.zeros((366, *blocks[0].shape[1:]), "f4")
            for k, block in enumerate(blocks):
                # A chunk is at most a year long, so that no day is in it twice.
                where, present = day[k * step : k * step + len(block)], block == block  # noqa: PLR0124
                total[where] += np.where(present, block, 0)
                number[where] += present
            with np.errstate(invalid="ignore"):
                clim = total / number
            if program == "store":
                climatology[(slice(None), *here)] = clim
            for k, block in enumerate(blocks):
                block -= clim[day[k * step : k * step + len(block)]]
                if program == "store":
                    written[(slice(k * step, k * step + step), *here)] = block
            if program == "moments":
                n = sum((block == block).sum(axis=0, dtype="f4") for block in blocks)  # noqa: PLR0124
                found["mean"][here] = mean = sum(np.nansum(block, axis=0) for block in blocks) / n
                found["std"][here] = np.sqrt(sum(np.nansum((block - mean) ** 2, axis=0) for block in blocks) / n)
    return {} if program == "store" else found


def by_xarray(program: str, source: Path, target: Path) -> dict[str, np.ndarray]:
    import xarray as xr

    ds = xr.open_zarr(source)
    clim = ds.groupby("time.dayofyear").mean()
    anomaly = (ds.groupby("time.dayofyear") - clim).drop_vars("dayofyear")
    if program == "moments":
        found = xr.Dataset({"mean": anomaly.t.mean("time"), "std": anomaly.t.std("time")}).compute()
        return {name: found[name].values for name in ("mean", "std")}
    chunks = dict(zip(ds.t.dims, ds.t.encoding["chunks"], strict=True))
    both = anomaly.assign(clim=clim.t).chunk({**chunks, "dayofyear": -1})
    for name in ("t", "clim"):
        compressors = ds.t.encoding["compressors"]
        both[name].encoding = {"chunks": tuple(both[name].data.chunksize)} | ({} if compressors else {"compressors": None})
    both.to_zarr(target, mode="w")
    return {}


def run(method: str, program: str, source: Path, target: Path, results: Path, memory: str, threads: int) -> None:
    """In a process of its own: tells what it used."""
    import contextlib

    import xarray as xr
    import zarr  # noqa: F401

    context: contextlib.AbstractContextManager = contextlib.nullcontext()
    if method == "tilewright":
        import tilewright as tw

        context = tw.Session(memory=memory, threads=threads)
    if method == "dask":
        import dask
        import dask.array
        import flox.xarray  # noqa: F401

        dask.config.set(scheduler="threads", num_workers=threads)
    if method != "numpy":
        xr.set_options(chunk_manager=method)
    base, start, cpu, files = anonymous(), time.perf_counter(), time.process_time(), bytes_moved()
    peak, stop = [base], threading.Event()

    def watch() -> None:
        while not stop.wait(0.01):
            peak[0] = max(peak[0], anonymous())

    watcher = threading.Thread(target=watch)
    watcher.start()
    with context:
        found = by_numpy(program, source, target) if method == "numpy" else by_xarray(program, source, target)
    stop.set()
    watcher.join()
    used = {
        "cpu": time.process_time() - cpu, "wall": time.perf_counter() - start, "memory": (peak[0] - base) / 2**20,
        "read": bytes_moved()[0] - files[0], "written": bytes_moved()[1] - files[1],
    }  # fmt: skip
    np.savez(results, **found)
    print(json.dumps(used), flush=True)


def anonymous() -> int:
    """Bytes of anonymous memory of this process."""
    with open("/proc/self/status") as status:
        return sum(int(line.split()[1]) * 1024 for line in status if line.startswith(("RssAnon", "RssShmem")))


def bytes_moved() -> tuple[int, int]:
    """Bytes that this process has read and written by system calls."""
    with open("/proc/self/io") as io:
        lines = dict(line.split(": ") for line in io)
    return int(lines["rchar"]), int(lines["wchar"])


def results_of(program: str, target: Path, results: Path) -> dict[str, np.ndarray]:
    """What is compared: some of what was stored, all of the rest."""
    if program == "moments":
        return dict(np.load(results))
    import zarr

    group = zarr.open_group(target, mode="r")
    return {"t": group["t"][::97], "clim": group["clim"][:]}


def stored_bytes(path: Path) -> int:
    return sum(each.stat().st_size for each in (path / "t").rglob("*") if each.is_file())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=0.3)
    parser.add_argument("--years", type=int, default=30)
    parser.add_argument("--memory", default="1GiB")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--chunk", default="365,64,64", help="days, rows and columns of a chunk of the store")
    parser.add_argument("--codec", choices=("default", "none"), default="default")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--folder", type=Path, help="keeps the input there; by default a temporary directory that is removed")
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    args = parser.parse_args()
    # zarr warns of its own consolidated metadata.
    warnings.filterwarnings("ignore", message="Consolidated metadata")
    if args.one:
        method, program, *paths = args.one
        run(method, program, *map(Path, paths), args.memory, args.threads)
        return
    folder = Path(args.folder or tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    grid = max(1, round((args.gigabytes * 1e9 / 4 / (args.years * 365.25)) ** 0.5 / 32)) * 32
    chunk = tuple(int(n) for n in args.chunk.split(","))
    source = folder / f"daily-{args.years}-{grid}-{'-'.join(map(str, chunk))}-{args.codec}.zarr"
    if not source.exists():
        make(source, grid, args.years, chunk, args.codec)
    data, stored = int(args.years * 365.25) * grid * grid * 4, stored_bytes(source)
    print(f"{data / 1e9:.2f} GB, {stored / 1e9:.2f} GB as stored; {grid} x {grid} places; budget {args.memory}, {args.threads} threads", flush=True)
    print(f"{'':20} {'CPU s':>8} {'(all)':>24} {'wall s':>8} {'MiB':>6} {'read':>6} {'written':>7}", flush=True)
    for program in args.programs.split(","):
        runs: dict[str, list[dict[str, float]]] = {}
        first = None
        for _ in range(args.repeats):
            for method in args.methods.split(","):
                target, results = folder / f"anomaly-{method}.zarr", folder / f"moments-{method}.npz"
                command = [sys.executable, os.path.abspath(__file__), "--memory", args.memory, "--threads", str(args.threads)]
                command += ["--one", method, program, str(source), str(target), str(results)]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                runs.setdefault(method, []).append(json.loads(done.stdout.splitlines()[-1]))
                found = results_of(program, target, results)
                first = first or found
                for name in first:
                    np.testing.assert_allclose(found[name], first[name], rtol=1e-4, atol=2e-4, err_msg=f"{method} {name}")
                shutil.rmtree(target, ignore_errors=True)
        for method, each in runs.items():
            cpu = sorted(one["cpu"] for one in each)
            wall, memory = min(one["wall"] for one in each), max(one["memory"] for one in each)
            read, written = (max(one[key] for one in each) / stored for key in ("read", "written"))
            every = " ".join(f"{one:.1f}" for one in cpu)
            print(f"{program:8} {method:11} {cpu[0]:8.2f} {every:>24} {wall:8.1f} {memory:6.0f} {read:6.2f} {written:7.2f}", flush=True)
    if args.folder is None:
        shutil.rmtree(folder)


main()
