"""Larger than memory: data moves, results stay."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tilewright as tw


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("budget") / "x.npy"
    data = np.random.default_rng(3).standard_normal((80_000, 100)) + 0.5
    np.save(path, data)
    return path, data


def read_bytes():
    with open("/proc/self/io") as file:
        return int(dict(line.split(": ") for line in file)["rchar"])


OPERATIONS = {
    "several": lambda x: [x.sum(), x.max(), x.mean(axis=0), x.std(axis=1).sum()],
    "standardised": lambda x: [(((x - x.mean(axis=0)) / x.std(axis=0)) ** 2).sum(axis=0)],
    "covariance": lambda x: [tw.cov(x.T)],
    "correlation": lambda x: [tw.corrcoef(x.T)],
    "normal equations": lambda x: [x.T @ x, x.T @ x[:, 0]],
    "mask": lambda x: [x[x[:, 0] > 1].mean(axis=0)],
    "product": lambda x: [(x @ x[:50].T).sum()],
    "cumulative": lambda x: [tw.cumulative_sum(x, axis=0)[-1]],
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_quarter_of_the_data_is_enough(name, source):
    path, data = source
    with tw.Session(threads=2):
        expected = tw.compute(*OPERATIONS[name](tw.from_npy(path)))
    budget = data.nbytes // 4
    with tw.Session(threads=2, memory=budget) as session:
        bounded = tw.compute(*OPERATIONS[name](tw.from_npy(path)))
        assert session.report()["peak_bytes"] <= budget
    for left, right in zip(expected, bounded, strict=True):
        np.testing.assert_array_equal(left, right)


def test_standardising_reads_its_input_twice_and_spills_nothing(source, tmp_path):
    path, data = source
    with tw.Session(threads=1, memory=data.nbytes // 8) as session:
        x = tw.from_npy(path)
        y = (x - x.mean(axis=0)) / x.std(axis=0)
        before = read_bytes()
        y.to_npy(tmp_path / "y.npy")
        read = read_bytes() - before
        assert 1.5 * data.nbytes < read < 2.2 * data.nbytes
        assert session.report()["spilled_bytes"] == 0
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), (data - data.mean(0)) / data.std(0))


def test_rows_by_a_mask_are_read_again_and_not_spilled(source, tmp_path):
    path, data = source
    with tw.Session(threads=2, memory=data.nbytes // 4) as session:
        x = tw.from_npy(path)
        rows = x[x[:, 0] > 1]
        named = rows.explain().to_dict()["input_passes"]
        before = read_bytes()
        rows.to_npy(tmp_path / "y.npy")
        # Once for the mask, once for the rows, but for those that stay in memory.
        read = (read_bytes() - before) / data.nbytes
        assert read < 2.1 and abs(read - named) < 0.3
        assert session.report()["spilled_bytes"] < data.nbytes // 50
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), data[data[:, 0] > 1])


def test_least_squares_reads_once_and_spills_nothing(tmp_path):
    n, columns = 300_000, 40
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((n, columns)), rng.standard_normal(n)
    a[:, 7] = a[:, 3] * 2
    np.save(tmp_path / "a.npy", a)
    expected = np.linalg.lstsq(a, b)
    with tw.Session(threads=1, memory=a.nbytes // 2, spill=tmp_path) as session:
        x = tw.from_npy(tmp_path / "a.npy")
        before = read_bytes()
        found = tw.compute(*tw.linalg.lstsq(x, tw.asarray(b)))
        assert read_bytes() - before < 1.2 * a.nbytes
        assert session.report()["spilled_bytes"] == 0
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-10, atol=1e-13)
    assert found[2] == expected[2] == columns - 1
    np.testing.assert_allclose(found[3][:-1], expected[3][:-1], rtol=1e-10)


def test_results_and_kept_arrays_are_spilled(tmp_path):
    budget = 4000 * 1000 * 8 // 2
    with tw.Session(threads=2, memory=budget, spill=tmp_path) as session:
        x = tw.random.default_rng(5).random((4000, 1000)).persist()
        y = (x * x).persist()
        z = (y + x).persist()
        report = session.report()
        assert report["spilled_bytes"] > 0 and report["peak_bytes"] <= budget
        assert os.listdir(tmp_path) == []
        parts = [z[k : k + 100].compute() for k in range(0, 4000, 100)]
        original = [x[k : k + 100].compute() for k in range(0, 4000, 100)]
    kept = np.concatenate(original)
    np.testing.assert_array_equal(np.concatenate(parts), kept * kept + kept)


def test_what_cannot_be_spilled_is_told(tmp_path):
    def kept(**options):
        with tw.Session(threads=1, memory="8MiB", **options):
            return tw.random.default_rng(5).random((4000, 1000)).persist()

    with pytest.raises(MemoryError, match="spilled"):
        kept(spill_limit="2MiB")
    (tmp_path / "file").write_text("x")
    with pytest.raises(MemoryError, match="spill"):
        kept(spill=tmp_path / "file" / "under")


def test_a_setting_of_the_environment(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_MEMORY", "1 parsec")
    with tw.Session(), pytest.raises(ValueError, match="TILEWRIGHT_MEMORY"):
        tw.ones(3).compute()
    monkeypatch.setenv("TILEWRIGHT_MEMORY", "1KiB")
    with tw.Session(), pytest.raises(MemoryError, match="smallest budget that works"):
        tw.ones(1000).compute()


def test_sessions_without_a_budget_of_their_own_share_one(tmp_path):
    code = """
import tilewright as tw
first, second, alone = tw.Session(threads=1), tw.Session(threads=1), tw.Session(threads=1, memory="64MiB")
kept = []
for session in (first, second, alone):
    with session:
        kept.append(tw.random.default_rng(1).random(5_000_000).persist())
print(*(session.report()[key] for session in (first, second, alone) for key in ("peak_bytes", "spilled_bytes")))
"""
    environment = {**os.environ, "TILEWRIGHT_MEMORY": "64MiB", "TILEWRIGHT_SPILL": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    first, spilled_by_first, second, spilled_by_second, alone, spilled_alone = map(int, ran.stdout.split())
    assert first >= 5_000_000 * 8 and alone >= 5_000_000 * 8 and spilled_by_first == spilled_alone == 0
    assert spilled_by_second > 0 and first + second <= 64 << 20
