"""Reductions of groups under xarray: one pass over the array by labels that are known in advance.

xarray reduces every group on its own and joins the results, or hands everything to flox, which knows no arrays but dask's. Here the reductions that
:func:`tilewright.group_reduce` has become one operation per variable; xarray still makes the coordinates. Medians, first and last elements become one
function of blocks that have the axis whole. Other functions of groups go xarray's way: they are lazy, too, with one part of the plan per group.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xarray.core import duck_array_ops
from xarray.core.dataarray import DataArray
from xarray.core.dataset import Dataset
from xarray.core.variable import Variable

import tilewright as tw

from .._array import Array

#: Our reductions, with the names of xarray's functions.
_NAMES = {
    "sum": "sum", "prod": "prod", "min": "min", "max": "max", "count": "count", "any": "array_any", "all": "array_all", "mean": "mean",
    "var": "var", "std": "std",
}  # fmt: skip



def _of_whole_groups() -> tuple[Callable[..., Any], ...]:
    """Reductions that see all elements of a group at once."""
    return duck_array_ops.median, duck_array_ops.first, duck_array_ops.last


#: How flox is told to compute, never what.
_ARGUMENTS_OF_FLOX = {"engine", "fill_value", "isbin", "method", "reindex"}


def _kind(func: Callable[..., Any]) -> str | None:
    """The reduction of ours that does what a function of xarray does. Looked up now: some of them are replaced when the chunk manager is made."""
    return next((kind for kind, name in _NAMES.items() if getattr(duck_array_ops, name) is func), None)


class GroupedReduction:
    """A reduction of an object, or of one group of it: what xarray's ``reduce`` passes to ``map``, with the name of our reduction."""

    def __init__(self, kind: str | None, func: Callable[..., Any], dim: Any, keep_attrs: bool, options: dict[str, Any]) -> None:
        self.kind, self.func, self.dim, self.keep_attrs, self.options = kind, func, dim, keep_attrs, options

    def __call__(self, obj: Any) -> Any:
        return obj.reduce(func=self.func, dim=self.dim, keep_attrs=self.keep_attrs, keepdims=False, **self.options)

    def fits(self, data: Any) -> bool:
        """True if our reduction gives what the function would give for every group."""
        known = self.kind is None or set(self.options) <= {"skipna", "min_count", "ddof", "numeric_only"}
        return known and isinstance(data, Array) and data.dtype.kind in "biufc" and data.size > 0

    def of_groups(self, data: Array, axis: int, others: tuple[int, ...], labels: np.ndarray, n: int) -> Array:
        """The array reduced, with groups in the place of an axis."""
        if self.kind is None:
            return self._of_blocks(data, axis, others, labels, n)
        skipna = self.options.get("skipna")
        skipna = data.dtype.kind in "fc" if skipna is None else bool(skipna) and data.dtype.kind in "fc"
        if not others:
            found = tw.group_reduce(self.kind, data, labels, n, axis=axis, skipna=skipna, ddof=self.options.get("ddof", 0))
        else:
            found = self._of_several(data, axis, others, labels, n, skipna)
        least = self.options.get("min_count")
        if least is not None and self.kind in ("sum", "prod") and data.dtype.kind in "fc":
            counts = tw.group_reduce("count", data, labels, n, axis=axis)
            counts = tw.sum(counts, axis=others) if others else counts
            found = tw.where(counts >= least, found, found.dtype.type(np.nan))
        return found

    def _of_blocks(self, data: Array, axis: int, others: tuple[int, ...], labels: np.ndarray, n: int) -> Array:
        """xarray's own function of every group, in blocks that have the reduced axes whole: one part of the plan per block."""
        axes, options = (axis, *others), {key: value for key, value in self.options.items() if key != "numeric_only"}
        along = axis if not others else axes
        members = [np.flatnonzero(labels == k) for k in range(n)]

        def reduced(block: np.ndarray) -> np.ndarray:
            found = [np.asarray(self.func(block.take(each, axis=axis), axis=along, **options)) for each in members]
            return np.stack(found, axis=axis - sum(k < axis for k in others))

        whole = data.rechunk(dict.fromkeys(axes, -1))
        cuts = tuple((n,) if k == axis else cut for k, cut in enumerate(whole.chunks) if k not in others)
        one = np.asarray(self.func(np.ones((1,) * data.ndim, dtype=data.dtype), axis=along, **options))
        return tw.map_blocks(reduced, whole, dtype=one.dtype, chunks=cuts, drop_axis=list(others))

    def _of_several(self, data: Array, axis: int, others: tuple[int, ...], labels: np.ndarray, n: int, skipna: bool) -> Array:
        """Groups of several axes: the others joined with the axis of the groups, which is repeated along them."""
        moved = tw.moveaxis(data, (axis, *others), tuple(range(1 + len(others))))
        sizes = [moved.shape[k] for k in range(1 + len(others))]
        rows = int(np.prod(sizes[1:]))
        flat = tw.reshape(moved, (sizes[0] * rows, *moved.shape[1 + len(others) :]))
        found = tw.group_reduce(self.kind, flat, np.repeat(labels, rows), n, axis=0, skipna=skipna, ddof=self.options.get("ddof", 0))
        return tw.moveaxis(found, 0, axis - sum(k < axis for k in others))


