"""Every public operation on data that is larger than its memory budget.

    python python/benchmarks/budgets.py --directory /var/tmp/budgets --gigabytes 2 --fraction 4 10 20 [--only sort] [--sessions 3] [--json found.json] [--check]

Each case of `budget_cases.py` runs in a process of its own, in a session whose budget is the given fraction of the data. Columns:

- what happened: it completed, was refused (with what the error says), failed, or gave other values than with ample memory (`--check`, which reads all results);
- `projected`: the peak that `explain` names for the threads of the session, in MiB, and of results that are stored the peak that the run planned; `measured`: the peak of RssAnon + RssShmem less its value after imports; their ratio, and `measured` by the budget;
- `read` and `written`: `rchar` and `wchar` of /proc/PID/io, in sizes of the data. `written` includes results that are stored.

A row misses the bar if it measures more than 1.1 budgets or 64 MiB above the projection; `!` marks it. With `--sessions N`, N sessions do the same at once, and what is measured is shared among them.
Inputs are made in the directory when a case asks for them first, and stay there. `--plan` runs nothing, needs no disk, and takes a few minutes for all cases at any size: it lists the
cases that would be refused, and those that cannot be planned. What depends on data is planned with bounds, so a case that is listed may still complete.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measuring import Measuring, anonymous

#: A result with more bytes is stored.
LARGE = 4 << 20
#: Bytes that a run may measure above its projection, and budgets that it may measure.
SLACK, MOST = 64 << 20, 1.1


def run(name: str, directory: Path, gigabytes: float, memory: int, out: Path, sessions: int) -> dict[str, Any]:
    """Runs a case in sessions at once, and says what that took."""
    import numpy as np

    import tilewright as tw
    from budget_cases import CASES, Data

    base = anonymous()
    errors, answers, are_stored, building = [], {}, [], threading.Lock()
    opened = [tw.Session(memory=memory) for _ in range(sessions)]

    def work(number: int, session: Any) -> None:
        try:
            # Which session new arrays belong to is one setting of the process.
            with building, session:
                arrays = CASES[name](Data(directory, gigabytes))
            stored = [array for array in arrays if array._tensor.is_open or array.nbytes > LARGE]
            are_stored.append(bool(stored))
            if len(stored) == 1:
                stored[0].to_npy(out / f"{number}.npy")
            elif stored:
                tw.to_zarr(stored, [out / f"{number}-{k}.zarr" for k in range(len(stored))])
            rest = [array for array in arrays if not any(array is other for other in stored)]
            answers[number] = [np.asarray(value) for value in tw.compute(*rest)]
        except Exception as error:  # What goes wrong is a row of the table.
            errors.append(f"{type(error).__name__}: {error}")

    with Measuring() as measured:
        workers = [threading.Thread(target=work, args=pair) for pair in enumerate(opened)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    report = [session.report() for session in opened]
    sums = {key: sum(one[key] for one in report) for key in ("peak_bytes", "spilled_bytes", "fetched_bytes")}
    hashed = hashlib.blake2b(b"".join(value.tobytes() for value in answers.get(0, [])))
    return {
        "measured": measured.memory + measured.base - base, "seconds": measured.wall, "cpu": measured.cpu, "read": measured.read, "written": measured.written,
        "error": errors[0] if errors else None, "digest": hashed.hexdigest(), **sums,
        "planned": max(one["planned_peak_bytes"] for one in report) if all(are_stored) else None,
    }  # fmt: skip


def project(name: str, directory: Path, gigabytes: float, memory: int, has_values: bool) -> dict[str, Any]:
    """Makes the inputs of a case and asks what its results will take, in a process of its own, so that neither is measured."""
    import tilewright as tw
    from budget_cases import CASES, Data

    with tw.Session(memory=memory):
        try:
            arrays = CASES[name](Data(directory, gigabytes, has_values))
            # Results are stored or computed together, so this is the least that they take.
            return {"projected": max(array.explain().to_dict()["peak_bytes_on_threads"] for array in arrays)}
        except Exception as error:
            return {"projected": None, "error": f"{type(error).__name__}: {error}"}


def files_digest(out: Path) -> str:
    """A digest of all files that were stored."""
    hashed = hashlib.blake2b()
    for path in sorted(path for path in out.rglob("*") if path.is_file()):
        hashed.update(str(path.relative_to(out)).encode())
        with open(path, "rb") as file:
            while piece := file.read(1 << 22):
                hashed.update(piece)
    return hashed.hexdigest()


class Runner:
    """Runs cases in processes."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.out = options, options.directory / f"out-{os.getpid()}"

    def child(self, kind: str, name: str, memory: int) -> dict[str, Any]:
        """What a process found, and a digest of all results if results are checked."""
        options = self.options
        self.out.mkdir(parents=True)
        command = [sys.executable, __file__, "--directory", str(options.directory), "--gigabytes", str(options.gigabytes), "--sessions", str(options.sessions)]
        command += ["--plan"] * options.plan
        try:
            ran = subprocess.run([*command, "--child", kind, name, str(memory), str(self.out)], capture_output=True, text=True, timeout=options.timeout)
            if ran.returncode:
                return {"error": f"exit code {ran.returncode}: {ran.stderr.strip()[-300:]}"}
            found = json.loads(ran.stdout.splitlines()[-1])
            if options.check and kind == "run":
                found["digest"] += files_digest(self.out)
            return found
        except subprocess.TimeoutExpired:
            return {"error": f"no end after {options.timeout:.0f} s"}
        finally:
            shutil.rmtree(self.out, ignore_errors=True)

    def rows(self, name: str) -> Iterator[dict[str, Any]]:
        """A row for each budget."""
        size, options = int(options_bytes(self.options)), self.options
        ample = self.child("run", name, 64 * size) if options.check else None
        for fraction in options.fraction:
            memory = size // fraction
            projected = self.child("project", name, memory)
            found = {"case": name, "fraction": fraction, "budget": memory, **projected, **self.child("run", name, memory)}
            # What `explain` says of an array is for one that stays in memory.
            found["projected"] = found.get("planned") or found.get("projected")
            error = found.get("error")
            found["outcome"] = "completes" if not error else "refused" if error.startswith("MemoryError") else "failed"
            if ample and not error and ample.get("digest") != found["digest"]:
                found["outcome"] = "wrong"
            if ample and ample.get("error"):
                found["ample"] = ample["error"]
            yield found

    def line(self, row: dict[str, Any]) -> str:
        size = options_bytes(self.options)
        text = f"{row['case']:34} 1/{row['fraction']:<3} {row['outcome']:10}"
        if row["outcome"] in ("completes", "wrong"):
            # Of several sessions, what each of them takes on average.
            measured, projected = row["measured"] / self.options.sessions, row.get("projected")
            missed = measured > MOST * row["budget"] or (projected is not None and measured > projected + SLACK)
            ratio = f"{measured / projected:6.2f}" if projected else f"{'':6}"
            text += f" {(projected or 0) / 2**20:9.1f} {measured / 2**20:9.1f} {ratio} {measured / row['budget']:6.2f}{'!' if missed else ' '}"
            text += f" {row['read'] / size:6.2f} {row['written'] / size:6.2f} {row['spilled_bytes'] / size:6.2f} {row['seconds']:7.2f} {row['cpu']:7.2f}"
        else:
            text += f" {row['error'].splitlines()[0][:230] if row.get('error') else ''}"
        return text


