"""How near plans for many workers come to the lower bound, over the everyday programs of `plan_tables.py` and `plan_arrays.py`.

    python python/benchmarks/plans.py --directory /var/tmp/plans [--only regression] [--workers 2 8 64] [--json found.json]
    python python/benchmarks/plans.py --show found.json

Nothing runs: each program is planned on 2, 8 and 64 workers, and the plans of all schedulers are simulated. Columns:

- `auto`: bytes that the busiest worker receives under the plan that would run, over the lower bound (where that is above zero, else the bytes), and the scheduler;
- `work`: operations of its busiest worker over the mean;
- `algebraic`: the bytes of `algebraic` over those of the best scheduler whose busiest worker has at most 1.2 of the mean, and its work;
- `time`: seconds of planning.

A row with `!` misses a bar of the summary. Inputs are files without values and take no space.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

#: Nodes and workers of each, by the number of workers.
MACHINES = {2: (2, 1), 8: (4, 2), 64: (16, 4)}
#: Work of the busiest worker over the mean that counts as even.
EVEN = 1.2
#: Bytes of the busiest worker over the bound: at the median and at the 90th percentile; of `algebraic` over the best.
MEDIAN, PERCENTILE, RIVAL = 1.5, 3.0, 1.2
EDGES = [0.0, 1.05, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 100.0, float("inf")]


def plan(case: Any, data: Any, workers: int) -> dict[str, Any]:
    """What the planner makes of a case."""
    nodes, each = MACHINES[workers]
    started = time.perf_counter()
    explained = case(data).explain(nodes=nodes, workers=each).to_dict()
    figures = {
        name: {"bytes": rival["wire_bytes_max_rank"], "work": rival["work_share_max_rank"], "makespan": rival["makespan_s"], "tasks": rival["tasks"]}
        for name, rival in explained["schedulers"].items()
    }
    return {
        "bound": explained["lower_bound_bytes"], "chosen": explained["chosen"], "bytes": explained["wire_bytes_max_rank"], "work": explained["work_share_max_rank"],
        "schedulers": figures, "failed": [rival["scheduler"] for piece in explained["machine"]["pieces"] for rival in piece["failed"]],
        "seconds": time.perf_counter() - started,
    }  # fmt: skip


def ratio(bytes: float, least: float) -> float:
    """Bytes over the least; nothing of nothing is one."""
    return bytes / least if least else 1.0 if not bytes else float("inf")


def of_best(row: dict[str, Any]) -> float | None:
    """Bytes of `algebraic` over those of the best scheduler that is even."""
    even = [rival["bytes"] for rival in row["schedulers"].values() if rival["work"] <= EVEN]
    found = row["schedulers"].get("algebraic")
    return None if found is None or not even else ratio(found["bytes"], min(even))


def is_missed(row: dict[str, Any]) -> bool:
    best = of_best(row)
    return (row["bound"] > 0 and ratio(row["bytes"], row["bound"]) > PERCENTILE) or row["work"] > EVEN or best is None or best > RIVAL


def line(row: dict[str, Any]) -> str:
    if "error" in row:
        return f"! {row['case']:<45}{row['workers']:>4}  {row['error']}"
    over = f"{ratio(row['bytes'], row['bound']):9.2f} x" if row["bound"] else f"{row['bytes'] / 1e6:8.2f} MB"
    best, algebraic = of_best(row), row["schedulers"].get("algebraic", {"work": 0.0})
    best_words = "        -" if best is None else f"{best:9.2f}"
    return (
        f"{'!' if is_missed(row) else ' '} {row['case']:<45}{row['workers']:>4}  {over} {row['chosen']:<24}{row['work']:6.2f} "
        f"{best_words} {algebraic['work']:6.2f} {row['bound'] / 1e6:12.3f} MB {row['seconds']:7.2f} s"
    )


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def histogram(title: str, values: list[float]) -> None:
    print(f"\n{title}: {len(values)} plans, median {statistics.median(values):.2f}, 90th percentile {percentile(values, 0.9):.2f}, most {max(values):.2f}")
    for low, high in zip(EDGES, EDGES[1:]):
        n = sum(low < value <= high or (low == 0 == value) for value in values)
        print(f"  {'up to' if high < float('inf') else 'above':>6} {high if high < float('inf') else low:<7g} {n:>4}  {'#' * -(-n // 2)}")


def summary(rows: list[dict[str, Any]]) -> None:
    done = [row for row in rows if "error" not in row]
    bounded = [row for row in done if row["bound"] > 0]
    print(f"\n{len({row['case'] for row in rows})} programs, {len(rows)} plans, {len(rows) - len(done)} failed, {sum(map(is_missed, done))} rows miss a bar")
    if bounded:
        histogram("bytes of the busiest worker over the bound, as `auto` runs it", [ratio(row["bytes"], row["bound"]) for row in bounded])
    if done:
        histogram("operations of the busiest worker over the mean", [row["work"] for row in done])
        histogram("bytes of `algebraic` over the best even scheduler", [found for row in done if (found := of_best(row)) is not None])
        for workers in sorted({row["workers"] for row in bounded}):
            values = [ratio(row["bytes"], row["bound"]) for row in bounded if row["workers"] == workers]
            print(f"\n{workers} workers: median {statistics.median(values):.2f}, 90th percentile {percentile(values, 0.9):.2f}", end="")
        chosen: dict[str, int] = {}
        for row in done:
            chosen[row["chosen"]] = chosen.get(row["chosen"], 0) + 1
        print(f"\n\nchosen: {', '.join(f'{name} {n}' for name, n in sorted(chosen.items(), key=lambda pair: -pair[1]))}; planning {sum(row['seconds'] for row in done):.0f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, help="where the inputs are made")
    parser.add_argument("--only", nargs="*", help="parts of names of cases")
    parser.add_argument("--workers", type=int, nargs="*", choices=sorted(MACHINES), default=sorted(MACHINES))
    parser.add_argument("--json", type=Path, help="where rows are written; rows that are there already are kept")
    parser.add_argument("--show", type=Path, help="prints what an earlier run wrote")
    options = parser.parse_args()
    if options.show:
        rows = json.loads(options.show.read_text())
        print("\n".join(map(line, rows)))
        summary(rows)
        return
    if options.directory is None:
        parser.error("--directory is needed")

    import plan_arrays  # noqa: F401
    import plan_tables  # noqa: F401
    from plan_data import CASES, Data

    options.directory.mkdir(parents=True, exist_ok=True)
    data = Data(options.directory)
    rows = json.loads(options.json.read_text()) if options.json and options.json.exists() else []
    known = {(row["case"], row["workers"]) for row in rows}
    for name, case in CASES.items():
        if options.only and not any(part in name for part in options.only):
            continue
        for workers in options.workers:
            if (name, workers) in known:
                continue
            row: dict[str, Any] = {"case": name, "workers": workers}
            try:
                row |= plan(case, data, workers)
            except Exception as error:  # What cannot be planned is a row, too.
                row["error"] = f"{type(error).__name__}: {error}".splitlines()[0]
            rows.append(row)
            print(line(row), flush=True)
            if options.json:
                options.json.write_text(json.dumps(rows, indent=1))
    summary(rows)


if __name__ == "__main__":
    main()
