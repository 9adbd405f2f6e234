"""Linear algebra beside NumPy: one thread against one, two against two.

    python python/benchmarks/linalg_rivals.py [--repeats 7] [--scale 1.0] [--only NAME ..] [--threads 1 2]

NumPy runs in a process of its own with OPENBLAS_NUM_THREADS set, Tilewright in another with a session of as many threads. Both are told in turn to run once; a
figure is the median of the ratios of neighbouring runs, above 1 if Tilewright is faster. CPU time is printed as well: on a shared machine it is the quieter one.
Operands lie in memory before, as a NumPy array or in Tilewright's blocks; the result of either is a NumPy array.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

#: Rows and columns of the matrices, and the numbers of threads that are compared.
CASES = {
    "matmul": (4000, (1, 2)),
    "cholesky": (3000, (1, 2)),
    "solve": (3000, (1, 2)),
    "inv": (1500, (1, 2)),
    "qr": (2000, (1, 2)),
    "eigh": (1000, (1,)),
    "svd": (1000, (1,)),
    "svdvals": (1000, (1,)),
    "matmul_f32": (4000, (1,)),
    "matmul_c128": (2000, (1,)),
}


def operand(name: str, n: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, n))
    if name == "cholesky":
        return x @ x.T + n * np.eye(n)
    if name == "eigh":
        return x + x.T
    if name == "matmul_f32":
        return x.astype("float32")
    return x + 1j * rng.standard_normal((n, n)) if name == "matmul_c128" else x


def numpys(name: str, x: np.ndarray) -> Callable[[], Any]:
    right = x[:, :16].copy()
    return {
        "cholesky": lambda: np.linalg.cholesky(x),
        "solve": lambda: np.linalg.solve(x, right),
        "inv": lambda: np.linalg.inv(x),
        "qr": lambda: np.linalg.qr(x),
        "eigh": lambda: np.linalg.eigh(x),
        "svd": lambda: np.linalg.svd(x, full_matrices=False),
        "svdvals": lambda: np.linalg.svd(x, compute_uv=False),
    }.get(name, lambda: x @ x.copy())


def ours(name: str, given: np.ndarray) -> Callable[[], Any]:
    import tilewright as tw

    x, y, right = tw.asarray(given), tw.asarray(given.copy()), tw.asarray(given[:, :16].copy())
    linalg = tw.linalg
    return {
        "cholesky": lambda: tw.compute(linalg.cholesky(x)),
        "solve": lambda: tw.compute(linalg.solve(x, right)),
        "inv": lambda: tw.compute(linalg.inv(x)),
        "qr": lambda: tw.compute(*linalg.qr(x)),
        "eigh": lambda: tw.compute(*linalg.eigh(x)),
        "svd": lambda: tw.compute(*linalg.svd(x, full_matrices=False)),
        "svdvals": lambda: tw.compute(linalg.svdvals(x)),
    }.get(name, lambda: tw.compute(x @ y))


def serve(who: str, name: str, n: int, threads: int) -> None:
    """Runs once for every line that comes in, and says how long it took."""
    x = operand(name, n)
    if who == "numpy":
        answer(numpys(name, x))
        return
    import tilewright as tw

    with tw.Session(threads=threads):
        answer(ours(name, x))


def answer(run: Callable[[], Any]) -> None:
    run()
    print("ready", flush=True)
    for _ in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        print(time.perf_counter() - wall, time.process_time() - cpu, flush=True)


class Rival:
    """A process that runs a computation when it is told to."""

    def __init__(self, who: str, name: str, n: int, threads: int) -> None:
        command = [sys.executable, __file__, "--serve", who, name, str(n), str(threads)]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": str(threads)}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        assert self.process.stdout.readline() == "ready\n"

    def run(self) -> tuple[float, float]:
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        wall, cpu = self.process.stdout.readline().split()
        return float(wall), float(cpu)

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def compare(name: str, n: int, threads: int, repeats: int) -> None:
    numpy, tilewright = (Rival(who, name, n, threads) for who in ("numpy", "tilewright"))
    pairs = [(numpy.run(), tilewright.run()) for _ in range(repeats)]
    numpy.end()
    tilewright.end()
    walls, cpus = ([theirs[k] / own[k] for theirs, own in pairs] for k in (0, 1))
    own = statistics.median(own[0] for _, own in pairs)
    spread = f"{min(walls):.2f} .. {max(walls):.2f}"
    print(
        f"{name:12} {n:6} {threads:8} {own * 1e3:9.0f} ms {statistics.median(walls):8.2f}   {spread:14} {statistics.median(cpus):8.2f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--scale", type=float, default=1.0, help="of the sides of matrices")
    parser.add_argument("--only", nargs="*", choices=CASES, default=list(CASES))
    parser.add_argument("--threads", nargs="*", type=int, default=[1, 2])
    parser.add_argument("--serve", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        who, name, n, threads = options.serve
        serve(who, name, int(n), int(threads))
        return
    from tilewright._libraries import matrix_provider

    print(f"Tilewright by {matrix_provider()}, NumPy {np.__version__}; times of NumPy over those of Tilewright")
    print(f"{'':12} {'sides':>6} {'threads':>8} {'Tilewright':>12} {'ratio':>8}   {'from .. to':14} {'by CPU':>8}")
    for name in options.only:
        n, counts = CASES[name]
        for threads in counts:
            if threads in options.threads:
                compare(name, int(n * options.scale), threads, options.repeats)


if __name__ == "__main__":
    main()
