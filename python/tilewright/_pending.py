"""Computations that run while Python goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _core
from ._turns import waiting


class Pending:
    """A computation under way: what ``compute(block=False)`` gives.

    >>> import tilewright as tw
    >>> pending = tw.arange(4).sum().compute(block=False)
    >>> pending.result()
    array(6)
    >>> pending.done()
    True
    """

    __slots__ = ("_run", "_read")

    def __init__(self, tensors: list[_core.Tensor], read: Callable[[], Any]) -> None:
        self._run = _core.start(tensors)
        self._read = read

    def done(self) -> bool:
        """True if it has ended: with a result, an error, or because it was cancelled."""
        return self._run.done()

    def cancel(self) -> None:
        """Stops the computation, within the time of one task. Nothing of it is kept; the arrays stay lazy and can be computed later."""
        self._run.cancel()

    def result(self, timeout: float | None = None) -> Any:
        """Waits for the result: NumPy arrays, as ``compute`` gives them.

        Raises ``TimeoutError`` after so many seconds, ``concurrent.futures.CancelledError`` if it was cancelled, and otherwise the error that the
        computation ended with.
        """
        with waiting():
            ended = self._run.wait(timeout)
        if ended is None:
            # Imported where it is needed: it brings logging and threads along.
            from concurrent.futures import CancelledError

            raise CancelledError("the computation was cancelled")
        if not ended:
            raise TimeoutError(f"the computation has not ended within {timeout} seconds")
        return self._read()

    def __repr__(self) -> str:
        return f"<tilewright.Pending {'done' if self.done() else 'running'}>"
