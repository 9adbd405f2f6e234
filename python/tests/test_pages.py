"""Python on the pages runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", "docs/python.md", "docs/guide.md", "docs/relations.md"]


def blocks():
    for page in PAGES:
        for match in re.finditer(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S):
            yield pytest.param(match[1], id=f"{page}:{match.start()}")


@pytest.mark.parametrize("code", list(blocks()))
def test_block(code):
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
