"""Tables of numbers beside polars and pandas: python python/benchmarks/tables.py [--gigabytes 1] [--repeats 5] [--directory DIR].

Files of random doubles and integers are written once by polars: text, and Parquet compressed with zstd (polars' default), with Snappy (pandas' default) and not at all. Every library reads all columns of each file into
memory: ours to NumPy arrays. They are timed in turn in one process, after the file was read once, so that it comes from the page cache. Printed are medians of the ratios of wall and CPU times:
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
    """Eight columns: doubles with all their digits, prices, small and large integers."""
    columns = {f"x{k}": rng.standard_normal(n) for k in range(3)}
    columns |= {f"price{k}": np.round(rng.random(n) * 1000, 2) for k in range(2)}
    columns |= {"small": rng.integers(0, 100, n), "large": rng.integers(0, 10**12, n), "id": np.arange(n)}
    return pl.DataFrame(columns)


def ours(columns):
    return tw.compute(*columns.values())


def cases(data, directory):
    """Name, path, and how each library reads it."""
    path = os.path.join(directory, "t.csv")
    data.write_csv(path)
    yield "CSV", path, {
        "ours": lambda p=path: ours(tw.read_csv(p)),
        "polars": lambda p=path: pl.read_csv(p),
        "pandas": lambda p=path: pd.read_csv(p),
    }
    for codec in ("zstd", "snappy", "uncompressed"):
        path = os.path.join(directory, f"t-{codec}.parquet")
        data.write_parquet(path, compression=codec)
        yield f"Parquet, {codec}", path, {
            "ours": lambda p=path: ours(tw.read_parquet(p)),
            "polars": lambda p=path: pl.read_parquet(p),
            "pandas": lambda p=path: pd.read_parquet(p),
        }


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
    data = frame(int(args.gigabytes * 1e9 / 64), np.random.default_rng(1))
    with tempfile.TemporaryDirectory(dir=args.directory) as directory:
        for name, path, readers in cases(data, directory):
            if args.only not in name:
                continue
            expected = data.to_numpy()
            for k, (column, found) in enumerate(zip(data.columns, readers["ours"](), strict=True)):
                if not np.array_equal(found, expected[:, k]):
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
