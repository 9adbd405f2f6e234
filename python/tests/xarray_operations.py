"""Operations of xarray, by the names that users know them by: functions of a dataset, or of one and a folder for files.

``test_xarray_operations.py`` compares each with NumPy; ``python/tools/xarray_operations.py`` counts how many are lazy and equal under several chunk managers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr


def dataset() -> xr.Dataset:
    """Two years of days on a small grid, with some values missing."""
    rng = np.random.default_rng(5)
    shape = (731, 4, 6)
    a = rng.normal(size=shape).cumsum(axis=0)
    a[rng.random(shape) < 0.05] = np.nan
    a[:, 2, 3] = np.nan
    days = pd.date_range("2000-01-01", periods=shape[0])
    when = days.values[:, None] + rng.integers(0, 86400, size=(shape[0], 4)).astype("timedelta64[s]")
    dims = ("time", "lat", "lon")
    return xr.Dataset(
        {
            "a": (dims, a, {"units": "K"}),
            "b": (dims, rng.random(shape).astype("f4")),
            "c": (dims, rng.random(shape)),
            "n": (dims, rng.integers(0, 50, size=shape)),
            "flag": (dims, rng.random(shape) < 0.3),
            "when": (("time", "lat"), when.astype("datetime64[ns]")),
        },
        coords={"time": days, "lat": np.linspace(-45.0, 45.0, 4), "lon": np.arange(6) * 60.0, "area": (("lat", "lon"), rng.random((4, 6)))},
    )


#: How datasets are chunked for the comparison.
CHUNKS = {"time": 200, "lat": 2}


@dataclass
class Files:
    """Where an operation may write, and how it opens what it wrote: in the chunks of the file, or without any."""

    folder: Path
    chunks: dict[str, Any] | None

    def zarr(self, ds: xr.Dataset, name: str = "x.zarr", **options: Any) -> str:
        path = str(self.folder / name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ds.to_zarr(path, **options)
        return path

    def netcdf(self, ds: xr.Dataset, name: str = "x.nc", **options: Any) -> str:
        path = str(self.folder / name)
        ds.to_netcdf(path, **options)
        return path


def _plain(ds: xr.Dataset) -> xr.Dataset:
    return ds[["a", "n"]].drop_vars("area")


def _open_zarr(ds: xr.Dataset, files: Files) -> xr.Dataset:
    return xr.open_zarr(files.zarr(_plain(ds)), chunks=files.chunks)


def _open_packed(ds: xr.Dataset, files: Files) -> xr.Dataset:
    packed = {"a": {"dtype": "i2", "scale_factor": 0.01, "_FillValue": -9999}}
    return xr.open_dataset(files.netcdf(_plain(ds).load() if files.chunks is None else _plain(ds), encoding=packed), chunks=files.chunks)


def _by_rows(ds: xr.Dataset, files: Files, length: int) -> xr.Dataset:
    """Chunks that are those of the file along time, and whole along the other axes."""
    return ds if files.chunks is None else ds.chunk(time=length, lat=-1)


def _region(ds: xr.Dataset, files: Files) -> xr.Dataset:
    plain = _by_rows(_plain(ds), files, 100)
    path = files.zarr(plain, encoding={name: {"chunks": (100, 4, 6)} for name in plain})
    part = (plain.isel(time=slice(200, 400)) * 2).drop_vars(["lat", "lon"])
    part.to_zarr(path, region={"time": slice(200, 400)})
    return xr.open_zarr(path, chunks=files.chunks)


def _automatic_region(ds: xr.Dataset, files: Files) -> xr.Dataset:
    plain = _by_rows(_plain(ds), files, 100)
    path = files.zarr(plain, encoding={name: {"chunks": (100, 4, 6)} for name in plain})
    part = plain.isel(time=slice(400, 600)) + 1
    part.to_zarr(path, region="auto")
    return xr.open_zarr(path, chunks=files.chunks)


def _append(ds: xr.Dataset, files: Files) -> xr.Dataset:
    plain = _by_rows(_plain(ds), files, 200)
    path = files.zarr(plain.isel(time=slice(0, 400)), encoding={name: {"chunks": (200, 4, 6)} for name in plain})
    plain.isel(time=slice(400, None)).to_zarr(path, append_dim="time")
    return xr.open_zarr(path, chunks=files.chunks)


def _later(ds: xr.Dataset, files: Files) -> xr.Dataset:
    path = str(files.folder / "later.zarr")
    writing = _plain(ds).to_zarr(path, compute=files.chunks is None)
    if files.chunks is not None:
        writing.compute()
    return xr.open_zarr(path, chunks=files.chunks)


def _later_netcdf(ds: xr.Dataset, files: Files) -> xr.Dataset:
    path = str(files.folder / "later.nc")
    writing = _plain(ds).to_netcdf(path, compute=files.chunks is None)
    if files.chunks is not None:
        writing.compute()
    return xr.open_dataset(path, chunks=files.chunks)


def _several_files(ds: xr.Dataset, files: Files) -> xr.Dataset:
    plain = _plain(ds)
    paths = [files.netcdf(plain.isel(time=part), f"{k}.nc") for k, part in enumerate((slice(0, 300), slice(300, None)))]
    options = {"combine": "nested", "concat_dim": "time", "join": "outer", "data_vars": "all", "coords": "different", "compat": "equals"}
    if files.chunks is None:
        return xr.concat([xr.load_dataset(path) for path in paths], dim="time", join="outer", data_vars="all", coords="different", compat="equals")
    return xr.open_mfdataset(paths, chunks=files.chunks, **options)


def _whole(x: Any, dim: str) -> Any:
    """As users must do it for functions that see a dimension whole."""
    return x.chunk({dim: -1}) if x.chunks else x


def _double(block: Any) -> Any:
    return block * 2


def _anomalies(block: Any) -> Any:
    return block - block.mean("lon")


def _scaled(block: Any, factor: Any, offset: float = 0.0) -> Any:
    return block * factor + offset


def _summary(block: Any) -> Any:
    return xr.Dataset({"middle": block.mean("lon"), "total": block.sum("lon")})


def _spread(values: np.ndarray, axis: int = -1) -> np.ndarray:
    return np.nanmax(values, axis=axis) - np.nanmin(values, axis=axis)


def _clim(x: Any, by: str) -> Any:
    return x.groupby(by).mean()


def _standardised(x: Any, by: str) -> Any:
    groups = x.groupby(by)
    return (x.groupby(by) - groups.mean()).groupby(by) / groups.std()


Operation = Callable[..., Any]

#: Operations by the part of xarray that they belong to.
OPERATIONS: dict[str, dict[str, Operation]] = {
    "open": {
        "zarr": _open_zarr,
        "zarr then mean": lambda ds, files: _open_zarr(ds, files).mean("time"),
        "zarr engine": lambda ds, files: xr.open_dataset(files.zarr(_plain(ds)), engine="zarr", chunks=files.chunks),
        "netcdf": lambda ds, files: xr.open_dataset(files.netcdf(_plain(ds)), chunks=files.chunks),
        "netcdf packed": _open_packed,
        "netcdf by h5netcdf": lambda ds, files: xr.open_dataset(files.netcdf(_plain(ds), engine="h5netcdf"), engine="h5netcdf", chunks=files.chunks),
        "several files": _several_files,
    },
    "write": {
        "zarr": _open_zarr,
        "zarr region": _region,
        "zarr automatic region": _automatic_region,
        "zarr append": _append,
        "zarr later": _later,
        "netcdf later": _later_netcdf,
        "netcdf": lambda ds, files: xr.open_dataset(files.netcdf(_plain(ds)), chunks=files.chunks),
        "result to zarr": lambda ds, files: xr.open_zarr(files.zarr((_plain(ds) * 2).isel(time=slice(0, 400))), chunks=files.chunks),
    },
    "arithmetic": {
        "scale": lambda ds: ds.a * 2 + 1,
        "variables": lambda ds: ds.a * ds.b - ds.n,
        "broadcast": lambda ds: ds.a * ds.area,
        "power": lambda ds: ds.a**2,
        "comparison": lambda ds: ds.a > ds.b,
        "logic": lambda ds: (ds.a > 0) & ds.flag,
        "ufunc": lambda ds: np.exp(ds.c) + np.hypot(ds.a, ds.c),
        "dataset": lambda ds: ds[["a", "b"]] / 3,
        "where": lambda ds: ds.a.where(ds.flag),
        "where other": lambda ds: xr.where(ds.a > 0, ds.a, -1.0),
        "where drop": lambda ds: ds.a.where(ds.lat > 0, drop=True),
        "clip": lambda ds: ds.a.clip(-1, 1),
        "round": lambda ds: ds.a.round(2),
        "astype": lambda ds: ds.n.astype("f4"),
        "fillna": lambda ds: ds.a.fillna(0),
        "fillna by means": lambda ds: ds.a.fillna(ds.a.mean("time")),
        "isnull": lambda ds: ds.a.isnull(),
        "notnull count": lambda ds: ds.a.notnull().sum("time"),
        "isin": lambda ds: ds.n.isin([1, 2, 3]),
        "modulo": lambda ds: ds.n % 7,
        "negation": lambda ds: -ds.n,
        "abs": lambda ds: abs(ds.a),
        "dot": lambda ds: xr.dot(ds.b, ds.area, dim="lat"),
        "dot of all": lambda ds: xr.dot(ds.b, ds.n, dim=["time", "lat"]),
        "cross": lambda ds: xr.cross(ds.b.isel(lon=slice(0, 3)).drop_vars("lon"), ds.b.isel(lon=slice(3, 6)).drop_vars("lon"), dim="lon"),
    },
    "reductions": {
        "mean": lambda ds: ds.a.mean("time"),
        "mean of all": lambda ds: ds.a.mean(),
        "mean of two": lambda ds: ds.a.mean(["lat", "lon"]),
        "mean with NaN": lambda ds: ds.a.mean("time", skipna=False),
        "sum": lambda ds: ds.a.sum("time"),
        "sum min_count": lambda ds: ds.a.sum("time", min_count=3),
        "sum of integers": lambda ds: ds.n.sum("lon"),
        "prod": lambda ds: ds.b.prod("lon"),
        "min": lambda ds: ds.a.min("time"),
        "max": lambda ds: ds.a.max(["time", "lon"]),
        "max with NaN": lambda ds: ds.a.max("time", skipna=False),
        "std": lambda ds: ds.a.std("time"),
        "var ddof": lambda ds: ds.a.var("time", ddof=1),
        "count": lambda ds: ds.a.count("time"),
        "any": lambda ds: ds.flag.any("time"),
        "all": lambda ds: ds.flag.all("lon"),
        "median": lambda ds: ds.b.median("lon"),
        "median with missing": lambda ds: ds.a.median("lon"),
        "quantile": lambda ds: ds.b.quantile([0.1, 0.5], dim="lon"),
        "quantile of the cut axis": lambda ds: ds.b.quantile(0.25, dim="time"),
        "median of the cut axis": lambda ds: ds.a.median("time"),
        "quantile with missing": lambda ds: ds.a.quantile(0.9, dim="lon"),
        "argmax": lambda ds: ds.b.argmax("time"),
        "argmin with missing": lambda ds: ds.a.fillna(0).argmin("lon"),
        "idxmax": lambda ds: ds.b.idxmax("time"),
        "cumsum": lambda ds: ds.a.cumsum("time"),
        "cumprod": lambda ds: ds.b.cumprod("lon"),
        "dataset mean": lambda ds: ds[["a", "b", "n"]].mean("time"),
        "dataset max": lambda ds: ds[["a", "b", "n"]].max(),
        "mean of times": lambda ds: ds.when.mean("lat"),
        "latest": lambda ds: ds.when.max("lat"),
        "cov": lambda ds: xr.cov(ds.a, ds.c, dim="time"),
        "corr": lambda ds: xr.corr(ds.a, ds.c, dim="time"),
        "reduce by a function": lambda ds: ds.b.reduce(np.ptp, dim="lon"),
    },
    "weighted": {
        "mean": lambda ds: ds.a.weighted(ds.area).mean(["lat", "lon"]),
        "mean by cosine": lambda ds: ds.a.weighted(np.cos(np.deg2rad(ds.lat))).mean("lat"),
        "sum": lambda ds: ds.a.weighted(ds.area).sum("lon"),
        "std": lambda ds: ds.a.weighted(ds.area).std(["lat", "lon"]),
        "var": lambda ds: ds.a.weighted(ds.area).var("lat"),
        "sum of weights": lambda ds: ds.a.weighted(ds.area).sum_of_weights("lon"),
        "lazy weights": lambda ds: ds.a.weighted(ds.c).mean("time"),
        "dataset": lambda ds: ds[["a", "b"]].weighted(ds.area).mean("lon"),
        "quantile": lambda ds: ds.b.weighted(ds.area).quantile(0.5, dim="lon"),
    },
    "rolling": {
        "mean": lambda ds: ds.a.rolling(time=5).mean(),
        "mean centred": lambda ds: ds.a.rolling(time=7, center=True).mean(),
        "sum min_periods": lambda ds: ds.a.rolling(time=4, min_periods=1).sum(),
        "max": lambda ds: ds.b.rolling(time=3).max(),
        "min": lambda ds: ds.a.rolling(time=6, min_periods=2).min(),
        "std": lambda ds: ds.a.rolling(time=10, min_periods=3).std(),
        "median": lambda ds: ds.b.rolling(lon=3).median(),
        "count": lambda ds: ds.a.rolling(time=5).count(),
        "two axes": lambda ds: ds.b.rolling(lat=2, lon=3).mean(),
        "construct": lambda ds: ds.b.rolling(time=4).construct("window"),
        "construct with stride": lambda ds: ds.b.rolling(time=7).construct("window", stride=7).mean("window"),
        "reduce": lambda ds: ds.b.rolling(time=4).reduce(np.nansum),
        "dataset": lambda ds: ds[["a", "b"]].rolling(time=5).mean(),
        "shift": lambda ds: ds.a.shift(time=2),
        "roll": lambda ds: ds.a.roll(lon=2, roll_coords=True),
        "difference": lambda ds: ds.a.diff("time"),
    },
    "resample": {
        "monthly mean": lambda ds: ds.a.resample(time="MS").mean(),
        "yearly max": lambda ds: ds.b.resample(time="YS").max(),
        "weekly sum": lambda ds: ds.a.resample(time="7D").sum(),
        "monthly std": lambda ds: ds.a.resample(time="MS").std(),
        "dataset": lambda ds: ds[["a", "b", "n"]].resample(time="MS").mean(),
        "first": lambda ds: ds.a.resample(time="MS").first(),
        "last": lambda ds: ds.n.resample(time="MS").last(),
        "with holes": lambda ds: ds.a.isel(time=np.r_[0:40, 200:300]).resample(time="MS").sum(),
        "median": lambda ds: ds.b.resample(time="3MS").median(),
        "up": lambda ds: ds.a.isel(time=slice(0, 20)).resample(time="12h").ffill(),
        "interpolated": lambda ds: ds.c.isel(time=slice(0, 20)).resample(time="12h").interpolate("linear"),
        "map": lambda ds: ds.b.resample(time="6MS").map(lambda x: x.mean("time") - 1),
    },
    "coarsen": {
        "mean": lambda ds: ds.a.coarsen(time=10, boundary="trim").mean(),
        "sum padded": lambda ds: ds.a.coarsen(time=9, boundary="pad").sum(),
        "two axes": lambda ds: ds.b.coarsen(lat=2, lon=3).max(),
        "std": lambda ds: ds.a.coarsen(lon=2).std(),
        "median": lambda ds: ds.b.coarsen(lon=3).median(),
        "construct": lambda ds: ds.b.coarsen(lon=2).construct(lon=("pair", "each")),
        "dataset": lambda ds: ds[["a", "b"]].coarsen(lat=2).mean(),
    },
    "interp": {
        "linear": lambda ds: ds.c.interp(lat=[-30.0, 0.0, 30.0]),
        "nearest": lambda ds: ds.c.interp(lon=[30.0, 100.0], method="nearest"),
        "cubic": lambda ds: ds.c.interp(lon=[30.0, 100.0], method="cubic"),
        "two axes": lambda ds: ds.c.interp(lat=[-30.0, 10.0], lon=[15.0, 100.0, 200.0]),
        "along time": lambda ds: ds.c.interp(time=pd.date_range("2000-03-01 06:00", periods=5)),
        "points": lambda ds: ds.c.interp(lat=xr.DataArray([-30.0, 10.0], dims="p"), lon=xr.DataArray([15.0, 100.0], dims="p")),
        "like": lambda ds: ds.c.interp_like(xr.DataArray(np.zeros(2), coords={"lon": [10.0, 20.0]}, dims="lon")),
        "dataset": lambda ds: ds[["a", "c"]].interp(lon=[10.0, 20.0]),
        "missing values": lambda ds: _whole(ds.a, "time").interpolate_na("time"),
        "missing values of the cut axis": lambda ds: ds.a.interpolate_na("time", max_gap="3D"),
        "missing values, nearest": lambda ds: ds.a.interpolate_na("lon", method="nearest"),
        "forward fill": lambda ds: ds.a.ffill("time"),
        "forward fill limited": lambda ds: ds.a.ffill("time", limit=1),
        "backward fill": lambda ds: ds.a.bfill("lon"),
    },
    "rank": {
        "rank": lambda ds: _whole(ds.b, "time").rank("time"),
        "rank of the cut axis": lambda ds: ds.b.rank("time"),
        "rank of few": lambda ds: ds.b.rank("lon"),
        "per cent": lambda ds: ds.a.rank("lon", pct=True),
        "dataset": lambda ds: ds[["a", "b"]].rank("lon"),
        "argsort": lambda ds: ds.b.argsort(axis=2) if hasattr(ds.b, "argsort") else ds.b,
        "sortby": lambda ds: ds.a.sortby("lat", ascending=False),
    },
    "polyfit": {
        "line": lambda ds: ds.b.polyfit("time", 1),
        "with missing values": lambda ds: ds.a.isel(lat=[0, 1]).polyfit("time", 2, skipna=True),
        "several variables": lambda ds: ds[["b", "n"]].polyfit("lon", 1),
        "without looking for missing values": lambda ds: ds.b.polyfit("lon", 1, skipna=False),
        "trend": lambda ds: ds.b - xr.polyval(ds.time, ds.b.polyfit("time", 1).polyfit_coefficients),
        "curvefit": lambda ds: ds.b.isel(time=slice(0, 3)).curvefit("lon", lambda x, p: p * x).curvefit_coefficients,
    },
    "apply_ufunc": {
        "elementwise": lambda ds: xr.apply_ufunc(np.square, ds.b, dask="parallelized"),
        "two operands": lambda ds: xr.apply_ufunc(np.arctan2, ds.a, ds.b, dask="parallelized", output_dtypes=["f8"]),
        "reduction": lambda ds: xr.apply_ufunc(_spread, ds.b, input_core_dims=[["lon"]], dask="parallelized", output_dtypes=["f4"]),
        "vectorized": lambda ds: xr.apply_ufunc(lambda v: np.sort(v)[0], ds.b, input_core_dims=[["lon"]], vectorize=True, dask="parallelized", output_dtypes=["f4"]),
        "new axis": lambda ds: xr.apply_ufunc(
            lambda v: np.stack([v.min(-1), v.max(-1)], -1), ds.b, input_core_dims=[["lon"]], output_core_dims=[["end"]], dask="parallelized",
            dask_gufunc_kwargs={"output_sizes": {"end": 2}}, output_dtypes=["f4"]),
        "two results": lambda ds: xr.apply_ufunc(
            lambda v: (v.min(-1), v.max(-1)), ds.b, input_core_dims=[["lon"]], output_core_dims=[[], []], dask="parallelized", output_dtypes=["f4", "f4"])[1],
        "allowed": lambda ds: xr.apply_ufunc(lambda x: x * 2, ds.b, dask="allowed"),
        "over the cut axis": lambda ds: xr.apply_ufunc(
            _spread, ds.b, input_core_dims=[["time"]], dask="parallelized", output_dtypes=["f4"], dask_gufunc_kwargs={"allow_rechunk": True}),
        "without types": lambda ds: xr.apply_ufunc(lambda x: x + 0.5, ds.n, dask="parallelized"),
        "dataset": lambda ds: xr.apply_ufunc(np.negative, ds[["a", "b"]], dask="parallelized"),
    },
    "map_blocks": {
        "array": lambda ds: ds.b.map_blocks(_double),
        "function": lambda ds: xr.map_blocks(_anomalies, ds.b),
        "dataset": lambda ds: ds[["a", "b"]].map_blocks(_double),
        "arguments": lambda ds: xr.map_blocks(_scaled, ds.b, args=[ds.a], kwargs={"offset": 1.0}),
        "template": lambda ds: xr.map_blocks(lambda x: x.mean("lon"), ds.b, template=ds.b.isel(lon=0, drop=True).drop_vars("area")),
        "to a dataset": lambda ds: xr.map_blocks(_summary, ds.b),
        "groups of a block": lambda ds: _whole(ds.b, "time").map_blocks(
            lambda x: (x.groupby("time.month") - x.groupby("time.month").mean()).drop_vars("month"), template=_whole(ds.b, "time")),
    },
    "groupby": {
        "climatology": lambda ds: ds.a.groupby("time.dayofyear").mean(),
        "monthly climatology": lambda ds: _clim(ds.a, "time.month"),
        "of a dataset": lambda ds: _clim(ds[["a", "b", "n"]], "time.month"),
        "anomalies": lambda ds: ds.a.groupby("time.dayofyear") - ds.a.groupby("time.dayofyear").mean(),
        "anomalies of a dataset": lambda ds: ds[["a", "b"]].groupby("time.month") - _clim(ds[["a", "b"]], "time.month"),
        "standardised anomalies": lambda ds: _standardised(ds.b, "time.month"),
        "sum": lambda ds: ds.a.groupby("time.season").sum(),
        "max": lambda ds: ds.a.groupby("time.season").max(),
        "min of all axes": lambda ds: ds.a.groupby("time.year").min(...),
        "std": lambda ds: ds.a.groupby("time.month").std(),
        "var ddof": lambda ds: ds.b.groupby("time.month").var(ddof=1),
        "count": lambda ds: ds.a.groupby("time.year").count(),
        "any": lambda ds: ds.flag.groupby("time.month").any(),
        "all": lambda ds: ds.flag.groupby("time.month").all(),
        "prod": lambda ds: ds.b.groupby("time.year").prod(),
        "mean with NaN": lambda ds: ds.a.groupby("time.month").mean(skipna=False),
        "integers": lambda ds: ds.n.groupby("time.month").sum(),
        "median": lambda ds: ds.b.groupby("time.season").median(),
        "quantile": lambda ds: ds.b.groupby("time.season").quantile(0.5),
        "first": lambda ds: ds.a.groupby("time.month").first(),
        "last": lambda ds: ds.n.groupby("time.month").last(),
        "bins": lambda ds: ds.a.groupby_bins("lat", [-50, 0, 50]).mean(),
        "along another axis": lambda ds: ds.a.drop_vars("area").groupby("lon").mean(),
        "two variables": lambda ds: ds.a.assign_coords(half=("lat", [0, 0, 1, 1])).groupby(["time.season", "half"]).mean(),
        "two axes": lambda ds: ds.a.assign_coords(zone=(("lat", "lon"), np.arange(24).reshape(4, 6) % 3)).groupby("zone").mean(),
        "map": lambda ds: ds.b.groupby("time.season").map(lambda x: x - x.mean("time")),
        "cumsum": lambda ds: ds.b.groupby("time.year").cumsum(),
        "fillna": lambda ds: ds.a.groupby("time.month").fillna(_clim(ds.a, "time.month")),
    },
    "selection": {
        "isel": lambda ds: ds.a.isel(time=slice(3, 500, 7), lat=2),
        "sel": lambda ds: ds.a.sel(time="2000-05", lat=-45.0),
        "sel nearest": lambda ds: ds.a.sel(lon=100, method="nearest"),
        "list": lambda ds: ds.a.isel(lat=[3, 0, 1]),
        "outer": lambda ds: ds.a.isel(time=[5, 600, 3], lat=[1, 0]),
        "points": lambda ds: ds.a.isel(time=xr.DataArray([1, 500, 3], dims="p"), lat=xr.DataArray([0, 1, 2], dims="p")),
        "points around an axis": lambda ds: ds.a.isel(time=xr.DataArray([1, 500], dims="p"), lon=xr.DataArray([0, 4], dims="p")),
        "reindex": lambda ds: ds.a.reindex(lat=[-45.0, 7.0, 45.0]),
        "stack": lambda ds: ds.a.stack(cell=["lat", "lon"]),
        "unstack": lambda ds: ds.a.stack(cell=["lat", "lon"]).unstack("cell"),
        "concat": lambda ds: xr.concat([ds.a, ds.a + 1], dim="run"),
        "concat in time": lambda ds: xr.concat([ds.a.isel(time=slice(0, 100)), ds.a.isel(time=slice(100, None))], dim="time"),
        "merge": lambda ds: xr.merge([ds[["a"]], ds[["b"]]]),
        "pad": lambda ds: ds.b.pad(lon=(1, 2), mode="wrap"),
        "pad constant": lambda ds: ds.a.pad(time=2, constant_values=0.0),
        "transpose": lambda ds: ds.a.transpose("lon", ...),
        "expand": lambda ds: ds.a.expand_dims(run=3),
        "squeeze": lambda ds: ds.a.isel(lat=[1]).squeeze("lat"),
        "broadcast": lambda ds: xr.broadcast(ds.a, ds.area)[1],
        "align": lambda ds: xr.align(ds.a, ds.b.isel(lat=slice(1, 3)), join="inner")[0],
        "to_dataarray": lambda ds: ds[["a", "b"]].to_dataarray(),
        "head": lambda ds: ds.a.head(time=3),
        "thin": lambda ds: ds.a.thin(time=50),
        "drop missing": lambda ds: ds.b.dropna("lat"),
        "combine_first": lambda ds: ds.a.combine_first(ds.b),
    },
    "calculus and time": {
        "differentiate": lambda ds: ds.b.differentiate("lon"),
        "integrate": lambda ds: ds.b.integrate("lon"),
        "cumulative integral": lambda ds: ds.b.cumulative_integrate("lon"),
        "month of a variable": lambda ds: ds.when.dt.month,
        "hour": lambda ds: ds.when.dt.hour,
        "floor": lambda ds: ds.when.dt.floor("D"),
        "iso week": lambda ds: ds.when.dt.isocalendar().week,
        "difference of times": lambda ds: ds.when - ds.time,
        "like": lambda ds: xr.full_like(ds.a, 3.0),
        "zeros": lambda ds: xr.zeros_like(ds.n),
        "persist": lambda ds: (ds.a * 2).persist(),
        "exponential means": lambda ds: ds.b.fillna(0).rolling(time=3).construct("w").dot(xr.DataArray([0.2, 0.3, 0.5], dims="w")),
    },
}  # fmt: skip

#: Parts whose operations write files.
WITH_FILES = {"open", "write"}


def names() -> list[tuple[str, str]]:
    """The part and the name of every operation."""
    return [(part, name) for part, operations in OPERATIONS.items() for name in operations]


def run(part: str, name: str, ds: xr.Dataset, folder: Path, chunks: dict[str, Any] | None) -> Any:
    """The result of an operation."""
    operation = OPERATIONS[part][name]
    return operation(ds, Files(folder, chunks)) if part in WITH_FILES else operation(ds)


def chunked(result: Any, is_chunked: Callable[[Any], bool]) -> bool:
    """True if all variables of a result that hold numbers are still chunked arrays."""
    if isinstance(result, xr.DataArray):
        return is_chunked(result.variable._data)
    return all(is_chunked(each.variable._data) for each in result.data_vars.values())


def assert_same(found: Any, expected: Any) -> None:
    """Same variables, coordinates and elements, up to rounding."""
    found = found.compute()
    assert type(found) is type(expected)
    if isinstance(found, xr.Dataset):
        assert set(found.data_vars) == set(expected.data_vars)
        for name in expected.data_vars:
            assert_same(found[name], expected[name])
        return
    assert found.dims == expected.dims, (found.dims, expected.dims)
    assert found.dtype == expected.dtype, (found.dtype, expected.dtype)
    tolerance = 2e-4 if expected.dtype == np.float32 else 1e-9
    xr.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    assert set(found.coords) == set(expected.coords)
    assert found.attrs == expected.attrs