def reduce(original: Callable[..., Any]) -> Callable[..., Any]:
    """xarray's ``reduce`` of groups, which passes on what the function is."""

    def reduce(self: Any, func: Callable[..., Any], dim: Any = None, *, axis: Any = None, keep_attrs: bool | None = None, shortcut: bool = True, **kwargs: Any) -> Any:
        def theirs() -> Any:
            return original(self, func, dim, axis=axis, keep_attrs=keep_attrs, shortcut=shortcut, **kwargs)

        if self._by_chunked and _is_ours(self._obj):
            return _with_known_labels(self).reduce(func, dim, axis=axis, keep_attrs=keep_attrs, shortcut=shortcut, **kwargs)
        kind = _kind(func)
        if kind is None and func not in _of_whole_groups():
            return theirs()
        if axis is not None or "keepdims" in kwargs or not _is_ours(self._obj):
            return theirs()
        from xarray.core.groupby import check_reduce_dims
        from xarray.core.options import _get_keep_attrs

        wanted = [self._group_dim] if dim is None else dim
        if not _reduces(wanted, self._group_dim):
            return theirs()
        check_reduce_dims(wanted, self.dims)
        keep = _get_keep_attrs(default=True) if keep_attrs is None else keep_attrs
        return self.map(GroupedReduction(kind, func, wanted, keep, kwargs), shortcut=shortcut)

    return reduce


def map(original: Callable[..., Any]) -> Callable[..., Any]:
    """xarray's ``map`` over groups, which reduces all of them at once where it can."""

    def map(self: Any, func: Callable[..., Any], args: tuple[Any, ...] = (), shortcut: bool | None = None, **kwargs: Any) -> Any:
        if not isinstance(func, GroupedReduction) or args or kwargs:
            return original(self, func, args=args, shortcut=shortcut, **kwargs)
        groups = _Groups(self)
        if isinstance(self._obj, DataArray):
            if not func.fits(self._obj.variable._data):
                return original(self, func, shortcut=shortcut)
            return _finished(self, groups.array(func))
        return _finished(self, groups.dataset(func))

    return map


class _Groups:
    """The groups of a GroupBy object that have elements."""

    def __init__(self, by: Any) -> None:
        self.obj, self.dim = by._obj, by._group_dim
        self.indices = [each for each in by.encoded.group_indices if each]
        self.labels = np.full(self.obj.sizes[self.dim], -1, dtype=np.int64)
        for k, each in enumerate(self.indices):
            self.labels[each] = k
        (self.name,) = by.encoded.unique_coord.dims

    def array(self, reduction: GroupedReduction) -> DataArray:
        reduced = self.variable(self.obj.variable, reduction)
        return self.obj._replace_maybe_drop_dims(reduced)

    def dataset(self, reduction: GroupedReduction) -> Dataset:
        """As xarray has it, every variable gets the axis of the groups, those that are not grouped, too."""
        example = reduction(self.obj.isel({self.dim: self.indices[0]}))
        variables = {name: example._variables[name] for name in example._coord_names}
        for name in example.data_vars:
            variables[name] = self.variable(self.obj._variables[name], reduction)
        return example._replace_with_new_dims(variables, coord_names=set(example._coord_names), indexes=dict(example._indexes))

    def variable(self, variable: Variable, reduction: GroupedReduction) -> Variable:
        """A variable reduced, with the axis of the groups first."""
        if self.dim not in variable.dims:
            whole = _of_variable(variable, reduction)
            return whole.set_dims({self.name: len(self.indices), **whole.sizes})
        if not reduction.fits(variable._data):
            return Variable.concat([_of_variable(variable[{self.dim: each}], reduction) for each in self.indices], self.name)
        example = _of_variable(variable[{self.dim: self.indices[0]}], reduction)
        axis = variable.get_axis_num(self.dim)
        others = tuple(k for k, dim in enumerate(variable.dims) if dim != self.dim and dim not in example.dims)
        data = reduction.of_groups(variable._data, axis, others, self.labels, len(self.indices))
        place = axis - sum(k < axis for k in others)
        return Variable((self.name, *example.dims), tw.moveaxis(data, place, 0), attrs=example.attrs)


