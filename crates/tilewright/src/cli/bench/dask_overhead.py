"""The rival's side of `tw bench`: reads a bench and a size per line, answers with seconds per task or run."""

import sys
import time
import warnings

import dask
import dask.array as da
import dask.order
import dask.threaded
import numpy as np

THREADS = 2
warnings.simplefilter("ignore")  # it would say that products have many chunks


def follow(x, y):
    return max(x, y) + 1


def overhead(tasks):
    """Trivial tasks in as many chains as each has steps; every step waits for two of the step before."""
    width = int(tasks**0.5)
    steps = tasks // width
    graph = {("x", 0, c): 1 for c in range(width)}
    for k in range(1, steps + 1):
        for c in range(width):
            graph["x", k, c] = (follow, ("x", k - 1, c), ("x", k - 1, (c + 1) % width))
    keys = [("x", steps, c) for c in range(width)]
    begin = time.perf_counter()
    dask.threaded.get(graph, keys, num_workers=THREADS)
    return (time.perf_counter() - begin) / (width * steps)


def plan(blocks):
    """The graph of a matrix product and its order; no data is touched."""
    begin = time.perf_counter()
    n = blocks * 1000
    a = da.ones((n, n), chunks=1000)
    b = da.ones((n, n), chunks=1000)
    graph = dict((a @ b).__dask_graph__())
    dask.order.order(graph)
    return (time.perf_counter() - begin) / len(graph)


def segment(runs):
    """sum(x + 1) of 1000 elements."""
    x = da.from_array(np.random.default_rng(1).random(1000), chunks=1000)
    begin = time.perf_counter()
    for _ in range(runs):
        (x + 1).sum().compute(scheduler="threads", num_workers=THREADS)
    return (time.perf_counter() - begin) / runs


def main():
    print(f"dask {dask.__version__}", flush=True)
    for line in sys.stdin:
        bench, size = line.split()
        print({"overhead": overhead, "plan": plan, "segment": segment}[bench](int(size)), flush=True)


main()
