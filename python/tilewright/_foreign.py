"""Arrays of other libraries: read block by block when elements are needed, written block by block."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _core
from ._array import Array
from ._block_call import Axis, BlockCall
from ._chunks import Chunks, aligned_chunks, in_parts, normalize_chunks
from ._dtypes import check_known
from ._progress import progress_report
from ._turns import ONE_AT_A_TIME, waiting


def from_array(x: Any, chunks: Any = "auto", *, lock: Any = None, asarray: bool = True, name: str | None = None) -> Array:
    """An array over anything with ``shape``, ``dtype`` and NumPy's slicing: an HDF5 or netCDF variable, a Zarr array, a ``np.memmap``.

    Blocks are read when they are needed, each by one slice. By default they are made of whole chunks of the file. The element type is that of
    slices, so packed variables of netCDF4 are as they are unpacked; masked elements become NaN or NaT, and are an error where the type has none.

    Variables of h5py, netCDF4 and other libraries over HDF5, which may be called by one thread at a time, are read under one lock of the whole process. ``lock=True``
    does the same for anything else, ``lock=False`` reads without a lock, a lock of your own keeps others out as well. An object that computes another array when it is sliced gives the lock of the process
    away until that is done, but no lock of your own. With ``asarray=False`` slices must be NumPy
    arrays already. Lists and arrays in memory are copied at once, so later changes of them do not show.

    >>> import tilewright as tw
    >>> tw.from_array([[1, 2], [3, 4]], chunks=1).numblocks
    (2, 2)
    """
    from ._creation import asarray as copied

    if isinstance(x, (Array, list, tuple, int, float, complex)) or type(x) in (np.ndarray, np.generic):
        return copied(x, chunks=chunks)
    for needed in ("shape", "dtype", "__getitem__"):
        if not hasattr(x, needed):
            raise TypeError(f"{type(x).__name__} has no {needed}: from_array takes what has shape, dtype and NumPy's slicing")
    return over(x, chunks, lock, asarray, name)


def over(x: Any, chunks: Any = "auto", lock: Any = None, asarray: bool = True, name: str | None = None) -> Array:
    """An array over something that is sliced when elements are needed; nothing of it is copied before."""
    guard = _lock(lock, x)
    with guard:
        shape = tuple(int(n) for n in x.shape)
        dtype = _sliced_type(x, shape)
        own = _file_chunks(x, len(shape))
    check_known(dtype)
    if own is not None and isinstance(chunks, str):
        cuts = aligned_chunks(shape, dtype.itemsize, own, chunks)
    else:
        cuts = normalize_chunks(chunks, shape, dtype)
    # Blocks without elements are none.
    cuts = tuple(tuple(n for n in cut if n) or (0,) for cut in cuts)

    def read_in(cuts: Chunks) -> Array:
        call = BlockCall(name if isinstance(name, str) else type(x).__name__, dict(enumerate(cuts)), [])
        read = _Reader(x, call, cuts, dtype.newbyteorder("="), guard, asarray)
        return call.apply(read, [(dtype, [Axis(axis, cut) for axis, cut in enumerate(cuts)])])[0]

    whole = read_in(cuts)
    # Tasks take parts of a block where the source can be read so, whatever the budget is: reductions have one order. Functions of blocks read it as a whole.
    unit = _unit(x, len(shape))
    parts = cuts if unit is None else in_parts(cuts, dtype.itemsize, unit)
    return whole if parts == cuts else Array(_core.seen_as(read_in(parts)._tensor, whole._tensor))


def store(
    sources: Any, targets: Any, regions: Any = None, lock: Any = True, *, compute: bool = True, flush: bool = True
) -> Writing | None:  # fmt: skip
    """Computes arrays and writes them into anything with NumPy's slicing, block by block, several arrays in one plan.

    With ``compute=False`` nothing is written before ``.compute()`` of the :class:`Writing` that comes back. ``flush`` is there for dask's users: what is written is written at once.

    ``regions`` are slices of the targets. With ``lock=True`` blocks are written one at a time, while no other block is read or written under the lock of the
    process (see :func:`from_array`); targets that may be written by several threads at once take ``lock=False``. A run that fails or is interrupted leaves the blocks that were written.

    >>> import numpy as np
    >>> import tilewright as tw
    >>> target = np.zeros(5)
    >>> tw.store(tw.arange(3.0), target, regions=slice(1, 4))
    >>> target
    array([0., 0., 1., 2., 0.])
    """
    if isinstance(sources, Array):
        sources, targets, regions = [sources], [targets], [regions]
    sources, targets = list(sources), list(targets)
    regions = [regions] * len(sources) if regions is None or isinstance(regions, (slice, tuple)) else list(regions)
    if not len(sources) == len(targets) == len(regions):
        raise ValueError(f"{len(sources)} arrays for {len(targets)} targets and {len(regions)} regions")
    writing = Writing([_written(*each, _lock(lock, each[1])) for each in zip(sources, targets, regions, strict=True)])
    if not compute:
        return writing
    writing.compute()
    return None


class Writing:
    """Arrays that are written when it is computed: what ``store(.., compute=False)`` gives.

    >>> import numpy as np
    >>> import tilewright as tw
    >>> target = np.zeros(2)
    >>> writing = tw.store(tw.ones(2), target, compute=False)
    >>> target
    array([0., 0.])
    >>> writing.compute()
    >>> target
    array([1., 1.])
    """

    __slots__ = ("_marks",)

    def __init__(self, marks: list[Array]) -> None:
        # Arrays with a mark per block: who computes them writes the blocks.
        self._marks = marks

    def compute(self) -> None:
        """Computes the arrays and writes them. A second call writes nothing."""
        marks, self._marks = self._marks, []
        with waiting():
            _core.compute([array._tensor for array in marks if array.size], progress_report())


def _written(source: Any, target: Any, region: Any, lock: Any) -> Array:
    """A lazy array with a mark per block; computing it writes the blocks."""
    if not isinstance(source, Array):
        raise TypeError(f"an array of tilewright is expected, not {type(source).__name__}")
    if not hasattr(target, "__setitem__"):
        raise TypeError(f"{type(target).__name__} cannot be written by slices")
    fixed = _region(region, tuple(target.shape), source.shape)
    cuts = tuple(tuple(n for n in cut if n) or (0,) for cut in source.chunks)
    unit = _unit(target, len(target.shape))
    if unit is not None and (isinstance(target, np.ndarray) or not isinstance(lock, _NoLock)):
        # Nobody else writes to the same chunk of the target meanwhile, so a block may be written in parts.
        cuts = in_parts(cuts, source.itemsize, tuple(n for n, each in zip(unit, fixed, strict=True) if isinstance(each, range)))
    cuts = dict(enumerate(cuts))
    call = BlockCall(f"store into {type(target).__name__}", cuts, [(source, range(source.ndim))])
    axes = [Axis(axis, (1 if sum(cut) else 0,) * len(cut)) for axis, cut in cuts.items()]
    return call.apply(_Writer(target, call, list(cuts.values()), fixed, lock), [("bool", axes)])[0]


class _Reader:
    """Reads one block of something with NumPy's slicing."""

    #: What it gives counts as read from an input.
    reads_input = True

    def __init__(self, x: Any, call: BlockCall, cuts: Sequence[Any], dtype: np.dtype, lock: Any, asarray: bool) -> None:
        self.x, self.call, self.dtype, self.lock, self.asarray = x, call, dtype, lock, asarray
        self.starts = _starts(cuts)

    def __call__(self, key: Any, blocks: Any) -> np.ndarray:
        place = self.call.place(key, range(len(self.starts)))
        part = tuple(slice(starts[k], starts[k + 1]) for starts, k in zip(self.starts, place, strict=True))
        with self.lock:
            block = self.x[part]
            if not self.asarray and not isinstance(block, np.ndarray):
                raise TypeError(f"a slice of {type(self.x).__name__} is no NumPy array but {type(block).__name__}")
            found = getattr(block, "dtype", self.dtype)
            if not np.can_cast(found, self.dtype, "same_kind"):
                raise TypeError(
                    f"{type(self.x).__name__} says that it is of {self.dtype}, but a slice of it is of {found}, which would lose digits: "
                    "give from_array an object whose dtype is that of its slices"
                )
            # Some libraries read only now.
            return np.asarray(_without_mask(block, self.dtype), dtype=self.dtype)


