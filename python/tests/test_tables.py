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


def several_types(n):
    k = np.arange(n)
    return {
        "flag": k % 3 == 0,
        "small": (k % 100).astype("int8"),
        "id": k * 10_000_000_019,
        "size": k.astype("uint32"),
        "price": np.where(k % 7 == 3, np.nan, k / 3),
        "half": (k / 2).astype("float32"),
        "day": np.where(k % 5 == 4, np.datetime64("NaT"), np.datetime64("1969-12-30") + k.astype("timedelta64[D]")),
        "when": np.datetime64("2020-01-01T00:00:00.000001") + k.astype("timedelta64[us]"),
    }


@pytest.mark.parametrize("codec", [None, "none", "snappy", "gzip", "lz4", ("zstd", 9)])
def test_parquet_round_trip(tmp_path, codec):
    data = several_types(400_000)
    path = tmp_path / "x.parquet"
    tw.to_parquet({name: tw.asarray(values).rechunk(70_001) for name, values in data.items()}, path, codec=codec)
    found = tw.read_parquet(path)
    assert list(found) == list(data)
    for (name, x), values in zip(found.items(), tw.compute(*found.values()), strict=True):
        assert x.dtype == data[name].dtype
        np.testing.assert_array_equal(values, data[name])
    np.testing.assert_array_equal(found["price"][300_000:300_007].compute(), data["price"][300_000:300_007])
    assert [each.name for each in tmp_path.iterdir()] == ["x.parquet"]


def test_files_are_the_same_on_any_number_of_threads(tmp_path):
    x = tw.random.default_rng(1).random((300_000, 3))
    written = []
    for threads in (1, 2, 4):
        with tw.Session(threads=threads):
            for ending in ("parquet", "csv"):
                x = tw.random.default_rng(1).random((100_000, 3))
                getattr(tw, f"to_{ending}")(x, tmp_path / f"{threads}.{ending}", columns=["a", "b", "c"])
        written.append([(tmp_path / f"{threads}.{ending}").read_bytes() for ending in ("parquet", "csv")])
    assert written[0] == written[1] == written[2]
    np.testing.assert_array_equal(tw.read_csv(tmp_path / "2.csv", table=True).compute(), x[:100_000].compute())


def test_other_libraries_read_what_is_written(tmp_path):
    pd = pytest.importorskip("pandas")
    data = several_types(5000)
    tw.to_parquet(data, tmp_path / "x.parquet")
    tw.to_csv(data["price"], tmp_path / "x.csv", columns=["price"])
    text = pd.read_csv(tmp_path / "x.csv", float_precision="round_trip")
    np.testing.assert_array_equal(text["price"], data["price"])
    for library in ("pyarrow.parquet", "polars"):
        module = pytest.importorskip(library)
        frame = module.read_table(tmp_path / "x.parquet") if "arrow" in library else module.read_parquet(tmp_path / "x.parquet")
        for name, expected in data.items():
            np.testing.assert_array_equal(np.asarray(frame[name]).astype(expected.dtype), expected)


def test_what_other_libraries_write(tmp_path):
    pytest.importorskip("pyarrow")
    pd = pytest.importorskip("pandas")
    data = several_types(50_000)
    for options in ({}, {"compression": "zstd", "data_page_version": "2.0"}, {"use_dictionary": False, "compression": None}, {"data_page_size": 3000, "row_group_size": 7001}):
        pd.DataFrame(data).to_parquet(tmp_path / "x.parquet", **options)
        found = tw.read_parquet(tmp_path / "x.parquet")
        for name, expected in data.items():
            np.testing.assert_array_equal(found[name].compute().astype(expected.dtype), expected, err_msg=f"{options} {name}")


def test_tables_that_cannot_be_written(tmp_path):
    path = tmp_path / "x.parquet"
    tw.to_parquet(tw.arange(3), path, columns=["k"])
    with pytest.raises(ValueError, match="called .parquet or .pq"):
        tw.to_parquet(tw.arange(3), tmp_path / "x.npy")
    with pytest.raises(ValueError, match="`b` has 4 elements, but `a` has 3"):
        tw.to_parquet({"a": tw.arange(3), "b": tw.arange(4)}, path)
    with pytest.raises(ValueError, match="column `a` is c128"):
        tw.to_parquet({"a": tw.asarray([1j])}, path)
    with pytest.raises(TypeError, match="would lose digits"):
        tw.to_csv({"a": tw.arange(3), "b": tw.arange(3.0)}, tmp_path / "x.csv")
    failing = tw.map_blocks(lambda x: int("x"), tw.arange(3.0), dtype="f8")
    with pytest.raises(ValueError, match="invalid literal"):
        tw.to_parquet({"k": tw.arange(3), "x": failing}, path)
    assert list(tw.read_parquet(path)) == ["k"] and [each.name for each in tmp_path.iterdir()] == ["x.parquet"]


def test_tables_in_the_language(tmp_path):
    program = f"""
        x[i,j] = i + 0.5 * j for i in 0..2000, j in 0..3
        output x -> "{tmp_path}/x.parquet"
        y = x * 2
        output y -> "{tmp_path}/y.csv"
    """
    tw.program(program)
    x = np.arange(2000)[:, None] + 0.5 * np.arange(3)
    np.testing.assert_array_equal(tw.read_parquet(tmp_path / "x.parquet", table=True).compute(), x)
    again = tw.program(f'input y = read("{tmp_path}/y.csv")\nz = y / 2\noutput z\n')
    np.testing.assert_array_equal(np.asarray(again["z"]), x)


def test_coordinates_as_dense_arrays(tmp_path):
    path = tmp_path / "x.mtx"
    path.write_text("%%MatrixMarket matrix coordinate integer symmetric\n3 3 2\n1 1 4\n3 1 7\n")
    np.testing.assert_array_equal(tw.read_mtx(path).compute(), [[4, 0, 7], [0, 0, 0], [7, 0, 0]])
    path.write_text("%%MatrixMarket matrix coordinate real general\n1000000000 1000000000 1\n1 1 4\n")
    with pytest.raises(OSError, match="as a dense tensor"):
        tw.read_mtx(path)
    with pytest.raises(ValueError, match="called .mtx or .tns"):
        tw.read_mtx(tmp_path)
