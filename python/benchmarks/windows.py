"""Rolling reductions and powers: nanoseconds per result, beside NumPy where that is possible in reasonable time.

    python python/benchmarks/windows.py [--n 1000000] [--repeats 7]

One thread. Runs are interleaved; figures are medians of CPU time, and ratios are those of neighbouring runs, above 1 if Tilewright is faster.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tilewright as tw

LENGTHS = [4, 8, 16, 64, 256, 1024, 4096]
REDUCTIONS = ["sum", "mean", "min", "max", "std"]
#: NumPy reads every element of every window.
MOST_READS = 2e8


def timed(run: Callable[[], Any]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def interleaved(runs: list[Callable[[], Any]], repeats: int) -> list[list[float]]:
    for run in runs:
        run()
    return [list(each) for each in zip(*[[timed(run) for run in runs] for _ in range(repeats)], strict=True)]


def rolling(n: int, repeats: int) -> None:
    flat, columns = np.random.default_rng(0).standard_normal(n), np.random.default_rng(1).standard_normal((n // 100, 100))
    view = np.lib.stride_tricks.sliding_window_view
    print(f"{'window':>8} {'axis':>5}  " + "".join(f"{name:>20}" for name in REDUCTIONS) + "    ns per result (times faster than NumPy)")
    for axis, x in (("last", flat), ("0", columns)):
        held = tw.asarray(x).persist()
        for length in LENGTHS:
            if length > x.shape[0] // 2:
                continue
            n_results = (x.shape[0] - length + 1) * x[0].size
            cells = []
            for name in REDUCTIONS:
                runs = [lambda: getattr(tw.sliding_window_view(held, length, 0), name)(axis=-1).compute()]  # noqa: B023
                if n_results * length <= MOST_READS:
                    runs.append(lambda: getattr(view(x, length, 0), name)(axis=-1))  # noqa: B023
                times = interleaved(runs, repeats)
                cell = f"{statistics.median(times[0]) / n_results * 1e9:.1f}"
                if len(times) > 1:
                    cell += f" ({statistics.median(b / a for a, b in zip(*times, strict=True)):.1f})"
                cells.append(cell)
            print(f"{length:8} {axis:>5}  " + "".join(f"{cell:>20}" for cell in cells), flush=True)


def powers(n: int, repeats: int) -> None:
    print("\npowers, as times of x * x, and times faster than NumPy")
    for dtype in ("float64", "float32", "int64", "int32"):
        x = (np.random.default_rng(2).random(n) * 9 + 1).astype(dtype)
        held = tw.asarray(x).persist()
        for exponent in (2, 3, 0.5, -1) if dtype[0] == "f" else (2, 3):
            runs = [lambda: (held**exponent).compute(), lambda: (held * held).compute(), lambda: x**exponent]  # noqa: B023
            own, product, theirs = interleaved(runs, repeats)
            beside = statistics.median(a / b for a, b in zip(own, product, strict=True))
            faster = statistics.median(b / a for a, b in zip(own, theirs, strict=True))
            print(f"{dtype:>8} x ** {exponent:<4} {beside:6.2f} {faster:6.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    with tw.Session(threads=1):
        rolling(options.n, options.repeats)
        powers(4 * options.n, options.repeats)


if __name__ == "__main__":
    main()
