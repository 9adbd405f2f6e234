"""Sessions: threads, memory, progress."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from . import _core, _processes, _ranks
from ._array import Array
from ._chunks import parse_bytes
from ._pending import Pending
from ._progress import progress_report
from ._turns import waiting


class Session:
    """Threads and a memory budget. In a ``with`` block, new arrays belong to it.

    ``memory`` bounds the bytes of all blocks together, as a number or as in ``"2GiB"``; by default it is the environment variable ``TILEWRIGHT_MEMORY``, or 70 % of
    the machine. Blocks that do not fit are read again from their files or spilled to the directory ``spill`` (by default ``TILEWRIGHT_SPILL``, or a directory
    for temporary files that is not in memory), at most ``spill_limit`` bytes at once. What your own functions allocate is not counted.

    With ``checkpoint``, a directory, a computation that is killed goes on where it was when another process runs the same program with the same data: results of
    finished parts, what loops carry, and blocks that took long to make are kept there until the computation ends. Programs that call Python functions are refused, since another process cannot
    recognise them.

    With ``engine="mpi"`` the processes that an MPI launcher has started run the same script together, one worker of the plan each: ``mpirun -n 4 python script.py``. All of them make
    the same calls in the same order. Results stay on the ranks that made them, until :meth:`Array.compute` or a similar call gives them to all ranks, or to one. Programs are
    planned for the hosts on which the ranks run; ``nodes``, ``workers`` of each, ``machine`` and ``scheduler`` say otherwise, as for :meth:`Array.explain`. ``distribution`` says where
    tensors that have names, as those of :func:`tilewright.program`, are, in tensor distribution notation over the workers ``M``, whose ``grid`` it or this argument gives. ``threads`` and ``memory``
    are those of one rank. With ``reproducible=True`` results have the bits that threads compute, on any number of ranks, for which more may be sent.

    >>> import tilewright as tw
    >>> with tw.Session(threads=1) as session:
    ...     total = float(tw.ones(10).sum())
    >>> total, session.report()["tasks"] > 0
    (10.0, True)
    """

    def __init__(
        self,
        *,
        threads: int | None = None,
        memory: int | str | None = None,
        spill: str | os.PathLike[str] | None = None,
        spill_limit: int | str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        engine: str = "threads",
        nodes: int | None = None,
        workers: int | None = None,
        machine: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        scheduler: str | None = None,
        distribution: str | None = None,
        grid: tuple[int, ...] | None = None,
        reproducible: bool = False,
    ) -> None:
        if engine not in ("threads", "mpi"):
            raise ValueError(f"there is no engine {engine!r}, only 'threads' and 'mpi'")
        of_ranks = {"nodes": nodes, "workers": workers, "machine": machine, "scheduler": scheduler, "distribution": distribution, "grid": grid}
        given = [name for name, value in of_ranks.items() if value is not None]
        if engine != "mpi" and given:
            raise ValueError(f"{given[0]} is about several ranks: give engine='mpi', too")
        directory = None if spill is None else os.fspath(spill)
        kept = None if checkpoint is None else os.fspath(checkpoint)
        limits = _positive("threads", threads), _positive("memory", memory), directory, _positive("spill_limit", spill_limit)
        if engine == "mpi":
            from ._explanation import ranks_target

            self._core = _core.Session(*limits, kept, (ranks_target(**of_ranks), _ranks.prefixes(), bool(reproducible)))
            _ranks.watch(self._core)
        else:
            self._core = _core.Session(*limits, kept)
        self._processes = _processes.Processes(self._core.threads)

    @property
    def threads(self) -> int:
        """Number of threads."""
        return self._core.threads

    @property
    def rank(self) -> int:
        """The number of this process among those that run the script together; 0 if it is alone."""
        return self._core.rank

    @property
    def ranks(self) -> int:
        """How many processes run the script together."""
        return self._core.ranks

    def print(self, *values: Any, **options: Any) -> None:
        """Prints on the first rank alone. Values are made on all ranks.

        >>> import tilewright as tw
        >>> tw.Session(threads=1).print("once")
        once
        """
        if self.rank == 0:
            print(*values, **options)

    def cancel(self) -> None:
        """Cancels the running computations: waiting calls raise KeyboardInterrupt, and :meth:`Pending.result` raises CancelledError. Later runs are not affected."""
        self._core.cancel()

    def report(self) -> dict[str, Any]:
        """What all runs of the session have cost so far: tasks, seconds, bytes."""
        return self._core.report()

    def __enter__(self) -> Session:
        with _lock:
            before = self._core.enter()
            _entered.append((self, before))
            _processes.enter(self._processes)
        return self

    def __exit__(self, *exception: object) -> None:
        with _lock:
            _leave(self)
        _processes.leave(self._processes)
        self._core.release_memory()


#: Sessions whose ``with`` block has not ended, each with the one that new arrays belonged to before.
_entered: list[tuple[Session, _core.Session]] = []
_lock = threading.Lock()


def _leave(session: Session) -> None:
    """Ends the last ``with`` block of a session. Blocks of several Python threads may end in any order: only the innermost says where new arrays go."""
    place = max(k for k, (entered, _) in enumerate(_entered) if entered is session)
    _, before = _entered.pop(place)
    if place == len(_entered):
        before.enter()
    else:
        after, _ = _entered[place]
        _entered[place] = (after, before)


def _positive(name: str, value: Any) -> int | None:
    """An option of a session: a whole number above zero, or none; bytes also as in ``"1GiB"``."""
    if value is None:
        return None
    is_bytes = name != "threads"
    if is_bytes and isinstance(value, str):
        return parse_bytes(value)
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} is a whole number{' of bytes or text such as 1GiB' if is_bytes else ''}, not {value!r}")
    if value.__index__() < 1:
        raise ValueError(f"{name}={value}: there must be one {'byte' if is_bytes else 'thread'} at least")
    return value.__index__()


def compute(*values: Any, block: bool = True, rank: int | None = None) -> Any:
    """Computes several arrays in one plan that shares what they have in common, and gives NumPy arrays in their places.

    Arrays may be inside of lists, tuples, dicts and dataclasses, nested as you like. What is no array is given back as it is. With ``block=False`` they are
    computed while Python goes on, and what comes back at once is a :class:`tilewright.Pending`. Of several ranks all get the results, or only ``rank``; the others then get None in the
    places of arrays.

    >>> import tilewright as tw
    >>> x = tw.arange(4)
    >>> tw.compute(x.sum(), {"largest": x.max()})
    (array(6), {'largest': array(3)})
    """
    if not block:
        return Pending([x._tensor for x in _arrays_in(values)], lambda: compute(*values, rank=rank))
    with waiting():
        results = iter(_core.to_numpy([x._tensor for x in _arrays_in(values)], progress_report(), rank))
    return _replaced(values, lambda _: next(results))


def persist(*values: Any) -> tuple[Any, ...]:
    """Computes several arrays, inside of containers, too, in one plan and keeps their blocks."""
    with waiting():
        _core.compute([x._tensor for x in _arrays_in(values)], progress_report())
    return values


def _arrays_in(value: Any) -> list[Array]:
    """All arrays inside of nested containers."""
    found: list[Array] = []

    def noted(array: Array) -> Array:
        found.append(array)
        return array

    _replaced(value, noted)
    return found


def _replaced(value: Any, function: Callable[[Array], Any]) -> Any:
    """Nested containers with every array replaced by what a function makes of it. Other objects, and containers of their own classes, stay as they are."""
    if isinstance(value, Array):
        return function(value)
    if type(value) in (list, tuple):
        return type(value)(_replaced(each, function) for each in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_replaced(each, function) for each in value))
    if type(value) in (dict, OrderedDict):
        return type(value)((key, _replaced(each, function)) for key, each in value.items())
    if is_dataclass(value) and not isinstance(value, type):
        own = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        new = {name: _replaced(each, function) for name, each in own.items()}
        return replace(value, **new) if any(new[name] is not own[name] for name in own) else value
    return value
