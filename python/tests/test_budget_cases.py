"""The benchmark of operations under small budgets has a case for every public operation, and its cases run."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

PYTHON = Path(__file__).parents[1]
BENCHMARK = PYTHON / "benchmarks" / "budgets.py"


def module(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture(scope="module")
def cases():
    return module(PYTHON / "benchmarks" / "budget_cases.py")


def test_every_public_operation_has_a_case(cases):
    covered, without = set(), {}
    for name in cases.CASES:
        covered.add(name.split(":")[0])
    for name, value in module(PYTHON / "tools" / "make_api.py").public_callables():
        short = name.removeprefix("tilewright.")
        owner, _, last = short.rpartition(".")
        if owner.startswith("_") and "Generator" not in owner:
            # Methods do what functions of their name do.
            continue
        if "Generator" in owner:
            short = f"random.Generator.{last}"
        without.setdefault(id(value), []).append(short)
    # Several names may be one function.
    missing = [names for names in without.values() if not covered & set(names) and not cases.NO_CASES & {name.rsplit(".", 1)[-1] for name in names}]
    assert missing == []


@pytest.mark.parametrize("name", ["sum: axis 0", "sort", "to_zarr"])
def test_cases_run_and_agree_with_ample_memory(name, tmp_path):
    found = tmp_path / "found.json"
    options = ["--directory", str(tmp_path), "--gigabytes", "0.02", "--fraction", "1", "--only", f"={name}", "--check", "--json", str(found)]
    ran = subprocess.run([sys.executable, str(BENCHMARK), *options], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    (row,) = json.loads(found.read_text())["rows"]
    assert (row["case"], row["outcome"]) == (name, "completes"), row
    assert row["measured"] > 0 and row["read"] > 0 and row["projected"] > 0


def test_plans_are_made_of_files_without_values(tmp_path):
    options = ["--plan", "--directory", str(tmp_path), "--gigabytes", "0.05", "--fraction", "2", "--only", "=sum", "=sort"]
    ran = subprocess.run([sys.executable, str(BENCHMARK), *options], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert "1/2: 2 of 2 fit" in ran.stdout
    assert all(path.stat().st_blocks * 512 < 1 << 20 for path in tmp_path.iterdir())
