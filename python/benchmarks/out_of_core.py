"""Sorts, products and rechunks of files under a small budget beside the same with ample memory.

    python python/benchmarks/out_of_core.py --directory /var/tmp --gigabytes 4 --memory 512MiB [--only sort] [--repeats 3]

Each run is a process of its own; the two sides take turns, and the median ratio of their times is printed: what the budget costs. `read` and `written` are `rchar` and
`wchar` of /proc/PID/io in sizes of the data (for the product: of one operand), `memory` is the peak of anonymous memory beyond what imports take.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from measuring import Measuring

CHUNK = 32 << 20


def make(path: Path, shape: tuple[int, ...]) -> None:
    import numpy as np

    if path.exists() and np.load(path, mmap_mode="r").shape == shape:
        return
    x = np.lib.format.open_memmap(path, mode="w+", dtype="f8", shape=shape)
    rng, rows = np.random.default_rng(1), max(1, CHUNK // 8 // max(1, x[:1].size))
    for start in range(0, shape[0], rows):
        x[start : start + rows] = rng.random(x[start : start + rows].shape)


def shape_of(case: str, gigabytes: float) -> tuple[int, ...]:
    n = int(gigabytes * 1e9) // 8
    side = int(n**0.5)
    return (n,) if case == "sort" else (side, side)


def run(case: str, path: str, out: str) -> None:
    import tilewright as tw

    if case == "sort":
        tw.sort(tw.from_npy(path)).to_npy(out)
    elif case == "product":
        (tw.from_npy(path) @ tw.from_npy(path)).to_npy(out)
    elif case == "transpose":
        tw.from_npy(path).T.to_npy(out)
    else:
        x = tw.from_npy(path)
        columns = max(1, CHUNK // 8 // x.shape[0])
        x.rechunk((x.shape[0], columns)).to_zarr(out)


def child(case: str, path: str, out: str, memory: str, threads: int) -> None:
    import tilewright as tw

    with Measuring() as measured, tw.Session(threads=threads, **({"memory": memory} if memory else {})) as session:
        run(case, path, out)
        spilled = session.report()["spilled_bytes"]
    size = os.path.getsize(path)
    shares = {"read": measured.read / size, "written": measured.written / size, "spilled": spilled / size}
    print(json.dumps({"cpu": measured.cpu, "wall": measured.wall, "memory": measured.memory, **shares}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"))
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--memory", default="128MiB")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        case, path, out, memory, threads = options.child
        child(case, path, out, memory, int(threads))
        return
    print(f"{'':10} {'memory':8} {'read':>6} {'written':>8} {'spilled':>8} {'MiB':>7} {'CPU s':>7} {'wall s':>7}")
    for case in ("sort", "product", "transpose", "rechunk"):
        if options.only not in case:
            continue
        path, out = options.directory / f"tilewright-{case}.npy", options.directory / f"tilewright-{case}-out"
        make(path, shape_of(case, options.gigabytes))
        pairs = []
        for _ in range(options.repeats):
            sides = []
            for memory in ("", options.memory):
                command = [sys.executable, __file__, "--child", case, str(path), str(out), memory, str(options.threads)]
                ran = subprocess.run(command, capture_output=True, text=True)
                shutil.rmtree(out) if out.is_dir() else out.unlink(missing_ok=True)
                if ran.returncode:
                    print(f"{case:10} {memory or 'ample':8} failed: {ran.stderr.strip().splitlines()[-3:]}", flush=True)
                    break
                found = json.loads(ran.stdout.splitlines()[-1])
                sides.append(found)
                print(f"{case:10} {memory or 'ample':8} {found['read']:6.2f} {found['written']:8.2f} {found['spilled']:8.2f} {found['memory'] / 2**20:7.0f} {found['cpu']:7.1f} {found['wall']:7.1f}", flush=True)
            if len(sides) < 2:
                break
            pairs.append(sides)
        path.unlink()
        if not pairs:
            continue
        ratio = {key: statistics.median(small[key] / ample[key] for ample, small in pairs) for key in ("wall", "cpu")}
        print(f"{case:10} the budget costs {ratio['wall']:.2f} times the wall time, {ratio['cpu']:.2f} times the CPU time", flush=True)


if __name__ == "__main__":
    main()
