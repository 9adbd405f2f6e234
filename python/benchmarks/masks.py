"""Masks, keys and indices beside NumPy: python python/benchmarks/masks.py [--sizes 1e6 1e7] [--threads 1] [--repeats 5].

Both sides are timed in turn in one process, from NumPy array to NumPy array, and the medians of the ratios are printed: above 1 ours is faster. The ratio of
CPU times is the quieter one on a shared machine; with one thread the two should agree.

Each side is called several times in a row per turn, for at least 20 ms, as timeit does: the first call after a pause pays for waking the second processor,
which takes a virtual machine up to a millisecond.
"""

import argparse
import statistics
import time

import numpy as np

import tilewright as tw


def cases(n, rng):
    x = rng.standard_normal(n)
    ours = tw.asarray(x)
    for density in (0.01, 0.5, 0.99):
        mask = rng.random(n) < density
        lazy, values = tw.asarray(mask), x[mask]
        name = f"{density:.0%}"
        yield f"x[mask], {name}", lambda m=mask: x[m], lambda m=lazy: np.asarray(ours[m])
        yield f"x[mask].sum(), {name}", lambda m=mask: x[m].sum(), lambda m=lazy: float(ours[m].sum())
        yield f"nonzero, {name}", lambda m=mask: np.nonzero(m)[0], lambda m=lazy: np.asarray(tw.nonzero(m)[0])

        def negate(m=mask):
            y = x.copy()
            y[m] *= -1
            return y

        def negate_ours(m=lazy):
            y = ours.copy()
            y[m] *= -1
            return np.asarray(y)

        def put(m=mask, v=values):
            y = x.copy()
            y[m] = v
            return y

        def put_ours(m=lazy, v=tw.asarray(values)):
            y = ours.copy()
            y[m] = v
            return np.asarray(y)

        yield f"x[mask] *= -1, {name}", negate, negate_ours
        yield f"x[mask] = v, {name}", put, put_ours
    for n_keys in (500, 10**6):
        keys = rng.integers(0, n_keys, n)
        lazy = tw.asarray(keys)
        yield f"bincount, {n_keys} keys", lambda k=keys: np.bincount(k), lambda k=lazy: np.asarray(tw.bincount(k))
        weighted = lambda k=keys: np.bincount(k, weights=x)  # noqa: E731
        yield f"bincount with weights, {n_keys} keys", weighted, lambda k=lazy: np.asarray(tw.bincount(k, weights=ours))
        some = rng.integers(0, n_keys, min(n_keys, 1000))
        yield f"isin, {n_keys} keys", lambda k=keys, s=some: np.isin(k, s), lambda k=lazy, s=some: np.asarray(tw.isin(k, s))
    times, half = rng.integers(0, 4, n // 2), x[: n // 2]
    lazy = tw.asarray(times), tw.asarray(half)
    yield "repeat by an array", lambda: np.repeat(half, times), lambda: np.asarray(tw.repeat(lazy[1], lazy[0]))
    yield "repeat three times", lambda: np.repeat(half, 3), lambda: np.asarray(tw.repeat(lazy[1], 3))
    places = rng.integers(0, n, n)
    lazy_places = tw.asarray(places)
    yield "take at random", lambda: x[places], lambda: np.asarray(ours[lazy_places])


def seconds(run, turn=0.02):
    """Time of a call on the clock, and of all processors: the mean of as many calls as fit into `turn` seconds, at least two."""
    wall, cpu, calls = time.perf_counter(), time.process_time(), 0
    while calls < 2 or time.perf_counter() - wall < turn:
        run()
        calls += 1
    return (time.perf_counter() - wall) / calls, (time.process_time() - cpu) / calls


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=float, nargs="+", default=[1e6, 1e7])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tw.Session(threads=options.threads):
        for size in options.sizes:
            for name, numpy_run, our_run in cases(int(size), np.random.default_rng(0)):
                np.testing.assert_allclose(our_run(), numpy_run(), rtol=1e-9, atol=1e-9)
                pairs = [(seconds(numpy_run), seconds(our_run)) for _ in range(options.repeats)]
                walls, cpus = ([theirs[k] / ours[k] for theirs, ours in pairs] for k in (0, 1))
                ours = statistics.median(ours[0] for _, ours in pairs)
                ratio, by_cpu = statistics.median(walls), statistics.median(cpus)
                print(f"{size:8.0e}  {name:36} {ours * 1e3:9.2f} ms  ratio {ratio:6.2f}  by CPU {by_cpu:6.2f}", flush=True)


if __name__ == "__main__":
    main()
