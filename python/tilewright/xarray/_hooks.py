"""The functions of xarray that ask for dask by name, with what they do for our arrays.

xarray calls the chunk manager almost everywhere. What is replaced here either asks ``is_duck_dask_array`` before it does so, or would turn our arrays into NumPy
arrays without need. Every replacement hands over to xarray's own function unless it meets an array of Tilewright, so other arrays see no difference. They are installed once, when
xarray makes its chunk manager. If a version of xarray has no function of that name, the replacement is left out: results are the same, but some of them are computed early.
``left_out()`` names those, and a test expects none.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

import tilewright as tw

from .._array import Array
from .._foreign import Writing

#: What was not found in this version of xarray.
_left_out: list[str] = []
_installed = False


def left_out() -> list[str]:
    """Functions that this version of xarray does not have."""
    return list(_left_out)


def install() -> None:
    """Puts the replacements in place, once."""
    global _installed
    if _installed:
        return
    _installed = True
    from . import _groupby, _map_blocks

    # Modules in which every branch for dask goes through the chunk manager or through methods that our arrays have.
    for module in ("core.accessor_dt", "computation.weighted", "computation.fit", "computation.rolling"):
        _replace(module, "is_duck_dask_array", _or_ours)
    _replace("computation.fit", "least_squares", _least_squares)
    for module in ("core.duck_array_ops", "core.missing"):
        _replace(module, "push", _push)
    _replace("core.duck_array_ops", "pandas_isnull", _isnull)
    _replace("core.duck_array_ops", "mean", _mean)
    _replace("computation.apply_ufunc", "apply_variable_ufunc", _across_chunks)
    _replace("core.indexing.ArrayApiIndexingAdapter", "_vindex_get", _vindex_get)
    _replace("core.indexing.ArrayApiIndexingAdapter", "_vindex_set", _vindex_set)
    _replace("core.indexing.ArrayApiIndexingAdapter", "_oindex_set", _oindex_set)
    for module in ("backends.api", "backends.writers"):
        _replace(module, "delayed_close_after_writes", _close_after_writes)
    for module in ("core.parallel", ""):
        _replace(module, "map_blocks", _map_blocks.or_ours)
    _replace("computation.rolling.DataArrayRolling", "_array_reduce", _in_numpys_type)
    for name in ("DataArrayGroupByBase", "DatasetGroupByBase"):
        _replace(f"core.groupby.{name}", "reduce", _groupby.reduce)
        _replace(f"core.groupby.{name}", "map", _groupby.map)
    _replace("core.groupby.GroupBy", "_flox_reduce", _groupby.without_flox)
    _replace("core.resample.Resample", "_flox_reduce", _groupby.without_flox)
    _replace("core.groupby.GroupBy", "_flox_scan", _groupby.scan_without_flox)


def _replace(place: str, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Replaces a function of a module or class of xarray by a wrapper of it."""
    owner: Any = importlib.import_module("xarray")
    try:
        for part in filter(None, place.split(".")):
            owner = getattr(owner, part) if hasattr(owner, part) else importlib.import_module(f"{owner.__name__}.{part}")
        original = getattr(owner, name)
    except (AttributeError, ImportError):
        _left_out.append(f"{place}.{name}")
        return
    setattr(owner, name, functools.wraps(original)(make(original)))


