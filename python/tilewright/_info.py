"""What the namespace can do, as the array API standard asks for it."""

from __future__ import annotations

from typing import Any

from . import _dtypes
from ._dtypes import KINDS, check_device

_NAMES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float32", "float64", "complex64", "complex128",
)  # fmt: skip


class Info:
    """Capabilities, defaults, types and devices."""

    def capabilities(self) -> dict[str, Any]:
        """What is supported."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 32}

    def default_device(self) -> str:
        """The device of new arrays."""
        return "cpu"

    def default_dtypes(self, *, device: str | None = None) -> dict[str, Any]:
        """The types of new arrays where none is given."""
        check_device(device)
        return {
            "real floating": _dtypes.float64,
            "complex floating": _dtypes.complex128,
            "integral": _dtypes.int64,
            "indexing": _dtypes.int64,
        }

    def dtypes(self, *, device: str | None = None, kind: str | tuple[str, ...] | None = None) -> dict[str, Any]:
        """The types of a kind, or all, by name."""
        check_device(device)
        kinds = "biufc" if kind is None else "".join(KINDS[each] for each in ((kind,) if isinstance(kind, str) else kind))
        return {name: dtype for name in _NAMES if (dtype := getattr(_dtypes, name)).kind in kinds}

    def devices(self) -> tuple[str, ...]:
        """All devices."""
        return ("cpu",)


def __array_namespace_info__() -> Info:
    """What the namespace can do."""
    return Info()
