"""The notebooks run from the first cell to the last, and what they show can be shown."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def cells(notebook: dict, kind: str) -> list[str]:
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == kind]


def run(notebook: dict, name: str) -> dict:
    """Executes the code cells one after the other, as Jupyter would; what the last line of a cell gives is drawn."""
    namespace: dict = {"__name__": name}
    for number, code in enumerate(cells(notebook, "code")):
        where = f"{name}, code cell {number}"
        *before, last = ast.parse(code, where).body
        if not isinstance(last, ast.Expr):
            exec(compile(code, where, "exec"), namespace)
            continue
        exec(compile(ast.Module(before, []), where, "exec"), namespace)
        draw(eval(compile(ast.Expression(last.value), where, "eval"), namespace))
    return namespace


def draw(value: object) -> None:
    assert repr(value)
    if hasattr(value, "_repr_html_"):
        assert "<" in value._repr_html_()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(json.loads(path.read_text(encoding="utf-8")), path.stem)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_kept_without_outputs(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    for cell in notebook["cells"]:
        assert cell["cell_type"] != "code" or (cell["outputs"], cell["execution_count"]) == ([], None)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_links_between_notebooks_lead_somewhere(path):
    for text in cells(json.loads(path.read_text(encoding="utf-8")), "markdown"):
        for target in re.findall(r"\]\(([^)]*)\)", text):
            assert (FOLDER / target).exists(), target


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 3


def test_a_cell_that_fails_fails():
    broken = {"cells": [{"cell_type": "code", "source": ["a = 1\n", "assert a == 2"]}]}
    with pytest.raises(AssertionError):
        run(broken, "broken")
