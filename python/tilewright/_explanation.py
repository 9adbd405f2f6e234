"""What a computation will cost."""

from __future__ import annotations

import html
import json
from typing import Any

from . import _core


class Explanation:
    """What computing an array will cost, as it was when :meth:`Array.explain` was called.

    Prints as text, shows as a drawing and a table in a notebook, and is a dict for programs.

    >>> import tilewright as tw
    >>> explanation = tw.ones((1000, 1000)).sum().explain("line")
    >>> explanation.to_dict()["input_passes"]
    0.0
    """

    __slots__ = ("_explanation", "_level")

    def __init__(self, explanation: _core.Explanation, level: str = "table") -> None:
        self._explanation = explanation
        self._level = level
        # A level that does not exist is an error of this call.
        explanation.text(level)

    def __str__(self) -> str:
        return self._explanation.text(self._level)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"{self.to_svg()}<pre>{html.escape(self._explanation.text('table'))}</pre>"

    def to_svg(self) -> str:
        """The statements of the plan as a drawing."""
        return self._explanation.text("svg")

    def to_dict(self) -> dict[str, Any]:
        """The same for programs: tasks, bytes, peak memory, and every section with its lines."""
        return json.loads(self._explanation.text("json"))
