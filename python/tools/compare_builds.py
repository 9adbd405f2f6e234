"""Compares the speed of two builds of the command `tw`, bench by bench.

    python python/tools/compare_builds.py BASE/tw NEW/tw                   # every bench that both builds have
    python python/tools/compare_builds.py BASE/tw NEW/tw plan segment      # some
    python python/tools/compare_builds.py BASE/tw NEW/tw --count always    # instructions too, for every bench

Processes of both builds run in turn: base, new, new, base, .. Each process is a `tw bench --quick` of one bench without rivals, with as many repeats as fill
`--seconds`; what counts is the CPU time that the system reports for it. A ratio is that of neighbouring processes, and above 1 the new build is slower. The table has the
median ratio and an interval that covers the true median with a probability of at least 95 %, whatever the distribution of times (order statistics of the sign
test). A bench passes if the whole interval is at most `--bar`, and fails if the whole interval is above it. Where it straddles the bar, instructions decide: those of one
repeat on one thread, counted by callgrind (Valgrind).

The exit status is 1 if a bench fails.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

#: Repeats shall take so many times as long as what a process does once: making inputs, a first run.
OVER_SETUP = 4
MOST_REPEATS = 10_000
#: Between these numbers of repeats instructions are counted.
FEW, MORE = 1, 3


def interval(values: list[float], confidence: float = 0.95) -> tuple[float, float]:
    """Limits of the median of a distribution, by values drawn from it."""
    ordered, n = sorted(values), len(values)
    # The chance that at most k of n values are below the median.
    below, k = 0.5**n, 0
    while k + 1 < n / 2 and 2 * (below + math.comb(n, k + 1) * 0.5**n) <= 1 - confidence:
        k += 1
        below += math.comb(n, k) * 0.5**n
    # Too few values for this confidence have no interval but all that is possible.
    return (ordered[k], ordered[n - 1 - k]) if 2 * below <= 1 - confidence else (0.0, math.inf)


def median(values: list[float]) -> float:
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


@dataclass
class Build:
    """A build of `tw`."""

    path: Path
    #: An environment without libraries: no rival is measured.
    empty: Path

    def benches(self) -> list[str]:
        """Names of its benches: the first column of the list."""
        listed = subprocess.run([self.path, "bench", "--list"], check=True, capture_output=True, text=True).stdout
        return [line.split()[0] for line in listed.splitlines()[1:] if line.strip()]

    def command(self, bench: str, repeats: int) -> list[str]:
        # A rival that is missing keeps the others, copies of memory for instance, from being measured.
        alone = ["--offline", "--env", str(self.empty), "--rival", "numpy"]
        return [str(self.path), "bench", bench, "--quick", "--repeats", str(repeats), *alone]

    def cpu_seconds(self, bench: str, repeats: int) -> float:
        """CPU time of a process that runs a bench, in user and system mode."""
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(self.command(bench, repeats), stdout=subprocess.DEVNULL, stderr=said)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode != 0:
                said.seek(0)
                raise SystemExit(f"{self.path} bench {bench}: {said.read().decode(errors='replace').strip()}")
        return usage.ru_utime + usage.ru_stime

    def instructions(self, bench: str, repeats: int) -> int:
        """Instructions of a process that runs a bench on one thread."""
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "callgrind.out"
            counting = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *self.command(bench, repeats)]
            one = min(os.sched_getaffinity(0))
            done = subprocess.run(counting, capture_output=True, text=True, preexec_fn=lambda: os.sched_setaffinity(0, {one}))
            if done.returncode != 0:
                raise SystemExit(f"{' '.join(counting)}: {done.stderr.strip()}")
            totals = next(line for line in out.read_text().splitlines()[::-1] if line.startswith(("totals:", "summary:")))
            return int(totals.split()[1])

    def instructions_of_a_repeat(self, bench: str) -> float:
        return (self.instructions(bench, MORE) - self.instructions(bench, FEW)) / (MORE - FEW)


def repeats_for(cpu_seconds: Callable[[int], float], seconds: float) -> int:
    """Repeats that take at least so long, and most of the time of their process."""
    few, more = 1, 9
    setup_and_one = cpu_seconds(few)
    while (slope := (cpu_seconds(more) - setup_and_one) / (more - few)) * more < setup_and_one / 10 and more < MOST_REPEATS:
        more *= 8
    setup = max(setup_and_one - slope, 0.0)
    wanted = max(seconds - setup, OVER_SETUP * setup)
    return max(1, min(MOST_REPEATS, math.ceil(wanted / max(slope, 1e-9))))


@dataclass
class Row:
    """What was found out about a bench."""

    bench: str
    repeats: int
    ratios: list[float]
    seconds: tuple[float, float]
    bar: float
    instructions: tuple[float, float] | None = field(default=None)

    @property
    def straddles(self) -> bool:
        low, high = interval(self.ratios)
        return low <= self.bar < high

    @property
    def verdict(self) -> str:
        low, _ = interval(self.ratios)
        if not self.straddles:
            return "slower" if low > self.bar else "pass"
        if self.instructions is None:
            return "unclear"
        base, new = self.instructions
        return "pass" if new <= base * self.bar else "slower"

    def cells(self) -> list[str]:
        low, high = interval(self.ratios)
        counted = ["", "", ""]
        if self.instructions is not None:
            base, new = self.instructions
            counted = [f"{base / 1e6:.1f}", f"{new / 1e6:.1f}", f"{new / base:.3f}"]
        base, new = self.seconds
        times = [f"{base:.3f}", f"{new:.3f}", f"{median(self.ratios):.3f}", f"{low:.3f}-{high:.3f}"]
        return [self.bench, str(self.repeats), *times, *counted, self.verdict]


HEAD = ["bench", "repeats", "base s", "new s", "ratio", "interval", "base Minstr", "new Minstr", "ratio", ""]


def table(rows: list[list[str]]) -> str:
    """Lines in Markdown."""
    line = lambda cells: "| " + " | ".join(cells) + " |"  # noqa: E731
    return "\n".join([line(HEAD), "|" + "---|" * len(HEAD), *map(line, rows)])


def compare(base: Build, new: Build, bench: str, options: argparse.Namespace) -> Row:
    repeats = options.repeats or repeats_for(lambda n: base.cpu_seconds(bench, n), options.seconds)
    times: list[tuple[float, float]] = []
    for run in range(options.runs):
        # Who begins alternates, so that a machine that gets slower or faster favours neither.
        pair = {build.path: build.cpu_seconds(bench, repeats) for build in ((base, new) if run % 2 == 0 else (new, base))}
        times.append((pair[base.path], pair[new.path]))
    seconds = (median([a for a, _ in times]), median([b for _, b in times]))
    row = Row(bench, repeats, [b / a for a, b in times], seconds, options.bar)
    if options.count == "always" or (options.count == "straddling" and row.straddles):
        row.instructions = (base.instructions_of_a_repeat(bench), new.instructions_of_a_repeat(bench))
    return row


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path, help="the command `tw` of the earlier build")
    parser.add_argument("new", type=Path, help="that of the later build")
    parser.add_argument("benches", nargs="*", help="names of benches; all that both builds have, if there are none")
    parser.add_argument("--runs", type=int, default=15, help="processes of each build per bench (default: 15)")
    parser.add_argument("--seconds", type=float, default=0.5, help="CPU time of a process, at least (default: 0.5)")
    parser.add_argument("--repeats", type=int, help="repeats of a process, instead of as many as fill the time")
    parser.add_argument("--bar", type=float, default=1.03, help="the largest ratio that passes (default: 1.03)")
    parser.add_argument("--count", choices=["straddling", "always", "never"], default="straddling", help="when to count instructions")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    with tempfile.TemporaryDirectory() as empty:
        base, new = Build(options.base.resolve(), Path(empty)), Build(options.new.resolve(), Path(empty))
        there = new.benches()
        common = [bench for bench in base.benches() if bench in there]
        if unknown := [bench for bench in options.benches if bench not in common]:
            raise SystemExit(f"not a bench of both builds: {', '.join(unknown)}; these are: {', '.join(common)}")
        rows = []
        for bench in options.benches or common:
            rows.append(compare(base, new, bench, options))
            print("  ".join(rows[-1].cells()), file=sys.stderr, flush=True)
    print(table([row.cells() for row in rows]))
    return int(any(row.verdict == "slower" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
