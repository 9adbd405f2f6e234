"""Functions of parts of arrays: generalised ufuncs, functions of vectors, functions of numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _processes
from ._array import Array, seen_in, unwrap
from ._block_call import Axis, BlockCall, common_cut, example, infer_dtypes, name_of
from ._chunks import PART_BYTES, in_parts
from ._manipulation import moveaxis

_SHAPE = r"\(\s*(?:\w+\s*(?:,\s*\w+\s*)*,?)?\s*\)"
_SIGNATURE = re.compile(rf"\s*(?:{_SHAPE}\s*(?:,\s*{_SHAPE}\s*)*)?->\s*{_SHAPE}\s*(?:,\s*{_SHAPE}\s*)*")

#: Names of the axes that a function works on, per array.
Core = list[tuple[str, ...]]


def _parse(signature: str) -> tuple[Core, Core]:
    """The core axes of the arguments and of the results.

    >>> _parse("(i,j),(j)->(i),()")
    ([('i', 'j'), ('j',)], [('i',), ()])
    """
    if not isinstance(signature, str) or not _SIGNATURE.fullmatch(signature):
        raise ValueError(f"{signature!r} is no signature such as '(i,j),(j)->(i)'")
    sides = []
    for side in signature.split("->"):
        sides.append([tuple(re.findall(r"\w+", shape)) for shape in re.findall(_SHAPE, side)])
    return sides[0], sides[1]


def apply_gufunc(
    func: Callable[..., Any],
    signature: str,
    *args: Any,
    axes: Any = None,
    axis: int | None = None,
    keepdims: bool = False,
    output_dtypes: Any = None,
    output_sizes: dict[str, int] | None = None,
    vectorize: bool = False,
    allow_rechunk: bool = True,
    meta: Any = None,
    executor: str = "threads",
    **kwargs: Any,
) -> Any:
    """Applies a function to the last axes of arrays, as its signature says, and to every block of the other axes; to blocks of more than 16 MiB in parts.

    The axes in the signature are seen whole; the axes before them are broadcast and cut alike. ``axes`` or ``axis`` name other axes
    than the last, ``output_sizes`` gives lengths that no argument has, ``vectorize=True`` is for functions that know nothing of other axes. Types of results are
    ``output_dtypes``, those of the arrays ``meta``, or found by a call on tiny arrays. ``allow_rechunk`` is there for dask's users: axes of the signature may always be cut.

    >>> import tilewright as tw
    >>> x = tw.ones((4, 3)).rechunk((2, 3))
    >>> tw.apply_gufunc(lambda rows: rows.sum(axis=-1), "(i)->()", x).compute()
    array([3., 3., 3., 3.])
    """
    inputs, outputs = _parse(signature)
    if output_dtypes is None and meta is not None:
        output_dtypes = [each.dtype for each in (meta if isinstance(meta, (tuple, list)) else (meta,))]
    if len(inputs) != len(args):
        raise ValueError(f"{len(args)} arrays for the signature {signature!r}")
    arrays = [Array(unwrap(x)) if isinstance(x, Array) else _as_array(x) for x in args]
    in_axes, out_axes = _normalize_axes(axes, axis, keepdims, inputs, outputs)
    arrays = [moveaxis(x, own, tuple(range(-len(own), 0))) if own else x for x, own in zip(arrays, in_axes, strict=True)]
    sizes = _core_sizes(arrays, inputs, output_sizes or {})
    missing = [name for names in outputs for name in names if name not in sizes]
    if missing:
        raise ValueError(f"the length of {missing[0]!r} is not known: output_sizes can say it")
    n_results = len(outputs) if len(outputs) > 1 or signature.rstrip().endswith(",") else None
    called = np.vectorize(func, signature=signature) if vectorize else func
    if output_dtypes is None:
        dtypes = infer_dtypes(called, arrays, kwargs, n_results, "output_dtypes=..")
    else:
        dtypes = list(output_dtypes) if isinstance(output_dtypes, (tuple, list)) else [output_dtypes] * len(outputs)
    if len(dtypes) != len(outputs):
        raise ValueError(f"{len(dtypes)} types for {len(outputs)} results")
    if vectorize:
        # An inferred type holds for one call; other calls may give results that do not fit.
        checked = func if output_dtypes is not None else _Typed(func, dtypes, n_results is not None)
        called = np.vectorize(checked, signature=signature, otypes=dtypes)
    made = _apply(called, name_of(func), arrays, inputs, outputs, sizes, dtypes, executor, kwargs)
    for k, own in enumerate(out_axes):
        if keepdims:
            made[k] = made[k][(..., *(None,) * len(own))]
        if own:
            made[k] = moveaxis(made[k], tuple(range(-len(own), 0)), own)
    return made[0] if n_results is None else tuple(made)


class _Typed:
    """A function whose results must fit into the types that a first call has given."""

    def __init__(self, func: Callable[..., Any], dtypes: Sequence[Any], several: bool) -> None:
        self.func, self.several = func, several
        self.dtypes = [np.dtype(dtype) for dtype in dtypes]
        self.__name__ = name_of(func)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        made = self.func(*args, **kwargs)
        for each, dtype in zip(made if self.several else (made,), self.dtypes, strict=True):
            if not _fits(each, dtype):
                found = np.asarray(each).dtype
                raise TypeError(f"`{self.__name__}` gives {found} where its first call gave {dtype}: say which types it gives by otypes or output_dtypes")
        return made


#: Kinds of types that a Python number goes into. It has no width, as in operators.
_KINDS = {bool: "biufc", int: "iufc", float: "fc", complex: "c"}


def _fits(made: Any, dtype: np.dtype) -> bool:
    """True if a result converts to a type without loss."""
    kinds = _KINDS.get(type(made))
    if kinds is None:
        return np.can_cast(np.asarray(made).dtype, dtype)
    if type(made) is int and dtype.kind in "iu":
        return np.iinfo(dtype).min <= made <= np.iinfo(dtype).max
    return dtype.kind in kinds


def _as_array(x: Any) -> Array:
    from ._creation import asarray

    return asarray(x)


def _apply(
    func: Any, name: str, arrays: list[Array], inputs: Core, outputs: Core, sizes: dict[str, int], dtypes: list[Any],
    executor: str, kwargs: dict[str, Any],
) -> list[Array]:  # fmt: skip
    """The results, with the core axes of all arrays last."""
    loops = [x.ndim - len(names) for x, names in zip(arrays, inputs, strict=True)]
    rank = max(loops, default=0)
    cuts: dict[int, list[Any]] = {label: [] for label in range(rank)}
    operands = []
    for x, n in zip(arrays, loops, strict=True):
        labels = list(range(rank - n, rank))
        operands.append((x, [*labels, *[None] * (x.ndim - n)]))
        for position, label in enumerate(labels):
            cuts[label].append(x.chunks[position])
    seen = {label: common_cut(found, "axes") for label, found in cuts.items()}
    # What a function says of its core axes it says of every point of the others, so large blocks are seen in parts.
    cores = [(x.dtype, x.shape[n:]) for x, n in zip(arrays, loops, strict=True)]
    cores += [(np.dtype(dtype), tuple(sizes[each] for each in names)) for names, dtype in zip(outputs, dtypes, strict=True)]
    widest = max(dtype.itemsize * max(math.prod(core), 1) for dtype, core in cores)
    grid = seen
    if widest * math.prod(max(cut, default=0) for cut in seen.values()) > 2 * PART_BYTES:
        grid = dict(zip(seen, in_parts(tuple(seen.values()), widest, (1,) * rank), strict=True))
    results = []
    for names, dtype in zip(outputs, dtypes, strict=True):
        core = [Axis(None, (sizes[each],)) for each in names]
        results.append((dtype, [*(Axis(label, cut) for label, cut in grid.items()), *core]))
    chosen = _processes.choose(executor, func)
    made = BlockCall(name, grid, operands).apply(lambda key, blocks: chosen(*blocks, **kwargs), results)
    if grid is seen:
        return made
    return [seen_in(array, (*seen.values(), *((sizes[each],) for each in names))) for array, names in zip(made, outputs, strict=True)]


def _core_sizes(arrays: list[Array], inputs: Core, given: dict[str, int]) -> dict[str, int]:
    sizes = dict(given)
    for x, names in zip(arrays, inputs, strict=True):
        if x.ndim < len(names):
            raise ValueError(f"an array with {x.ndim} axes where the signature has {len(names)}")
        for each, n in zip(names, x.shape[x.ndim - len(names) :], strict=True):
            if sizes.setdefault(each, n) != n:
                raise ValueError(f"axes {each!r} of lengths {sizes[each]} and {n}")
    return sizes


def _normalize_axes(axes: Any, axis: Any, keepdims: bool, inputs: Core, outputs: Core) -> tuple[list[Any], list[Any]]:
    """Which axes of the arguments and results are the core axes."""
    if keepdims and (any(outputs) or len({len(names) for names in inputs}) > 1):
        raise ValueError("keepdims is for functions that take all of their axes away, as many from every array")
    if axes is not None and axis is not None:
        raise ValueError("either axes or axis")
    kept = [inputs[0] if keepdims else names for names in outputs]
    if axis is not None:
        if any(len(names) > 1 for names in [*inputs, *outputs]):
            raise ValueError("axis is for functions of one axis; axes=[..] gives several")
        axes = [(axis,) if names else () for names in [*inputs, *kept]]
    if axes is None:
        axes = [tuple(range(-len(names), 0)) for names in [*inputs, *kept]]
    axes = [each if isinstance(each, tuple) else (each,) for each in axes]
    if len(axes) == len(inputs) and not any(kept):
        axes = [*axes, *[()] * len(outputs)]
    if [len(each) for each in axes] != [len(names) for names in [*inputs, *kept]]:
        raise ValueError(f"axes={axes} do not fit the signature")
    return axes[: len(inputs)], axes[len(inputs) :]


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Array, *args: Any, dtype: Any = None, shape: Any = None, **kwargs: Any
) -> Array:
    """Applies a function of vectors along an axis; what it gives takes the place of that axis.

    ``dtype`` and ``shape`` of what it gives are found by a call on a vector of ones if they are not given.

    >>> import tilewright as tw
    >>> tw.apply_along_axis(lambda v: v[::-1], 0, tw.asarray([[1, 2], [3, 4]])).compute()
    array([[3, 4],
           [1, 2]])
    """
    arr = arr if isinstance(arr, Array) else _as_array(arr)
    if not -arr.ndim <= axis < arr.ndim:
        raise np.exceptions.AxisError(axis, arr.ndim)
    axis %= arr.ndim
    if dtype is None or shape is None:
        tried = np.asarray(func1d(np.ones(arr.shape[axis], dtype=arr.dtype), *args, **kwargs))
        dtype = tried.dtype if dtype is None else dtype
        shape = tried.shape if shape is None else shape
    shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    names = [f"out{k}" for k in range(len(shape))]

    def rows(block: np.ndarray) -> np.ndarray:
        return np.apply_along_axis(func1d, -1, block, *args, **kwargs)

    rows.__name__ = name_of(func1d)
    sizes = dict(zip(names, shape, strict=True))
    result = tuple(range(axis, axis + len(shape)))
    return apply_gufunc(rows, f"(i)->({','.join(names)})", arr, axes=[(axis,), result], output_dtypes=[dtype], output_sizes=sizes)


class vectorize:
    """A function of numbers as a function of arrays, as ``np.vectorize``; with a signature, a function of parts of arrays.

    >>> import tilewright as tw
    >>> clip = tw.vectorize(lambda a, b: a if a < b else b)
    >>> clip(tw.arange(5), 2).compute()
    array([0, 1, 2, 2, 2])
    """

    def __init__(
        self, pyfunc: Callable[..., Any], otypes: Any = None, doc: str | None = None, *, signature: str | None = None,
        executor: str = "threads",
    ) -> None:  # fmt: skip
        self.pyfunc, self.signature, self.executor = pyfunc, signature, executor
        self.__doc__ = getattr(pyfunc, "__doc__", None) if doc is None else doc
        self.otypes = None if otypes is None else [np.dtype(dtype) for dtype in otypes]
        self.__name__ = name_of(pyfunc)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Applies the function to arrays that are broadcast."""
        arrays = [x if isinstance(x, Array) else _as_array(x) for x in args]
        signature, dtypes = self.signature, self.otypes
        if signature is None:
            n_results = len(self.otypes or self._tried(arrays, kwargs))
            signature = f"{','.join(['()'] * len(arrays))}->{','.join(['()'] * n_results)}"
        return apply_gufunc(
            self.pyfunc, signature, *arrays, output_dtypes=dtypes, vectorize=True, executor=self.executor, **kwargs
        )

    def _tried(self, arrays: Sequence[Array], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        made = self.pyfunc(*[example(x).reshape(())[()] for x in arrays], **kwargs)
        return made if isinstance(made, tuple) else (made,)


def frompyfunc(func: Callable[..., Any], nin: int, nout: int, *, otypes: Any = None) -> Callable[..., Any]:
    """A function of ``nin`` numbers with ``nout`` results as a function of arrays. Types of results are those of a call on ones, never ``object``.

    >>> import tilewright as tw
    >>> tw.frompyfunc(divmod, 2, 2)(tw.asarray([7, 8]), 3)[1].compute()
    array([1, 2])
    """
    if otypes is not None and len(otypes) != nout:
        raise ValueError(f"{len(otypes)} types for {nout} results")
    over_arrays = vectorize(func, otypes)

    def ufunc(*args: Any) -> Any:
        if len(args) != nin:
            raise TypeError(f"`{name_of(func)}` takes {nin} arrays, not {len(args)}")
        return over_arrays(*args)

    ufunc.__name__ = name_of(func)
    return ufunc
