"""Files are read in long runs, whichever way their arrays are cut."""

import numpy as np
import pytest

import tilewright as tw

ROWS, COLUMNS = 3000, 400


def counters() -> dict[str, int]:
    with open("/proc/self/io") as file:
        return {name: int(value) for name, value in (line.split(":") for line in file)}


class Reading:
    """Counts bytes read and calls of the system."""

    def __enter__(self):
        self.before = counters()
        return self

    def __exit__(self, *exception):
        after = counters()
        self.bytes = after["rchar"] - self.before["rchar"]
        self.calls = after["syscr"] - self.before["syscr"]


@pytest.fixture(scope="module", params=["C", "F", "big-endian"])
def source(request, tmp_path_factory):
    data = np.random.default_rng(5).random((ROWS, COLUMNS))
    path = tmp_path_factory.mktemp("columns") / "x.npy"
    stored = data.astype(">f8") if request.param == "big-endian" else np.asarray(data, order=request.param)
    np.save(path, stored)
    return path, data


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "use, expected",
    [
        (lambda x: tw.median(x, axis=0), lambda x: np.median(x, axis=0)),
        (lambda x: tw.quantile(x, 0.3, axis=1), lambda x: np.quantile(x, 0.3, axis=1)),
        (lambda x: x.rechunk((-1, 1)) + 1, lambda x: x + 1),
        (lambda x: x.rechunk((1, -1)) + 1, lambda x: x + 1),
        (lambda x: x.rechunk((700, 30)) + 1, lambda x: x + 1),
        (lambda x: tw.sort(x, axis=0), lambda x: np.sort(x, axis=0)),
        (lambda x: x.T + 0, lambda x: x.T),
        (lambda x: x[:, ::-2] * 1, lambda x: x[:, ::-2]),
    ],
)
def test_each_byte_is_read_about_once(source, use, expected, threads):
    path, data = source
    with tw.Session(threads=threads), Reading() as reading:
        result = use(tw.from_npy(path)).compute()
    np.testing.assert_allclose(result, expected(data), rtol=1e-12)
    assert reading.bytes <= 2.2 * data.nbytes + 1e5
    # One call for every block of a row.
    assert reading.calls <= ROWS + 100


def test_a_column_of_short_rows_takes_few_calls(tmp_path):
    narrow = np.random.default_rng(7).random((20_000, 200))
    np.save(tmp_path / "narrow.npy", narrow)
    with Reading() as reading:
        np.testing.assert_array_equal(tw.from_npy(tmp_path / "narrow.npy")[:, 5].compute(), narrow[:, 5])
    assert reading.calls <= 500 and reading.bytes <= 1.1 * narrow.nbytes + 1e5


def test_a_budget_counts_what_is_read_along(source):
    path, data = source
    for budget in (data.nbytes // 2, data.nbytes, 3 * data.nbytes):
        with tw.Session(threads=2, memory=budget) as session:
            result = tw.median(tw.from_npy(path), axis=0).compute()
            assert session.report()["peak_bytes"] <= budget
        np.testing.assert_allclose(result, np.median(data, axis=0))


def test_edges(tmp_path):
    for shape in [(0, 5), (5, 0), (), (1,), (7, 1), (1, 9), (3, 1, 4)]:
        for order in "CF":
            data = np.asarray(np.arange(np.prod(shape, dtype=int), dtype="float32").reshape(shape), order=order)
            np.save(tmp_path / "x.npy", data)
            x = tw.from_npy(tmp_path / "x.npy")
            np.testing.assert_array_equal((x + 1).compute(), data + 1)
            np.testing.assert_array_equal((x.T + 1).compute(), data.T + 1)
