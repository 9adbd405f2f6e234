"""Programs that make arrays, change their shapes, and join, split and pad them."""

from __future__ import annotations

from typing import Any

from .case import NUMBERS, Case, call, sometimes
from .indexing import value_for


def divisors(case: Case, size: int) -> tuple[int, ...]:
    """A shape of some number of elements."""
    shape = []
    while size > 1 and len(shape) < 3:
        n = case.pick([d for d in range(1, size + 1) if size % d == 0])
        shape.append(n)
        size //= n
    return (*shape, size)


SHAPES = """
    reshape ravel transpose moveaxis swapaxes rollaxis expand_dims squeeze flip fliplr flipud roll rot90 tile repeat broadcast_to
    atleast_1d atleast_2d atleast_3d diag diagflat diagonal trace tril triu resize permute_dims matrix_transpose unstack shape
    ndim size
""".split()


def shapes(case: Case) -> None:
    name = case.pick(SHAPES)
    a = case.array()
    values = case.of(a)
    ndim = values.ndim
    if name in ("reshape", "resize"):
        shape = list(divisors(case, values.size)) if name == "reshape" else list(case.shape(1, 3))
        if name == "reshape" and case.chance(0.4):
            shape[case.int(0, len(shape) - 1)] = -1
        call(case, name, a, tuple(shape), order=sometimes(case, case.pick(["'C'", "'F'", "'A'"]), 0.3) if name == "reshape" else ...)
    elif name == "ravel":
        call(case, name, a, order=sometimes(case, case.pick(["'C'", "'F'"])))
    elif name in ("transpose", "permute_dims"):
        call(case, name, a, axes=tuple(case.random.sample(range(ndim), ndim)) if case.chance(0.9) or name == "permute_dims" else ...)
    elif name == "moveaxis":
        n = case.int(0, ndim)
        source, target = (case.random.sample(range(ndim), n) for _ in range(2))
        call(case, name, a, source, target)
    elif name in ("swapaxes", "rollaxis"):
        call(case, name, a, case.axis(ndim, none=False), case.axis(ndim, none=False))
    elif name in ("expand_dims", "flip"):
        call(case, name, a, axis=case.axes(ndim) if name == "flip" else case.pick([0, -1, ndim, case.axis(ndim, none=False), (0, 1)]))
    elif name == "squeeze":
        call(case, name, a, axis=sometimes(case, case.axes(ndim)))
    elif name == "roll":
        axis = case.axes(ndim)
        call(case, name, a, case.int(-7, 7) if not isinstance(axis, tuple) else tuple(case.int(-7, 7) for _ in axis), axis=axis)
    elif name == "rot90":
        call(case, name, a, case.int(-4, 4), axes=sometimes(case, tuple(case.random.sample(range(ndim), 2)) if ndim > 1 else (0, 1)))
    elif name == "tile":
        call(case, name, a, case.pick([2, (2, 1), (1, 2, 2), 0, (3,)]))
    elif name == "repeat":
        axis = case.axis(ndim)
        n = values.size if axis is None else values.shape[axis] if -ndim <= axis < ndim else 1
        counts = case.add(case.numbers.integers(0, 4, n), own=case.chance(0.5)) if case.chance(0.4) else case.int(0, 3)
        call(case, name, a, counts, axis=axis)
    elif name == "broadcast_to":
        call(case, name, a, (*case.shape(0, 2), *(n if n != 1 else case.int(1, 3) for n in values.shape)))
    elif name in ("diag", "diagflat", "tril", "triu"):
        call(case, name, a, k=sometimes(case, case.int(-3, 3)))
    elif name in ("diagonal", "trace"):
        first, second = case.random.sample(range(ndim), 2) if ndim > 1 else (0, 1)
        call(case, name, a, case.int(-2, 2), first, second)
    elif name == "unstack":
        call(case, name, a, axis=sometimes(case, case.axis(ndim, none=False)))
    else:
        call(case, name, a)


JOINS = """
    concatenate stack hstack vstack dstack column_stack block append insert delete split array_split hsplit vsplit dsplit
    broadcast_arrays meshgrid
""".split()


