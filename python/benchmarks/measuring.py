"""What a benchmark process measures about itself: bytes read and written, CPU and wall time, and peaks of memory."""

from __future__ import annotations

import contextlib
import os
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


def tree() -> list[int]:
    """The processes that this one and its children have started and that still run, itself among them."""
    parents: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/stat") as file:
                # The name of a process may contain anything; what follows its last bracket is numbers.
                parents.setdefault(int(file.read().rpartition(")")[2].split()[1]), []).append(int(entry))
    found = [os.getpid()]
    for process in found:
        found.extend(parents.get(process, []))
    return found


class MeasuringTree:
    """As :class:`Measuring`, of this process and of all that it has started. What has ended counts where its parent waited for it."""

    def __enter__(self) -> MeasuringTree:
        self.base, self.memory, self.done = self._anonymous(), 0, threading.Event()
        self.watcher = threading.Thread(target=self._watch)
        self.watcher.start()
        self.before, self.wall = self._counters(), time.perf_counter()
        return self

    def _watch(self) -> None:
        while not self.done.wait(0.05):
            self.memory = max(self.memory, self._anonymous() - self.base)

    def __exit__(self, *_) -> None:
        self.wall = time.perf_counter() - self.wall
        after = self._counters()
        self.cpu, self.read, self.written = (now - then for now, then in zip(after, self.before, strict=True))
        self.done.set()
        self.watcher.join()

    @staticmethod
    def _anonymous() -> int:
        total = 0
        for process in tree():
            with contextlib.suppress(OSError), open(f"/proc/{process}/status") as file:
                total += sum(int(line.split()[1]) << 10 for line in file if line.startswith(("RssAnon", "RssShmem")))
        return total

    @staticmethod
    def _counters() -> tuple[float, int, int]:
        """CPU seconds, bytes read and bytes written, those of children that have ended among them."""
        seconds, read, written = 0.0, 0, 0
        for process in tree():
            with contextlib.suppress(OSError):
                with open(f"/proc/{process}/stat") as file:
                    seconds += sum(map(int, file.read().rpartition(")")[2].split()[11:15])) / os.sysconf("SC_CLK_TCK")
                with open(f"/proc/{process}/io") as file:
                    lines = dict(line.split(": ") for line in file)
                read, written = read + int(lines["rchar"]), written + int(lines["wchar"])
        return seconds, read, written