def _or_ours(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: isinstance(x, Array) or original(x)


def _isnull(original: Callable[..., Any]) -> Callable[..., Any]:
    def isnull(x: Any) -> Any:
        if not isinstance(x, Array):
            return original(x)
        return tw.isnat(x) if x.dtype.kind in "mM" else tw.isnan(x)

    return isnull


def _mean(original: Callable[..., Any]) -> Callable[..., Any]:
    """Means of points in time: as distances from the middle of all years, in floats, as xarray has it, but without a type that has no unit."""

    def mean(array: Any, axis: Any = None, skipna: bool | None = None, **kwargs: Any) -> Any:
        if not isinstance(array, Array) or array.dtype.kind != "M":
            return original(array, axis=axis, skipna=skipna, **kwargs)
        unit = np.datetime_data(array.dtype)[0]
        valid, ticks = ~tw.isnat(array), array.astype("int64")
        ends = (tw.where(valid, ticks, np.iinfo(np.int64).max).min(), tw.where(valid, ticks, np.iinfo(np.int64).min).max())
        years = [each.astype(f"M8[{unit}]").astype("M8[Y]").astype("int64") for each in ends]
        offset = (years[0] + (years[1] - years[0]) // 2).astype("M8[Y]").astype(array.dtype).astype("int64")
        apart = tw.where(valid, (ticks - offset).astype("float64"), np.nan)
        middle = original(apart, axis=axis, skipna=skipna, **kwargs)
        found = tw.where(tw.isnan(middle), 0.0, middle).astype("int64") + offset
        return tw.where(tw.isnan(middle), np.datetime64("NaT", unit), found.astype(array.dtype))

    mean.numeric_only = True  # type: ignore[attr-defined]
    return mean


def _across_chunks(original: Callable[..., Any]) -> Callable[..., Any]:
    """``apply_ufunc``: a dimension that the function sees whole may be cut into blocks. xarray refuses that unless the caller allows it, because it is expensive in dask."""

    def apply_variable_ufunc(func: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("dask") == "parallelized" and any(isinstance(getattr(each, "_data", each), Array) for each in args):
            kwargs["dask_gufunc_kwargs"] = {"allow_rechunk": True, **(kwargs.get("dask_gufunc_kwargs") or {})}
        return original(func, *args, **kwargs)

    return apply_variable_ufunc


def _in_numpys_type(original: Callable[..., Any]) -> Callable[..., Any]:
    """Rolling reductions in the type that NumPy arrays have, which bottleneck reduces; bools as numbers, which xarray would turn into Python's objects.

    Where the largest is, bottleneck itself says: of equal elements it takes another one than NumPy.
    """

    def _array_reduce(self: Any, **kwargs: Any) -> Any:
        if not isinstance(self.obj.variable._data, Array):
            return original(self, **kwargs)
        from xarray.core.dataarray import DataArray
        from xarray.core.options import OPTIONS

        def like(obj: Any) -> Any:
            windows, center = dict(zip(self.dim, self.window, strict=True)), dict(zip(self.dim, self.center, strict=True))
            return type(self)(obj, windows, min_periods=self.min_periods, center=center)

        few = DataArray(np.zeros(self.window, dtype=self.obj.dtype), dims=self.dim)
        dtype = original(like(few), **kwargs).dtype
        rolling = like(self.obj.astype(dtype)) if self.obj.dtype.kind == "b" else self
        move = kwargs["bottleneck_move_func"]
        if OPTIONS["use_bottleneck"] and self.ndim == 1 and getattr(move, "__name__", "") in ("move_argmin", "move_argmax"):
            return rolling._bottleneck_reduce(move, keep_attrs=kwargs["keep_attrs"]).astype(dtype, copy=False)
        return original(rolling, **kwargs).astype(dtype, copy=False)

    return _array_reduce


def _push(original: Callable[..., Any]) -> Callable[..., Any]:
    """Forward filling: the axis is seen whole."""

    def push(array: Any, n: Any, axis: int, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(array, Array):
            return original(array, n, axis, *args, **kwargs)
        whole = array.rechunk({axis % array.ndim: -1})
        return tw.map_blocks(lambda block: original(block, n, axis), whole, dtype=array.dtype, name="push")

    return push


def _least_squares(original: Callable[..., Any]) -> Callable[..., Any]:
    """Least squares along the first axis, which is seen whole; every block of the others is a fit of its own."""

    def least_squares(lhs: np.ndarray, rhs: Any, rcond: Any = None, skipna: bool = False) -> Any:
        if not isinstance(rhs, Array):
            return original(lhs, rhs, rcond=rcond, skipna=skipna)

        def fit(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            # xarray has the fitted axis in front, a generalised ufunc at the end.
            coefficients, residuals = original(lhs, np.ascontiguousarray(np.moveaxis(columns, -1, 0)), rcond=rcond, skipna=skipna)
            # There are none where the matrix has not its full rank.
            residuals = np.reshape(residuals, columns.shape[:-1]) if np.size(residuals) else np.full(columns.shape[:-1], np.nan)
            return np.moveaxis(coefficients, 0, -1), residuals

        dtype = np.result_type(lhs.dtype, rhs.dtype, np.float64)
        return tw.apply_gufunc(
            fit, "(n)->(k),()", rhs, axes=[(0,), (0,), ()], output_sizes={"k": lhs.shape[1]}, output_dtypes=[dtype, dtype]
        )  # fmt: skip

    return least_squares


def _vindex_get(original: Callable[..., Any]) -> Callable[..., Any]:
    def vindex_get(self: Any, indexer: Any) -> Any:
        if not isinstance(self.array, Array):
            return original(self, indexer)
        return _with_new_axes_first(self.array, indexer.tuple)

    return vindex_get


def _with_new_axes_first(array: Array, key: tuple[Any, ...]) -> Array:
    """Elements at points, whose axes come first, as xarray has it; NumPy puts them where indices stand beside each other."""
    arrays = [k for k, part in enumerate(key) if not isinstance(part, slice)]
    rest = [k for k, part in enumerate(key) if isinstance(part, slice)]
    moved = array.transpose([*arrays, *rest]) if arrays != list(range(len(arrays))) else array
    return moved[tuple(key[k] for k in arrays) + tuple(key[k] for k in rest)]


def _vindex_set(original: Callable[..., Any]) -> Callable[..., Any]:
    def vindex_set(self: Any, indexer: Any, value: Any) -> None:
        if not isinstance(self.array, Array):
            original(self, indexer, value)
            return
        from xarray.core.nputils import NumpyVIndexAdapter

        NumpyVIndexAdapter(self.array)[indexer.tuple] = value

    return vindex_set


def _oindex_set(original: Callable[..., Any]) -> Callable[..., Any]:
    def oindex_set(self: Any, indexer: Any, value: Any) -> None:
        if not isinstance(self.array, Array):
            original(self, indexer, value)
            return
        from xarray.core.indexing import _outer_to_numpy_indexer

        self.array[_outer_to_numpy_indexer(indexer, self.array.shape)] = value

    return oindex_set


class ClosingWriting:
    """What ``to_zarr(.., compute=False)`` and its relatives give: ``compute()`` writes, then closes the file."""

    def __init__(self, writing: Writing | None, store: Any) -> None:
        self._writing, self._store = writing, store

    def compute(self, **kwargs: Any) -> None:
        """Writes what was not written yet, and closes the file."""
        if self._writing is not None:
            self._writing.compute()
        self._store.close()


def _close_after_writes(original: Callable[..., Any]) -> Callable[..., Any]:
    def delayed_close_after_writes(writes: Any, store: Any) -> Any:
        if isinstance(writes, Writing) or (writes is None and not _has_dask()):
            return ClosingWriting(writes, store)
        return original(writes, store)

    return delayed_close_after_writes


def _has_dask() -> bool:
    from xarray.namedarray.utils import module_available

    return module_available("dask")
