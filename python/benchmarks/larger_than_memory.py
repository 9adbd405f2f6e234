"""Programs on a file that is larger than their memory budget: passes over the file, peak memory and CPU time, beside NumPy by hand.

    python python/benchmarks/larger_than_memory.py --directory /var/tmp --gigabytes 5 --memory 500MiB

Each case runs in a process of its own. `passes` are the bytes that the process has read (`rchar` of /proc/PID/io) in sizes of the file;
NumPy reads through a memory map, which that does not count. `memory` is the peak of anonymous memory beyond what imports take. `report` is that of the session, in MiB.
The file is made in the directory unless it is there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from measuring import Measuring

COLUMNS = 200
PANEL = 65536


def make(path: Path, gigabytes: float) -> None:
    import numpy as np

    rows = int(gigabytes * 1e9) // (8 * COLUMNS)
    if path.exists() and np.load(path, mmap_mode="r").shape == (rows, COLUMNS):
        return
    x = np.lib.format.open_memmap(path, mode="w+", dtype="f8", shape=(rows, COLUMNS))
    rng = np.random.default_rng(1)
    for start in range(0, rows, PANEL):
        x[start : start + PANEL] = rng.standard_normal((min(PANEL, rows - start), COLUMNS)) + 0.5


def cases(tw):
    def stored(array, out):
        array.to_npy(out)

    return {
        "mean min max std": (lambda x: (x.mean(), x.min(), x.max(), x.std()), None),
        "standardise, store": (lambda x: ((x - x.mean(axis=0)) / x.std(axis=0),), stored),
        "standardise, Gram": (lambda x: (lambda z: (z.T @ z,))((x - x.mean(axis=0)) / x.std(axis=0)), None),
        "corrcoef": (lambda x: (tw.corrcoef(x.T),), None),
        "lstsq": (lambda x: tw.linalg.lstsq(x[:, 1:], x[:, 0])[:1], None),
        "rows by a mask, store": (lambda x: (x[x[:, 0] > 1],), stored),
        "singular values, Vt": (lambda x: tw.linalg.svd(x, full_matrices=False)[1:], None),
        "sort of a column": (lambda x: (tw.sort(x[:, 3])[::100_000],), None),
        "median of columns": (lambda x: (tw.median(x[:, :4], axis=0),), None),
    }


def by_hand(name, x):
    """The same with NumPy, panel by panel."""
    import numpy as np

    panels = lambda: (np.array(x[k : k + PANEL]) for k in range(0, len(x), PANEL))
    n = len(x)
    if name == "mean min max std":
        total, squares, low, high = 0.0, 0.0, np.inf, -np.inf
        for p in panels():
            total, squares, low, high = total + p.sum(), squares + (p * p).sum(), min(low, p.min()), max(high, p.max())
        return total, squares, low, high
    mean, squares = np.zeros(COLUMNS), np.zeros(COLUMNS)
    if name in ("standardise, store", "standardise, Gram"):
        for p in panels():
            mean += p.sum(axis=0)
            squares += (p * p).sum(axis=0)
        mean /= n
        std = np.sqrt(squares / n - mean**2)
        if name.endswith("Gram"):
            gram = np.zeros((COLUMNS, COLUMNS))
            for p in panels():
                z = (p - mean) / std
                gram += z.T @ z
            return gram
        out = np.lib.format.open_memmap(os.environ["OUT"], mode="w+", dtype="f8", shape=x.shape)
        for k, p in zip(range(0, n, PANEL), panels()):
            out[k : k + PANEL] = (p - mean) / std
        return None
    if name == "corrcoef":
        gram = np.zeros((COLUMNS, COLUMNS))
        for p in panels():
            mean += p.sum(axis=0)
            gram += p.T @ p
        return gram
    if name == "lstsq":
        gram = np.zeros((COLUMNS, COLUMNS))
        for p in panels():
            gram += p.T @ p
        return np.linalg.solve(gram[1:, 1:], gram[1:, 0])
    if name == "singular values, Vt":
        r = np.zeros((0, COLUMNS))
        for p in panels():
            r = np.linalg.qr(np.concatenate([r, np.linalg.qr(p, mode="r")]), mode="r")
        return np.linalg.svd(r)[1:]
    return NotImplemented


def child(side: str, name: str, path: str, memory: str, threads: int) -> None:
    import numpy as np

    import tilewright as tw

    session = tw.Session(memory=memory, threads=threads)
    with Measuring() as measured:
        if side == "tilewright":
            with session:
                build, store = cases(tw)[name]
                arrays = build(tw.from_npy(path))
                if store:
                    store(arrays[0], os.environ["OUT"])
                else:
                    tw.compute(*arrays)
            report = session.report()
            planned = {key: report[key] for key in ("peak_bytes", "spilled_bytes", "fetched_bytes", "read_bytes")}
        else:
            planned = None if by_hand(name, np.load(path, mmap_mode="r")) is NotImplemented else {}
    size = os.path.getsize(path)
    print(json.dumps({
        "cpu": measured.cpu, "wall": measured.wall, "report": planned, "memory": measured.memory,
        "read": measured.read / size, "written": measured.written / size,
    }))  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"))
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--memory", default="100MiB")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="")
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        side, name, path, memory, threads = options.child
        child(side, name, path, memory, int(threads))
        return
    path, out = options.directory / "tilewright-larger.npy", options.directory / "tilewright-larger-out.npy"
    make(path, options.gigabytes)
    print(f"{path}: {path.stat().st_size / 1e9:.2f} GB, budget {options.memory}, {options.threads} threads")
    print(f"{'':24} {'side':10} {'passes':>7} {'written':>8} {'memory MiB':>11} {'CPU s':>7} {'wall s':>7}  report")
    import tilewright as tw

    for name in cases(tw):
        if options.only not in name:
            continue
        for side in ("tilewright", "by hand"):
            command = [sys.executable, __file__, "--child", side, name, str(path), options.memory, str(options.threads)]
            ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OUT": str(out), "OPENBLAS_NUM_THREADS": str(options.threads)})
            out.unlink(missing_ok=True)
            if ran.returncode:
                print(f"{name:24} {side:10} failed: {ran.stderr.strip().splitlines()[-1:]}")
                continue
            found = json.loads(ran.stdout.splitlines()[-1])
            if side == "by hand" and found["report"] is None:
                continue
            moved = {key: round(value / 2**20) for key, value in (found["report"] or {}).items()}
            print(f"{name:24} {side:10} {found['read']:7.2f} {found['written']:8.2f} {found['memory'] / 2**20:11.0f} {found['cpu']:7.1f} {found['wall']:7.1f}  {moved or ''}", flush=True)


if __name__ == "__main__":
    main()
