"""Compiled kernels of sparse statements beside scipy and numba: python python/benchmarks/sparse_kernels.py [--repeats 7] [--nonzeros 2000000] [--directory DIR].

The example `sparse_kernels` of `crates/tw-jit` generates the operands, writes them down, and times compiled kernels and plain Rust loops. This script then times scipy and, where it is installed, numba on the same
operands, in the same minutes. Everything runs on one thread; times are the best of the repeats in milliseconds, and a ratio above 1 says that the compiled kernel is faster than the fastest of the others.
scipy and our kernels allocate their results; the loops of numba are given theirs. Needs scipy.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import pathlib
import subprocess
import tempfile
import time

import numpy as np
import scipy.sparse as sp

try:
    import numba
except ImportError:
    numba = None

ROOT = pathlib.Path(__file__).resolve().parents[2]


def best(function, repeats):
    """The best time of a function in milliseconds, after one call that is not timed."""
    function()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return 1e3 * min(times)


def read(directory, name, part, dtype):
    return np.fromfile(directory / f"{name}.{part}", dtype)


def matrix(directory, name):
    shape = read(directory, name, "shape", np.uint32)
    pos, crd = (read(directory, name, part, np.uint32).astype(np.int32) for part in ("pos", "crd"))
    return sp.csr_array((read(directory, name, "val", np.float64), crd, pos), shape=tuple(int(n) for n in shape))


def shifted(a, by):
    """The matrix with its columns moved on, around the end, as the example has it."""
    moved = a.copy()
    moved.indices = (a.indices + by) % np.int32(a.shape[1])
    moved.has_sorted_indices = False
    order = np.lexsort((moved.indices, np.repeat(np.arange(a.shape[0]), np.diff(a.indptr))))
    return sp.csr_array((a.data, moved.indices[order], a.indptr), shape=a.shape)


if numba is not None:

    @numba.njit
    def sddmm(pos, crd, values, left, right, out):
        for i in range(len(pos) - 1):
            for p in range(pos[i], pos[i + 1]):
                total = 0.0
                for k in range(left.shape[1]):
                    total += left[i, k] * right[crd[p], k]
                out[p] = values[p] * total

    @numba.njit
    def mttkrp(pos0, crd0, pos1, crd1, values, c, d, out):
        for i in range(len(pos0) - 1):
            for f in range(pos0[i], pos0[i + 1]):
                k = crd0[f]
                for p in range(pos1[f], pos1[f + 1]):
                    value, l = values[p], crd1[p]
                    for j in range(c.shape[1]):
                        out[i, j] += value * d[l, j] * c[k, j]


def of_matrix(a, repeats):
    """Times of the others by kernel."""
    rng = np.random.default_rng(1)
    n, m = a.shape
    x, right = rng.random(m), rng.random((m, 32))
    b, c = shifted(a, 1), shifted(a, 2)

    def sorted_product():
        product = a @ b
        product.sort_indices()
        return product

    times = {
        "SpMV": {"scipy": best(lambda: a @ x, repeats)},
        "SpMM": {"scipy": best(lambda: a @ right, repeats)},
        "SpAdd3": {"scipy": best(lambda: a + b + c, repeats)},
        "SpGEMM": {"scipy": best(sorted_product, max(1, repeats // 3))},
    }
    if numba is not None:
        left, right, out = rng.random((n, 64)), rng.random((m, 64)), np.empty(a.nnz)
        times["SDDMM"] = {"numba": best(lambda: sddmm(a.indptr, a.indices, a.data, left, right, out), repeats)}
    return times


def of_tensor(directory, name, repeats):
    shape = [int(n) for n in read(directory, name, "shape", np.uint32)]
    pos0, crd0, pos1, crd1 = (read(directory, name, part, np.uint32).astype(np.int32) for part in ("pos0", "crd0", "pos1", "crd1"))
    values, rng = read(directory, name, "val", np.float64), np.random.default_rng(2)
    fibres, x = sp.csr_array((values, crd1, pos1), shape=(len(crd0), shape[2])), rng.random(shape[2])
    c, d = rng.random((shape[1], 32)), rng.random((shape[2], 32))
    rows = sp.csr_array((np.ones(len(crd0)), np.arange(len(crd0), dtype=np.int32), pos0), shape=(shape[0], len(crd0)))
    times = {
        "SpTTV": {"scipy": best(lambda: fibres @ x, repeats)},
        "SpMTTKRP": {"scipy": best(lambda: rows @ ((fibres @ d) * c[crd0]), repeats)},
    }
    if numba is not None:
        out = np.zeros((shape[0], 32))
        times["SpMTTKRP"]["numba"] = best(lambda: mttkrp(pos0, crd0, pos1, crd1, values, c, d, out), repeats)
    return times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--nonzeros", type=int, default=2_000_000)
    parser.add_argument("--directory")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.directory) as directory:
        directory = pathlib.Path(directory)
        command = ["cargo", "run", "--quiet", "--release", "-p", "tw-jit", "--example", "sparse_kernels", "--"]
        command += ["--repeats", str(args.repeats), "--nonzeros", str(args.nonzeros), "--write", str(directory)]
        output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        ours = {}
        for line in output.splitlines()[1:]:
            kernel, data, jit, rust = line.split()[:4]
            ours[kernel, data] = float(jit), float(rust)
        others = {(kernel, data): times for data in ("uniform", "banded", "power-law") for kernel, times in of_matrix(matrix(directory, data), args.repeats).items()}
        for data in ("uniform", "fibres"):
            others |= {(kernel, data): times for kernel, times in of_tensor(directory, f"tensor-{data}", args.repeats).items()}
    print(f"{'kernel':10} {'data':10} {'compiled':>9} {'rust':>9}  others")
    ratios = {}
    for (kernel, data), (jit, rust) in ours.items():
        times = others.get((kernel, data), {})
        ratio = min(times.values()) / jit if times else float("nan")
        ratios.setdefault(kernel, []).append(ratio)
        text = ", ".join(f"{name} {value:.2f}" for name, value in times.items())
        print(f"{kernel:10} {data:10} {jit:9.2f} {rust:9.2f}  {text:40} {ratio:.2f}")
    for kernel, values in ratios.items():
        print(f"{kernel:10} geometric mean {np.exp(np.mean(np.log(values))):.2f}")


if __name__ == "__main__":
    main()
