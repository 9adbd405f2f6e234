"""Element types: NumPy's own objects, and what can be asked about them."""

from __future__ import annotations

import builtins
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core

if TYPE_CHECKING:
    from ._array import Array

bool = np.dtype("bool")
int8 = np.dtype("int8")
int16 = np.dtype("int16")
int32 = np.dtype("int32")
int64 = np.dtype("int64")
uint8 = np.dtype("uint8")
uint16 = np.dtype("uint16")
uint32 = np.dtype("uint32")
uint64 = np.dtype("uint64")
float16 = np.dtype("float16")
float32 = np.dtype("float32")
float64 = np.dtype("float64")
complex64 = np.dtype("complex64")
complex128 = np.dtype("complex128")

KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


def as_dtype(dtype: Any) -> np.dtype:
    """An element type as NumPy knows it. Lengths of blocks, which dask takes in this place, are told apart."""
    if isinstance(dtype, (tuple, list)) and dtype and all(isinstance(length, (int, tuple)) for length in dtype):
        raise TypeError(f"{dtype} is no element type; lengths of blocks are given by name, as in chunks={dtype}")
    return np.dtype(dtype)


def to_name(dtype: Any) -> str:
    """NumPy's name of whatever NumPy takes for an element type."""
    dtype = as_dtype(dtype)
    check_known(dtype)
    return dtype.name


def _type_of(x: Any) -> Any:
    """The type of an array, or the type itself. Classes of NumPy's numbers have an attribute of that name, too, which is none."""
    found = getattr(x, "dtype", None)
    return found if isinstance(found, np.dtype) else x


def is_known(dtype: np.dtype) -> builtins.bool:
    """True for types that tilewright has blocks of."""
    return dtype.kind in "biufcMm" and dtype.name not in ("float128", "longdouble", "complex256", "clongdouble")


def check_known(dtype: np.dtype) -> None:
    """Refuses types that tilewright has no blocks of."""
    if not is_known(dtype):
        raise TypeError(f"tilewright has no arrays of {dtype}")


def default_dtype(value: Any) -> np.dtype:
    """The type of an array that is made from a Python number."""
    if isinstance(value, builtins.bool):
        return bool
    if isinstance(value, int):
        return int64 if -(2**63) <= value < 2**63 else uint64
    return complex128 if isinstance(value, complex) else float64


def refuse_mask(obj: Any) -> None:
    """Refuses NumPy's masked arrays if elements are masked: there is no place to keep the mask."""
    # Who has not imported them has none.
    masked = sys.modules.get("numpy.ma")
    if masked is not None and isinstance(obj, masked.MaskedArray) and masked.is_masked(obj):
        raise TypeError("the mask of a masked array would be lost: fill it (x.filled(..)), or pass x.data and x.mask on their own")


def check_fits(value: Any, dtype: np.dtype) -> None:
    """Refuses a Python integer that an integer type cannot hold, as NumPy does."""
    if type(value) is int and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if not limits.min <= value <= limits.max:
            raise OverflowError(f"Python integer {value} out of bounds for {dtype}")


def converted(value: Any, dtype: np.dtype) -> Array:
    """A Python number, or anything that an array is made of, as an array of a type; numbers must fit."""
    from ._array import Array
    from ._creation import asarray

    if type(value) in (builtins.bool, int, float, complex):
        check_fits(value, dtype)
        return Array(_core.full([], value, to_name(dtype)))
    return astype(asarray(value), dtype, copy=False)


def astype(x: Array, dtype: Any, /, *, copy: builtins.bool = True, device: str | None = None) -> Array:
    """The array converted to another type.

    >>> import tilewright as tw
    >>> tw.astype(tw.asarray([1.7, -1.7]), tw.int64).compute()
    array([ 1, -1])
    """
    from ._array import Array

    check_device(device)
    name = to_name(dtype)
    if not isinstance(x, Array):
        from ._creation import asarray

        x = asarray(x)
    if x.dtype.kind == "c" and np.dtype(name).kind not in "cb":
        raise TypeError(f"{x.dtype} does not convert to {name}: take the real part first")
    if x.dtype == np.dtype(name):
        return Array(x._tensor) if copy else x
    if x.dtype.kind in "Mm" and np.dtype(name).kind == "c":
        # The engine converts times to real numbers alone; the count is one.
        x = astype(x, float32 if name == "complex64" else float64)
    return Array(_core.cast(x._tensor, name))


def floating(x: Array) -> Array:
    """The array; whole numbers and truth values converted to float64."""
    return astype(x, float64) if x.dtype.kind in "iub" else x


def check_device(device: Any) -> None:
    """There is one device."""
    if device is not None and device != "cpu":
        raise ValueError(f"there is no device {device!r}, only 'cpu'")


def can_cast(from_: Any, to: Any, /, casting: str = "safe") -> builtins.bool:
    """True if promotion takes one type to the other, or a conversion that NumPy calls by the name ``casting``."""
    from_ = np.dtype(_type_of(from_))
    return builtins.bool(np.can_cast(from_, to, casting))


def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    """The type in which arrays, types and Python numbers meet.

    >>> import tilewright as tw
    >>> tw.result_type(tw.int8, tw.uint8)
    dtype('int16')
    """
    strong, weak = [], []
    for argument in arrays_and_dtypes:
        if type(argument) in (builtins.bool, int, float, complex):
            weak.append(argument)
        else:
            strong.append(to_name(_type_of(argument)))
    return np.dtype(_core.result_type([*_met(strong), *weak]))


def _met(names: list[str]) -> list[str]:
    """The one type in which three or more types of numbers meet; fewer, and those with times among them, as they are.

    NumPy looks at all of them at once: uint16, int16 and float32 meet in float32, but the first two alone in int32, and that and
    float32 in float64.
    """
    numbers = all(np.dtype(name).kind in "biufc" for name in names)
    return [np.result_type(*names).name] if numbers and len(set(names)) > 2 else names


@dataclass(frozen=True)
class finfo_object:
    """Limits of a floating point type."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype


@dataclass(frozen=True)
class iinfo_object:
    """Limits of an integer type."""

    bits: int
    max: int
    min: int
    dtype: np.dtype


def finfo(type: Any, /) -> finfo_object:
    """Limits of a floating point type, or of that of an array; of complex types, of their parts."""
    info = np.finfo(np.dtype(_type_of(type)))
    return finfo_object(
        bits=info.bits,
        eps=float(info.eps),
        max=float(info.max),
        min=float(info.min),
        smallest_normal=float(info.smallest_normal),
        dtype=np.dtype(info.dtype),
    )


def iinfo(type: Any, /) -> iinfo_object:
    """Limits of an integer type, or of that of an array."""
    dtype = np.dtype(_type_of(type))
    info = np.iinfo(dtype)
    return iinfo_object(bits=info.bits, max=int(info.max), min=int(info.min), dtype=dtype)


def isdtype(dtype: Any, kind: Any) -> builtins.bool:
    """True if a type is of a kind (``"bool"``, ``"integral"``, ..), is a given type, or fits any of a tuple of these."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(f"there is no kind {kind!r} of types; known are {', '.join(KINDS)}")
        return np.dtype(dtype).kind in KINDS[kind]
    return np.dtype(dtype) == np.dtype(kind)
