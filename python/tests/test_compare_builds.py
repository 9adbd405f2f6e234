"""The tool that compares two builds, on builds whose speeds are known."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[1] / "tools" / "compare_builds.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("compare_builds", TOOL)
    module = importlib.util.module_from_spec(spec)
    # Data classes look their module up.
    sys.modules["compare_builds"] = module
    spec.loader.exec_module(module)
    return module


def build(tool, folder: Path, name: str, work: int):
    """A command that lists two benches and spends `work` units of CPU time on each repeat."""
    script = folder / name
    script.write_text(
        f"""#!{sys.executable}
import sys
if "--list" in sys.argv:
    print("bench  what  beside\\nalpha  one   dask\\nbeta   two")
    sys.exit()
assert sys.argv[1:3] == ["bench", "alpha"] and "--offline" in sys.argv, sys.argv
repeats = int(sys.argv[sys.argv.index("--repeats") + 1])
for _ in range(repeats * {work}):
    sum(range(1000))
"""
    )
    script.chmod(0o755)
    return tool.Build(script, folder)


def test_intervals_are_those_of_the_sign_test(tool):
    # Of 15 values the 4th and the 12th: outside lies the median with probability 2 * 576 / 32768 = 3.5 %.
    assert tool.interval([float(k) for k in range(15, 0, -1)]) == (4.0, 12.0)
    assert tool.interval([float(k) for k in range(1, 7)]) == (1.0, 6.0)
    # Five values say less than 95 %.
    assert tool.interval([1.0] * 5) == (0.0, float("inf"))
    assert tool.median([3.0, 1.0, 2.0]) == 2.0
    assert tool.median([4.0, 1.0, 2.0, 3.0]) == 2.5


def test_verdicts(tool):
    row = lambda ratios, counted=None: tool.Row("alpha", 1, ratios, (1.0, 1.0), 1.03, counted)  # noqa: E731
    assert row([1.0] * 15).verdict == "pass"
    assert row([1.1] * 15).verdict == "slower"
    between = [1.0] * 7 + [1.1] * 8
    assert row(between).verdict == "unclear"
    assert row(between, (100.0, 103.0)).verdict == "pass"
    assert row(between, (100.0, 104.0)).verdict == "slower"
    # What the clock has decided, instructions do not change.
    assert row([1.1] * 15, (100.0, 100.0)).verdict == "slower"


def test_repeats_outweigh_what_a_process_does_once(tool):
    assert tool.repeats_for(lambda repeats: 0.1 + 0.01 * repeats, 0.2) == 40
    assert tool.repeats_for(lambda repeats: 1.0 * repeats, 0.5) == 1


def test_a_build_that_does_twice_the_work_is_slower(tool, tmp_path):
    base, new = build(tool, tmp_path, "base", 100), build(tool, tmp_path, "new", 200)
    assert base.benches() == ["alpha", "beta"]
    options = argparse.Namespace(runs=7, seconds=0.1, repeats=None, bar=1.03, count="never")
    slower = tool.compare(base, new, "alpha", options)
    assert slower.verdict == "slower", slower.cells()
    assert tool.median(slower.ratios) > 1.3, slower.cells()
    faster = tool.compare(new, base, "alpha", options)
    assert faster.verdict == "pass" and tool.median(faster.ratios) < 0.8, faster.cells()
    assert len(tool.table([faster.cells()]).splitlines()) == 3


def test_a_build_that_fails_is_named(tool, tmp_path):
    broken = build(tool, tmp_path, "broken", 1)
    with pytest.raises(SystemExit, match="broken bench beta"):
        broken.cpu_seconds("beta", 1)
