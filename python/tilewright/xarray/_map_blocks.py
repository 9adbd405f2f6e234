"""``xr.map_blocks`` over our arrays: a function of an xarray object is called with every block of it, when its results are computed.

The rules are those of xarray's own function, which builds a graph of dask: what a block is, how a template is found, what is checked about the results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from xarray.core.coordinates import Coordinates
from xarray.core.dataarray import DataArray
from xarray.core.dataset import Dataset

from .._array import Array
from .._block_call import Axis, BlockCall, common_cut, name_of
from .._chunks import ends_of


def or_ours(original: Callable[..., Any]) -> Callable[..., Any]:
    """xarray's function, unless an argument has arrays of Tilewright."""

    def map_blocks(func: Callable[..., Any], obj: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, template: Any = None) -> Any:
        if not _has_ours(obj):
            return original(func, obj, args, kwargs, template)
        _check(args, kwargs, template)
        return _mapped(func, [obj, *args], dict(kwargs or {}), template)

    return map_blocks


def _has_ours(obj: Any) -> bool:
    if isinstance(obj, DataArray):
        obj = obj._to_temp_dataset()
    return isinstance(obj, Dataset) and any(isinstance(each._data, Array) for each in obj._variables.values())


def _check(args: Any, kwargs: Any, template: Any) -> None:
    if template is not None and not isinstance(template, (DataArray, Dataset)):
        raise TypeError(f"template must be a DataArray or Dataset. Received {type(template).__name__} instead.")
    if not isinstance(args, Sequence):
        raise TypeError("args must be a sequence (for example, a list or tuple).")
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise TypeError("kwargs must be a mapping (for example, a dict)")
    for value in (kwargs or {}).values():
        if isinstance(value, Array) or _has_ours(value):
            raise TypeError("Cannot pass chunked arrays in kwargs yet. Please compute or load values before passing to map_blocks.")


def _mapped(func: Callable[..., Any], args: list[Any], kwargs: dict[str, Any], template: Any) -> Any:
    objects = [k for k, each in enumerate(args) if isinstance(each, (Dataset, DataArray))]
    aligned = xr.align(*(args[k] for k in objects), join="exact")
    inputs = {k: _Input(each) for k, each in zip(objects, aligned, strict=True)}
    grid = _grid(inputs.values())
    coords = xr.merge([each.coords for each in aligned], join="exact", compat="override").coords
    if template is None:
        template, coordinates = _inferred(func, args, kwargs, coords)
        lengths = {dim: grid[dim] for dim in template.dims if dim in grid}
    else:
        coordinates, lengths = template.coords, dict(template.chunksizes)
        if not lengths:
            raise ValueError("Provided template has no chunked arrays. Please construct a template with appropriately chunked arrays.")
    if not isinstance(template, (DataArray, Dataset)):
        raise TypeError(f"func output must be DataArray or Dataset; got {type(template)}")
    for dim, cut in lengths.items():
        if dim in grid and len(grid[dim]) != len(cut):
            raise ValueError(
                "map_blocks requires that one block of the input maps to one block of output. "
                f"Expected number of output chunks along dimension {dim!r} to be {len(grid[dim])}. Received {len(cut)} instead. "
                "Please provide template if not provided, or fix the provided template."
            )
    dropped = [dim for dim, cut in grid.items() if len(cut) > 1 and dim not in template.dims]
    if dropped:
        raise ValueError(f"map_blocks cannot drop the dimension {dropped[0]!r}, which has several blocks: .chunk({{{dropped[0]!r}: -1}}) joins them")
    as_array = isinstance(template, DataArray)
    name = template.name if as_array else None
    wide = template._to_temp_dataset() if as_array else template
    result = _Call(func, args, kwargs, inputs, grid, lengths, wide, coordinates).result()
    if not as_array:
        return result
    found = template._from_temp_dataset(result)
    found.name = name
    return found


class _Input:
    """An argument whose blocks the function sees."""

    def __init__(self, obj: Any) -> None:
        self.is_array = isinstance(obj, DataArray)
        self.name = obj.name if self.is_array else None
        self.wide = obj._to_temp_dataset() if self.is_array else obj
        self.obj = obj
        self.chunked = {name: each for name, each in self.wide._variables.items() if isinstance(each._data, Array)}

    def block(self, found: dict[Any, np.ndarray], part: dict[Any, slice]) -> Any:
        """A block of the object: the arrays that are given, and the same part of everything else."""
        variables = {}
        for name, variable in self.wide._variables.items():
            if name in found:
                variables[name] = variable._replace(data=found[name])
            else:
                variables[name] = variable.isel({dim: part[dim] for dim in variable.dims if dim in part})
        indexes = {}
        for name, index in self.wide._indexes.items():
            cut = {dim: part[dim] for dim in self.wide._variables[name].dims if dim in part}
            indexes[name] = index.isel(cut) if cut else index
            if indexes[name] is None:
                del indexes[name]
        block = self.wide._replace_with_new_dims(variables, coord_names=set(self.wide._coord_names), indexes=indexes)
        return self.obj._from_temp_dataset(block, name=self.name) if self.is_array else block


