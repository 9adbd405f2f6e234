"""Arrays that share elements: what NumPy calls views.

Tensors never change; arrays do, by taking another tensor. So arrays that share elements refer to one :class:`Memory`, which holds the tensor of the whole and a version. Each of them
knows the steps (a slice, an order of axes, a shape ..) that lead from the whole to itself, and the version it has last seen. A write to any of them puts the new elements
into the whole by the steps backwards and raises the version; the others take their part of the new whole when they are next used. Nothing is computed for any of this.

An array of which no part was ever taken has no memory of this kind. When all but one of the arrays of a memory have died, and a part is left, it leaves the memory: a small part does
not keep a large array alive that is unreachable otherwise.

Threads that write to disjoint parts of a memory lose nothing. A writer takes the whole and its version, makes the new whole, and puts it in place if the version is still the same; otherwise it begins
again. Nothing is locked while tensors are made, since that may compute lengths and call functions of the user on other threads, which may write themselves. Rejected: a lock around all of it, for this reason.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable
from opcode import opmap
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core

if TYPE_CHECKING:
    from ._array import Array

#: Lengths of axes, and how many elements of the whole lie between neighbours along each.
Layout = tuple[tuple[int, ...], tuple[int, ...]]

#: Where the elements of an array lie: lengths of a whole in C's order, and the steps from there. None for C's order.
Origin = tuple[tuple[Any, ...], tuple["Step", ...]] | None


#: Held while a new state is put in place: a few loads, comparisons and stores that neither call nor allocate nor let anything die. So no other thread is in between, and neither is what Python runs on the
#: same thread (handlers of signals, ``__del__``, :func:`_left`): it does so at calls and allocations only. Nobody waits for anything else meanwhile, so there are no deadlocks, and such code may take the lock again.
#: One lock for all: it is held for a tenth of a microsecond, and an array without views has no memory that could own one.
_in_place = threading.RLock()


def _renew_lock() -> None:
    """A fork has no other threads, but may have been made while one of them held the lock."""
    global _in_place
    _in_place = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class Memory:
    """Elements that several arrays share."""

    __slots__ = ("tensor", "origin", "version", "members", "joined")

    def __init__(self, tensor: _core.Tensor, origin: Origin) -> None:
        self.tensor, self.origin = tensor, origin
        self.version = 0
        # By the address of the array: arrays are no keys.
        self.members: dict[int, _Member] = {}
        # Another object whenever an array joins.
        self.joined: object = None

    def join(self, array: Array) -> None:
        self.members[id(array)] = _Member(array, self)
        self.joined = object()


class _Member(weakref.ref):
    """A weak reference to an array of a memory. The memory holds it, so it goes with the array."""

    __slots__ = ("memory", "key")

    def __new__(cls, array: Array, memory: Memory) -> _Member:
        member = super().__new__(cls, array, _left)
        member.memory, member.key = memory, id(array)
        return member


def _left(member: _Member) -> None:
    """An array has died. The garbage collector may call this at any time, so no tensor is made here."""
    memory = member.memory
    memory.members.pop(member.key, None)
    if len(memory.members) != 1:
        return
    last = next(iter(memory.members.values()), lambda: None)()
    link = None if last is None else last._link
    if link is not None and link.memory is memory and link.steps:
        _leave(last, link)


def _leave(array: Array, link: Link) -> None:
    """The last array of a memory keeps its own elements and the order in which they lie, unless another view is written or added meanwhile."""
    memory = link.memory
    # First: who joins later is noticed below.
    joined = memory.joined
    if len(memory.members) != 1:
        return
    origin = link.origin()
    with _in_place:
        if array._link is link and link.version == memory.version and memory.joined is joined:
            array._origin = origin
            array._link = None


class Link:
    """How an array sees the elements of a memory."""

    __slots__ = ("memory", "steps", "version")

    def __init__(self, memory: Memory, steps: tuple[Step, ...], version: int) -> None:
        self.memory, self.steps, self.version = memory, steps, version

    def origin(self) -> Origin:
        if self.memory.origin is None and all(isinstance(step, (Shape, NewAxes)) for step in self.steps):
            return None
        whole, before = self.memory.origin or (self.memory.tensor.extents, ())
        return whole, before + self.steps


def view(base: Array, step: Step) -> Array:
    """An array that shares its elements with another, of which it is one step away."""
    while True:
        link = base._link or _linked(base)
        memory = link.memory
        # In this order: after a write between the two lines, the view takes its part again when it is used.
        version = memory.version
        made = type(base)(step.get(base._tensor))
        made._link = Link(memory, (*link.steps, step), version)
        memory.join(made)
        # The base may have left as the last one before the view has joined; afterwards it is not the last.
        if base._link is link:
            return made


def _linked(base: Array) -> Link:
    """The link of an array that may be the first of its memory."""
    while True:
        value = base._value
        memory = Memory(value, base._origin)
        memory.join(base)
        link = Link(memory, (), 0)
        with _in_place:
            other = base._link
            if other is None and base._value is value:
                base._link = link
                return link
        # Otherwise the two keep each other alive.
        memory.members.clear()
        if other is not None:
            return other


def current(array: Array) -> _core.Tensor:
    """The tensor of an array whose elements have been written through another one."""
    link = array._link
    if link is None:  # Another thread has been faster.
        return array._value
    memory = link.memory
    # In this order: a write between the two lines is seen next time.
    version = memory.version
    tensor = memory.tensor
    for step in link.steps:
        tensor = step.get(tensor)
    with _in_place:
        # What dies does so later: see the lock.
        before = array._value
        if array._link is link and link.version < version:
            array._value = tensor
            link.version = version
    del before
    if link.steps and len(memory.members) == 1:
        _leave(array, link)
    return tensor


def write(array: Array, tensor: _core.Tensor) -> None:
    """Gives an array other elements, and with it all that share them. Without such, shape and type may be others, too."""
    update(array, lambda _: tensor)


def update(array: Array, change: Callable[[_core.Tensor], _core.Tensor]) -> None:
    """Gives an array the elements that a function makes of its own, and with it all that share them.

    The function is called again if another thread has written meanwhile, so that those writes are not lost.
    """
    while True:
        link = array._link
        if link is None:
            before = array._value
            new = change(before)
            with _in_place:
                if array._link is None and array._value is before:
                    array._value = new
                    return
            continue
        memory = link.memory
        # In this order: a write between the two lines is noticed at the end.
        version = memory.version
        whole = memory.tensor
        if link.steps and link.version == version and len(memory.members) == 1:
            _leave(array, link)
            if array._link is None:
                continue
        wholes = [whole]
        for step in link.steps[:-1]:
            wholes.append(step.get(wholes[-1]))
        own = array._value if link.version == version else link.steps[-1].get(wholes[-1]) if link.steps else whole
        tensor = new = change(own)
        for step in reversed(link.steps):
            new = step.put(wholes.pop(), new)
        following, before = version + 1, None
        with _in_place:
            before = array._value
            if array._link is link and memory.version == version:
                memory.tensor = new
                memory.version = following
                array._value = tensor
                link.version = following
                return


def assign(target: Array, value: Any, casting: str = "same_kind") -> None:
    """Writes a value into an array, as ``out=`` does: it is broadcast, and converted if NumPy's rule allows it.

    Arrays that share elements with the target change, too.
    """
    from ._array import Array, unwrap

    tensor = unwrap(value)
    if not isinstance(tensor, _core.Tensor):
        from ._creation import asarray

        tensor = asarray(value)._tensor
    old = target._tensor
    if tensor.dtype != old.dtype:
        if not np.can_cast(Array(tensor).dtype, target.dtype, casting):
            raise TypeError(
                f"{tensor.dtype} does not go into an array of {old.dtype} by the rule {casting!r}: convert one of them by .astype(..)"
            )
        tensor = _core.cast(tensor, old.dtype)
    if not tensor.fits(old):
        shape = tensor.shape
        if shape != old.shape:
            if tuple(_core.broadcast_shapes([shape, old.shape])) != old.shape:
                raise ValueError(f"a result of shape {shape} does not go into an array of shape {old.shape}")
            tensor = _core.broadcast_to(tensor, list(old.shape))
    write(target, tensor)


def is_part(value: Any, whole: Array, step: Step) -> bool:
    """True if an array is this very part of another: then nothing changes when it is written there, as ``x[1:3] += 1`` does at last."""
    own, link = getattr(value, "_link", None), whole._link
    if own is None or link is None or own.memory is not link.memory or own.version != own.memory.version:
        return False
    return own.steps == (*link.steps, step)


def exchanges_rows(value: Any, whole: Array, key: tuple[Any, ...]) -> bool:
    """True for the first write of ``x[i], x[j] = x[j], x[i]`` in compiled code: rows are views, so the second write would find row j in both.

    NumPy's ``shuffle`` does this with all that is no array of its own. In Python the line means what it means for NumPy's arrays.
    """
    own, link = getattr(value, "_link", None), whole._link
    if own is None or link is None or own.memory is not link.memory or not all(isinstance(part, int) for part in key):
        return False
    if not own.steps or own.steps[:-1] != link.steps or not isinstance(own.steps[-1], Part):
        return False
    target = (*link.steps, Part(key))
    others = [member() for member in list(link.memory.members.values())]
    if not any(other is not None and other._link is not None and other._link.steps == target for other in others):
        return False
    # After this function, setitem and __setitem__ comes who writes. Compiled code has no frame: then this is who has called it.
    writer = sys._getframe(2).f_back
    return writer is None or writer.f_code.co_code[writer.f_lasti] != opmap["STORE_SUBSCR"]


def shares(a: Array, b: Array, exactly: bool) -> bool:
    """True if two arrays have elements in common; or if only the ranges from their first to their last elements have, which is easier to tell."""
    if a is not b and (a._link is None or b._link is None or a._link.memory is not b._link.memory):
        return False
    if 0 in a.shape or 0 in b.shape:
        return False
    first, second = _lying(a), _lying(b)
    if a is b or first is None or second is None:
        return True
    return np.shares_memory(first, second) if exactly else np.may_share_memory(first, second)


# Layouts: only in order to know which reshapes NumPy would answer by a copy, and which elements lie where.


class _Lying:
    """The array interface for NumPy. The address is made up, and no element is read there."""

    def __init__(self, start: int, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> None:
        between = tuple(stride * itemsize for stride in strides)
        data = ((1 << 60) + start * itemsize, True)
        self.__array_interface__ = {"version": 3, "typestr": f"|V{itemsize}", "data": data, "shape": shape, "strides": between}


def _lying(array: Array) -> np.ndarray | None:
    """An array of NumPy whose elements would lie as those of an array do in its memory; None if that is not known. Its elements must not be read."""
    origin = _origin(array)
    if origin is None:
        return np.asarray(_Lying(0, array.shape, _strides(array.shape), array.itemsize))
    whole, steps = origin
    if None in whole:
        return None
    layout, start = (tuple(whole), _strides(tuple(whole))), 0
    for step in steps:
        start = step.first(start, *layout)
        if start is None:
            return None
        layout = step.layout(*layout)
    return np.asarray(_Lying(start, *layout, array.itemsize))


def _layout(array: Array) -> Layout:
    """How the elements of an array lie."""
    origin = _origin(array)
    if origin is None or None in origin[0]:
        shape = tuple(array._tensor.shape)
        return shape, _strides(shape)
    whole, steps = origin
    layout = tuple(whole), _strides(tuple(whole))
    for step in steps:
        layout = step.layout(*layout)
    return layout


def _origin(array: Array) -> Origin:
    return array._origin if array._link is None else array._link.origin()


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = [1]
    for n in shape[:0:-1]:
        strides.append(strides[-1] * n)
    return tuple(reversed(strides)) if shape else ()


def is_contiguous(array: Array) -> bool:
    """True if the elements lie one after the other, as those of any array do that was never a view."""
    if _origin(array) is None:
        return True
    shape, strides = _layout(array)
    return 0 in shape or all(n == 1 or own == wanted for n, own, wanted in zip(shape, strides, _strides(shape), strict=True))


def reshapes(array: Array, shape: tuple[int, ...]) -> bool:
    """True if NumPy would reshape an array of this layout without a copy."""
    if array.ndim == len(shape) == 1 or is_contiguous(array):
        return True
    lengths = tuple(_core.reshape(array._tensor, list(shape)).shape)
    return _reshaped(*_layout(array), lengths) is not None


def _reshaped(shape: tuple[int, ...], strides: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...] | None:
    """Strides under another shape, if there are any: groups of axes that hold as many elements must be regular before and after."""
    if 0 in shape:
        return _strides(new)
    old = [(n, stride) for n, stride in zip(shape, strides, strict=True) if n != 1]
    found = [0] * len(new)
    k = start = 0
    while start < len(old):
        end, last = start + 1, k + 1
        before, after = old[start][0], new[k]
        while before != after:
            if after < before:
                after *= new[last]
                last += 1
            else:
                before *= old[end][0]
                end += 1
        if any(old[at][1] != old[at + 1][0] * old[at + 1][1] for at in range(start, end - 1)):
            return None
        stride = old[end - 1][1]
        for at in range(last - 1, k - 1, -1):
            found[at] = stride
            stride *= new[at]
        start, k = end, last
    return tuple(found)


# Steps: from a tensor to a part of it, and back.


class Step:
    """One operation of which NumPy's result is a view."""

    __slots__ = ()

    def get(self, tensor: _core.Tensor) -> _core.Tensor:
        """The elements of the view."""
        raise NotImplementedError

    def put(self, tensor: _core.Tensor, new: _core.Tensor) -> _core.Tensor:
        """The tensor with new elements for the view."""
        raise NotImplementedError

    def layout(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> Layout:
        """How the elements of the view lie."""
        raise NotImplementedError

    def first(self, start: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> int | None:
        """Where the first element of the view lies, if that of the tensor lies at ``start``; None if it is not known."""
        return start

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None


class Part(Step):
    """``x[key]`` for integers, slices, None and ``...``."""

    __slots__ = ("key",)

    def __init__(self, key: tuple[Any, ...]) -> None:
        self.key = key

    def get(self, tensor: _core.Tensor) -> _core.Tensor:
        return _core.slice(tensor, self.key)

    def put(self, tensor: _core.Tensor, new: _core.Tensor) -> _core.Tensor:
        from ._indexing import replaced

        return replaced(tensor, self.key, new)

    def layout(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> Layout:
        n_named = sum(part is not None and part is not Ellipsis for part in self.key)
        axes = iter(zip(shape, strides, strict=True))
        found = []
        for part in self.key:
            if part is None:
                found.append((1, 0))
            elif part is Ellipsis:
                found.extend(next(axes) for _ in range(len(shape) - n_named))
            elif isinstance(part, slice):
                n, stride = next(axes)
                found.append((len(range(*part.indices(n))), stride * (1 if part.step is None else part.step)))
            else:
                next(axes)
        found.extend(axes)
        return tuple(n for n, _ in found), tuple(stride for _, stride in found)

    def first(self, start: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
        named = [part for part in self.key if part is not None]
        if Ellipsis in named:
            at = named.index(Ellipsis)
            named[at : at + 1] = [slice(None)] * (len(shape) - len(named) + 1)
        for part, n, stride in zip(named, shape, strides, strict=False):
            start += stride * (range(*part.indices(n)).start if isinstance(part, slice) else part % n)
        return start


class Order(Step):
    """The axes in another order."""

    __slots__ = ("axes",)

    def __init__(self, axes: list[int]) -> None:
        self.axes = axes

    def get(self, tensor: _core.Tensor) -> _core.Tensor:
        # The same order is no statement: plans would copy the blocks.
        return tensor if self.axes == sorted(self.axes) else _core.permute(tensor, self.axes)

    def put(self, tensor: _core.Tensor, new: _core.Tensor) -> _core.Tensor:
        return _core.permute(new, [self.axes.index(axis) for axis in range(len(self.axes))])

    def layout(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> Layout:
        return tuple(shape[axis] for axis in self.axes), tuple(strides[axis] for axis in self.axes)


class Shape(Step):
    """Another shape; the layout must allow it, see :func:`reshapes`."""

    __slots__ = ("lengths",)

    def __init__(self, lengths: list[int]) -> None:
        self.lengths = lengths

    def get(self, tensor: _core.Tensor) -> _core.Tensor:
        return _core.reshape(tensor, self.lengths)

    def put(self, tensor: _core.Tensor, new: _core.Tensor) -> _core.Tensor:
        return _core.reshape(new, list(tensor.shape))

    def layout(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> Layout:
        known = [n for n in self.lengths if n != -1]
        rest = int(np.prod(shape, dtype=object)) // max(int(np.prod(known, dtype=object)), 1)
        new = tuple(rest if n == -1 else n for n in self.lengths)
        return new, _reshaped(shape, strides, new) or _strides(new)


class NewAxes(Step):
    """New axes of length 1 at some positions of the result, in order."""

    __slots__ = ("positions",)

    def __init__(self, positions: list[int]) -> None:
        self.positions = positions

    def get(self, tensor: _core.Tensor) -> _core.Tensor:
        for position in self.positions:
            tensor = _core.expand_dims(tensor, position)
        return tensor

    def put(self, tensor: _core.Tensor, new: _core.Tensor) -> _core.Tensor:
        return _core.squeeze(new, self.positions)

    def layout(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> Layout:
        lengths, between = list(shape), list(strides)
        for position in self.positions:
            lengths.insert(position, 1)
            between.insert(position, 0)
        return tuple(lengths), tuple(between)


class WithoutAxes(Step):
    """Without some axes of length 1, in order."""

    __slots__ = ("axes",)

    def __init__(self, axes: list[int]) -> None:
        self.axes = axes

    def get(self, tensor: _core.Tensor) -> _core.Tensor:
        return _core.squeeze(tensor, self.axes)

    def put(self, tensor: _core.Tensor, new: _core.Tensor) -> _core.Tensor:
        return NewAxes(self.axes).get(new)

    def layout(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> Layout:
        kept = [axis for axis in range(len(shape)) if axis not in self.axes]
        return tuple(shape[axis] for axis in kept), tuple(strides[axis] for axis in kept)


class Reverse(Step):
    """The elements in opposite order along some axes."""

    __slots__ = ("axes",)

    def __init__(self, axes: list[int]) -> None:
        self.axes = axes

    def get(self, tensor: _core.Tensor) -> _core.Tensor:
        return _core.flip(tensor, self.axes)

    def put(self, tensor: _core.Tensor, new: _core.Tensor) -> _core.Tensor:
        return _core.flip(new, self.axes)

    def layout(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> Layout:
        return shape, tuple(-stride if axis in self.axes else stride for axis, stride in enumerate(strides))

    def first(self, start: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
        return start + sum((shape[axis] - 1) * strides[axis] for axis in self.axes)


class RealPart(Step):
    """Real parts of complex numbers."""

    __slots__ = ()

    def get(self, tensor: _core.Tensor) -> _core.Tensor:
        return _core.unary("real", tensor)

    def put(self, tensor: _core.Tensor, new: _core.Tensor) -> _core.Tensor:
        return _core.binary("complex", new, _core.unary("imag", tensor))

    def layout(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> Layout:
        return shape, tuple(2 * stride for stride in strides)

    def first(self, start: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
        return 2 * start


class ImaginaryPart(RealPart):
    """Imaginary parts of complex numbers."""

    __slots__ = ()

    def get(self, tensor: _core.Tensor) -> _core.Tensor:
        return _core.unary("imag", tensor)

    def put(self, tensor: _core.Tensor, new: _core.Tensor) -> _core.Tensor:
        return _core.binary("complex", _core.unary("real", tensor), new)

    def first(self, start: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
        return 2 * start + 1


class ReadOnly(Step):
    """What NumPy does not write through, either: a diagonal, or elements that are repeated."""

    __slots__ = ("name", "function", "strided")

    def __init__(self, name: str, function: Callable[..., _core.Tensor], strided: Callable[..., Layout]) -> None:
        self.name, self.function, self.strided = name, function, strided

    def get(self, tensor: _core.Tensor) -> _core.Tensor:
        return self.function(tensor)

    def put(self, tensor: _core.Tensor, new: _core.Tensor) -> _core.Tensor:
        raise ValueError(f"what {self.name} gives shows elements of another array and is read-only, as in NumPy: write to a .copy() of it")

    def layout(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> Layout:
        return self.strided(shape, strides)

    def first(self, start: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        return None