class _Writer:
    """Writes one block into something with NumPy's slicing."""

    def __init__(self, target: Any, call: BlockCall, cuts: Sequence[Any], region: Sequence[Any], lock: Any) -> None:
        self.target, self.call, self.region, self.lock = target, call, region, lock
        self.starts = _starts(cuts)

    def __call__(self, key: Any, blocks: Any) -> np.ndarray:
        place = iter(zip(self.starts, self.call.place(key, range(len(self.starts))), strict=True))
        part = []
        for each in self.region:
            if isinstance(each, range):
                starts, k = next(place)
                own = each[starts[k] : starts[k + 1]]
                # A range that counts down to the front ends before 0, which a slice would read as the end.
                part.append(slice(own.start, own.stop if own.stop >= 0 else None, own.step))
            else:
                part.append(each)
        with self.lock:
            self.target[tuple(part)] = blocks[0]
        return np.ones((1,) * len(self.starts), dtype=bool)


class _NoLock:
    """A lock that excludes no thread."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        pass


#: Packages over HDF5, which keeps its state without any lock. They may share one copy of it, so one lock is for all of them.
_OVER_HDF5 = {"h5netcdf", "h5py", "netCDF4", "tables"}


def _lock(lock: Any, x: Any) -> Any:
    """The lock under which something is read or written: by default that of its library."""
    if lock is None:
        lock = any(each.__module__.partition(".")[0] in _OVER_HDF5 for each in type(x).__mro__)
    if lock is True:
        return ONE_AT_A_TIME
    return lock or _NoLock()


def _sliced_type(x: Any, shape: tuple[int, ...]) -> np.dtype:
    """The element type of slices: packed variables say how they are packed, and give what is unpacked."""
    said = np.dtype(x.dtype)
    if isinstance(x, np.ndarray):
        return said
    try:
        found = np.dtype(x[(slice(0, 0),) * len(shape)].dtype)
        if found != said and math.prod(shape):
            # A library may make nothing up of another type; an element tells for sure.
            found = np.dtype(x[(slice(0, 1),) * len(shape)].dtype)
    except Exception:
        # Not everything has slices without elements. What it says of itself holds then, and blocks of another kind are refused when they are read.
        return said
    return found


def _without_mask(block: Any, dtype: np.dtype) -> Any:
    """A block of a masked array with NaN or NaT for what is masked."""
    masked = sys.modules.get("numpy.ma")
    if masked is None or not isinstance(block, masked.MaskedArray):
        return block
    if not masked.is_masked(block):
        return block.data
    if dtype.kind not in "fcmM":
        raise TypeError(
            f"masked elements of {dtype} have no NaN to become: read what the file holds there with variable.set_auto_mask(False) "
            "and compare it with the fill value, or give from_array an object whose slices are floats"
        )
    return block.astype(dtype, copy=False).filled(np.nan if dtype.kind in "fc" else np.array("NaT", dtype))


def _starts(cuts: Sequence[Any]) -> list[list[int]]:
    return [[0, *np.cumsum(cut).tolist()] for cut in cuts]


def _file_chunks(x: Any, rank: int) -> tuple[int, ...] | None:
    """Lengths of the chunks that a file is made of, as h5py, zarr and netCDF4 tell them."""
    own = x.chunking() if callable(getattr(x, "chunking", None)) else getattr(x, "chunks", None)
    if isinstance(own, (tuple, list)) and len(own) == rank and all(isinstance(n, int) and n > 0 for n in own):
        return tuple(own)
    return None


def _unit(x: Any, rank: int) -> tuple[int, ...] | None:
    """What can be read or written at once without waste: chunks of a file, single elements, or nothing that anybody knows."""
    in_a_row = type(x).__module__.startswith("h5py.") and x.chunks is None
    in_a_row |= callable(getattr(x, "chunking", None)) and x.chunking() == "contiguous"
    return (1,) * rank if isinstance(x, np.ndarray) or in_a_row else _file_chunks(x, rank)


def _region(region: Any, target: tuple[int, ...], source: tuple[int, ...]) -> list[Any]:
    """What is written of each axis of the target: a range, or one index."""
    given = list(region) if isinstance(region, tuple) else [] if region is None else [region]
    if Ellipsis in given:
        at = given.index(Ellipsis)
        given[at : at + 1] = [slice(None)] * (len(target) - len(given) + 1)
    given += [slice(None)] * (len(target) - len(given))
    if len(given) > len(target):
        raise ValueError(f"a region of {len(given)} axes for a target with {len(target)}")
    found: list[Any] = []
    for each, n in zip(given, target, strict=True):
        if isinstance(each, slice):
            found.append(range(*each.indices(n)))
        elif hasattr(each, "__index__"):
            if not -n <= each < n:
                raise IndexError(f"index {each} of an axis of {n} elements")
            found.append(each.__index__())
        else:
            raise TypeError(f"a region is made of slices and whole numbers, not {type(each).__name__}")
    shape = tuple(len(each) for each in found if isinstance(each, range))
    if shape != source:
        raise ValueError(f"an array of shape {source} for a region of shape {shape}")
    return found
