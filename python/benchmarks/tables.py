"""Tables of numbers beside polars and pandas: python python/benchmarks/tables.py [--gigabytes 1] [--repeats 5] [--directory DIR].

Files of random doubles, floats, integers and one column of words are written once by polars: text, and Parquet compressed with zstd (polars' default), with Snappy (pandas' default) and not at all. Every library reads
all columns but the words into memory: ours to NumPy arrays. They are timed in turn in one process, after the file was read once, so that it comes from the page cache. Printed are medians of the ratios of wall and CPU times:
above 1 ours is faster. Each library uses all cores that it wants. Needs polars, pandas and pyarrow.
"""

import argparse
import os
import statistics
import tempfile
import time

import numpy as np
import pandas as pd
import polars as pl

import tilewright as tw

#: Bars: how fast ours must at least be beside each library.
BARS = {"polars": 0.8, "pandas": 3.0}


def frame(n, rng):
    """64 bytes of numbers to a row: doubles with all their digits, prices, floats, small and large integers. And words."""
    columns = {f"x{k}": rng.standard_normal(n) for k in range(3)}
    columns |= {f"float{k}": rng.random(n, dtype=np.float32) for k in range(2)}
    columns |= {"price": np.round(rng.random(n) * 1000, 2)}
    columns |= {"small": rng.integers(0, 100, n), "large": rng.integers(0, 10**12, n), "id": np.arange(n)}
    words = pl.Series(["alpha", "beta", "gamma", "delta", "epsilon"])
    return pl.DataFrame(columns), words.gather(rng.integers(0, 5, n))


def ours(columns):
    return tw.compute(*columns.values())


def cases(data, words, directory, only):
    """Name, path, and how each library reads it."""
    names, written = data.columns, data.with_columns(word=words)
    if only in "CSV":
        path = os.path.join(directory, "t.csv")
        written.write_csv(path)
        yield "CSV", path, {
            "ours": lambda p=path: ours(tw.read_csv(p, names)),
            "polars": lambda p=path: pl.read_csv(p, columns=names),
            "pandas": lambda p=path: pd.read_csv(p, usecols=names),
        }
        os.unlink(path)
    for codec in ("zstd", "snappy", "uncompressed"):
        if only not in f"Parquet, {codec}":
            continue
        path = os.path.join(directory, f"t-{codec}.parquet")
        written.write_parquet(path, compression=codec)
        yield f"Parquet, {codec}", path, {
            "ours": lambda p=path: ours(tw.read_parquet(p, names)),
            "polars": lambda p=path: pl.read_parquet(p, columns=names),
            "pandas": lambda p=path: pd.read_parquet(p, columns=names),
        }
        os.unlink(path)


def measure(run):
    wall, cpu = time.perf_counter(), time.process_time()
    result = run()
    times = time.perf_counter() - wall, time.process_time() - cpu
    del result
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0, help="bytes of the columns in memory")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--directory", help="where files are written; a temporary directory unless given")
    parser.add_argument("--only", default="", help="formats whose name contains this text")
    args = parser.parse_args()
    data, words = frame(int(args.gigabytes * 1e9 / 64), np.random.default_rng(1))
    with tempfile.TemporaryDirectory(dir=args.directory) as directory:
        for name, path, readers in cases(data, words, directory, args.only):
            for column, found in zip(data.columns, readers["ours"](), strict=True):
                expected = data[column].to_numpy()
                if not np.array_equal(found.astype(expected.dtype), expected):
                    raise SystemExit(f"{name}: column {column} differs")
            del expected, found
            times = {library: [] for library in readers}
            for _ in range(args.repeats):
                for library, run in readers.items():
                    times[library].append(measure(run))
            print(f"{name}, {os.path.getsize(path) / 1e9:.2f} GB: ours {statistics.median(wall for wall, _ in times['ours']):.2f} s")
            for library, bar in BARS.items():
                pairs = list(zip(times[library], times["ours"], strict=True))
                wall, cpu = (statistics.median(other[k] / own[k] for other, own in pairs) for k in (0, 1))
                note = "" if wall >= bar else f"  below {bar}"
                print(f"  beside {library}: {wall:.2f}x wall, {cpu:.2f}x CPU{note}")


if __name__ == "__main__":
    main()