def joining(case: Case) -> None:
    name = case.pick(JOINS)
    a = case.array(low=-9, high=9)
    values = case.of(a)
    ndim, axis = values.ndim, case.axis(values.ndim, none=False)
    same = [values.dtype.str] if case.chance(0.5) or values.dtype.kind in "Mm" else NUMBERS
    length = values.shape[axis] if ndim and axis is not None and -ndim <= axis < ndim else 1

    def other(longer: bool) -> str:
        shape = list(values.shape)
        if longer and shape and axis is not None and -ndim <= axis < ndim:
            shape[axis] = case.int(0, 3)
        return case.array(same, shape=tuple(shape) if case.chance(0.97) else (9,), own=case.chance(0.8))

    if name in ("concatenate", "stack"):
        call(case, name, f"[{', '.join([a, *(other(name == 'concatenate') for _ in range(case.int(0, 2)))])}]",
             axis=axis if case.chance(0.85) or name == "stack" else None)
    elif name in ("hstack", "vstack", "dstack", "column_stack"):
        call(case, name, f"({a}, {other(False)}, {a})")
    elif name == "block":
        b = other(False)
        call(case, name, case.pick([f"[{a}, {b}]", f"[[{a}, {b}], [{b}, {a}]]"]))
    elif name == "append":
        axis = axis if case.chance(0.6) else None
        call(case, name, a, other(True), axis=axis)
    elif name == "insert":
        call(case, name, a, case.pick([case.int(-length, length), [0, length // 2], "slice(0, 2)", [0]]),
             value_for(case, values.dtype, ()), axis=axis if case.chance(0.7) else None)
    elif name == "delete":
        mask = case.values("?", (length,)).tolist()
        call(case, name, a, case.pick([case.int(-length, max(length - 1, 0)), [0], [0, -1], "slice(None, None, 2)", mask, []]),
             axis=axis if case.chance(0.7) else None)
    elif name in ("split", "array_split"):
        call(case, name, a, case.pick([1, 2, 3, [1, 2], [0, 3, 9], length or 1]), axis=axis)
    elif name in ("hsplit", "vsplit", "dsplit"):
        call(case, name, a, case.pick([1, 2, [1]]))
    elif name == "broadcast_arrays":
        b = case.array(same, shape=case.repeated(values.shape))
        case.name = name
        case.line(f"r = tuple(xp.broadcast_arrays({a}, {b}))")
    else:
        b = case.array(shape=case.shape(1, 1))
        case.name = name
        case.line(f"r = tuple(xp.meshgrid({a}.ravel(), {b}, indexing={case.pick(['xy', 'ij'])!r}, sparse={case.chance(0.4)}))")


MODES = """
    constant edge reflect symmetric wrap linear_ramp maximum minimum mean median
""".split()


def padding(case: Case) -> None:
    # Mirrored at points, infinities make NaN of their neighbours, in an order that is nobody's affair.
    a = case.array(NUMBERS, shape=case.shape(1, 3), finite=True, low=-9, high=9)
    ndim = case.of(a).ndim
    mode = case.pick(MODES)
    width = case.pick([1, 2, (1, 2), [case.int(0, 3)], tuple((case.int(0, 3), case.int(0, 3)) for _ in range(ndim))])
    options: dict[str, Any] = {}
    if mode == "constant":
        options["constant_values"] = sometimes(case, case.pick([3, (1, 2)]))
    if mode in ("reflect", "symmetric"):
        options["reflect_type"] = sometimes(case, "'odd'", 0.3)
    if mode in ("maximum", "mean", "minimum", "median"):
        options["stat_length"] = sometimes(case, case.pick([1, 2, (1, 2)]), 0.3)
    call(case, "pad", a, width, repr(mode), **options)
    case.name = f"pad {mode}"


CREATION = """
    full_like ones_like zeros_like arange linspace eye tri indices logspace geomspace identity full tril_indices triu_indices
    diag_indices array asarray copy
""".split()


def creation(case: Case) -> None:
    name = case.pick(CREATION)
    case.by_protocol = False
    dtype = sometimes(case, repr(case.pick(NUMBERS)))
    n, m = case.int(0, 5), case.int(1, 5)
    if name in ("full_like", "ones_like", "zeros_like", "copy"):
        a = case.array()
        value = [case.number(case.of(a).dtype)] if name == "full_like" else []
        call(case, name, a, *value, dtype=dtype if name != "copy" and case.of(a).dtype.kind not in "Mm" else ...)
    elif name == "arange":
        call(case, name, case.int(-5, 5), case.int(-9, 9), case.pick([1, 2, -1, 0.5, -3]),
             dtype=sometimes(case, repr(case.pick(["i8", "f4", "f8", "i2"]))))
    elif name in ("linspace", "logspace", "geomspace"):
        start, stop = case.int(1, 5), case.int(1, 9) / 2
        call(case, name, start, stop, num=case.int(0, 9), endpoint=sometimes(case, False),
             dtype=sometimes(case, repr(case.pick(["f4", "f8", "c16"]))))
    elif name in ("eye", "tri"):
        call(case, name, n, m, k=case.int(-3, 3), dtype=dtype)
    elif name == "indices":
        call(case, name, (n, m), sparse=sometimes(case, True))
    elif name in ("tril_indices", "triu_indices"):
        call(case, name, n, k=case.int(-2, 2), m=sometimes(case, m))
    elif name in ("identity", "diag_indices"):
        call(case, name, n)
    elif name == "full":
        call(case, name, (n, m), case.int(0, 5), dtype=dtype)
    else:
        text = case.values(case.pick(["?", "i8", "f8", "c16"]), case.shape(0, 3), finite=True).tolist()
        call(case, name, text, dtype=sometimes(case, repr(case.pick(["f4", "f8", "c16"])), 0.3))
