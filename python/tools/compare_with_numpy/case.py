"""A program: its arrays, its lines, and the random choices that it is made of."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import tilewright as tw

BOOLS, SIGNED, UNSIGNED = ["?"], ["i1", "i2", "i4", "i8"], ["u1", "u2", "u4", "u8"]
FLOATS, COMPLEX = ["f2", "f4", "f8"], ["c8", "c16"]
DATES, SPANS = ["M8[D]", "M8[s]", "M8[ms]"], ["m8[D]", "m8[s]", "m8[ms]"]
WHOLE = SIGNED + UNSIGNED
REAL = WHOLE + FLOATS + ["f8", "f8"]
NUMBERS = BOOLS + REAL + COMPLEX
ALL = NUMBERS + DATES + SPANS
WIDE = ["f4", "f8", "f8", "c16"]


class Case:
    """One program: its arrays, its lines, and the random choices that it is made of."""

    def __init__(self, seed: int, number: int) -> None:
        self.random = random.Random(f"{seed}/{number}")
        self.numbers = np.random.default_rng([seed, number])
        self.name = "?"
        self.arrays: dict[str, np.ndarray] = {}
        #: How our array of a name is cut; arrays that are not here stay NumPy's.
        self.chunks: dict[str, Any] = {}
        self.lines: list[str] = []
        self.loose = 1.0
        # NumPy's functions call ours.
        self.by_protocol = self.chance(0.15)
        #: After a comparison that differs: both results or exceptions, how they differ, and why that is meant, if it is.
        self.found: Any = None
        self.expected: Any = None
        self.text = ""
        self.excuse: str | None = None

    # Choices

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def pick(self, values: Any) -> Any:
        return self.random.choice(list(values))

    def int(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def shape(self, low: int = 0, high: int = 4, min_side: int = 0) -> tuple[int, ...]:
        ndim = self.pick([n for n in (0, 1, 1, 1, 2, 2, 2, 3, 3, 4) if low <= n <= high] or [low])
        if min_side == 0 and self.chance(0.06):
            return tuple(self.int(0, 3) for _ in range(ndim))
        return tuple(self.int(1, 6 if ndim < 3 else 4) for _ in range(ndim))

    def axis(self, ndim: int, none: bool = True) -> Any:
        if none and self.chance(0.25):
            return None
        if self.chance(0.03):
            return ndim + self.int(0, 2)
        return self.int(-ndim, ndim - 1) if ndim else self.pick([0, -1, None])

    def axes(self, ndim: int) -> Any:
        """An axis, several, or None."""
        if ndim > 1 and self.chance(0.3):
            return tuple(self.random.sample(range(ndim), self.int(1, ndim)))
        return self.axis(ndim)

    # Arrays

    def add(self, values: np.ndarray, own: bool = True) -> str:
        """A new array of the program; gives its name."""
        name = "abcdefghijklmnopqrstuvwxyz"[len(self.arrays)]
        self.arrays[name] = np.asarray(values)
        if own:
            self.chunks[name] = self.pick([None, None, 1, 2, 3, -1, "each"])
            if self.chunks[name] == "each":
                self.chunks[name] = tuple(self.int(1, 4) for _ in values.shape)
        return name

    def array(self, dtypes: Any = ALL, shape: Any = None, own: bool = True, finite: bool = False, low: int = -20, high: int = 20,
              **sizes: int) -> str:
        shape = self.shape(**sizes) if shape is None else shape
        return self.add(self.values(self.pick(dtypes), shape, finite, low, high), own)

    def values(self, dtype: str, shape: Any, finite: bool = False, low: int = -20, high: int = 20) -> np.ndarray:
        dtype = np.dtype(dtype)
        if dtype.kind == "b":
            return self.numbers.random(shape) < self.pick([0.0, 0.2, 0.5, 0.5, 0.8, 1.0])
        if dtype.kind in "iu":
            return self.numbers.integers(max(low, 0) if dtype.kind == "u" else low, high + 1, shape).astype(dtype)
        if dtype.kind in "Mm":
            times = self.numbers.integers(low, high + 1, shape).astype(dtype)
            return times if finite or not self.chance(0.15) else np.where(self.numbers.random(shape) < 0.2, np.array("NaT", dtype), times)
        values = self.floats(shape, low, high)
        if dtype.kind == "c":
            return np.asarray(values + 1j * self.floats(shape, low, high)).astype(dtype)
        if not finite and self.chance(0.2):
            special = self.numbers.choice([np.nan, np.inf, -np.inf, -0.0, np.nan], shape)
            values = np.where(self.numbers.random(shape) < 0.25, special, values)
        return np.asarray(values).astype(dtype)

    def floats(self, shape: Any, low: int, high: int) -> np.ndarray:
        if self.chance(0.4):
            return np.asarray(self.numbers.integers(low, high + 1, shape) * 1.0)
        return np.asarray(np.clip(self.numbers.standard_normal(shape) * 3, low, high))

    def mask(self, shape: tuple[int, ...], own: bool | None = None) -> str:
        """A mask that is repeated to a shape."""
        return self.add(self.values("?", self.repeated(shape)), self.chance(0.7) if own is None else own)

    def repeated(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape that is repeated to another one: without leading axes, or with axes of length 1."""
        if self.chance(0.6):
            return shape
        shape = shape[self.int(0, len(shape)) :]
        return tuple(1 if self.chance(0.3) else n for n in shape)

    def number(self, dtype: np.dtype) -> str:
        """A number for an array of a type, as text."""
        if dtype.kind in "Mm":
            return f"np.{'datetime64' if dtype.kind == 'M' else 'timedelta64'}({self.int(-9, 9)}, {np.datetime_data(dtype)[0]!r})"
        # What negative fractions become in unsigned integers is not defined.
        fraction = self.int(0 if dtype.kind == "u" else -20, 20) / 4
        choices = [str(self.int(0, 9)), str(self.int(-9, 9)), str(fraction), "True", "2j", f"np.int8({self.int(-9, 9)})",
                   f"np.float32({fraction})"]
        return self.pick(choices[:2] if dtype.kind in "biu" and self.chance(0.8) else choices)

    # Lines

    def line(self, text: str) -> None:
        self.lines.append(text)

    def peek(self, text: str, before: str | None = None) -> Any:
        """What an expression is in NumPy after the lines so far, or those before a line; None if it raises."""
        names = names_for(self, ours=False)
        try:
            for each in self.lines[: None if before is None else self.lines.index(before)]:
                exec(each, names)
            return eval(text, names)
        except Exception:
            return None

    def of(self, name: str) -> np.ndarray:
        return self.arrays[name]

    def code(self) -> str:
        """The program as a script."""
        lines = ["import numpy as np, tilewright as tw"]
        for name, values in self.arrays.items():
            made = f"np.array({values.tolist()!r}, dtype={values.dtype.str!r})"
            if values.dtype.kind in "Mm":
                made = f"np.array({values.astype('i8').tolist()!r}).astype({values.dtype.str!r})"
            made = made.replace("nan", "np.nan").replace("inf", "np.inf") + (f".reshape({values.shape})" if values.size == 0 else "")
            lines.append(f"{name} = {made}")
        for name, chunk in self.chunks.items():
            cut = "" if chunk is None or self.arrays[name].ndim == 0 else f".rechunk({chunk})"
            lines.append(f"{name} = tw.asarray({name}){cut}")
        lines.append(f"xp = {'np' if self.by_protocol else 'tw'}")
        return "\n".join([*lines, *self.lines, "print(r)"])


def names_for(case: Case, ours: bool) -> dict[str, Any]:
    """What the lines of a program see: the module, and arrays of their own."""
    names: dict[str, Any] = {"np": np, "xp": tw if ours and not case.by_protocol else np}
    for name, values in case.arrays.items():
        names[name] = values.copy()
        if ours and name in case.chunks:
            array, chunk = tw.asarray(values), case.chunks[name]
            names[name] = array if chunk is None or array.ndim == 0 else array.rechunk(chunk)
    return names


def call(case: Case, name: str, *args: Any, **options: Any) -> None:
    """The line ``r = xp.name(..)``; options that are ``...`` are left out."""
    case.name = name
    given = [str(arg) for arg in args] + [f"{key}={value}" for key, value in options.items() if value is not ...]
    case.line(f"r = xp.{name}({', '.join(given)})")


def sometimes(case: Case, value: Any, share: float = 0.4) -> Any:
    return value if case.chance(share) else ...
