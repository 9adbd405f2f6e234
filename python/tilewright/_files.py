"""Files: Zarr stores, HDF5, tables of numbers. Blocks are read when they are needed and written block by block."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _core
from ._array import Array
from ._chunks import normalize_chunks
from ._creation import asarray
from ._dtypes import astype
from ._foreign import _region, from_array
from ._manipulation import stack
from ._turns import waiting


def open_zarr(path: Any, component: str | None = None, chunks: Any = None) -> Array:
    """An array over one of a Zarr store, version 2 or 3; ``component`` names it inside groups. Only metadata is read now.

    Blocks are made of whole chunks of the file, several where those are small, unless ``chunks`` says otherwise. A block decodes only chunks that it needs, of a
    shard only the inner ones. Chunks without a file hold the fill value.

    >>> import tempfile
    >>> import tilewright as tw
    >>> with tempfile.TemporaryDirectory() as place:
    ...     tw.to_zarr(tw.arange(6).reshape(2, 3), place + "/x.zarr")
    ...     int(tw.open_zarr(place + "/x.zarr")[1].sum())
    12
    """
    path = _path(path, component)
    os.stat(path)  # A store that is not there is Python's own error.
    found = Array(_core.open_file(path))
    return found if chunks is None else found.rechunk(chunks)


def to_zarr(
    x: Array | Sequence[Array],
    path: Any,
    component: Any = None,
    *,
    region: Any = None,
    append_dim: int | None = None,
    chunks: Any = None,
    shards: Any = None,
    codec: str | tuple[str, int] | None = None,
    zarr_format: int | None = None,
    dimension_names: Sequence[str] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> None:
    """Computes an array and writes it to a Zarr store, block by block. Lists of arrays and of paths, or of components of one path, are written in one pass.

    A new array, or one in place of another, appears when all of it is written; a run that fails leaves what was there. Its chunks are the blocks of ``x``, or of
    lengths ``chunks``; with ``shards``, those are files of the given lengths, made of smaller chunks. ``codec`` is ``"zstd"`` (the default, at its fastest level), ``"gzip"``, ``"blosc"`` or ``"none"``,
    alone or with a level.

    ``region`` writes into a part of an array that is there, given by slices: each of its chunks is old or new at any moment, but a run that fails leaves the chunks that it wrote. ``append_dim``
    writes behind the last element along an axis; the new length is written last, so a run that fails leaves the array as it was. Processes must not write to the same chunks at the same time.

    >>> import tempfile
    >>> import tilewright as tw
    >>> with tempfile.TemporaryDirectory() as place:
    ...     tw.ones((4, 3)).to_zarr(place + "/x.zarr", chunks=(2, 3))
    ...     tw.zeros((2, 3)).to_zarr(place + "/x.zarr", append_dim=0)
    ...     tw.open_zarr(place + "/x.zarr").sum(axis=1).compute()
    array([3., 3., 3., 3., 0., 0.])
    """
    several = not isinstance(x, Array)
    arrays: list[Any] = list(x) if several else [x]
    if several and isinstance(path, (list, tuple)):
        paths = [_path(each, component) for each in path]
    elif several:
        if not isinstance(component, (list, tuple)):
            raise TypeError("several arrays need a list of paths, or one path and a list of components")
        paths = [_path(path, each) for each in component]
    else:
        paths = [_path(path, component)]
    if len(arrays) != len(paths):
        raise ValueError(f"{len(arrays)} arrays for {len(paths)} places")
    if region is not None and append_dim is not None:
        raise ValueError("either a region or an axis to append along")
    if (region is not None or append_dim is not None) and not (chunks is shards is codec is zarr_format is dimension_names is attributes is None):
        raise ValueError("the array that is there has its own chunks, codec and attributes")
    options = {
        "version": zarr_format,
        "codec": _codec(codec),
        "dimensions": None if dimension_names is None else [str(name) for name in dimension_names],
        "attributes": None if attributes is None else json.dumps(dict(attributes)),
    }
    stored = []
    for each, place in zip(arrays, paths, strict=True):
        if not isinstance(each, Array):
            raise TypeError(f"an array of tilewright is expected, not {type(each).__name__}")
        target: dict[str, Any] = {**_WHOLE, **options, "path": place}
        if region is not None:
            target["region"] = _first(region, place, each.shape)
        elif append_dim is not None:
            target["append"] = append_dim + each.ndim if append_dim < 0 else append_dim
        else:
            each, target["inner_chunks"] = _cut(each, chunks, shards)
        stored.append((each._tensor, target))
    with waiting():
        _core.store_files(stored)


def open_files(paths: Any, axis: int = 0) -> Array:
    """Several files as one array, one after the other along an axis: a list of paths, or a pattern such as ``"part-*.npy"`` in natural order.

    All files are opened once now; types and shapes must agree in everything but the length of the axis.
    """
    if isinstance(paths, (list, tuple)):
        names = [os.fspath(path) for path in paths]
        for name in names:
            os.stat(name)  # A file that is not there is Python's own error.
        return Array(_core.open_files(names, None, axis))
    return Array(_core.open_files([], os.fspath(paths), axis))


def read_csv(path: Any, columns: Sequence[str] | None = None, *, delimiter: str | None = None, header: bool = True, table: bool = False) -> Any:
    """The columns of numbers of a text file, as a dict from names to arrays of doubles; with ``table=True`` as one array with a column each.

    ``columns`` chooses some by name. The delimiter is a comma, or a tab in files called ``.tsv``. Without a header columns are called ``"0"``, ``"1"``, and so on. Empty fields, ``NA``,
    ``null`` and ``nan`` are NaN. Opening reads through the file once to count its lines; rows are parsed when they are needed, by all threads.

    >>> import tempfile
    >>> import tilewright as tw
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("a,b\\n1,2\\n3,\\n")
    ...     file.flush()
    ...     float(tw.read_csv(file.name)["a"].sum())
    4.0
    """
    os.stat(path)  # A file that is not there is Python's own error.
    if delimiter is not None and len(delimiter.encode()) != 1:
        raise ValueError(f"a delimiter is one character, not {delimiter!r}")
    options = (None if delimiter is None else delimiter.encode()[0], header, None if columns is None else [str(name) for name in columns])
    tensor, names = _core.open_table(os.fspath(path), *options)
    whole = Array(tensor)
    return whole if table else {name: whole[:, k] for k, name in enumerate(names)}


def read_parquet(path: Any, columns: str | Sequence[str] | None = None, *, table: bool = False) -> Any:
    """The columns of numbers of a Parquet file, as a dict from names to arrays of the types that the file declares; with ``table=True`` as one array with a column each.

    A list of paths reads files one after the other. ``columns`` chooses some by name, or one; the others are not read. A table has the type of its columns, or doubles if they differ;
    times are left out of it unless they are chosen. A name that several columns of a file have cannot be chosen, and such columns are read by ``table=True`` alone. A
    null is NaN in columns of floats and NaT in columns of times; in columns of integers it is an error. Row groups are read when they are needed, by all threads.

    >>> import tilewright as tw
    >>> columns = tw.read_parquet("sales.parquet", "price")  # doctest: +SKIP
    >>> float(columns["price"].mean())  # doctest: +SKIP
    """
    paths = [os.fspath(each) for each in path] if isinstance(path, (list, tuple)) else [os.fspath(path)]
    for each in paths:
        os.stat(each)  # A file that is not there is Python's own error.
    names = None if columns is None else [columns] if isinstance(columns, str) else [str(name) for name in columns]
    if table:
        return Array(_core.open_column_table(paths, names)[0])
    found = _core.open_columns(paths, names)
    arrays = {name: Array(tensor) for name, tensor in found}
    if names is None and len(arrays) < len(found):  # A dict would lose all but one of them.
        twice = sorted({name for k, (name, _) in enumerate(found) if any(name == other for other, _ in found[:k])})
        raise ValueError(f"several columns of {paths[0]} are called {', '.join(map(repr, twice))}: choose others by name, or read all with table=True")
    return arrays


def read_mtx(path: Any) -> Array:
    """The matrix of a Matrix Market file (``.mtx``) or the tensor of a FROSTT file (``.tns``), as a dense array; one that would take more than 16 GiB is refused.

    Elements are doubles, or 64-bit integers or complex numbers if the file says so; a pattern has ones. Values at the same place are added. Errors name the line.

    >>> import tempfile
    >>> import tilewright as tw
    >>> with tempfile.NamedTemporaryFile("w", suffix=".mtx") as file:
    ...     _ = file.write("%%MatrixMarket matrix coordinate real general\\n2 2 1\\n2 1 5\\n")
    ...     file.flush()
    ...     tw.read_mtx(file.name).compute()
    array([[0., 0.],
           [5., 0.]])
    """
    os.stat(path)  # A file that is not there is Python's own error.
    path = os.fspath(path)
    if not path.endswith((".mtx", ".tns")):
        raise ValueError(f"a file called .mtx or .tns is expected, not {path!r}")
    return Array(_core.open_file(path))


def to_parquet(x: Array | Mapping[str, Any], path: Any, *, columns: Sequence[str] | None = None, codec: str | tuple[str, int] | None = None) -> None:
    """Computes an array and writes it to a Parquet file, block by block: of one axis as one column, of two as a column for each of the second. A dict from names to arrays of one axis
    writes columns of different types, in one pass.

    ``columns`` names the columns of an array, which are ``"0"``, ``"1"``, and so on otherwise. ``codec`` is ``"zstd"`` (the default, at its fastest level), ``"snappy"``, ``"gzip"``, ``"lz4"`` or ``"none"``,
    alone or with a level. Row groups are compressed by all threads. The file appears when all of it is written; a run that fails leaves what was there.

    >>> import tempfile
    >>> import tilewright as tw
    >>> with tempfile.TemporaryDirectory() as place:
    ...     tw.to_parquet({"k": tw.arange(4), "half": tw.arange(4.0) / 2}, place + "/x.parquet")
    ...     float(tw.read_parquet(place + "/x.parquet", "half")["half"].sum())
    3.0
    """
    path = _named(path, ".parquet", ".pq")
    if isinstance(x, Mapping):
        if columns is not None:
            raise ValueError("the columns of a dict have names")
        if not x:
            raise ValueError("a Parquet file has at least one column")
        tensors = [(str(name), asarray(each)._tensor) for name, each in x.items()]
        with waiting():
            _core.store_columns(tensors, path, _codec(codec))
        return
    _write_table(x, path, columns, codec)


def to_csv(x: Array | Mapping[str, Any], path: Any, *, columns: Sequence[str] | None = None) -> None:
    """Computes an array and writes it as text, block by block: a line for each row, after one with the names of the columns. A dict from names to arrays of one axis is written as a table of
    their common type.

    ``columns`` names the columns of an array, which are ``"0"``, ``"1"``, and so on otherwise. Delimiters are commas, or tabs in files called ``.tsv``. Every number is the shortest text that is read as
    the same number. The file appears when all of it is written; a run that fails leaves what was there.

    >>> import tempfile
    >>> import tilewright as tw
    >>> with tempfile.TemporaryDirectory() as place:
    ...     tw.to_csv({"a": tw.arange(2.0), "b": tw.arange(2.0) / 3}, place + "/x.csv")
    ...     print(open(place + "/x.csv").read(), end="")
    a,b
    0.0,0.0
    1.0,0.3333333333333333
    """
    path = _named(path, ".csv", ".tsv")
    if isinstance(x, Mapping):
        if columns is not None:
            raise ValueError("the columns of a dict have names")
        if not x:
            raise ValueError("a table has at least one column")
        columns, arrays = [str(name) for name in x], [asarray(each) for each in x.values()]
        if any(each.ndim != 1 for each in arrays):
            raise ValueError("the columns of a table have one axis")
        common = np.result_type(*(each.dtype for each in arrays))
        if common.kind == "f" and any(each.dtype.kind in "iu" and each.dtype.itemsize == 8 for each in arrays):
            raise TypeError("integers of 64 bits beside floats would lose digits: convert one of them by .astype(..), or write a Parquet file")
        x = stack([astype(each, common, copy=False) for each in arrays], axis=1)
    _write_table(x, path, columns, None)


def _named(path: Any, *endings: str) -> str:
    path = os.fspath(path)
    if not path.endswith(endings):
        raise ValueError(f"a file called {' or '.join(endings)} is expected, not {path!r}")
    return path


def _codec(codec: str | tuple[str, int] | None) -> tuple[str, int] | None:
    return (codec, 1 if codec == "zstd" else 5) if isinstance(codec, str) else codec


def _write_table(x: Any, path: str, columns: Sequence[str] | None, codec: str | tuple[str, int] | None) -> None:
    target = {**_WHOLE, "path": path, "codec": _codec(codec), "dimensions": None if columns is None else [str(name) for name in columns]}
    with waiting():
        _core.store_files([(asarray(x)._tensor, target)])


def open_hdf5(path: Any, name: str, chunks: Any = "auto") -> Array:
    """An array over a dataset of an HDF5 file, such as netCDF-4, through h5py, which must be installed. The file stays open as long as the array lives.

    HDF5 is called by one thread at a time in the whole process; see :func:`tilewright.from_array`.
    """
    try:
        import h5py
    except ImportError as error:
        raise ImportError("open_hdf5 reads through h5py, which is not installed: pip install h5py") from error
    file = h5py.File(os.fspath(path), "r")
    found = file.get(name)
    if not isinstance(found, h5py.Dataset):
        names: list[str] = []
        file.visititems(lambda each, item: names.append(each) if isinstance(item, h5py.Dataset) else None)
        file.close()
        raise KeyError(f"{os.fspath(path)} has no dataset {name!r}: it has {', '.join(names[:8]) or 'none'}")
    return from_array(found, chunks)


def write_file(x: Array, path: Any) -> None:
    """Computes an array and writes it to a file, in the format that its name says."""
    with waiting():
        _core.store_files([(x._tensor, {**_WHOLE, "path": os.fspath(path)})])


#: A file that is written as a whole and in the usual way.
_WHOLE = dict.fromkeys(("path", "region", "append", "version", "codec", "inner_chunks", "dimensions", "attributes"))


def _path(path: Any, component: Any) -> str:
    path = os.fspath(path)
    if component is None:
        return path
    parts = str(component).strip("/").split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"{component!r} does not name an array of a store")
    return os.path.join(path, *parts)


def _first(region: Any, place: str, shape: tuple[int, ...]) -> list[int]:
    """Where the first element of a region lies in the array that is there."""
    fixed = _region(region, Array(_core.open_file(place)).shape, shape)
    if not all(isinstance(each, range) and each.step == 1 for each in fixed):
        raise ValueError("a region of a Zarr array is made of slices without a step")
    return [each.start for each in fixed]


def _cut(x: Array, chunks: Any, shards: Any) -> tuple[Array, list[int] | None]:
    """The array in the blocks that become files, and the chunks inside them if they are shards."""
    inner = None
    if shards is not None:
        if chunks is None:
            raise ValueError("shards are made of chunks: give their lengths, too")
        inner = [cut[0] if cut else 1 for cut in normalize_chunks(chunks, x.shape, x.dtype)]
        chunks = shards
    if chunks is not None:
        x = x.rechunk(chunks)
    # All files of a store have one shape. Uneven blocks would share some.
    if not x._tensor.is_open and any(any(n != cut[0] for n in cut[:-1]) or cut[-1] > cut[0] for cut in x.chunks if cut):
        x = x.rechunk(tuple(max(cut) for cut in x.chunks))
    if inner is not None:
        longest = [max(cut, default=1) for cut in x.chunks]
        inner = [min(n, whole) for n, whole in zip(inner, longest, strict=True)]
    return x, inner
