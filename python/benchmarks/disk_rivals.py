"""Linear algebra and rechunks of arrays on disk beside NumPy by hand, dask.distributed, cubed and rechunker.

    python python/benchmarks/disk_rivals.py --directory /var/tmp --gigabytes 2 --memory 256MiB [--only gram] [--sides tilewright,numpy,dask,cubed,rechunker] [--repeats 3]

Cases: `gram` standardises the columns of a matrix of 200 columns and multiplies it by its transpose; `svd` computes its singular values and right singular vectors; `rechunk` copies a square matrix
from chunks of whole rows to chunks of whole columns, both a sixteenth of the memory, at most 32 MB, and uncompressed.

Each run is a process of its own, and the sides take turns. `cpu` is that of the process and all it starts, `MiB` the peak of their RssAnon + RssShmem, both beyond what imports and the start
of workers take. `read` and `written` are `rchar` and `wchar` in sizes of the data. NumPy reads a `.npy` file by calls; Tilewright reads the same; the others read a Zarr store with the same numbers. For
`rechunk` all of them read and write Zarr. The memory of a side is the whole budget for Tilewright and for the only worker of dask, and the budget by the threads per task for cubed and rechunker. dask and cubed
get 100 MiB more, since they count what imports take.
The results of all sides are compared.

A side that is not installed is left out. rechunker needs zarr below version 3: `--rechunker PYTHON` names an interpreter that has both.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from measuring import MeasuringTree

COLUMNS = 200
PANEL = 20_000
#: Bytes of the largest chunk, and of memory per process that rivals count for what they import.
CHUNK, RESERVED = 32_000_000, 100 << 20
SIDES = ("tilewright", "numpy", "dask", "cubed", "rechunker")
CASES = ("gram", "svd", "rechunk")


def shape_of(case: str, gigabytes: float) -> tuple[int, int]:
    if case == "rechunk":
        return (int((gigabytes * 1e9 / 8) ** 0.5),) * 2
    return int(gigabytes * 1e9) // (8 * COLUMNS), COLUMNS


def length_of_chunk(shape: tuple[int, int], axis: int, memory: int) -> int:
    """Rows or columns of a chunk that is whole along the other axis."""
    return max(1, min(CHUNK, memory // 16) // 8 // shape[1 - axis])


def inputs(directory: Path, case: str, gigabytes: float, memory: int) -> tuple[Path, Path]:
    """The places of an input as `.npy` and as Zarr."""
    shape = shape_of(case, gigabytes)
    name = f"rivals-{shape[0]}x{shape[1]}"
    return directory / f"{name}.npy", directory / f"{name}-{length_of_chunk(shape, 0, memory)}.zarr"


def make(directory: Path, case: str, gigabytes: float, memory: int) -> None:
    """Makes what is not there; of a rechunk only the store is read."""
    import numpy as np
    import zarr

    npy, store = inputs(directory, case, gigabytes, memory)
    rows, columns = shape_of(case, gigabytes)
    panel = length_of_chunk((rows, columns), 0, memory)
    if store.exists() and (case == "rechunk" or npy.exists()):
        return
    rng = np.random.default_rng(1)
    x = None if case == "rechunk" else np.lib.format.open_memmap(npy, mode="w+", dtype="f8", shape=(rows, columns))
    z = zarr.create_array(store, shape=(rows, columns), chunks=(panel, columns), dtype="f8", compressors=None, zarr_format=2, overwrite=True)
    for start in range(0, rows, panel):
        part = rng.standard_normal((min(panel, rows - start), columns)) + 0.5
        z[start : start + panel] = part
        if x is not None:
            x[start : start + panel] = part


def by_tilewright(case: str, npy: Path, store: Path, out: Path, memory: int, threads: int) -> Any:
    import tilewright as tw

    with tw.Session(memory=memory, threads=threads):
        if case == "rechunk":
            x = tw.open_zarr(store)
            tw.to_zarr(x, out, chunks=(x.shape[0], length_of_chunk(x.shape, 1, memory)), codec="none", zarr_format=2)
            return None
        x = tw.from_npy(npy)
        if case == "svd":
            return list(tw.compute(*tw.linalg.svd(x, full_matrices=False)[1:]))
        z = (x - x.mean(axis=0)) / x.std(axis=0)
        return [(z.T @ z).compute()]


def by_numpy(case: str, npy: Path, store: Path, out: Path, memory: int, threads: int) -> Any:
    import numpy as np

    if case == "rechunk":
        return rechunk_by_numpy(store, out, memory)
    x = np.load(npy, mmap_mode="r")
    offset, (n, columns) = x.offset, x.shape
    del x

    def panels() -> Any:
        with open(npy, "rb", buffering=0) as file:
            file.seek(offset)
            for start in range(0, n, PANEL):
                rows = min(PANEL, n - start)
                yield np.fromfile(file, count=rows * columns).reshape(rows, columns)

    if case == "svd":
        r = np.zeros((0, columns))
        for p in panels():
            r = np.linalg.qr(np.concatenate([r, np.linalg.qr(p, mode="r")]), mode="r")
        return np.linalg.svd(r)[1:]
    mean, squares = np.zeros(columns), np.zeros(columns)
    for p in panels():
        mean += p.sum(axis=0)
        squares += (p * p).sum(axis=0)
    mean /= n
    std = np.sqrt(squares / n - mean**2)
    gram = np.zeros((columns, columns))
    for p in panels():
        p -= mean
        p /= std
        gram += p.T @ p
    return [gram]


def rechunk_by_numpy(store: Path, out: Path, memory: int) -> Any:
    """As many columns at a time as half of the memory holds, each time by reading all rows."""
    import numpy as np
    import zarr

    x = zarr.open_array(store, mode="r")
    width = length_of_chunk(x.shape, 1, memory)
    written = zarr.create_array(out, shape=x.shape, chunks=(x.shape[0], width), dtype="f8", compressors=None, zarr_format=2)
    several = max(1, memory // 2 // (8 * x.shape[0] * width)) * width
    for column in range(0, x.shape[1], several):
        part = np.empty((x.shape[0], min(several, x.shape[1] - column)))
        for row in range(0, x.shape[0], x.chunks[0]):
            part[row : row + x.chunks[0]] = x[row : row + x.chunks[0], column : column + several]
        written[:, column : column + several] = part


def by_dask(case: str, npy: Path, store: Path, out: Path, memory: int, threads: int) -> Any:
    import dask.array as da

    x = da.from_zarr(str(store))
    if case == "rechunk":
        x.rechunk((x.shape[0], length_of_chunk(x.shape, 1, memory))).to_zarr(str(out))
        return None
    if case == "svd":
        return list(da.compute(*da.linalg.svd(x)[1:]))
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    return [(z.T @ z).compute()]


def by_cubed(case: str, npy: Path, store: Path, out: Path, memory: int, threads: int) -> Any:
    import cubed
    import cubed.array_api as xp

    options = {"executor_name": "processes", "executor_options": {"max_workers": threads}}
    spec = cubed.Spec(work_dir=str(out) + "-work", allowed_mem=memory // threads + RESERVED, reserved_mem=RESERVED, zarr_compressor=None, **options)
    x = cubed.from_zarr(str(store), spec=spec)
    if case == "rechunk":
        cubed.to_zarr(x.rechunk((x.shape[0], length_of_chunk(x.shape, 1, memory))), str(out))
        return None
    if case == "svd":
        return list(cubed.compute(*xp.linalg.svd(x, full_matrices=False)[1:]))
    z = (x - xp.mean(x, axis=0)) / xp.std(x, axis=0)
    return [xp.matmul(z.T, z).compute()]


def by_rechunker(case: str, npy: Path, store: Path, out: Path, memory: int, threads: int) -> Any:
    import dask
    import rechunker
    import zarr

    x = zarr.open(str(store), mode="r")
    chunks = (x.shape[0], length_of_chunk(x.shape, 1, memory))
    options = {"compressor": None}
    plan = rechunker.rechunk(x, chunks, memory // threads, str(out), target_options=options, temp_store=str(out) + "-work", temp_options=options, executor="dask")
    with dask.config.set(scheduler="threads", num_workers=threads):
        plan.execute()


BY = {"tilewright": by_tilewright, "numpy": by_numpy, "dask": by_dask, "cubed": by_cubed, "rechunker": by_rechunker}
NEEDS = {"tilewright": "tilewright", "numpy": "numpy", "dask": "distributed", "cubed": "cubed"}


def imports(side: str, memory: int, threads: int) -> Any:
    """Imports what a side needs, and starts its workers."""
    import numpy  # noqa: F401

    if side == "tilewright":
        import tilewright  # noqa: F401
    elif side == "cubed":
        import cubed.array_api  # noqa: F401
        import cubed.runtime.executors.local  # noqa: F401
    elif side == "rechunker":
        import dask.array
        import rechunker  # noqa: F401
    elif side == "dask":
        import dask.array
        from distributed import Client, LocalCluster

        cluster = LocalCluster(n_workers=1, threads_per_worker=threads, memory_limit=memory + RESERVED, dashboard_address=None, processes=True)
        client = Client(cluster)
        client.submit(lambda: __import__("dask.array") and 0).result()
        return client
    return None


def child(side: str, case: str, npy: Path, store: Path, out: Path, memory: int, threads: int, results: Path) -> None:
    import numpy as np

    workers = imports(side, memory, threads)
    with MeasuringTree() as measured:
        found = BY[side](case, npy, store, out, memory, threads)
    if workers is not None:
        workers.shutdown()
    np.savez(results, *(found or []))
    print(json.dumps({key: getattr(measured, key) for key in ("cpu", "wall", "memory", "read", "written")}))


def equal(case: str, results: Path, out: Path, store: Path, first: list[Any] | None) -> list[Any]:
    """Compares the results of a side with those of the first."""
    import numpy as np

    if case == "rechunk":
        import zarr

        x, y = zarr.open_array(store, mode="r"), zarr.open_array(out, mode="r")
        for row in range(0, x.shape[0], max(1, x.shape[0] // 7)):
            np.testing.assert_array_equal(x[row], y[row])
        return []
    with np.load(results) as found:
        values = list(found.values())
    values = [np.abs(value) for value in values] if case == "svd" else values  # The signs of singular vectors are free.
    for value, known in zip(values, first or values, strict=True):
        np.testing.assert_allclose(value, known, rtol=1e-6, atol=1e-6 * np.abs(known).max())
    return values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"))
    parser.add_argument("--gigabytes", type=float, default=0.5)
    parser.add_argument("--memory", default="128MiB")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only", default="", help="cases, with commas between them")
    parser.add_argument("--sides", default=",".join(SIDES))
    parser.add_argument("--seconds", type=float, default=280, help="a run that takes longer is ended")
    parser.add_argument("--rechunker", default=sys.executable, help="an interpreter with rechunker")
    parser.add_argument("--keep", action="store_true", help="leaves the inputs in the directory")
    parser.add_argument("--child", nargs=8, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        side, case, npy, store, out, memory, threads, results = options.child
        child(side, case, Path(npy), Path(store), Path(out), int(memory), int(threads), Path(results))
        return
    units = {"KiB": 10, "MiB": 20, "GiB": 30}
    memory = int(options.memory[:-3]) << units[options.memory[-3:]]
    options.directory.mkdir(parents=True, exist_ok=True)
    print(f"{options.gigabytes} GB, budget {options.memory}, {options.threads} threads")
    print(f"{'':8} {'':10} {'cpu s':>7} {'wall s':>7} {'MiB':>6} {'read':>6} {'written':>7}", flush=True)
    for case in CASES:
        if options.only and case not in options.only.split(","):
            continue
        make(options.directory, case, options.gigabytes, memory)
        npy, store = inputs(options.directory, case, options.gigabytes, memory)
        n_bytes = 8 * shape_of(case, options.gigabytes)[0] * shape_of(case, options.gigabytes)[1]
        first = None
        for _ in range(options.repeats):
            for side in options.sides.split(","):
                if side == "rechunker" and case != "rechunk" or side in NEEDS and importlib.util.find_spec(NEEDS[side]) is None:
                    continue
                out, results = options.directory / f"rivals-{side}-out.zarr", options.directory / f"rivals-{side}.npz"
                python = options.rechunker if side == "rechunker" else sys.executable
                command = [python, os.path.abspath(__file__), "--child", side, case, str(npy), str(store), str(out), str(memory), str(options.threads), str(results)]
                environment = {**os.environ, "TMPDIR": str(options.directory), "DASK_TEMPORARY_DIRECTORY": str(options.directory / "dask"), "TILEWRIGHT_SPILL": str(options.directory / "spill")}
                try:
                    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=options.seconds, env=environment)
                    if ran.returncode:
                        print(f"{case:8} {side:10} failed: {ran.stderr.strip().splitlines()[-2:]}", flush=True)
                    else:
                        one = json.loads(ran.stdout.splitlines()[-1])
                        first = equal(case, results, out, store, first)
                        print(f"{case:8} {side:10} {one['cpu']:7.1f} {one['wall']:7.1f} {one['memory'] / 2**20:6.0f} {one['read'] / n_bytes:6.2f} {one['written'] / n_bytes:7.2f}", flush=True)
                except subprocess.TimeoutExpired:
                    print(f"{case:8} {side:10} not done in {options.seconds:.0f} s", flush=True)
                for left in (out, Path(f"{out}-work")):
                    shutil.rmtree(left, ignore_errors=True)
                results.unlink(missing_ok=True)
        if not options.keep:
            npy.unlink(missing_ok=True)
            shutil.rmtree(store, ignore_errors=True)


if __name__ == "__main__":
    main()
