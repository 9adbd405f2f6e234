"""Ranks: processes that an MPI launcher has started, which run the same script together.

All ranks make the same calls in the same order. What is printed by this package is printed once: progress and warnings by the first rank, an exception by
the rank on which it happened, and by the first one. At the end of the script, ranks take leave of each other. After an uncaught exception a rank ends at once instead,
because others may wait for it for ever; the launcher then ends them.
"""

from __future__ import annotations

import atexit
import sys
from typing import Any

from . import _core

#: The sessions of ranks, in the order in which they began.
_sessions: list[_core.Session] = []

#: How an exception says that another rank has met it first.
_ELSEWHERE = "the error comes from rank"


class _State:
    """What the end of the process has to know."""

    is_watched = False
    is_first = True
    has_failed = False
    hook: Any = None


def watch(core: _core.Session) -> None:
    """Sees to the end of the process, in which ranks run programs together."""
    _sessions.append(core)
    _State.is_first = core.rank == 0
    if not _State.is_watched:
        _State.is_watched = True
        _State.hook = sys.excepthook
        sys.excepthook = _tell
        atexit.register(_end)


def _tell(kind: type[BaseException], value: BaseException, trace: Any) -> None:
    """Prints an uncaught exception once."""
    _State.has_failed = True
    if _State.is_first or _ELSEWHERE not in str(value):
        _State.hook(kind, value, trace)


def _end() -> None:
    for core in _sessions:
        core.leave()
    if _State.has_failed:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        _core.abandon_ranks(1)
    _core.finish_ranks()


def is_first() -> bool:
    """True on the rank that speaks for all."""
    return _State.is_first


def prefixes() -> list[str]:
    """Directories where the wheels of MPI libraries put theirs."""
    return list(dict.fromkeys([sys.prefix, sys.base_prefix]))
