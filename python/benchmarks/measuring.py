"""What a benchmark process measures about itself: bytes read and written, CPU and wall time, and peaks of memory."""

from __future__ import annotations

import threading
import time


def status(*names: str) -> int:
    """What the system says of this process under some names, all together, in bytes."""
    with open("/proc/self/status") as file:
        return sum(int(line.split()[1]) << 10 for line in file if line.startswith(names))


def anonymous() -> int:
    """Bytes of memory of this process that no file backs."""
    return status("RssAnon", "RssShmem")


def counters() -> dict[str, int]:
    """The system's counters of bytes that this process has read and written."""
    with open("/proc/self/io") as file:
        return {key: int(value) for key, value in (line.split(": ") for line in file)}


class Measuring:
    """Measures what happens inside a `with`: `cpu` and `wall` in seconds, `read`, `written` and `memory` in bytes. Memory is the peak beyond that at the beginning."""

    def __enter__(self) -> Measuring:
        self.base, self.memory, self.done = anonymous(), 0, threading.Event()
        self.watcher = threading.Thread(target=self._watch)
        self.watcher.start()
        self.before, self.cpu, self.wall = counters(), time.process_time(), time.perf_counter()
        return self

    def _watch(self) -> None:
        while not self.done.wait(0.005):
            self.memory = max(self.memory, anonymous() - self.base)

    def __exit__(self, *_) -> None:
        self.cpu, self.wall = time.process_time() - self.cpu, time.perf_counter() - self.wall
        after = counters()
        self.read, self.written = (after[key] - self.before[key] for key in ("rchar", "wchar"))
        self.done.set()
        self.watcher.join()


class PeakOfMemory:
    """Measures what happens inside a `with`: `peak`, the most resident bytes beyond those at the beginning. The system counts, so no moment is missed."""

    def __enter__(self) -> PeakOfMemory:
        with open("/proc/self/clear_refs", "w") as file:
            # Forgets the peak so far.
            file.write("5")
        self.base = status("VmRSS")
        return self

    def __exit__(self, *_) -> None:
        self.peak = status("VmHWM") - self.base
