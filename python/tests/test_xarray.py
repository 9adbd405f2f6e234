"""How the chunk manager is found, and what it promises beside results: one plan, nothing computed early, files as they should be."""

from __future__ import annotations

import subprocess
import sys
import warnings
from importlib.metadata import entry_points
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

xr = pytest.importorskip("xarray", reason="xarray is not installed")
pytest.importorskip("zarr", reason="zarr is not installed")

import tilewright as tw  # noqa: E402
from tilewright.xarray import TilewrightManager  # noqa: E402
from tilewright.xarray._hooks import left_out  # noqa: E402


@pytest.fixture(autouse=True)
def ours():
    with xr.set_options(chunk_manager="tilewright"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture
def ds():
    rng = np.random.default_rng(0)
    time = pd.date_range("2001-01-01", periods=60)
    return xr.Dataset({"a": (("time", "x"), rng.normal(size=(60, 8))), "b": (("time", "x"), rng.normal(size=(60, 8)))}, coords={"time": time})


def test_entry_point():
    (found,) = [each for each in entry_points(group="xarray.chunkmanagers") if each.name == "tilewright"]
    assert found.load() is TilewrightManager


@pytest.mark.skipif(find_spec("dask") is not None, reason="dask is installed, too: xarray prefers it")
def test_the_only_manager_needs_no_name():
    script = (
        "import numpy as np, xarray as xr\n"
        "x = xr.DataArray(np.ones(4), dims='x').chunk(x=2)\n"
        "print(type(x.data).__module__)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "tilewright._array"


def test_nothing_of_xarray_is_missing():
    assert left_out() == []


def test_by_name(ds):
    assert isinstance(ds.chunk(time=7, chunked_array_type="tilewright").a.data, tw.Array)
    assert ds.chunk(time=25).a.chunks == ((25, 25, 10), (8,))


def test_file_chunks(ds, tmp_path):
    ds.to_zarr(tmp_path / "x.zarr", encoding={name: {"chunks": (20, 4)} for name in ds})
    assert xr.open_zarr(tmp_path / "x.zarr").a.chunks == ((20,) * 3, (4, 4))
    assert xr.open_dataset(tmp_path / "x.zarr", engine="zarr", chunks={}).a.chunks == ((20,) * 3, (4, 4))
    assert xr.open_dataset(tmp_path / "x.zarr", engine="zarr", chunks={"time": 40}).a.chunks == ((40, 20), (4, 4))
    # Automatic blocks are made of whole chunks of the file.
    assert xr.open_dataset(tmp_path / "x.zarr", engine="zarr", chunks="auto").a.chunks == ((60,), (8,))


def test_plain_variables_of_a_store_need_no_python(ds, tmp_path, monkeypatch):
    ds.to_zarr(tmp_path / "x.zarr", encoding={name: {"chunks": (20, 4)} for name in ds})
    read = xr.open_zarr(tmp_path / "x.zarr")
    expected = ds.a.mean("time").values

    def refuse(*_):
        raise AssertionError("read through zarr")

    monkeypatch.setattr("xarray.backends.zarr.ZarrArrayWrapper.__getitem__", refuse)
    np.testing.assert_allclose(read.a.mean("time").values, expected)
    np.testing.assert_array_equal(read.b.values, ds.b.values)


@pytest.mark.parametrize("encoding", [{"dtype": "int16", "scale_factor": 0.01, "add_offset": 1.0, "_FillValue": -99}, {"dtype": ">f8"}])
def test_encoded_variables_of_a_store(ds, tmp_path, encoding):
    ds.a[3, 4] = np.nan
    ds[["a"]].to_zarr(tmp_path / "x.zarr", encoding={"a": {"chunks": (20, 4), **encoding}}, zarr_format=2)
    read = xr.open_zarr(tmp_path / "x.zarr")
    assert isinstance(read.a.data, tw.Array)
    np.testing.assert_array_equal(read.a.values, xr.open_zarr(tmp_path / "x.zarr", chunks=None).a.values)
    part = xr.open_zarr(tmp_path / "x.zarr", chunks=None).isel(time=slice(3, 33)).chunk(time=9)
    np.testing.assert_array_equal(part.a.values, read.a.values[3:33])


class Counted:
    """A source that tells how often it is read."""

    def __init__(self, values):
        self.values, self.shape, self.dtype, self.reads = values, values.shape, values.dtype, 0

    def __getitem__(self, key):
        self.reads += 1
        return self.values[key]


def test_a_dataset_is_computed_in_one_plan(ds):
    source = Counted(ds.a.values)
    x = xr.DataArray(tw.from_array(source, chunks=(20, 8)), dims=("time", "x"), coords={"time": ds.time})
    source.reads = 0
    several = xr.Dataset({"mean": x.mean("time"), "spread": x.max("time") - x.min("time"), "clim": x.groupby("time.month").mean()})
    assert source.reads == 0
    computed = several.compute()
    assert source.reads == 3
    np.testing.assert_allclose(computed["mean"], ds.a.mean("time"))
    np.testing.assert_allclose(computed["clim"], ds.a.groupby("time.month").mean())


def test_anomalies_read_once(ds):
    source = Counted(ds.a.values)
    x = xr.DataArray(tw.from_array(source, chunks=(20, 8)), dims=("time", "x"), coords={"time": ds.time})
    source.reads = 0
    anomaly = x.groupby("time.month") - x.groupby("time.month").mean()
    assert source.reads == 0
    np.testing.assert_allclose(anomaly, ds.a.groupby("time.month") - ds.a.groupby("time.month").mean(), atol=1e-12)
    assert source.reads == 3


@pytest.mark.parametrize("use_flox", [True, False])
def test_groups_are_one_operation(ds, use_flox):
    # One reduction for all groups, with flox or without it: as many statements for two groups as for sixty.
    with xr.set_options(use_flox=use_flox):
        few, many = (ds.chunk(time=20).a.groupby(by).mean().data.explain().to_dict() for by in ("time.month", "time.dayofyear"))
    assert len(str(many)) < 2 * len(str(few))


@pytest.mark.parametrize("name", ["median", "first", "last"])
@pytest.mark.parametrize("dim", ["time", ("time", "x"), ...])
def test_whole_groups_are_one_part_per_block(ds, name, dim):
    ds.a[3:50:5] = np.nan
    options = {"dim": dim} if name == "median" else {}
    few, many = (getattr(ds.chunk(time=20, x=4).a.groupby(by), name)(**options).data.explain().to_dict() for by in ("time.month", "time.dayofyear"))
    assert len(str(many)) < 2 * len(str(few))
    found = getattr(ds.chunk(time=20, x=4).groupby("time.month"), name)(**options)
    assert isinstance(found.a.data, tw.Array)
    xr.testing.assert_allclose(found.compute(), getattr(ds.groupby("time.month"), name)(**options))


def test_written_later(ds, tmp_path):
    path = tmp_path / "later.zarr"
    writing = ds.chunk(time=20).to_zarr(path, compute=False)
    assert np.isnan(xr.open_zarr(path, chunks=None).a.values).all()
    writing.compute()
    xr.testing.assert_equal(xr.open_zarr(path, chunks=None).load(), ds)


def test_region_leaves_the_rest(ds, tmp_path):
    path = tmp_path / "x.zarr"
    ds.to_zarr(path, encoding={name: {"chunks": (20, 8)} for name in ds})
    (ds.isel(time=slice(20, 40)).chunk(time=20) * 10).to_zarr(path, region={"time": slice(20, 40)})
    found = xr.open_zarr(path, chunks=None).a.values
    np.testing.assert_allclose(found[20:40], ds.a.values[20:40] * 10)
    np.testing.assert_array_equal(np.delete(found, range(20, 40), 0), np.delete(ds.a.values, range(20, 40), 0))


def test_several_variables_are_written_in_one_plan(ds, tmp_path):
    source = Counted(ds.a.values)
    x = xr.DataArray(tw.from_array(source, chunks=(20, 8)), dims=("time", "x"))
    source.reads = 0
    xr.Dataset({"low": x - 1, "high": x + 1}).to_zarr(tmp_path / "x.zarr")
    assert source.reads == 3


def test_strings_stay_in_numpy():
    x = xr.DataArray(["a", "b", "c"], dims="x").chunk(x=1)
    assert isinstance(x.data, np.ndarray)


def test_map_blocks_sees_blocks(ds):
    lengths = xr.map_blocks(lambda block: block * 0 + block.sizes["time"], ds.a.chunk(time=25))
    assert isinstance(lengths.data, tw.Array)
    np.testing.assert_array_equal(lengths.isel(x=0), [25] * 50 + [10] * 10)


def test_map_blocks_checks_results(ds):
    x = ds.a.chunk(time=25)
    with pytest.raises(ValueError, match="one block of the input"):
        xr.map_blocks(lambda block: block, x, template=x.chunk(time=10))
    with pytest.raises(ValueError, match="Dimensions .* missing"):
        xr.map_blocks(lambda block: block.isel(time=0, drop=True), x, template=x).compute()
    with pytest.raises(TypeError, match="template must be"):
        xr.map_blocks(lambda block: block, x, template=3)
    with pytest.raises(ValueError, match="several blocks"):
        xr.map_blocks(lambda block: block.mean("time"), x)


def test_arguments_of_compute(ds):
    x = ds.chunk(time=20)
    xr.testing.assert_equal(x.compute(scheduler="threads"), ds)
    with pytest.raises(TypeError, match="no argument 'threds'"):
        x.compute(threds=3)


def test_groups_by_lazy_labels(ds):
    labels = xr.DataArray(np.arange(60) % 3, dims="time", name="k")
    x = ds.a.assign_coords(k=labels)
    by = xr.groupers.UniqueGrouper(labels=[0, 1, 2])
    found = x.chunk(time=20).assign_coords(k=labels.chunk(time=20)).groupby(k=by).mean()
    assert isinstance(found.data, tw.Array)
    np.testing.assert_allclose(found.transpose("k", "x"), x.groupby("k").mean().transpose("k", "x"))


def test_assignment(ds):
    x, expected = ds.a.chunk(time=20), ds.a.copy(deep=True)
    for each in (x, expected):
        each[{"time": 3}] = 1.0
        each[{"time": [5, 7], "x": [0, 2]}] = 2.0
        each[{"time": xr.DataArray([1, 2], dims="p"), "x": xr.DataArray([3, 4], dims="p")}] = 3.0
    assert isinstance(x.data, tw.Array)
    xr.testing.assert_equal(x.compute(), expected)