def options_bytes(options: argparse.Namespace) -> int:
    return int(options.gigabytes * 1e9)


def plan(options: argparse.Namespace) -> None:
    """Prints the cases that do not fit, or that cannot be planned on files without values."""
    from budget_cases import CASES, NEEDS_VALUES

    runner, size = Runner(options), options_bytes(options)
    names = [name for name in CASES if name not in NEEDS_VALUES and any(name == only[1:] if only.startswith("=") else only in name for only in options.only)]
    for fraction in options.fraction:
        n_fit = 0
        for name in names:
            found = runner.child("project", name, size // fraction)
            projected = found.get("projected")
            if projected is not None and projected <= size // fraction:
                n_fit += 1
                continue
            why = f"{projected / 2**20:.0f} of {size / fraction / 2**20:.0f} MiB" if projected is not None else found.get("error", "").splitlines()[0][:150]
            print(f"{name:34} 1/{fraction:<3} {why}", flush=True)
        print(f"1/{fraction}: {n_fit} of {len(names)} fit", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp/tilewright-budgets"))
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--fraction", type=int, nargs="+", default=[4, 10, 20])
    parser.add_argument("--only", nargs="+", default=[""], help="cases whose name contains one of these; =NAME for a whole name")
    parser.add_argument("--sessions", type=int, default=1)
    parser.add_argument("--check", action="store_true", help="compare results with those of a run with ample memory")
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plan", action="store_true", help="run nothing: list what would be refused")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    if options.child:
        kind, name, memory, out = options.child
        if kind == "run":
            found = run(name, options.directory, options.gigabytes, int(memory), Path(out), options.sessions)
        else:
            found = project(name, options.directory, options.gigabytes, int(memory), not options.plan)
        print(json.dumps(found))
        return
    if options.plan:
        plan(options)
        return
    from budget_cases import CASES

    runner, rows = Runner(options), []
    print(f"{'case':34} {'of':5} {'':10} {'projected':>9} {'measured':>9} {'ratio':>6} {'budget':>6}  {'read':>6} {'written':>7} {'spilled':>6} {'s':>6} {'CPU s':>7}")
    for name in CASES:
        if any(name == only[1:] if only.startswith("=") else only in name for only in options.only):
            for row in runner.rows(name):
                rows.append(row)
                print(runner.line(row), flush=True)
                if options.json:
                    options.json.write_text(json.dumps({"gigabytes": options.gigabytes, "sessions": options.sessions, "rows": rows}, indent=1))
    outcomes = [row["outcome"] for row in rows]
    print(", ".join(f"{outcomes.count(outcome)} {outcome}" for outcome in sorted(set(outcomes))))


if __name__ == "__main__":
    main()
