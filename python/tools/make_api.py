"""Writes docs/api.md from signatures and docstrings: `python python/tools/make_api.py`."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tilewright as tw

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
COMMAND = "python python/tools/make_api.py"

#: Headings of the files of the package, in the order of the page. A file that is not here comes last, under its own name.
HEADINGS = {
    "_creation": "Making arrays",
    "_grids": "Grids and indices",
    "_foreign": "Arrays of other libraries",
    "_files": "Files",
    "_session": "Sessions and computing",
    "_dtypes": "Types",
    "_elementwise": "Functions of every element",
    "_numeric": "Further functions of every element",
    "_logic": "Questions",
    "_reductions": "Reductions and sums along an axis",
    "_nan": "Reductions that leave NaN out",
    "_groups": "Reductions of groups",
    "_statistics": "Statistics",
    "_quantiles": "Quantiles and partitions",
    "_histograms": "Histograms and counting",
    "_searching": "Sorting and searching",
    "_choosing": "Choosing elements",
    "_writing": "Writing into arrays",
    "_sets": "Sets",
    "_manipulation": "Shapes and axes",
    "_rearranging": "Rearranging",
    "_joining": "Joining and splitting",
    "_padding": "Padding",
    "_linear": "Contractions",
    "_products": "Products and polynomials",
    "_signal": "Signals and windows",
    "_gradient": "Differences",
    "_blocks": "Functions of blocks",
    "_overlap": "Functions of blocks and their neighbours",
    "_gufunc": "Functions of vectors and numbers",
    "_program": "Programs as text",
}

INTRODUCTION = f"""\
# API reference

Every public name with its signature and what it is. `help(tw.name)` says more and shows examples. The [guide](guide.md) explains the ideas,
[python.md](python.md) what differs from NumPy and dask. In signatures `/` ends arguments by position, `*` begins arguments by name.

This page is made by `{COMMAND}`; a test compares it with the package.
"""


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    parts += [_section(owner.__name__, owner, _members(owner)) for owner in _classes()]
    groups: dict[str, list[tuple[str, Any]]] = {}
    for name, value in _public(tw):
        if callable(value) and value not in _classes():
            groups.setdefault(value.__module__.rsplit(".", 1)[-1], []).append((name, value))
    order = [*HEADINGS, *sorted(groups.keys() - HEADINGS.keys())]
    for module in order:
        if module in groups:
            heading = HEADINGS.get(module, module.strip("_").capitalize())
            parts.append(_section(heading, None, _entries(groups[module])))
    parts.append(_section("Names of types and constants", None, _values()))
    for module in (tw.linalg, tw.fft, tw.random):
        parts.append(_section(module.__name__, module, _entries(_public(module))))
    parts.append(_section("tilewright.random.Generator", tw.random.Generator, _members(tw.random.Generator)))
    return "\n".join(parts)


def first_paragraph(value: Any) -> str:
    """The first paragraph of a docstring in one line, with the page's way of writing code."""
    text = re.split(r"\n\s*\n", inspect.getdoc(value) or "")[0]
    text = re.sub(r":\w+:`([^`]*)`", r"`\1`", text.replace("``", "`"))
    return " ".join(text.split())


def public_callables() -> Iterator[tuple[str, Any]]:
    """Every public function, class and method, by its full name."""
    for module in (tw, tw.linalg, tw.fft, tw.random):
        for name, value in _public(module):
            if callable(value):
                yield f"{module.__name__}.{name}", value
    for owner in (*_classes(), tw.random.Generator):
        for name in _names(owner):
            yield f"{owner.__module__}.{owner.__name__}.{name}", inspect.getattr_static(owner, name)


def _public(module: types.ModuleType) -> list[tuple[str, Any]]:
    return [(name, getattr(module, name)) for name in sorted(module.__all__, key=str.lower)]


def _classes() -> list[type]:
    """Classes of the main namespace. One that is called like a function is a function to its users."""
    return [value for _, value in _public(tw) if isinstance(value, type) and "__call__" not in vars(value)]


def _names(owner: type) -> list[str]:
    return sorted((name for name in dir(owner) if not name.startswith("_")), key=str.lower)


def _section(heading: str, described: Any, lines: list[str]) -> str:
    about = f"{first_paragraph(described)}\n\n" if described is not None else ""
    return f"## {heading}\n\n{about}" + "".join(f"- {line}\n" for line in lines)


def _members(owner: type) -> list[str]:
    """Attributes first, then methods; how a user makes one, where that is by calling the class."""
    lines = [f"`{_call('Session', owner)}`"] if owner is tw.Session else []
    attributes = [name for name in _names(owner) if isinstance(inspect.getattr_static(owner, name), property)]
    lines += [f"`.{name}`: {first_paragraph(getattr(owner, name))}" for name in attributes]
    methods = [(name, getattr(owner, name)) for name in _names(owner) if name not in attributes]
    return lines + _entries(methods, prefix=".")


def _entries(named: list[tuple[str, Any]], prefix: str = "") -> list[str]:
    """A line per function; names of the same function share one."""
    lines = []
    aliases: dict[int, list[str]] = {}
    for name, value in named:
        aliases.setdefault(id(value), []).append(name)
    for names in aliases.values():
        value = dict(named)[names[0]]
        if isinstance(value, types.ModuleType):
            continue
        # The name that the function was given stands first.
        own = value.__name__ if value.__name__ in names else names[0]
        others = [f"`{prefix}{name}`" for name in names if name != own]
        also = f" (also {', '.join(others)})" if others else ""
        call = _call(own, value, bound=bool(prefix))
        lines.append((own.lower(), f"`{prefix}{call}`{also}: {_about(value)}"))
    return [line for _, line in sorted(lines)]


def _about(value: Any) -> str:
    if not value.__module__.startswith("tilewright"):
        return f"the class of {value.__module__}."
    return first_paragraph(value)


def _call(name: str, value: Any, bound: bool = False) -> str:
    """A name with its arguments, of methods without the array itself; annotations would hide them."""
    if isinstance(value, type) and "__init__" not in vars(value):
        return name  # Of such a class users call functions that make one.
    signature = inspect.signature(value)
    parameters = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
    return name + str(signature.replace(parameters=parameters[bound:], return_annotation=signature.empty))


def _values() -> list[str]:
    lines = []
    for name, value in _public(tw):
        if not callable(value) and not isinstance(value, types.ModuleType):
            lines.append(f"`{name}`: `{value!r}`")
    return lines


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE} is up to date")
