"""The API reference is that of the package as it is."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[1] / "tools" / "make_api.py"


@pytest.fixture(scope="module")
def make_api():
    spec = importlib.util.spec_from_file_location("make_api", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(make_api):
    if make_api.PAGE.read_text(encoding="utf-8") != make_api.page():
        pytest.fail(f"docs/api.md is out of date; this command makes it anew: {make_api.COMMAND}", pytrace=False)


def test_everything_public_has_a_docstring(make_api):
    named = dict(make_api.public_callables())
    assert len(named) > 400
    assert [name for name, value in named.items() if not make_api.first_paragraph(value)] == []


def test_the_page_names_everything_public(make_api):
    page = make_api.PAGE.read_text(encoding="utf-8")
    names = [name.rsplit(".", 1)[-1] for name, _ in make_api.public_callables()]
    missing = [name for name in names if not any(f"{before}{name}" in page for before in ("`", "`.", "\n## "))]
    assert missing == []


def test_docstrings_become_one_line_of_the_page(make_api):
    def documented():
        """Does ``this``,
        see :func:`that`.

        And more.
        """

    assert make_api.first_paragraph(documented) == "Does `this`, see `that`."
    assert make_api.first_paragraph(lambda: None) == ""
