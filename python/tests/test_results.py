"""Results leave as NumPy arrays of their own, computed in their last place."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import tilewright as tw

LARGE = 2_300_000  # Elements of 8 bytes: more than is kept of a result that is asked for once.


def in_own_process(code: str) -> list[float]:
    """The numbers that code prints. It can ask for ``rss()`` and, after ``forget()``, for the ``highest()`` since then, in MB."""
    helpers = '''
        import sys
        import numpy as np, tilewright as tw
        def status(name):
            with open("/proc/self/status") as file:
                return next(int(line.split()[1]) / 1000 for line in file if line.startswith(name))
        def rss(): return status("VmRSS")
        def highest(): return status("VmHWM")
        def forget(): open("/proc/self/clear_refs", "w").write("5")
    '''
    script = textwrap.dedent(helpers) + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [float(number) for number in done.stdout.split()]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "result",
    [
        "x * 2 + 1",
        "(x * 2 + 1).T",
        "(x + 1).rechunk((500, 500))",
        "x.astype('float32').reshape((2, -1, 3000)) - 1",
        "(x * (1 + 1j))[:, :1500]",
        "tw.sort(x, axis=1)",
    ],
)
def test_a_result_is_held_once(result, threads):
    code = f"""
        with tw.Session(threads={threads}):
            x = tw.arange(3000 * 3000, dtype="float64").reshape((3000, 3000))
            tw.ones(10).compute()
            y = {result}
            before = rss()
            forget()
            array = y.compute()
            print(highest() - before, array.nbytes / 1e6)
    """
    growth, size = in_own_process(code)
    assert growth < 1.4 * size + 30


def test_several_results_are_held_once():
    code = """
        x = tw.arange(3000 * 3000, dtype="float64").reshape((3000, 3000))
        tw.ones(10).compute()
        before = rss()
        forget()
        a, b = tw.compute(x + 1, x.T * 2)
        print(highest() - before, (a.nbytes + b.nbytes) / 1e6)
    """
    growth, size = in_own_process(code)
    assert growth < 1.4 * size + 30


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "uint8", "complex64", "complex128", "bool", "datetime64[s]"])
@pytest.mark.parametrize("threads", [1, 2])
def test_elements_arrive_whatever_the_blocks_are(dtype, threads):
    data = (np.arange(1200 * 900) % 120).reshape(1200, 900)
    if dtype.startswith("datetime"):
        data = data.astype("int64").astype(dtype)
        with tw.Session(threads=threads):
            y = tw.asarray(data).rechunk((500, 200))
            np.testing.assert_array_equal(y.compute(), data)
            np.testing.assert_array_equal(y.T.rechunk((300, 1200)).compute(), data.T)
        return
    data = data.astype(dtype)
    with tw.Session(threads=threads):
        x = tw.asarray(data)
        plus = data + np.asarray(1).astype(dtype) if dtype != "bool" else data.astype("int64") + 1
        np.testing.assert_array_equal((x + 1).compute(), plus)
        np.testing.assert_array_equal((x + 1).T.compute(), plus.T)
        for chunks in [(500, 300), (-1, 7), (1, -1), -1]:
            np.testing.assert_array_equal((x + 1).rechunk(chunks).compute(), plus)
        both = tw.compute(x, x + 1, x, 5)
        np.testing.assert_array_equal(both[0], data)
        np.testing.assert_array_equal(both[1], plus)
        np.testing.assert_array_equal(both[2], data)
        assert both[3] == 5


@pytest.mark.parametrize("n", [5, 100_000, LARGE])
def test_nobody_else_has_the_elements(n):
    x = tw.arange(n) + 1
    expected = np.arange(n) + 1
    first = x.compute()
    assert first.flags.writeable
    first[:] = 0
    second, third = tw.compute(x, x)
    assert not np.shares_memory(second, third)
    third[:] = -1
    np.testing.assert_array_equal(second, expected)
    np.testing.assert_array_equal(np.asarray(x), expected)
    x.persist()
    x.compute()[:] = 7
    np.testing.assert_array_equal(x.compute(), expected)
    source = np.arange(n)
    y = tw.asarray(source)
    y.compute()[:] = 3
    np.testing.assert_array_equal(y.compute(), np.arange(n))
    np.testing.assert_array_equal(source, np.arange(n))


def test_a_large_result_is_kept_when_it_is_asked_for_again():
    with tw.Session(threads=1) as session:
        x = tw.arange(LARGE) * 3
        tasks = [session.report()["tasks"]]
        for _ in range(4):
            x.compute()
            tasks.append(session.report()["tasks"])
        assert tasks[0] < tasks[1] < tasks[2] == tasks[3] == tasks[4]
        held = session.report()["held_bytes"]
        assert held >= 8 * LARGE
        del x
        assert session.report()["held_bytes"] <= held - 8 * LARGE


def test_results_whose_length_depends_on_data():
    with tw.Session(threads=2):
        x = tw.arange(LARGE)
        kept, total = tw.compute(x[x % 3 == 0], tw.sum(x))
        np.testing.assert_array_equal(kept, np.arange(0, LARGE, 3))
        assert total == LARGE * (LARGE - 1) // 2


def test_a_budget_counts_what_is_being_copied():
    n = 1_000_000
    size = 8 * n
    for budget in (size + size // 8, 2 * size, 4 * size):
        with tw.Session(threads=2, memory=budget) as session:
            x = tw.arange(n, dtype="float64") * 2
            np.testing.assert_array_equal(x.compute(), np.arange(n) * 2.0)
            assert session.report()["peak_bytes"] <= budget
