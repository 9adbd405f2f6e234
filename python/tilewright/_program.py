"""Programs of the language, with arrays as inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from ._array import Array
from ._turns import waiting
from ._creation import asarray


def program(text: str, /, **inputs: Any) -> dict[str, Array]:
    """Runs a program of the language with arrays as its inputs, and gives its outputs by name.

    Numbers set parameters, everything else is the data of an input. Outputs are computed arrays. What is wrong with the text is a
    ``ValueError`` that shows the line.

    >>> import tilewright as tw
    >>> results = tw.program('''
    ...     param n = 3
    ...     input A: f64[n, n]
    ...     t = sum[i](A[i, i])
    ...     output t
    ... ''', A=tw.eye(2), n=2)
    >>> float(results["t"])
    2.0
    """
    if not isinstance(text, str):
        raise TypeError(f"a program is text, not {type(text).__name__}")
    numbers, arrays = [], []
    for name, value in inputs.items():
        value = value.item() if isinstance(value, (np.bool_, np.integer, np.floating)) else value
        if type(value) in (bool, int, float):
            numbers.append((name, value))
        else:
            arrays.append((name, _data(name, value)._tensor))
    with waiting():
        found = _core.program(text, arrays, numbers)
    return {name: Array(tensor) for name, tensor in found}


def _data(name: str, value: Any) -> Array:
    try:
        return asarray(value)
    except (TypeError, ValueError) as error:
        error.add_note(f"as the data of the input {name!r}")
        raise
