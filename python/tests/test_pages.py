"""Python on the pages runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", "docs/python.md"]


def blocks():
    for page in PAGES:
        for match in re.finditer(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S):
            yield pytest.param(match[1], id=f"{page}:{match.start()}")


@pytest.mark.parametrize("code", list(blocks()))
def test_block(code):
    # Blocks of a page may build on what a reader has imported already.
    exec(compile("import numpy as np\nimport tilewright as tw\n" + code, "page", "exec"), {})


def test_there_are_blocks():
    assert len(list(blocks())) >= 3
