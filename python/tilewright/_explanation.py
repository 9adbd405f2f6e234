"""What a computation will cost."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Mapping
from operator import index
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
        """The statements of the plan as a drawing; below it, what several workers do if some were asked for."""
        return self._explanation.text("svg")

    def to_dict(self) -> dict[str, Any]:
        """The same for programs: tasks, bytes, peak memory, and every section with its lines."""
        return json.loads(self.to_json())

    def to_json(self) -> str:
        """The same as JSON."""
        return self._explanation.text("json")

    def diff(self, other: Explanation) -> Difference:
        """What changes from this plan to another.

        >>> import tilewright as tw
        >>> x = tw.ones((1000, 1000))
        >>> change = x.rechunk(500).sum().explain().diff(x.rechunk(250).sum().explain())
        >>> change.to_dict()["is_same"]
        False
        """
        if not isinstance(other, Explanation):
            raise TypeError(f"an explanation is compared with another, not with {type(other).__name__}")
        return Difference(self._explanation.diff(other._explanation))


class Profile:
    """What computing an array took, beside what was planned; see :meth:`Array.profile`.

    Prints as text, shows as a timeline and a table in a notebook, and is a dict for programs. Times of threads add up.
    """

    __slots__ = ("_profile",)

    def __init__(self, profile: _core.Profile) -> None:
        self._profile = profile

    def __str__(self) -> str:
        return self._profile.text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"{self.to_svg()}<pre>{html.escape(str(self))}</pre>"

    def to_svg(self) -> str:
        """What every thread did when, and how much memory blocks took, as a drawing."""
        return self._profile.svg()

    def to_dict(self) -> dict[str, Any]:
        """The plan and what was measured, for programs."""
        return json.loads(self._profile.json())

    def to_chrome_trace(self, path: str | os.PathLike[str] | None = None) -> dict[str, Any]:
        """The timeline in Chrome's trace event format, which ``chrome://tracing`` and Perfetto open; written to a file if one is named."""
        trace = self._profile.trace()
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(trace)
        return json.loads(trace)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the timeline to a file: ``.svg`` and ``.html`` as a picture, ``.json`` for Chrome and Perfetto, ``.txt`` as the table."""
        name = os.fspath(path)
        text = {
            "svg": self._profile.svg,
            "html": lambda: f'<!doctype html><meta charset="utf-8"><title>profile</title>{self._repr_html_()}',
            "json": self._profile.trace,
            "txt": self._profile.text,
        }.get(name.rsplit(".", 1)[-1])
        if text is None:
            raise ValueError(f"{name}: a profile can be written as .svg, .html, .json or .txt")
        with open(name, "w", encoding="utf-8") as file:
            file.write(text())


class Difference:
    """How two plans differ: figures of both, and the lines that changed. Prints as text, shows as tables in a notebook, and is a dict for programs."""

    __slots__ = ("_difference",)

    def __init__(self, difference: _core.Difference) -> None:
        self._difference = difference

    def __str__(self) -> str:
        return self._difference.text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self._difference.html()

    def to_dict(self) -> dict[str, Any]:
        """The same for programs."""
        return json.loads(self.to_json())

    def to_json(self) -> str:
        """The same as JSON."""
        return self._difference.json()


def target(
    nodes: int | None,
    workers: int | None,
    machine: str | os.PathLike[str] | Mapping[str, Any] | None,
    scheduler: str | None,
    pictures: bool,
) -> dict[str, Any] | None:
    """Several workers as the planner wants them described; None if there are none."""
    if nodes is None and workers is None and machine is None:
        if scheduler is not None or pictures:
            raise ValueError("scheduler and pictures are about several workers: give nodes, workers or a machine")
        return None
    return {
        "nodes": None if nodes is None else index(nodes),
        "workers": None if workers is None else index(workers),
        "machine": _machine_file(machine),
        "scheduler": scheduler,
        "pictures": pictures,
        "distribution": None,
    }


def ranks_target(
    nodes: int | None,
    workers: int | None,
    machine: str | os.PathLike[str] | Mapping[str, Any] | None,
    scheduler: str | None,
    distribution: str | None,
    grid: tuple[int, ...] | None,
) -> dict[str, Any]:
    """The workers that ranks are taken for, as the planner wants them described."""
    if grid is not None:
        if distribution is None:
            raise ValueError("grid is the grid of workers that a distribution names: give distribution, too")
        lengths = ", ".join(str(index(n)) for n in grid)
        distribution = f"machine M({lengths})\n{distribution}"
    return {
        "nodes": None if nodes is None else index(nodes),
        "workers": None if workers is None else index(workers),
        "machine": _machine_file(machine),
        "scheduler": scheduler,
        "pictures": False,
        "distribution": distribution,
    }


def _machine_file(machine: str | os.PathLike[str] | Mapping[str, Any] | None) -> tuple[str, str] | None:
    if machine is None:
        return None
    if isinstance(machine, Mapping):
        return "", "".join(f"{name} = {value}\n" for name, value in machine.items())
    name = os.fspath(machine)
    with open(name, encoding="utf-8") as file:
        return name, file.read()