def _grid(inputs: Any) -> dict[Any, tuple[int, ...]]:
    """Lengths of the blocks along every dimension; arguments must be cut alike."""
    cuts: dict[Any, list[tuple[int, ...]]] = {}
    for each in inputs:
        own: dict[Any, list[tuple[int, ...]]] = {}
        for variable in each.chunked.values():
            for dim, cut in zip(variable.dims, variable._data.chunks, strict=True):
                own.setdefault(dim, []).append(cut)
        for dim, found in own.items():
            cuts.setdefault(dim, []).append(common_cut(found, f"dimensions {dim!r}"))
    for dim, found in cuts.items():
        if len(set(found)) > 1:
            raise ValueError(f"Chunk sizes along dimension {dim!r} are not equal.")
    return {dim: found[0] for dim, found in cuts.items()}


def _inferred(func: Callable[..., Any], args: list[Any], kwargs: dict[str, Any], coords: Any) -> tuple[Any, Any]:
    """What the function makes of objects without elements, and the coordinates of the whole result."""
    try:
        template = func(*(_empty(each) if isinstance(each, (Dataset, DataArray)) else each for each in args), **kwargs)
    except Exception as error:
        raise Exception("Cannot infer object returned from running user provided function. Please supply the 'template' kwarg to map_blocks.") from error
    if not isinstance(template, (Dataset, DataArray)):
        raise TypeError(f"Function must return an xarray DataArray or Dataset. Instead it returned {type(template)}")
    own = set(template.coords)
    kept = coords.to_dataset()[list(own & set(coords))]
    kept = kept.drop_vars([name for name in kept.variables if name not in own])
    new = template.coords.to_dataset()[list(own - set(coords))]
    return template, xr.merge((kept, new), join="outer", compat="override").coords


def _empty(obj: Any) -> Any:
    """The object without elements."""
    if isinstance(obj, DataArray):
        return obj._from_temp_dataset(_empty(obj._to_temp_dataset()), name=obj.name)
    none = {dim: slice(0, 0) for dim in obj.dims}
    variables = {}
    for name, variable in obj._variables.items():
        data = variable._data
        small = variable._replace(data=np.empty(variable.shape and (0,) * variable.ndim, dtype=data.dtype)) if isinstance(data, Array) else None
        variables[name] = variable.isel({dim: none[dim] for dim in variable.dims}) if small is None else small
    indexes = {name: index.isel({dim: none[dim] for dim in obj._variables[name].dims}) for name, index in obj._indexes.items()}
    return obj._replace_with_new_dims(variables, coord_names=set(obj._coord_names), indexes={k: v for k, v in indexes.items() if v is not None})


