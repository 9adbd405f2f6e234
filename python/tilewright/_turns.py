"""The lock of the process, under which libraries are called that bear one thread at a time.

Who holds it may compute another array: an object whose ``__getitem__`` or ``__setitem__`` does so. The blocks of that array are read on other threads, perhaps under the same lock, so its holder gives it away while it
waits for them and takes it back before it goes on. That is sound for what the lock is for: a thread that waits is not inside of the library, so there is never more than one that is. Somebody else may have a turn
meanwhile, also with the same object; an object that must not see that takes a lock of its own, which is never released early. Rejected: letting in only the threads of the nested computation, which cannot be told
from others that wait, and an error instead of a result.

Lengths that depend on elements are computed by many functions on the way. Only ``.shape`` gives the lock away, so an object that needs such lengths of an array over the same library asks for ``.shape`` first.
"""

from __future__ import annotations

import threading
from typing import Any

#: Held wherever one thread at a time may read or write, in the whole process. It may be taken again: a small array is computed on the thread that asks for it.
ONE_AT_A_TIME = threading.RLock()


class _Given:
    """Gives the lock away, if this thread holds it, as long as the block of ``with`` runs."""

    __slots__ = ("depth",)

    def __enter__(self) -> None:
        # What threading.Condition does with its lock while it waits.
        self.depth: Any = ONE_AT_A_TIME._release_save() if ONE_AT_A_TIME._is_owned() else None

    def __exit__(self, *exception: object) -> None:
        if self.depth is not None:
            ONE_AT_A_TIME._acquire_restore(self.depth)


def waiting() -> _Given:
    """Around every call that waits until elements are computed."""
    return _Given()
