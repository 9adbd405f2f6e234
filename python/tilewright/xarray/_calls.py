"""Functions of blocks as xarray calls them: types are found by a trial, and results of types that Tilewright does not have are NumPy arrays, computed now."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tilewright as tw

from .._array import Array
from .._block_call import name_of
from .._dtypes import is_known
from .._gufunc import _parse


def apply_gufunc(
    func: Callable[..., Any], signature: str, args: Sequence[Any], output_dtypes: Any, meta: Any, options: dict[str, Any], kwargs: dict[str, Any]
) -> Any:
    """The results of a generalised ufunc, each in the type that is declared for it or found by a trial."""
    inputs, outputs = _parse(signature)
    if not all(is_known(np.asarray(x).dtype) for x in args if not isinstance(x, Array)):
        return _now(func, signature, args, options, kwargs)
    dtypes = _declared(output_dtypes, meta, len(outputs))
    if dtypes is None:
        dtypes = _tried(func, signature, args, [len(names) for names in inputs], options, kwargs)
    if not all(is_known(dtype) for dtype in dtypes):
        return _now(func, signature, args, options, kwargs)
    called = func if options["vectorize"] else _Cast(func, dtypes)
    return tw.apply_gufunc(called, signature, *args, output_dtypes=dtypes, **{**options, **kwargs})


def map_blocks(func: Callable[..., Any], args: Sequence[Any], dtype: Any, chunks: Any, drop_axis: Any, new_axis: Any, kwargs: dict[str, Any]) -> Any:
    """The result of a function of every block, in the type that is declared for it or found by a trial."""
    if dtype is None:
        tiny = [np.ones((1,) * x.ndim, dtype=x.dtype) if isinstance(x, Array) else x for x in args]
        dtype = np.asarray(_quietly(func, tiny, kwargs)).dtype
    dtype = np.dtype(dtype)
    if not is_known(dtype):
        return func(*tw.compute(*args), **kwargs)
    if chunks is not None:
        chunks = _lengths(chunks, args, drop_axis, new_axis)
    return tw.map_blocks(_Cast(func, [dtype]), *args, dtype=dtype, chunks=chunks, drop_axis=drop_axis, new_axis=new_axis, **kwargs)


class _Cast:
    """A function whose results have the declared types: xarray declares them, but blocks of integers with NaN, say, are of another one."""

    def __init__(self, func: Callable[..., Any], dtypes: Sequence[np.dtype]) -> None:
        self.func, self.dtypes = func, list(dtypes)
        self.__name__ = name_of(func)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        made = self.func(*args, **kwargs)
        if len(self.dtypes) == 1 and not isinstance(made, tuple):
            return _cast(made, self.dtypes[0])
        return tuple(_cast(each, dtype) for each, dtype in zip(made, self.dtypes, strict=True))


def _cast(made: Any, dtype: np.dtype) -> np.ndarray:
    with warnings.catch_warnings():
        # NaN has no counterpart among integers; NumPy warns, and so would every block.
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(made).astype(dtype, copy=False)


def _declared(output_dtypes: Any, meta: Any, n: int) -> list[np.dtype] | None:
    if output_dtypes is None and meta is not None:
        output_dtypes = [each.dtype for each in (meta if isinstance(meta, (tuple, list)) else (meta,))]
    if output_dtypes is None:
        return None
    dtypes = [np.dtype(each) for each in (output_dtypes if isinstance(output_dtypes, (tuple, list)) else [output_dtypes])]
    return dtypes * n if len(dtypes) == 1 else dtypes


def _tried(
    func: Callable[..., Any], signature: str, args: Sequence[Any], n_core: Sequence[int], options: dict[str, Any], kwargs: dict[str, Any]
) -> list[np.dtype]:
    """The types of the results of a call on ones: the axes of the signature as long as they are, the others of length 1; or on nothing, as dask does it."""
    called = np.vectorize(func, signature=signature) if options["vectorize"] else func
    failed: Exception | None = None
    for length in (1, 0):
        shapes = [(length,) * (np.ndim(x) - n) + (np.shape(x)[np.ndim(x) - n :] if length else (0,) * n) for x, n in zip(args, n_core, strict=True)]
        try:
            made = _quietly(called, [np.ones(shape, dtype=_type(x)) for shape, x in zip(shapes, args, strict=True)], kwargs)
        except Exception as error:
            failed = failed or error
            continue
        return [np.asarray(each).dtype for each in (made if isinstance(made, tuple) else (made,))]
    assert failed is not None
    failed.add_note(f"while `{name_of(func)}` was tried on ones to find the types of its results; say output_dtypes=[..] to avoid that")
    raise failed


def _type(x: Any) -> np.dtype:
    return x.dtype if isinstance(x, Array) else np.asarray(x).dtype


def _quietly(func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return func(*args, **kwargs)


def _now(func: Callable[..., Any], signature: str, args: Sequence[Any], options: dict[str, Any], kwargs: dict[str, Any]) -> Any:
    """The results as NumPy arrays: of strings and Python's objects there are no arrays of Tilewright."""
    called = np.vectorize(func, signature=signature) if options["vectorize"] else func
    return called(*tw.compute(*args), **kwargs)


def _lengths(chunks: Any, args: Sequence[Any], drop_axis: Any, new_axis: Any) -> Any:
    """Lengths of blocks of the result. One number for all blocks that is that of the longest block of the argument means that they stay as they are."""
    first = next(x for x in args if isinstance(x, Array))
    own: list[Any] = [cut for axis, cut in enumerate(first.chunks) if axis not in np.atleast_1d([] if drop_axis is None else drop_axis)]
    for axis in sorted(np.atleast_1d([] if new_axis is None else new_axis).tolist()):
        own.insert(int(axis), None)
    return tuple(cut if cut is not None and given == max(cut) else given for given, cut in zip(chunks, own, strict=True))