class _Call:
    """The function over all blocks, and the object that its results make."""

    def __init__(
        self, func: Callable[..., Any], args: list[Any], kwargs: dict[str, Any], inputs: dict[int, _Input], grid: dict[Any, tuple[int, ...]],
        lengths: dict[Any, tuple[int, ...]], template: Dataset, coordinates: Coordinates,
    ) -> None:  # fmt: skip
        self.func, self.kwargs, self.inputs, self.grid, self.lengths = func, kwargs, inputs, grid, lengths
        # What is no xarray object goes to every call as it is.
        self.args = [None if k in inputs else each for k, each in enumerate(args)]
        self.template, self.coordinates = template, coordinates
        self.wanted = [name for name in template.variables if name not in coordinates.xindexes]
        self.ends = {dim: ends_of(cut) for dim, cut in grid.items()}
        self.result_ends = {dim: ends_of(cut) for dim, cut in lengths.items()}
        self.operands = [(k, name) for k, each in inputs.items() for name in each.chunked]

    def result(self) -> Dataset:
        arrays = self._arrays()
        template, coordinates = self.template, self.coordinates
        indexed = {name: coordinates.variables[name] for name in coordinates.xindexes}
        result = Dataset(coords=Coordinates(indexed, indexes=dict(coordinates.xindexes)), attrs=template.attrs)
        for name in result._indexes:
            result[name].attrs = template[name].attrs if name in template.variables else coordinates[name].attrs
            result[name].encoding = coordinates[name].encoding
        for name, data in arrays.items():
            result[name] = (template[name].dims, data, template[name].attrs)
            result[name].encoding = template[name].encoding
        return result.set_coords(list(template._coord_names))

    def _arrays(self) -> dict[Any, Array]:
        """The variables of the result. Those that lack a dimension of several blocks, such as coordinates, are what the first block along it gives."""
        several = [dim for dim, cut in self.grid.items() if len(cut) > 1]
        by_missing: dict[tuple[Any, ...], list[Any]] = {}
        for name in self.wanted:
            dims = self.template.variables[name].dims
            by_missing.setdefault(tuple(dim for dim in several if dim not in dims), []).append(name)
        return {name: array for missing, names in by_missing.items() for name, array in self._called(names, missing).items()}

    def _called(self, names: list[Any], missing: tuple[Any, ...]) -> dict[Any, Array]:
        grid = {dim: cut[:1] if dim in missing else cut for dim, cut in self.grid.items()}
        variables = [self.inputs[k].chunked[name] for k, name in self.operands]
        operands = [(each.isel({dim: slice(0, grid[dim][0]) for dim in missing if dim in each.dims})._data, each.dims) for each in variables]
        call = BlockCall(name_of(self.func), grid, operands)
        results = []
        for name in names:
            variable = self.template.variables[name]
            lengths = [self.lengths.get(dim, self.grid.get(dim, (n,))) for dim, n in zip(variable.dims, variable.shape, strict=True)]
            results.append((variable.dtype, [Axis(dim if dim in grid else None, cut) for dim, cut in zip(variable.dims, lengths, strict=True)]))
        return dict(zip(names, call.apply(lambda key, blocks: self._values(call, names, key, blocks), results), strict=True))

    def _values(self, call: BlockCall, names: list[Any], key: Any, blocks: Any) -> Any:
        """What the function gives for one block: the variables of some names."""
        place = dict(zip(self.grid, call.place(key, list(self.grid)), strict=True))
        part = {dim: slice(self.ends[dim][k], self.ends[dim][k + 1]) for dim, k in place.items()}
        found: dict[int, dict[Any, np.ndarray]] = {k: {} for k in self.inputs}
        for (k, name), block in zip(self.operands, blocks, strict=True):
            found[k][name] = block
        args = [self.inputs[k].block(found[k], part) if k in self.inputs else each for k, each in enumerate(self.args)]
        made = self.func(*args, **self.kwargs)
        self._check(made, place)
        wide = made._to_temp_dataset() if isinstance(made, DataArray) else made
        values = tuple(np.asarray(wide.variables[name].data).astype(self.template.variables[name].dtype, copy=False) for name in names)
        return values[0] if len(values) == 1 else values

    def _check(self, made: Any, place: dict[Any, int]) -> None:
        if not isinstance(made, (Dataset, DataArray)):
            raise TypeError(f"Function must return an xarray DataArray or Dataset. Instead it returned {type(made)}")
        expected = {dim: self.lengths[dim][k] for dim, k in place.items() if dim in self.lengths}
        missing = set(expected) - set(made.sizes)
        if missing:
            raise ValueError(f"Dimensions {missing} missing on returned object.")
        for name, index in made._indexes.items():
            if name in expected and made.sizes[name] != expected[name]:
                raise ValueError(f"Received dimension {name!r} of length {made.sizes[name]}. Expected length {expected[name]}.")
            known = self.coordinates.xindexes.get(name)
            if known is not None and name in self.result_ends and name in place:
                ends, k = self.result_ends[name], place[name]
                known = known.isel({name: slice(ends[k], ends[k + 1])})
            if known is not None and not index.equals(known):
                raise ValueError(f"Expected index {name!r} to be {known!r}. Received {index!r} instead.")
        self._check_names(made, "coords", set(self.template.coords), "coordinate")
        if isinstance(made, Dataset):
            self._check_names(made, "data_vars", set(self.template.data_vars), "data")

    @staticmethod
    def _check_names(made: Any, kind: str, expected: set[Any], what: str) -> None:
        missing, extra = expected - set(getattr(made, kind)), set(getattr(made, kind)) - expected
        if missing:
            raise ValueError(f"Result from applying user function does not contain {what} variables {missing}.")
        if extra:
            raise ValueError(f"Result from applying user function has unexpected {what} variables {extra}.")
