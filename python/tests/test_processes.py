"""Worker processes of sessions: who has which, and what happens to calls when they end."""

from __future__ import annotations

import pickle
import sys
import threading
import time

import pytest

import tilewright as tw
from tilewright import _processes
from tilewright._processes import Processes


def test_sessions_may_end_in_any_order():
    first, second = Processes(1), Processes(1)
    _processes.enter(first)
    _processes.enter(second)
    assert _processes.current() is second
    _processes.leave(first)
    assert _processes.current() is second
    _processes.leave(second)
    assert _processes.current() not in (first, second)


def test_new_arrays_belong_to_the_session_that_is_left():
    first, second = tw.Session(threads=1), tw.Session(threads=1)
    tasks = lambda: [session.report()["tasks"] for session in (first, second)]  # noqa: E731
    first.__enter__()
    second.__enter__()
    first.__exit__()
    before = tasks()
    assert float(tw.ones(7).sum()) == 7.0
    assert tasks()[0] == before[0] and tasks()[1] > before[1]
    second.__exit__()
    before = tasks()
    assert float(tw.ones(8).sum()) == 8.0
    assert tasks() == before


def test_a_session_that_is_entered_twice_ends_once():
    before = _processes.current()
    session = tw.Session(threads=1)
    with session:
        with session:
            assert _processes.current() is session._processes
        assert _processes.current() is session._processes
    assert _processes.current() is before


def test_calls_outlive_workers_that_are_closed():
    processes = Processes(1)
    sleep = pickle.dumps(time.sleep)
    processes.run(sleep, (0.0,), {})
    failed = []

    def call():
        try:
            processes.run(sleep, (0.2,), {})
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    processes.close()
    for thread in threads:
        thread.join()
    assert failed == []
    processes.close()


def test_calls_end_with_workers_that_die():
    import os
    from concurrent.futures.process import BrokenProcessPool

    processes = Processes(1)
    with pytest.raises(BrokenProcessPool):
        processes.run(pickle.dumps(os._exit), (1,), {})
    # Others take the next calls.
    assert processes.run(pickle.dumps(abs), (-2,), {}) == 2
    processes.close()


def test_sessions_of_many_threads_come_and_go():
    failed = []

    def come_and_go():
        processes = Processes(1)
        try:
            for _ in range(2000):
                _processes.enter(processes)
                _processes.current()
                _processes.leave(processes)
        except BaseException as error:
            failed.append(error)

    before = list(_processes._current)
    _processes._current.clear()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=come_and_go) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
        left = list(_processes._current)
        _processes._current[:] = before
    assert failed == []
    assert left == []
