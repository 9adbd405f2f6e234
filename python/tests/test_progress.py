"""Progress on terminals and in notebooks."""

from __future__ import annotations

import re
import io
import sys
import types

import pytest

import tilewright as tw
from tilewright._progress import progress_report


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nobody_looks_on(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert progress_report() is None
    monkeypatch.setattr(sys, "stderr", None)
    assert progress_report() is None


def test_terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    report = progress_report()
    report(1, 4, "2 MiB read, about 3 s left")
    report(4, 4, "3 MiB read")
    assert "1/4 tasks, 2 MiB read, about 3 s left" in terminal.getvalue() and terminal.getvalue().endswith("\n")
    assert "4/4 tasks, 3 MiB read" in terminal.getvalue()


@pytest.fixture
def notebook(monkeypatch):
    """What a kernel of Jupyter looks like from here."""
    drawn = []

    class Shown:
        def update(self, bar):
            drawn.append(("again", bar))

    def display(bar, display_id):
        assert display_id
        drawn.append(("first", bar))
        return Shown()

    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(HTML=str, display=display))
    return drawn


def test_notebook(notebook):
    report = progress_report()
    report(1, 4, "peak 2 MiB")
    report(3, 4, "peak 3 MiB of 5 MiB")
    assert [how for how, _ in notebook] == ["first", "again"]
    assert 'value="3" max="4"' in notebook[-1][1] and "3 of 4 tasks, peak 3 MiB of 5 MiB" in notebook[-1][1]


def test_long_runs_report(notebook):
    """Through the engine: four seconds of work, of which the last reports guess what is left."""
    import time

    def slow(block):
        time.sleep(0.8)
        return block

    with tw.Session(threads=1):
        x = tw.ones(5).rechunk(1)
        tw.map_blocks(slow, x, dtype="float64").compute()
    assert notebook and re.search(r"\d+ of \d+ tasks, peak .* left", notebook[-1][1]), notebook
