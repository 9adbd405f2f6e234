"""Tables of numbers as text and as Parquet, several files as one array, and HDF5."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import tilewright as tw


def test_columns_of_text(tmp_path):
    rows = 5000
    a, b = np.arange(rows) * 0.25, np.random.default_rng(0).standard_normal(rows)
    text = "a,name,b\n" + "".join(f"{x!r},n{k},{'' if k % 10 == 3 else repr(y)}\n" for k, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)))
    path = tmp_path / "t.csv"
    path.write_text(text)
    columns = tw.read_csv(path)
    assert list(columns) == ["a", "b"]
    np.testing.assert_array_equal(columns["a"].compute(), a)
    expected = np.where(np.arange(rows) % 10 == 3, np.nan, b)
    np.testing.assert_array_equal(columns["b"].compute(), expected)
    np.testing.assert_array_equal(tw.read_csv(path, ["b", "a"], table=True).compute(), np.column_stack([expected, a]))
    mean, largest = tw.compute(tw.nanmean(columns["b"]), columns["a"].max())
    assert float(mean) == pytest.approx(np.nanmean(expected)) and float(largest) == a.max()
    (tmp_path / "u.txt").write_text("1;2\n3;4\n")
    np.testing.assert_array_equal(tw.read_csv(tmp_path / "u.txt", delimiter=";", header=False, table=True).compute(), [[1, 2], [3, 4]])


def test_text_that_is_wrong(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 300 + "1,x\n")
    with pytest.raises(OSError, match="line 302: column `b`: `x` is not a number"):
        tw.read_csv(path)["b"].compute()
    with pytest.raises(OSError, match="no column `c`"):
        tw.read_csv(path, ["c"])
    with pytest.raises(ValueError, match="one character"):
        tw.read_csv(path, delimiter="::")
    with pytest.raises(FileNotFoundError):
        tw.read_csv(tmp_path / "none.csv")


def test_several_files(tmp_path):
    parts = [np.random.default_rng(k).random((k + 1, 5)) for k in range(11)]
    for k, part in enumerate(parts):
        np.save(tmp_path / f"part-{k}.npy", part)
    whole = np.concatenate(parts)
    x = tw.open_files(tmp_path / "part-*.npy")
    np.testing.assert_array_equal(x.compute(), whole)
    np.testing.assert_array_equal(x[20:40, 2].compute(), whole[20:40, 2])
    again = [tmp_path / "part-3.npy", tmp_path / "part-1.npy"]
    np.testing.assert_array_equal(tw.open_files(again).compute(), np.concatenate([parts[3], parts[1]]))
    sides = [tmp_path / "part-3.npy"] * 3
    np.testing.assert_array_equal(tw.open_files(sides, axis=1).compute(), np.concatenate([parts[3]] * 3, axis=1))
    with pytest.raises(OSError, match="part-1.npy"):
        tw.open_files(tmp_path / "part-*.npy", axis=1)
    with pytest.raises(OSError, match="no file fits"):
        tw.open_files(tmp_path / "none-*.npy")
    result = tw.program(f'input P = "{tmp_path}/part-*.npy"\ns = sum(P)\noutput s\n')
    assert float(result["s"]) == pytest.approx(whole.sum())
    for k in (2, 10):
        tw.asarray(parts[k]).to_zarr(tmp_path / f"z{k}.zarr")
    np.testing.assert_array_equal(tw.open_files(tmp_path / "z*.zarr").compute(), np.concatenate([parts[2], parts[10]]))


def test_hdf5(tmp_path):
    h5py = pytest.importorskip("h5py")
    x = np.random.default_rng(0).random((30, 40))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("deep/x", data=x, chunks=(7, 40))
    found = tw.open_hdf5(tmp_path / "x.h5", "deep/x")
    np.testing.assert_array_equal((found * 2).compute(), x * 2)
    with pytest.raises(KeyError, match="deep/x"):
        tw.open_hdf5(tmp_path / "x.h5", "y")


DATA = pathlib.Path(__file__).parents[2] / "crates" / "tw-files" / "tests" / "data"


def test_columns_of_parquet_files():
    k = np.arange(1000)
    columns = tw.read_parquet(DATA / "snappy.parquet", ["f", "i", "u", "t"])
    assert [x.dtype for x in columns.values()] == ["float64", "int64", "uint8", "datetime64[us]"]
    f, i, u, t = tw.compute(*columns.values())
    np.testing.assert_array_equal(f, np.where(k % 7 == 3, np.nan, k / 4 - 100))
    np.testing.assert_array_equal(i, k * k - 50)
    np.testing.assert_array_equal(u, k % 256)
    assert np.isnat(t[5]) and t[6] == np.datetime64(6000, "us")
    assert "s" not in tw.read_parquet(DATA / "plain.parquet")
    both = tw.read_parquet([DATA / "plain.parquet", DATA / "lz4.parquet"], ["i", "g"], table=True)
    assert both.shape == (2000, 2)
    np.testing.assert_array_equal(both[1000:, 0].compute(), k * k - 50)
    with pytest.raises(OSError, match="column `n` is null in row 998"):
        tw.read_parquet(DATA / "snappy.parquet", ["n"])["n"].compute()
    with pytest.raises(OSError, match="no column `nope`"):
        tw.read_parquet(DATA / "snappy.parquet", ["nope"])
    with pytest.raises(FileNotFoundError):
        tw.read_parquet("nowhere.parquet")


def test_coordinates_as_dense_arrays(tmp_path):
    path = tmp_path / "x.mtx"
    path.write_text("%%MatrixMarket matrix coordinate integer symmetric\n3 3 2\n1 1 4\n3 1 7\n")
    np.testing.assert_array_equal(tw.read_mtx(path).compute(), [[4, 0, 7], [0, 0, 0], [7, 0, 0]])
    path.write_text("%%MatrixMarket matrix coordinate real general\n1000000000 1000000000 1\n1 1 4\n")
    with pytest.raises(OSError, match="as a dense tensor"):
        tw.read_mtx(path)
    with pytest.raises(ValueError, match="called .mtx or .tns"):
        tw.read_mtx(tmp_path)
