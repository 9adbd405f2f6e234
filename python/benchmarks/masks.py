"""Masks, keys and indices beside NumPy.

    python python/benchmarks/masks.py [--sizes 1e6 1e7] [--threads 1] [--repeats 5] [--only TEXT]
    python python/benchmarks/masks.py --growth [--sizes 1e6 1e7 1e8] [--threads 1] [--only TEXT]

Both sides are timed in turn in one process, from NumPy array to NumPy array, and the medians of the ratios are printed: above 1 ours is faster. The ratio of
CPU times is the quieter one on a shared machine; with one thread the two should agree.

Each side is called several times in a row per turn, for at least 20 ms, as timeit does: the first call after a pause pays for waking the second processor,
which takes a virtual machine up to a millisecond.

``--growth`` shows how time and memory grow with the number of elements: every side of every case runs in a process of its own. Its time is that of a call on
average; its memory is the peak of resident memory during the first call beyond what was resident before it, so that what NumPy makes in the meantime and
what the engine keeps count, and operands do not. In brackets: by how much each has grown since the size before.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from functools import partial

import numpy as np
from measuring import PeakOfMemory

import tilewright as tw

DENSITIES = (0.01, 0.5, 0.99)
KEYS = (500, 10**6)


def masked(n, rng, density, what):
    """What NumPy and we do with a vector and a mask of it."""
    x, mask = rng.standard_normal(n), rng.random(n) < density
    ours, lazy, values = tw.asarray(x), tw.asarray(mask), x[mask]
    lazy_values = tw.asarray(values)

    def assigned(x, mask, value):
        y = x.copy()
        if value is None:
            y[mask] *= -1
        else:
            y[mask] = value
        return np.asarray(y)

    return {
        "x[mask]": (lambda: x[mask], lambda: np.asarray(ours[lazy])),
        "x[mask].sum()": (lambda: x[mask].sum(), lambda: float(ours[lazy].sum())),
        "nonzero": (lambda: np.nonzero(mask)[0], lambda: np.asarray(tw.nonzero(lazy)[0])),
        "x[mask] *= -1": (lambda: assigned(x, mask, None), lambda: assigned(ours, lazy, None)),
        "x[mask] = v": (lambda: assigned(x, mask, values), lambda: assigned(ours, lazy, lazy_values)),
    }[what]


def keyed(n, rng, n_keys, what):
    """Counts and sums by key, and membership."""
    keys = rng.integers(0, n_keys, n)
    lazy = tw.asarray(keys)
    if what == "bincount":
        return lambda: np.bincount(keys), lambda: np.asarray(tw.bincount(lazy))
    if what == "isin":
        some = rng.integers(0, n_keys, min(n_keys, 1000))
        return lambda: np.isin(keys, some), lambda: np.asarray(tw.isin(lazy, some))
    x = rng.standard_normal(n)
    ours = tw.asarray(x)
    return lambda: np.bincount(keys, weights=x), lambda: np.asarray(tw.bincount(lazy, weights=ours))


def indexed(n, rng, what):
    """Repetitions, elements at random places, and floats among others."""
    x = rng.standard_normal(n)
    ours, half = tw.asarray(x), x[: n // 2]
    if what == "isin of ten floats":
        some = x[:10].copy()
        return lambda: np.isin(x, some), lambda: np.asarray(tw.isin(ours, some))
    if what == "x[places] = v":
        places, values = rng.integers(0, n, n), rng.standard_normal(n)
        lazy_places, lazy_values = tw.asarray(places), tw.asarray(values)

        def put(x, places, values):
            y = x.copy()
            y[places] = values
            return np.asarray(y)

        return lambda: put(x, places, values), lambda: put(ours, lazy_places, lazy_values)
    if what == "take at random":
        places = rng.integers(0, n, n)
        lazy_places = tw.asarray(places)
        return lambda: x[places], lambda: np.asarray(ours[lazy_places])
    lazy = tw.asarray(half)
    if what == "repeat three times":
        return lambda: np.repeat(half, 3), lambda: np.asarray(tw.repeat(lazy, 3))
    times = rng.integers(0, 4, n // 2)
    lazy_times = tw.asarray(times)
    return lambda: np.repeat(half, times), lambda: np.asarray(tw.repeat(lazy, lazy_times))


def cases():
    """A function for every case that makes what both sides call, given a size and a source of random numbers."""
    for density in DENSITIES:
        for what in ("x[mask]", "x[mask].sum()", "nonzero", "x[mask] *= -1", "x[mask] = v"):
            yield f"{what}, {density:.0%}", partial(masked, density=density, what=what)
    for n_keys in KEYS:
        for what in ("bincount", "bincount with weights", "isin"):
            yield f"{what}, {n_keys} keys", partial(keyed, n_keys=n_keys, what=what)
    for what in ("repeat by an array", "repeat three times", "take at random", "x[places] = v", "isin of ten floats"):
        yield what, partial(indexed, what=what)


def seconds(run, turn=0.02):
    """Time of a call on the clock, and of all processors: the mean of as many calls as fit into `turn` seconds, at least two."""
    wall, cpu, calls = time.perf_counter(), time.process_time(), 0
    while calls < 2 or time.perf_counter() - wall < turn:
        run()
        calls += 1
    return (time.perf_counter() - wall) / calls, (time.process_time() - cpu) / calls


def compare(chosen, options):
    """Both sides in turn."""
    with tw.Session(threads=options.threads):
        for size in options.sizes:
            for name, make in chosen.items():
                numpy_run, our_run = make(int(size), np.random.default_rng(0))
                np.testing.assert_allclose(our_run(), numpy_run(), rtol=1e-9, atol=1e-9)
                pairs = [(seconds(numpy_run), seconds(our_run)) for _ in range(options.repeats)]
                walls, cpus = ([theirs[k] / ours[k] for theirs, ours in pairs] for k in (0, 1))
                ours = statistics.median(ours[0] for _, ours in pairs)
                ratio, by_cpu = statistics.median(walls), statistics.median(cpus)
                print(f"{size:8.0e}  {name:36} {ours * 1e3:9.2f} ms  ratio {ratio:6.2f}  by CPU {by_cpu:6.2f}", flush=True)


def one_side(make, size, side, threads):
    """Prints the time and the memory of one side of a case."""
    with tw.Session(threads=threads):
        run = make(size, np.random.default_rng(0))[side]
        with PeakOfMemory() as memory:
            run()
        print(json.dumps([seconds(run)[0] * 1e3, memory.peak / 1e6]))


def growth(chosen, options):
    """Time and memory for every size, and by how much they grow."""
    print(f"{'':36} {'elements':>8}  {'NumPy':>20} {'ours':>20}  {'NumPy':>20} {'ours':>20}")
    for name in chosen:
        before = None
        for size in options.sizes:
            found = []
            for side in (0, 1):
                child = ["--side", str(side), "--case", name, "--sizes", str(size), "--threads", str(options.threads)]
                done = subprocess.run([sys.executable, __file__, *child], check=True, capture_output=True, text=True)
                found.append(json.loads(done.stdout))
            columns = []
            for k, unit in enumerate(("ms", "MB")):
                for side in (0, 1):
                    # Ratios to less than a tenth of a megabyte say nothing.
                    grown = f"({found[side][k] / before[side][k]:.1f}x)" if before and before[side][k] > 0.1 else ""
                    columns.append(f"{found[side][k]:9.2f} {unit} {grown:>8}")
            print(f"{name:36} {size:8.0e}  {columns[0]} {columns[1]}  {columns[2]} {columns[3]}", flush=True)
            before = found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=float, nargs="+")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="", help="only cases whose name contains this text")
    parser.add_argument("--growth", action="store_true", help="time and memory of each size, in processes of their own")
    parser.add_argument("--side", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    chosen = {name: make for name, make in cases() if options.only in name}
    options.sizes = options.sizes or ([1e6, 1e7, 1e8] if options.growth else [1e6, 1e7])
    if options.side is not None:
        one_side(chosen[options.case], int(options.sizes[0]), options.side, options.threads)
    elif options.growth:
        growth(chosen, options)
    else:
        compare(chosen, options)


if __name__ == "__main__":
    main()
