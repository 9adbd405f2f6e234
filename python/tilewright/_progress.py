"""How far a run has come: a line on a terminal, a bar in a notebook. The engine reports only what takes longer than a second, with bytes read, peak and time in words."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from . import _ranks

Report = Callable[[int, int, str], None]


def progress_report() -> Report | None:
    """The progress display of this terminal or notebook; None where there is none. Of several ranks the first one has it."""
    if not _ranks.is_first():
        return None
    if _in_notebook():
        return _NotebookBar()
    return _show_line if sys.stderr is not None and sys.stderr.isatty() else None


def _in_notebook() -> bool:
    """True in a kernel of Jupyter. IPython on a terminal has none."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None and hasattr(module, "get_ipython") else None
    return getattr(shell, "kernel", None) is not None


def _show_line(done: int, total: int, more: str) -> None:
    width = 30
    full = width * done // total if total else 0
    # What an earlier, longer line has left is cleared.
    sys.stderr.write(f"\r[{'#' * full}{'.' * (width - full)}] {done}/{total} tasks, {more} \x1b[K")
    if done == total:
        sys.stderr.write("\n")
    sys.stderr.flush()


class _NotebookBar:
    """A bar that is drawn once and then updated in its place."""

    def __init__(self) -> None:
        self._shown: Any = None

    def __call__(self, done: int, total: int, more: str) -> None:
        from IPython.display import HTML, display

        bar = HTML(f'<progress value="{done}" max="{total}"></progress> {done} of {total} tasks, {more}')
        if self._shown is None:
            self._shown = display(bar, display_id=True)
        else:
            self._shown.update(bar)
