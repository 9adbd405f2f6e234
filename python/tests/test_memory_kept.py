"""Memory that is kept is bounded, and goes back to the system."""

import numpy as np
import pytest
from test_results import in_own_process

import tilewright as tw

#: Bytes of arrays that are kept as soon as they are held.
SMALL = 16 << 20


def allowance() -> int:
    with open("/proc/meminfo") as file:
        total = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemTotal"))
    return max(256 << 20, total // 32)


def held(session: tw.Session) -> int:
    return session.report()["held_bytes"]


@pytest.mark.skipif(allowance() > 1 << 30, reason="takes long on a large machine")
@pytest.mark.parametrize("from_memory", [False, True])
def test_arrays_that_are_held_share_an_allowance(from_memory):
    n = SMALL // 8
    with tw.Session() as session:
        base = tw.asarray(np.ones(n)) if from_memory else tw.ones(n)
        arrays = []
        for k in range(allowance() // SMALL + 12):
            arrays.append(base + k)
            assert float(tw.max(arrays[-1])) == k + 1
            assert held(session) <= allowance() + (n * 8 if from_memory else 0)
        assert held(session) > allowance() // 2
        assert [float(x[3]) for x in arrays[::7]] == [k + 1 for k in range(0, len(arrays), 7)]


def test_results_given_to_numpy_are_kept_if_they_are_worth_a_copy():
    n = 1 << 18
    with tw.Session(threads=1):
        x = tw.asarray(np.arange(n, dtype="float64"))
        again = x + 2
        for kept in (False, True):
            again.compute()
            assert again._tensor.is_computed == kept
        for result, kept in ((x[: n // 4] + 3, True), (x + 3, False), (tw.sort(x * -2), True)):
            result.compute()
            assert result._tensor.is_computed == kept


def test_the_least_useful_arrays_go_first(tmp_path):
    n = 100_000
    np.save(tmp_path / "x.npy", np.arange(n, dtype="float64"))
    # Room for three arrays.
    with tw.Session(threads=1, memory=8 * 3 * 8 * n + 4096) as session:
        x = tw.from_npy(tmp_path / "x.npy")
        costly = x + 1
        for _ in range(20):
            costly = costly * 2 - tw.flip(costly)
        cheap = [x + k for k in range(5)]
        assert float(tw.max(costly)) > 0
        for each in cheap:
            assert float(tw.max(each)) > 0
        kept = [each._tensor.is_computed for each in cheap]
        assert costly._tensor.is_computed
        assert kept == [False, False, False, True, True]
        # What was let go is computed again, and what is asked to stay stays.
        np.testing.assert_array_equal(cheap[0].persist().compute(), np.arange(n))
        cheap[4].persist()
        more = [x - k for k in range(5)]
        for each in more:
            assert float(tw.max(each)) <= n
        assert cheap[0]._tensor.is_computed and cheap[4]._tensor.is_computed


def test_a_long_loop_holds_nothing_of_its_past():
    n = 200_000
    with tw.Session(threads=1) as session:
        for start in (tw.ones(n), tw.asarray(np.ones(n))):
            x, most = start, 0
            for _ in range(50):
                x = x * 0.5 + 1
                assert float(tw.max(x)) <= 2
                most = max(most, held(session))
            assert most <= 5 * 8 * n
            del x, start


def test_memory_goes_back_when_results_die():
    code = """
        with tw.Session(threads=2) as session:
            tw.ones(1000).compute()
            before = rss()
            x = (tw.arange(75_000_000, dtype="float64") + 1).persist()
            full = rss()
            del x
            print(full - before, rss() - before)
    """
    full, left = in_own_process(code)
    assert full > 500
    # What the next run may use again is kept.
    assert left < 300


def test_memory_goes_back_when_a_session_ends():
    code = """
        tw.ones(1000).compute()
        before = rss()
        held = []
        with tw.Session(threads=2) as session:
            x = (tw.arange(40_000_000, dtype="float64") + 1).persist()
            assert float(tw.sum(tw.sort(x[::2]))) > 0
            for k in range(10):
                held.append(tw.arange(1_000_000, dtype="float64") + k)
                assert float(tw.max(held[-1])) > 0
            full = rss()
            del x
        print(full - before, rss() - before)
        assert float(held[3][0]) == 3
    """
    full, left = in_own_process(code)
    assert full > 300
    assert left < 40
