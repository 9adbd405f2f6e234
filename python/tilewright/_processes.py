"""Worker processes, in which pure Python functions run side by side."""

from __future__ import annotations

import functools
import os
import pickle
import signal
import threading
import weakref
from collections.abc import Callable
from typing import Any

from ._block_call import name_of

#: Fewer bytes than this go through the pipe; more go through shared memory, which costs two system calls and no copy in the kernel.
SMALL = 1 << 16


class Processes:
    """A pool of worker processes that is started by the first call and can be closed. It belongs to a session."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._lock = threading.Lock()
        self._pool: Any = None
        #: Pools that were closed, while anybody still has them.
        self._closed: Any = weakref.WeakSet()

    def run(self, function: bytes, args: Any, kwargs: Any) -> Any:
        """Calls a pickled function in a worker and waits for what it gives."""
        from concurrent.futures.process import BrokenProcessPool

        arguments = _pack((args, kwargs))
        try:
            return _unpack(self._result(function, arguments), unlink=True)
        except BrokenProcessPool as error:
            error.add_note("a worker process has died; scripts need the guard `if __name__ == \"__main__\":`")
            raise
        finally:
            _unlink(arguments)

    def _result(self, function: bytes, arguments: Any) -> Any:
        from concurrent.futures import CancelledError
        from concurrent.futures.process import BrokenProcessPool

        while True:
            pool = self._started()
            try:
                call = pool.submit(_work, function, arguments)
            except RuntimeError:  # It takes no calls any more.
                if self._has_ended(pool):
                    continue
                raise
            try:
                return call.result()
            except (CancelledError, BrokenProcessPool):
                if not self._has_ended(pool):
                    raise

    def _has_ended(self, pool: Any) -> bool:
        """True if a session has closed these workers, so that others may take their calls. Workers that died are dropped, and their calls fail."""
        with self._lock:
            if self._pool is pool:
                self._pool = None
            return pool in self._closed

    def close(self) -> None:
        """Ends the workers. A later call starts new ones."""
        with self._lock:
            pool, self._pool = self._pool, None
            if pool is not None:
                self._closed.add(pool)
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)

    def _started(self) -> Any:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        with self._lock:
            if self._pool is None:
                # A fork would copy the state of threads that do not exist in it.
                self._pool = ProcessPoolExecutor(self._n, mp_context=get_context("spawn"), initializer=_ignore_interrupts)
            return self._pool


_current: list[Processes] = []
#: Held while the list is read or changed, never while processes end, which may take long.
_lock = threading.Lock()


def enter(processes: Processes) -> None:
    """Makes these the processes of new arrays."""
    with _lock:
        _current.append(processes)


def leave(processes: Processes) -> None:
    """Ends these processes, whichever were entered after them."""
    with _lock:
        for place in reversed(range(len(_current))):
            if _current[place] is processes:
                del _current[place]
                break
        # A session may be entered twice.
        is_entered = processes in _current
    if not is_entered:
        processes.close()


def current() -> Processes:
    """The processes of the session that new arrays belong to."""
    with _lock:
        if not _current:
            _current.append(Processes(os.cpu_count() or 1))
        return _current[-1]


def choose(executor: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, or one that calls it in a worker process."""
    if executor == "threads":
        return function
    if executor != "processes":
        raise ValueError(f"there is no executor {executor!r}, only 'threads' and 'processes'")
    try:
        pickled = pickle.dumps(function, protocol=5)
    except Exception as error:
        name = name_of(function)
        raise TypeError(f"`{name}` cannot go to another process: only functions of a module that can be imported do") from error
    processes = current()
    return lambda *args, **kwargs: processes.run(pickled, args, kwargs)


def _ignore_interrupts() -> None:
    # Ctrl-C is for the process that the user looks at.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@functools.lru_cache(maxsize=16)
def _load(function: bytes) -> Callable[..., Any]:
    return pickle.loads(function)


def _work(function: bytes, arguments: Any) -> Any:
    args, kwargs = _unpack(arguments, unlink=False)
    return _pack(_load(function)(*args, **kwargs))


def _pack(value: Any) -> tuple[bytes, list[Any], str | None]:
    """A pickle, and its buffers: bytes if they are few, otherwise lengths and the name of shared memory that holds them."""
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    raw = [buffer.raw() for buffer in buffers]
    total = sum(each.nbytes for each in raw)
    if total < SMALL:
        return data, [bytearray(each) for each in raw], None
    from multiprocessing.shared_memory import SharedMemory

    memory = SharedMemory(create=True, size=total)
    start = 0
    for each in raw:
        memory.buf[start : start + each.nbytes] = each
        start += each.nbytes
    memory.close()
    return data, [each.nbytes for each in raw], memory.name


def _unpack(packed: tuple[bytes, list[Any], str | None], *, unlink: bool) -> Any:
    data, buffers, name = packed
    if name is None:
        return pickle.loads(data, buffers=buffers)
    from multiprocessing.shared_memory import SharedMemory

    memory = SharedMemory(name)
    copies, start = [], 0
    for length in buffers:
        copies.append(bytearray(memory.buf[start : start + length]))
        start += length
    memory.close()
    if unlink:
        memory.unlink()
    return pickle.loads(data, buffers=copies)


def _unlink(packed: tuple[bytes, list[Any], str | None]) -> None:
    if packed[2] is not None:
        from multiprocessing.shared_memory import SharedMemory

        memory = SharedMemory(packed[2])
        memory.close()
        memory.unlink()
