"""Programs of the language, with arrays as inputs."""

from __future__ import annotations

from typing import Any

from . import _core
from ._array import Array
from ._creation import asarray


def program(text: str, /, **inputs: Any) -> dict[str, Array]:
    """Runs a program of the language with arrays as its inputs, and gives its outputs by name.

    Python numbers set parameters, everything else is the data of an input. Outputs are computed arrays. What is wrong with the text is a
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
    numbers = [(name, value) for name, value in inputs.items() if type(value) in (bool, int, float)]
    arrays = [(name, asarray(value)._tensor) for name, value in inputs.items() if type(value) not in (bool, int, float)]
    return {name: Array(tensor) for name, tensor in _core.program(text, arrays, numbers)}