def _of_variable(variable: Variable, reduction: GroupedReduction) -> Variable:
    """One variable reduced along those of the dimensions that it has."""
    dim = reduction.dim
    dims = variable.dims if dim is ... else [each for each in ([dim] if isinstance(dim, str) else dim) if each in variable.dims]
    options = {key: value for key, value in reduction.options.items() if key != "numeric_only"}
    return variable.reduce(reduction.func, dim=dims, keep_attrs=reduction.keep_attrs, keepdims=False, **options) if dims else variable


def _finished(by: Any, combined: Any) -> Any:
    """The end of xarray's ``_combine``: dimensions in their order, and the coordinates of the groups."""
    if isinstance(combined, DataArray):
        combined = by._restore_dim_order(combined)
    combined = combined.assign_coords(by.encoded.coords)
    return by._maybe_reindex(by._maybe_unstack(combined))


def without_flox(original: Callable[..., Any]) -> Callable[..., Any]:
    """Reductions that xarray would leave to flox."""

    def _flox_reduce(self: Any, dim: Any, keep_attrs: bool | None = None, **kwargs: Any) -> Any:
        if not _is_ours(self._obj):
            return original(self, dim, keep_attrs=keep_attrs, **kwargs)
        name = kwargs.pop("func")
        kwargs = {key: value for key, value in kwargs.items() if key not in _ARGUMENTS_OF_FLOX}
        if name == "quantile":
            return self.map(type(self._obj).quantile, shortcut=False, dim=dim or self._group_dim, keep_attrs=keep_attrs, **kwargs)
        return self.reduce(getattr(duck_array_ops, _NAMES.get(name, name)), dim=dim, keep_attrs=keep_attrs, **kwargs)

    return _flox_reduce


def scan_without_flox(original: Callable[..., Any]) -> Callable[..., Any]:
    """Running sums that xarray would leave to flox."""

    def _flox_scan(self: Any, dim: Any, *, func: str, skipna: bool | None = None, keep_attrs: bool | None = None, **kwargs: Any) -> Any:
        if not _is_ours(self._obj):
            return original(self, dim, func=func, skipna=skipna, keep_attrs=keep_attrs, **kwargs)
        found = self.reduce(getattr(duck_array_ops, func), dim=dim, skipna=skipna, keep_attrs=keep_attrs)
        # With flox, and only then, xarray has these axes last and keeps all coordinates.
        return found.transpose(..., *self._parse_dim(dim)).assign_coords(self._original_obj.coords)

    return _flox_scan


def _is_ours(obj: Any) -> bool:
    """True if any variable is an array of Tilewright."""
    variables = obj._variables.values() if isinstance(obj, Dataset) else [obj.variable]
    return any(isinstance(each._data, Array) for each in variables)


def _with_known_labels(by: Any) -> Any:
    """The same groups by labels that are computed now: without them the groups are unknown."""
    from xarray.core.groupby import ResolvedGrouper

    obj = by._original_obj
    groupers = tuple(ResolvedGrouper(grouper=each.grouper, group=each.group.compute(), obj=obj) for each in by.groupers)
    return type(by)(obj, groupers=groupers, restore_coord_dims=by._restore_coord_dims)


def _reduces(dim: Any, group_dim: Any) -> bool:
    return dim is ... or group_dim == dim or (not isinstance(dim, str) and group_dim in dim)
