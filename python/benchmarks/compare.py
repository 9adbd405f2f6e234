"""Tilewright beside NumPy and dask, in one run.

    python python/benchmarks/compare.py [--quick] [--repeats 5] [--only NAME ..] [--without-dask]

Repeats are interleaved, and a figure is the median of the ratios of neighbours: machines are shared, and what slows one slows the other. Every case is checked
against NumPy before it is timed. Each runs in a process of its own, so that none pays for the memory of another.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Run = Callable[[], Any]


class Case:
    """What is compared: data, and the same computation for each of the three."""

    def __init__(self, numpy: Run, ours: Run, dask: Run | None = None) -> None:
        self.runs = {"numpy": numpy, "tilewright": ours} | ({} if dask is None else {"dask": dask})


def random(shape: Any, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def dask_array(x: np.ndarray, chunks: Any = "auto") -> Any:
    import dask.array as da

    return da.from_array(x, chunks=chunks, name=False)


def strided_mean(scale: float) -> Case:
    import tilewright as tw

    n = int(8000 * scale**0.5)
    x = random((n, n))
    held, lazy = tw.asarray(x).persist(), dask_array(x)
    return Case(
        lambda: x[::2].T.mean(axis=0),
        lambda: held[::2].T.mean(axis=0).compute(),
        lambda: lazy[::2].T.mean(axis=0).compute(),
    )


def standardise(scale: float) -> Case:
    import tilewright as tw

    x = random((int(2_000_000 * scale), 100))
    held, lazy = tw.asarray(x).persist(), dask_array(x)

    def gram(x: Any) -> Any:
        z = (x - x.mean(axis=0)) / x.std(axis=0)
        return z.T @ z

    return Case(lambda: gram(x), lambda: gram(held).compute(), lambda: gram(lazy).compute())


def svd(scale: float) -> Case:
    import dask.array as da

    import tilewright as tw

    x = random((int(400_000 * scale), 100))
    held, lazy = tw.asarray(x).persist(), dask_array(x, (20_000, 100))
    return Case(
        lambda: np.linalg.svd(x, full_matrices=False)[1],
        lambda: tw.compute(*tw.linalg.svd(held, full_matrices=False))[1],
        lambda: da.compute(*da.linalg.svd(lazy))[1],
    )


def mttkrp(scale: float) -> Case:
    import dask.array as da

    import tilewright as tw

    n = int(300 * scale ** (1 / 3))
    x, b, c = random((n, n, n)), random((n, 64), 1), random((n, 64), 2)
    spec = "ijk,jr,kr->ir"
    held = [tw.asarray(each).persist() for each in (x, b, c)]
    lazy = [dask_array(each) for each in (x, b, c)]
    return Case(
        lambda: np.einsum(spec, x, b, c, optimize=True),
        lambda: tw.einsum(spec, *held).compute(),
        lambda: da.einsum(spec, *lazy, optimize=True).compute(),
    )


def quantile(scale: float) -> Case:
    import tilewright as tw

    x = random(int(50_000_000 * scale))
    held = tw.asarray(x).persist()
    # dask has no exact quantile of a cut vector; in one chunk it calls NumPy.
    lazy = dask_array(x, -1)
    q = [0.01, 0.5, 0.99]
    return Case(
        lambda: np.quantile(x, q),
        lambda: tw.quantile(held, q).compute(),
        lambda: lazy.map_blocks(lambda block: np.quantile(block, q), chunks=(3,)).compute(),
    )


def many_chunks(scale: float) -> Case:
    import tilewright as tw

    n_chunks = int(100_000 * scale)
    x = random(n_chunks * 1000)
    held, lazy = tw.asarray(x).rechunk(1000).persist(), dask_array(x, 1000)
    return Case(
        lambda: ((x + 1) * 2 - 0.5).sum(),
        lambda: ((held + 1) * 2 - 0.5).sum().compute(),
        lambda: ((lazy + 1) * 2 - 0.5).sum().compute(),
    )


def rolling_mean(scale: float) -> Case:
    import dask.array as da
    from numpy.lib.stride_tricks import sliding_window_view

    import tilewright as tw

    x = random(int(100_000_000 * scale))
    held, lazy = tw.asarray(x).persist(), dask_array(x)
    return Case(
        lambda: sliding_window_view(x, 8).mean(axis=-1),
        lambda: tw.sliding_window_view(held, 8).mean(axis=-1).compute(),
        lambda: da.lib.stride_tricks.sliding_window_view(lazy, 8).mean(axis=-1).compute(),
    )


CASES = {
    "x[::2].T.mean(axis=0)": strided_mean,
    "standardise, Z^T Z": standardise,
    "svd, tall": svd,
    "einsum MTTKRP": mttkrp,
    "quantile": quantile,
    "1e5 chunks": many_chunks,
    "rolling mean": rolling_mean,
}


def small_call() -> float:
    """Microseconds of ``float((x + 1).sum())`` on 1000 elements."""
    import tilewright as tw

    x = tw.asarray(np.arange(1000.0)).persist()
    times = []
    for _ in range(2000):
        start = time.perf_counter()
        (x + 1).sum().compute()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def loop_growth() -> float:
    """How much longer a step of a Python loop takes after a thousand steps than at the start."""
    import tilewright as tw

    x = tw.asarray(np.linspace(0.0, 1.0, 1000)).persist()
    times = []
    for _ in range(1100):
        start = time.perf_counter()
        x = x * 0.999 + 0.001
        float(tw.max(x))
        times.append(time.perf_counter() - start)
    return statistics.median(times[1000:]) / statistics.median(times[10:110])


# Seconds between two measurements.
SETTLE = 0.1


def measure(name: str, scale: float, repeats: int, with_dask: bool) -> dict[str, Any]:
    runs = CASES[name](scale).runs
    if not with_dask:
        runs.pop("dask", None)
    results = {who: np.asarray(run()) for who, run in runs.items()}
    for who, result in results.items():
        if not np.allclose(result, results["numpy"], rtol=1e-6, atol=1e-6):
            raise AssertionError(f"{who} computes something else than NumPy in {name}")
    del results
    times: dict[str, list[float]] = {who: [] for who in runs}
    for _ in range(repeats):
        for who, run in runs.items():
            # The threads of a BLAS go on spinning for a while after a call; whoever comes next must not pay for them.
            time.sleep(SETTLE)
            start = time.perf_counter()
            run()
            times[who].append(time.perf_counter() - start)
    ratio = lambda who: statistics.median(a / b for a, b in zip(times[who], times["tilewright"], strict=True))  # noqa: E731
    return {
        "seconds": {who: statistics.median(each) for who, each in times.items()},
        "ratios": {who: ratio(who) for who in runs if who != "tilewright"},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a fiftieth of the data")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=list(CASES))
    parser.add_argument("--without-dask", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    scale = 0.02 if options.quick else 1.0
    if options.one is not None:
        print(json.dumps(measure(options.one, scale, options.repeats, not options.without_dask)))
        return
    print("| case | Tilewright s | NumPy s | dask s | x NumPy | x dask |\n|---|---|---|---|---|---|", flush=True)
    for name in options.only:
        command = [sys.executable, __file__, "--one", name, "--repeats", str(options.repeats)]
        command += ["--quick"] * options.quick + ["--without-dask"] * options.without_dask
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found = json.loads(output.splitlines()[-1])
        cell = lambda table, who, digits: f"{table[who]:.{digits}f}" if who in table else "-"  # noqa: E731
        seconds, ratios = found["seconds"], found["ratios"]
        cells = [cell(seconds, who, 3) for who in ("tilewright", "numpy", "dask")]
        cells += [cell(ratios, who, 2) for who in ("numpy", "dask")]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print(f"\n`(x + 1).sum().compute()` on 1000 elements: {small_call():.0f} us")
    print(f"A step of a loop after 1000 steps: {loop_growth():.2f} of one at the start")


if __name__ == "__main__":
    main()
