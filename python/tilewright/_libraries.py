"""Where libraries of linear algebra are: NumPy and SciPy bring one each, and so does an environment of conda."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from . import _core


def _directories() -> list[str]:
    packages = Path(np.__file__).parent.parent
    beside = [packages / f"{name}{rest}" for name in ("numpy", "scipy") for rest in (".libs", "/.dylibs")]
    return [str(each) for each in [*beside, Path(sys.prefix) / "lib"]]


def matrix_provider() -> str:
    """The name of the library that multiplies and factors matrices, or of Tilewright's own code. Plans record it, because it shows in the last bits.

    ``TILEWRIGHT_BLAS`` in the environment names another library by its path, or ``none``.
    """
    return _core.matrix_provider()[0]


def announce() -> None:
    """Tells the engine where to look. Nothing is loaded before it is needed."""
    _core.look_for_libraries(_directories())
