"""Python on the pages runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", "docs/python.md", "docs/guide.md", "docs/relations.md", "docs/files.md", "docs/xarray.md"]


def blocks():
    for page in PAGES:
        for match in re.finditer(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S):
            yield pytest.param(match[1], id=f"{page}:{match.start()}")


@pytest.mark.parametrize("code", list(blocks()))
def test_block(code):
    if "import xarray" in code:
        pytest.importorskip("xarray", reason="xarray is not installed")
    # Blocks of a page may build on what a reader has imported already.
    exec(compile("import numpy as np\nimport tilewright as tw\n" + code, "page", "exec"), {})


@pytest.mark.parametrize("page", PAGES)
def test_there_are_blocks(page):
    assert any(block.id.startswith(page) for block in blocks())


@pytest.mark.parametrize("page", [*PAGES, "docs/api.md"])
def test_links_and_pictures_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]*)\)", (ROOT / page).read_text(encoding="utf-8")):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        found = (ROOT / page).parent / path
        assert found.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", found.read_text(encoding="utf-8"), re.M)
            assert anchor in [heading.lower().replace(" ", "-") for heading in headings], target


def test_pictures_are_well_formed():
    pictures = sorted((ROOT / "docs" / "pictures").glob("*.svg"))
    assert pictures
    for picture in pictures:
        assert ElementTree.parse(picture).getroot().tag.endswith("svg"), picture


def test_numpy_names_that_are_not_there_are_those_of_the_page():
    import inspect

    import numpy as np

    import tilewright as tw

    page = (ROOT / "docs/python.md").read_text(encoding="utf-8")
    table = page.split("### NumPy names that are not there")[1].split("\n### ")[0]
    named = {name for row in table.splitlines() if row.startswith("| ") for name in re.findall(r"`([.\w]+)`", row.split(" | ")[0])}
    # Those whose row says that a part of them is there.
    partly = {"quantile", "percentile", "argpartition", "partition", "reduceat", "accumulate", "reduce", "at", "random"}
    assert [name for name in named - partly if hasattr(tw.Array if name.startswith(".") else tw, name.lstrip("."))] == []
    if not np.__version__.startswith("2.4."):
        # Other versions have other names.
        return
    # What has nothing to do with elements: NumPy's settings and types, and old names.
    settings = """
        datetime_data get_include get_printoptions getbufsize geterr geterrcall info isscalar issubdtype iterable mintypecode nested_iters printoptions row_stack set_printoptions
        setbufsize seterr seterrcall show_config show_runtime test typename
    """.split()
    functions = [name for name in dir(np) if not name.startswith("_") and callable(getattr(np, name)) and not inspect.isclass(getattr(np, name))]
    assert [name for name in functions if not hasattr(tw, name) and name not in named and name not in settings] == []
    methods = [name for name in dir(np.ndarray) if not name.startswith("_") and not hasattr(tw.Array, name)]
    assert [name for name in methods if f".{name}" not in named] == []
