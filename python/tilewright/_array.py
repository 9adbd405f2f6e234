"""The lazy array, with NumPy's manners."""

from __future__ import annotations

import math
import os
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core, _views
from ._chunks import normalize_chunks
from ._progress import progress_report
from ._turns import waiting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._block_view import BlockView
    from ._explanation import Explanation, Profile

__all__ = ["Array"]


class Array:
    """A lazy array: its type is known, elements are computed when they are asked for.

    So is the shape, unless it depends on elements: the number of elements under a mask is computed with the rest, or on request.

    Arrays are made by :func:`tilewright.asarray` and its relatives, or by operations on other arrays. A computed array keeps its
    blocks as long as it lives, so a loop that asks for a number in every step costs the same at every step.

    Slices, transposes and reshapes are views, as in NumPy: who writes to one of them writes to all arrays that share its elements.

    >>> import tilewright as tw
    >>> x = tw.arange(6).reshape((2, 3))
    >>> (x + 1).sum(axis=0).compute()
    array([5, 7, 9])
    """

    __slots__ = ("_value", "_link", "_origin", "__weakref__")
    # NumPy asks this before it tries to convert an operand by itself.
    __array_priority__ = 1000.0

    def __init__(self, tensor: _core.Tensor) -> None:
        if not isinstance(tensor, _core.Tensor):
            raise TypeError("arrays are made by tilewright.asarray(..) and its relatives")
        self._value = tensor
        # With whom it shares elements, and in which order they lie: see _views.py.
        self._link: _views.Link | None = None
        self._origin: _views.Origin = None

    @property
    def _tensor(self) -> _core.Tensor:
        """The elements as they are now."""
        link = self._link
        return self._value if link is None or link.version == link.memory.version else _views.current(self)

    @_tensor.setter
    def _tensor(self, tensor: _core.Tensor) -> None:
        _views.write(self, tensor)

    # Attributes

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes. Those that depend on elements, as in ``x[mask]``, are computed now."""
        tensor = self._tensor
        if not tensor.is_open:
            return tensor.shape
        with waiting():
            return tensor.shape

    @property
    def dtype(self) -> np.dtype:
        """Element type."""
        return np.dtype(self._tensor.dtype)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._tensor.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        size = 1
        for n in self._tensor.shape:
            size *= n
        return size

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    @property
    def device(self) -> str:
        """Where elements live: always ``"cpu"``."""
        return "cpu"

    @property
    def chunks(self) -> tuple[tuple[int, ...], ...]:
        """Lengths of the blocks along each axis: those of the operands, as far as the operation leaves them. The planner may use others inside."""
        return self._tensor.chunks

    @property
    def numblocks(self) -> tuple[int, ...]:
        """Number of blocks along each axis."""
        return tuple(len(lengths) for lengths in self.chunks)

    @property
    def chunksize(self) -> tuple[int, ...]:
        """Length of the longest block along each axis."""
        return tuple(max(lengths) for lengths in self.chunks)

    @property
    def npartitions(self) -> int:
        """Number of blocks."""
        return math.prod(self.numblocks)

    @property
    def blocks(self) -> BlockView:
        """The blocks as an array of them: ``x.blocks[0, 1]``, ``x.blocks[:2]``; see :class:`BlockView`."""
        from ._block_view import BlockView

        return BlockView(self)

    @property
    def partitions(self) -> BlockView:
        """The same as :attr:`blocks`."""
        return self.blocks

    @property
    def T(self) -> Array:
        """Two axes exchanged; of any other number of axes, all of them reversed."""
        return _views.view(self, _views.Order(list(range(self.ndim))[::-1]))

    @property
    def mT(self) -> Array:
        """The last two axes exchanged."""
        if self.ndim < 2:
            raise ValueError(f"a matrix has two axes at least, this array has {self.ndim}")
        order = list(range(self.ndim))
        order[-2:] = order[:-3:-1]
        return _views.view(self, _views.Order(order))

    @property
    def real(self) -> Array:
        """Real parts. ``x.real = v`` replaces them."""
        from ._elementwise import real

        return real(self)

    @real.setter
    def real(self, value: Any) -> None:
        part = self.real
        if value is not part:
            part[...] = value

    @property
    def imag(self) -> Array:
        """Imaginary parts. ``x.imag = v`` replaces those of complex numbers."""
        from ._elementwise import imag

        return imag(self)

    @imag.setter
    def imag(self, value: Any) -> None:
        if self.dtype.kind != "c":
            raise TypeError(f"an array of {self.dtype} has no imaginary parts to be replaced")
        part = self.imag
        if value is not part:
            part[...] = value

    # Computing

    def compute(self, *, block: bool = True, rank: int | None = None) -> Any:
        """Computes the array and gives it as a NumPy array of its own memory.

        A large result is computed where the NumPy array shows it and given away: this array keeps nothing of it unless it is asked for again.
        Use :meth:`persist` for an array that is needed more than once.

        With ``block=False`` it is computed while Python goes on, and what comes back at once is a :class:`tilewright.Pending`. Of several ranks all get the result, or only
        ``rank``; the others then get None.

        >>> import tilewright as tw
        >>> tw.ones(3).compute()
        array([1., 1., 1.])
        """
        if not block:
            from ._pending import Pending

            return Pending([self._tensor], lambda: self.compute(rank=rank))
        with waiting():
            return _core.to_numpy([self._tensor], None if self._tensor.is_computed else progress_report(), rank)[0]

    def persist(self) -> Array:
        """Computes the array now, keeps its blocks, and gives the array itself."""
        with waiting():
            self._tensor.persist(progress_report())
        return self

    def item(self, *args: Any) -> bool | int | float | complex:
        """The only element, as a Python number; or the one at an index, or at a place in a row."""
        args = args[0] if len(args) == 1 and isinstance(args[0], tuple) else args
        if args:
            if len(args) not in (1, self.ndim):
                raise ValueError(f"incorrect number of indices for array: {len(args)} for {self.ndim} axes")
            if any(isinstance(each, bool) for each in args):
                raise TypeError("an integer is required")
            places = tuple(index(each) for each in args)
            return (self.reshape(-1) if len(places) == 1 else self)[places].item()
        if self._tensor.is_open:
            self.persist()
        if self.size != 1:
            raise ValueError(f"an array of {self.size} elements is not a single number")
        return self._element()

    def _element(self) -> Any:
        """The only element of an array that has one."""
        with waiting():
            return self._tensor.item()

    def tolist(self) -> Any:
        """Nested lists of Python numbers."""
        return self.compute().tolist()

    def explain(
        self,
        level: str = "table",
        *,
        nodes: int | None = None,
        workers: int | None = None,
        machine: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        scheduler: str | None = None,
        pictures: bool = False,
    ) -> Explanation:
        """What computing the array will cost: tasks, bytes, peak memory. Nothing is computed.

        The level is ``"line"``, ``"table"``, ``"tree"``, ``"verbose"`` or ``"kernel"``: how much ``print`` shows.

        With ``nodes``, ``workers`` of each, or a ``machine`` the plan for several workers is told, too: a machine is the path of a file, or a dict as in
        ``{"nodes": 4, "across.bandwidth": "10GB/s"}``. A ``scheduler`` is ``"algebraic"``, ``"timed"``, ``"pattern"``, ``"lshs"`` or ``"roundrobin"``; without one the plan that
        ends first is in front. ``pictures`` shows in text what a notebook draws: who owns which block, who sends what to whom, who does what when.
        """
        from ._explanation import Explanation, target

        return Explanation(self._tensor.explain(target(nodes, workers, machine, scheduler, pictures)), level)

    def profile(self) -> Profile:
        """Computes the array and tells what that took beside what was planned: time, bytes and memory, line by line.

        The result prints as text, draws what every thread did when in a notebook, and is written for ``chrome://tracing`` or Perfetto by
        :meth:`~tilewright._explanation.Profile.to_chrome_trace`. What is computed is not kept.

        >>> import tilewright as tw
        >>> profile = (tw.ones((100, 100)) * 2).sum().profile()
        >>> profile.to_dict()["measured"]["tasks"] > 0
        True
        """
        from ._explanation import Profile

        with waiting():
            return Profile(self._tensor.profile())

    def visualize(self, path: str | os.PathLike[str], **workers: Any) -> None:
        """Writes the plan as a picture: ``.svg``, ``.html`` for a page with a table, ``.dot`` for Graphviz. Nothing is computed.

        Further arguments describe several workers, as in :meth:`explain`.
        """
        name = os.fspath(path)
        level = {"svg": "svg", "html": "html", "dot": "dot", "gv": "dot"}.get(name.rsplit(".", 1)[-1])
        if level is None:
            raise ValueError(f"{name}: a plan can be written as .svg, .html or .dot")
        explanation = self.explain(level, **workers)
        with open(name, "w", encoding="utf-8") as file:
            file.write(str(explanation))

    def rechunk(self, chunks: Any = "auto") -> Array:
        """The same array in blocks of other lengths: an int, a tuple, a dict from axes, -1, ``"auto"``, or bytes as in ``"64MiB"``.

        Axes that a dict does not name, or for which a dict or tuple has None, stay as they are.
        """
        if isinstance(chunks, dict):
            named = {axis + self.ndim if axis < 0 else axis: lengths for axis, lengths in chunks.items()}
            chunks = {**dict(enumerate(self.chunks)), **{axis: lengths for axis, lengths in named.items() if lengths is not None}}
        elif isinstance(chunks, (tuple, list)) and len(chunks) == self.ndim:
            chunks = [own if each is None else each for each, own in zip(chunks, self.chunks, strict=True)]
        return Array(_core.rechunk(self._tensor, normalize_chunks(chunks, self.shape, self.dtype)))

    def to_npy(self, path: Any) -> None:
        """Computes the array and writes it to an ``.npy`` file, block by block."""
        from ._files import write_file

        write_file(self, path)

    # Conversion

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("a NumPy array of a lazy array is always a copy")
        array = self.compute()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        import tilewright

        if api_version is not None and api_version not in tilewright.__array_api_versions__:
            raise ValueError(f"tilewright follows {tilewright.__array_api_version__} of the array API, not {api_version}")
        return tilewright

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        from ._numpy import ufunc as call

        return call(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        from ._numpy import function as call

        return call(func, types, args, kwargs)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        if stream is not None:
            raise ValueError("the device 'cpu' has no streams")
        return self.compute().__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(self.compute())

    def to_device(self, device: str, /, *, stream: Any = None) -> Array:
        """The array itself: there is one device, ``"cpu"``."""
        if device != "cpu":
            raise ValueError(f"there is no device {device!r}, only 'cpu'")
        if stream is not None:
            raise ValueError("the device 'cpu' has no streams")
        return self

    def __reduce__(self) -> Any:
        return _unpickle, (self.compute(), self._tensor.tiling)

    def __copy__(self) -> Array:
        return Array(self._tensor)

    def __deepcopy__(self, memo: Any) -> Array:
        return Array(self._tensor)

    def _scalar(self, what: str) -> Any:
        if self._tensor.is_open:
            self.persist()
        if self.size != 1:
            raise TypeError(f"only arrays of one element become {what}, this one has shape {self.shape}")
        return self._element()

    def __bool__(self) -> bool:
        if self._tensor.is_open:
            self.persist()
        if self.size != 1:
            raise ValueError("the truth of an array of several elements is not defined; use any() or all()")
        return bool(self._element())

    def __int__(self) -> int:
        value = self._scalar("an int")
        if isinstance(value, complex):
            raise TypeError("a complex number does not become an int")
        return int(value)

    def __float__(self) -> float:
        value = self._scalar("a float")
        if isinstance(value, complex):
            raise TypeError("a complex number does not become a float")
        return float(value)

    def __complex__(self) -> complex:
        return complex(self._scalar("a complex number"))

    def __index__(self) -> int:
        if self.dtype.kind not in "iu" or self.ndim != 0:
            raise TypeError(f"only an integer without axes is an index, not an array of {self.dtype} with {self.ndim}")
        return int(self._element())

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    # As in NumPy: what can change and compares element by element is no key.
    __hash__ = None

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    # Indexing

    def __getitem__(self, key: Any) -> Array:
        from ._indexing import getitem

        return getitem(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        from ._indexing import setitem

        setitem(self, key, value)

    # How it looks

    def __repr__(self) -> str:
        if self._tensor.is_open:
            shape = ", ".join("?" if n is None else str(n) for n in self._tensor.extents)
            return f"tilewright.Array(shape=({shape}{',' * (self.ndim == 1)}), dtype={self.dtype}, lazy)"
        chunk = tuple(max(lengths, default=0) for lengths in self.chunks)
        state = "computed" if self._tensor.is_computed else "lazy"
        if self.size == 1 and self._tensor.is_computed:
            state = f"value={self._tensor.item()}"
        return f"tilewright.Array(shape={self.shape}, dtype={self.dtype}, chunks={chunk}, {state})"

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else repr(self)

    def _repr_html_(self) -> str:
        from ._html import picture

        return picture(self)


def _unpickle(array: np.ndarray, chunks: Any) -> Array:
    from . import asarray

    made = asarray(array)
    return made if chunks is None else made.rechunk(chunks)


def unwrap(value: Any) -> Any:
    """The tensor of an array, a Python number as it is, anything else made an array first."""
    if isinstance(value, Array):
        return value._tensor
    if type(value) in (bool, int, float, complex, _core.Tensor):
        return value
    from . import asarray

    return asarray(value)._tensor


def seen_in(array: Array, chunks: Any) -> Array:
    """An array of which users see other blocks: those of its operands, where the steps that it is made of hide them. Plans do not change."""
    tensor = array._tensor
    if tensor.is_open or tensor.chunks == chunks:
        return array
    return Array(_core.seen_as(tensor, _core.rechunk(tensor, chunks)))


def named(method: Any, name: str) -> Any:
    """A method under the name of the operator that calls it: plans and tracebacks show it."""
    method.__name__ = name
    method.__code__ = method.__code__.replace(co_name=name)
    return method


#: What NumPy computes of two truth values as the smallest integers.
_OF_SMALLEST = frozenset(("floordiv", "mod", "pow", "shl", "shr"))
#: What NumPy takes integers beside spans of time for, which count their unit.
_COMPARED = frozenset(("lt", "le", "gt", "ge", "eq", "ne", "max", "min"))


def binary(op: str, left: Any, right: Any) -> _core.Tensor:
    """An operation on two tensors or numbers, in the types that NumPy would use."""
    if op in _OF_SMALLEST and _is_bool(left) and _is_bool(right):
        left, right = (_core.cast(_core.full([], each, "bool") if isinstance(each, bool) else each, "int8") for each in (left, right))
    elif op in _COMPARED:
        left, right = _as_span(left, right), _as_span(right, left)
    elif op in ("div", "floordiv") and getattr(left, "dtype", "").startswith("timedelta") and _is_bool(right):
        # A product with a truth value keeps a span or not; as a divisor it can only be a mistake.
        raise TypeError(f"{left.dtype} is not divided by bool: convert the truth values to numbers first")
    return _core.binary(op, left, right)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool) or getattr(value, "dtype", None) == "bool"


def _as_span(value: Any, other: Any) -> Any:
    """Integers beside spans of time as such spans; anything else as it is."""
    span, dtype = getattr(other, "dtype", ""), getattr(value, "dtype", "")
    if not span.startswith("timedelta") or not (type(value) in (bool, int) or dtype.startswith(("bool", "int", "uint8", "uint16", "uint32"))):
        return value
    return _core.cast(_core.cast(value, "int64") if isinstance(value, _core.Tensor) else _core.full([], int(value), "int64"), span)


def _never_equal(left: Any, right: Any) -> bool:
    """True for times beside what is no time, and for points in time beside spans: as in NumPy they are different, not an error."""
    kinds = [getattr(each, "dtype", "")[:8] for each in (left, right)]
    times = [kind in ("datetime", "timedelt") for kind in kinds]
    return any(times) and kinds[0] != kinds[1]


def _binary(op: str, reflected: bool = False) -> Any:
    def method(self: Array, other: Any) -> Any:
        if not isinstance(other, (Array, bool, int, float, complex, np.ndarray, np.generic, list, tuple)):
            return NotImplemented
        other = unwrap(other)
        return Array(binary(op, other, self._tensor) if reflected else binary(op, self._tensor, other))

    return method


def _equality(op: str) -> Any:
    plain = _binary(op)

    def method(self: Array, other: Any) -> Any:
        if isinstance(other, (Array, bool, int, float, complex, np.ndarray, np.generic, list, tuple)):
            other = unwrap(other)
            mine, theirs = _as_span(self._tensor, other), _as_span(other, self._tensor)
            if _never_equal(mine, theirs):
                shapes = [each.shape if isinstance(each, _core.Tensor) else () for each in (mine, theirs)]
                return Array(_core.full(list(_core.broadcast_shapes(shapes)), op == "ne", "bool"))
        return plain(self, other if not isinstance(other, _core.Tensor) else Array(other))

    return method


def _in_place(op: str) -> Any:
    """``x += y``: the array takes the result, in its own type and shape, and so do all that share its elements.

    A number, such as ``x[0]`` or a sum, is replaced if the result is of another kind, as NumPy's scalars are.
    """

    def method(self: Array, other: Any) -> Any:
        if not isinstance(other, (Array, bool, int, float, complex, np.ndarray, np.generic, list, tuple)):
            return NotImplemented
        other = unwrap(other)
        result = _core.matmul(self._tensor, other) if op == "matmul" else binary(op, self._tensor, other)
        if self._link is None and self.ndim == 0 and (result.ndim or not np.can_cast(np.dtype(result.dtype), self.dtype, "same_kind")):
            return Array(result)
        _views.assign(self, result)
        return self

    return method


def _matmul(reflected: bool = False) -> Any:
    def method(self: Array, other: Any) -> Any:
        if not isinstance(other, (Array, np.ndarray, list, tuple)):
            return NotImplemented
        other = unwrap(other)
        return Array(_core.matmul(other, self._tensor) if reflected else _core.matmul(self._tensor, other))

    return method


def _positive(self: Array) -> Array:
    from ._elementwise import positive

    return positive(self)


def _divmod(self: Array, other: Any) -> Any:
    return self // other, self % other


def _rdivmod(self: Array, other: Any) -> Any:
    return other // self, other % self


_OPERATORS = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floordiv", "mod": "mod", "pow": "pow",
    "and": "and", "or": "or", "xor": "xor", "lshift": "shl", "rshift": "shr",
}  # fmt: skip

for _name, _op in _OPERATORS.items():
    setattr(Array, f"__{_name}__", named(_binary(_op), f"__{_name}__"))
    setattr(Array, f"__r{_name}__", named(_binary(_op, reflected=True), f"__r{_name}__"))
    setattr(Array, f"__i{_name}__", named(_in_place(_op), f"__i{_name}__"))
for _name in ("lt", "le", "gt", "ge"):
    setattr(Array, f"__{_name}__", named(_binary(_name), f"__{_name}__"))
for _name in ("eq", "ne"):
    setattr(Array, f"__{_name}__", named(_equality(_name), f"__{_name}__"))
Array.__matmul__ = named(_matmul(), "__matmul__")
Array.__rmatmul__ = named(_matmul(reflected=True), "__rmatmul__")
Array.__imatmul__ = named(_in_place("matmul"), "__imatmul__")
Array.__divmod__, Array.__rdivmod__ = _divmod, _rdivmod
Array.__neg__ = named(lambda self: Array(_core.unary("neg", self._tensor)), "__neg__")
Array.__abs__ = named(lambda self: Array(_core.unary("abs", self._tensor)), "__abs__")
Array.__invert__ = named(lambda self: Array(_core.unary("not", self._tensor)), "__invert__")
Array.__pos__ = lambda self: _positive(self)
