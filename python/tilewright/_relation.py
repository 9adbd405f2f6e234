"""Relations: blocks under keys, and the operators of the tensor relational algebra."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._array import Array
from ._block_call import name_of
from ._dtypes import refuse_mask, to_name

if TYPE_CHECKING:
    from ._explanation import Explanation

#: The key of a block.
Key = tuple[int, ...]


class Relation:
    """Blocks of one shape (``bound``) and type under keys, which are tuples of numbers from 0 on. Lazy, like an array.

    Relations are made by :meth:`Relation.of`. A kernel says what happens to blocks. Built-in ones have names, and the planner sees what they do: subscripts as
    in ``"ab,bc->ac"``, ``"matmul"``, operations on elements such as ``"add"`` or ``"exp"``, aggregates such as ``"sum"``. Any other function is called
    with blocks as NumPy arrays and must be pure.

    >>> import tilewright as tw
    >>> a, b = tw.ones((4, 6)), tw.ones((6, 2))
    >>> left, right = tw.Relation.of(a, (2, 3)), tw.Relation.of(b, (3, 2))
    >>> joined = left.join(right, 1, 0, "matmul")
    >>> joined.frontier, joined.count
    ((2, 2, 1), 4)
    >>> joined.aggregate((0, 2), "add").to_array().compute()
    array([[6., 6.],
           [6., 6.],
           [6., 6.],
           [6., 6.]])
    """

    __slots__ = ("_relation", "__weakref__")

    def __init__(self, relation: _core.Relation) -> None:
        if not isinstance(relation, _core.Relation):
            raise TypeError("relations are made by tilewright.Relation.of(array, tiles)")
        self._relation = relation

    @staticmethod
    def of(array: Array, tiles: int | Sequence[int]) -> Relation:
        """The tiles of an array under their coordinates. Their lengths must divide those of the axes; one length is for all of them.

        >>> import tilewright as tw
        >>> tw.Relation.of(tw.arange(6), 2).compute()
        {(0,): array([0, 1]), (1,): array([2, 3]), (2,): array([4, 5])}
        """
        if not isinstance(array, Array):
            raise TypeError(f"an array of tilewright is expected, not {type(array).__name__}")
        lengths = [index(tiles)] * array.ndim if hasattr(tiles, "__index__") else [index(n) for n in tiles]
        if any(n < 1 for n in lengths):
            raise ValueError(f"tiles of lengths {tuple(lengths)}; they must be positive")
        return Relation(_core.relation_of(array._tensor, lengths))

    # Attributes

    @property
    def frontier(self) -> Key:
        """The smallest tuple above all keys."""
        return self._relation.frontier

    @property
    def bound(self) -> tuple[int, ...]:
        """The shape of every block."""
        return self._relation.bound

    @property
    def count(self) -> int:
        """How many keys there are."""
        return self._relation.count

    @property
    def keys(self) -> list[Key]:
        """The keys, in order."""
        return self._relation.keys()

    @property
    def arity(self) -> int:
        """How many components a key has."""
        return self._relation.arity

    @property
    def dtype(self) -> np.dtype:
        """Element type of the blocks."""
        return np.dtype(self._relation.dtype)

    @property
    def is_continuous(self) -> bool:
        """True if every key below the frontier has a block."""
        return self._relation.is_continuous

    @property
    def array(self) -> Array:
        """The array that holds the blocks: the axes of the key, or one axis of positions in ``keys`` if there are holes, then those of a block."""
        return Array(self._relation.tensor)

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Key]:
        return iter(self.keys)

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, tuple):
            return False
        try:
            return self._relation.contains([index(at) for at in key])
        except (TypeError, OverflowError):
            # No list of numbers that count from 0 is no key.
            return False

    def __getitem__(self, key: int | Key) -> Array:
        """The block of a key, as a lazy array."""
        components = [index(at) for at in (key if isinstance(key, tuple) else (key,))]
        if any(at < 0 for at in components):
            raise IndexError(f"the relation has no block for key {tuple(components)}; components of keys count from 0")
        return Array(self._relation.block(components))

    def __repr__(self) -> str:
        return f"Relation(count={self.count}, frontier={self.frontier}, bound={self.bound}, dtype={self.dtype})"

    # Operators

    def join(
        self,
        other: Relation,
        left: int | Sequence[int],
        right: int | Sequence[int],
        kernel: str | Callable[[np.ndarray, np.ndarray], Any],
        *,
        bound: Sequence[int] | None = None,
        dtype: Any = None,
    ) -> Relation:
        """The kernel of all pairs of blocks whose keys agree: components ``left`` of the left key with components ``right`` of the right one.

        The key is the left one and the right one without the components that agree. What a function gives is found by a call on blocks of ones, unless ``bound`` and
        ``dtype`` say it.

        >>> import tilewright as tw
        >>> x = tw.Relation.of(tw.arange(4), 2)
        >>> x.join(x, 0, 0, "add").compute()
        {(0,): array([0, 2]), (1,): array([4, 6])}
        """
        if not isinstance(other, Relation):
            raise TypeError(f"join with {type(other).__name__}, which is no relation")
        given = _kernel(kernel, [self, other], bound, dtype)
        return Relation(self._relation.join(other._relation, self._components(left), other._components(right), given))

    def aggregate(self, by: int | Sequence[int], kernel: str | Callable[[np.ndarray, np.ndarray], Any]) -> Relation:
        """One block for all keys that agree in the components ``by``, which are the new key, in that order.

        The kernel makes one block of two; it must be associative: ``"add"``, ``"mul"``, ``"min"``, ``"max"``, ``"and"``, ``"or"``, or a function, which is applied
        in the order of keys.

        >>> import tilewright as tw
        >>> tw.Relation.of(tw.arange(6), 2).aggregate((), "add").compute()
        {(): array([6, 9])}
        """
        given = _kernel(kernel, [self, self], self.bound, self.dtype)
        return Relation(self._relation.aggregate(self._components(by), given))

    def transform(
        self,
        kernel: str | Callable[[np.ndarray], Any],
        number: Any = None,
        *,
        axis: int | Sequence[int] | None = None,
        bound: Sequence[int] | None = None,
        dtype: Any = None,
    ) -> Relation:
        """The kernel of every block: ``transform("exp")``, ``transform("mul", 2)``, ``transform("max", axis=1)``, ``transform("ab->ba")``, or a function.

        >>> import tilewright as tw
        >>> tw.Relation.of(tw.arange(4), 2).transform("sum").compute()
        {(0,): array(1), (1,): array(5)}
        """
        given = _kernel(kernel, [self], bound, dtype)
        if callable(kernel) and (axis is not None or number is not None):
            raise TypeError("transform by a function has no axis and no number: the function may have them")
        axes = None if axis is None else _numbers(axis, len(self.bound), "axis", "axes of a block")
        return Relation(self._relation.transform(given, axes, number))

    def astype(self, dtype: Any) -> Relation:
        """The same blocks in another element type."""
        return Relation(self._relation.cast(to_name(dtype)))

    def rekey(self, new_key: Callable[..., int | Key]) -> Relation:
        """The same blocks under other keys: a function of the components gives them. No two may be equal, and a relation without holes must stay one.

        >>> import tilewright as tw
        >>> tw.Relation.of(tw.arange(4), 2).rekey(lambda i: 1 - i).compute()
        {(0,): array([2, 3]), (1,): array([0, 1])}
        """
        keys = []
        for key in self.keys:
            made = new_key(*key)
            components = [index(at) for at in (made if isinstance(made, (tuple, list)) else (made,))]
            if any(at < 0 for at in components):
                raise ValueError(f"rekey maps {key} to {tuple(components)}; components of keys count from 0")
            keys.append(components)
        return Relation(self._relation.rekey(keys))

    def filter(self, keeps: Callable[..., Any]) -> Relation:
        """The blocks of the keys of which a function of their components is true. The others are not computed.

        >>> import tilewright as tw
        >>> tw.Relation.of(tw.arange(8), 2).filter(lambda i: i % 3 == 0).compute()
        {(0,): array([0, 1]), (3,): array([6, 7])}
        """
        return Relation(self._relation.filter([bool(keeps(*key)) for key in self.keys]))

    def tile(self, axis: int, length: int) -> Relation:
        """Cuts every block along an axis into tiles of a length that divides its own. Their number is a new last component of the key.

        >>> import tilewright as tw
        >>> tw.Relation.of(tw.arange(4), 4).tile(0, 2).compute()
        {(0, 0): array([0, 1]), (0, 1): array([2, 3])}
        """
        length = index(length)
        if length < 1:
            raise ValueError(f"tile of tiles of {length} along axis {axis}; tiles have elements")
        return Relation(self._relation.tile(self._axis(axis), length))

    def concat(self, component: int, axis: int) -> Relation:
        """Joins blocks along an axis in the order of a component of the key, which disappears: the inverse of :meth:`tile`. None may be missing.

        >>> import tilewright as tw
        >>> tw.Relation.of(tw.arange(4), 2).concat(0, 0).compute()
        {(): array([0, 1, 2, 3])}
        """
        return Relation(self._relation.concat(self._components(component)[0], self._axis(axis)))

    # Results

    def to_array(self, axes: Sequence[int] | None = None) -> Array:
        """The array whose tiles the blocks are: component d of the key counts along axis d of a block, or along ``axes[d]``. There may be no holes."""
        return Array(self._relation.to_array(None if axes is None else [self._axis(axis) for axis in axes]))

    def compute(self) -> dict[Key, np.ndarray]:
        """The blocks as NumPy arrays, by key."""
        blocks = self.array.compute().reshape((self.count, *self.bound))
        return {key: blocks[k, ...] for k, key in enumerate(self.keys)}

    def persist(self) -> Relation:
        """Computes the blocks and keeps them."""
        self.array.persist()
        return self

    def explain(self, level: str = "table", **workers: Any) -> Explanation:
        """What computing the blocks will cost. Nothing is computed. Levels, and arguments that describe several workers, are those of :meth:`Array.explain`."""
        return self.array.explain(level, **workers)

    def visualize(self, path: str | os.PathLike[str], **workers: Any) -> None:
        """Writes the plan as a picture, as :meth:`Array.visualize` does. Nothing is computed."""
        self.array.visualize(path, **workers)

    def _components(self, components: int | Sequence[int]) -> list[int]:
        return _numbers(components, self.arity, "component", "components of the key")

    def _axis(self, axis: int) -> int:
        return _numbers(axis, len(self.bound), "axis", "axes of a block")[0]


def _numbers(numbers: int | Sequence[int], n: int, what: str, of: str) -> list[int]:
    """Numbers counted from the front; those from the end count down from -1."""
    found = []
    for number in [numbers] if hasattr(numbers, "__index__") else numbers:
        at = index(number)
        if not -n <= at < n:
            raise IndexError(f"{what} {at} of {n} {of}")
        found.append(at % n)
    return found


def _kernel(kernel: Any, operands: list[Relation], bound: Sequence[int] | None, dtype: Any) -> Any:
    """A kernel as the engine takes it: a name, or a function with the bound and type of what it gives."""
    if isinstance(kernel, str):
        return kernel
    if not callable(kernel):
        raise TypeError(f"a kernel is a name or a function, not {type(kernel).__name__}")
    name = name_of(kernel)
    if bound is None or dtype is None:
        made = _tried(kernel, operands, name)
        bound, dtype = made.shape if bound is None else bound, made.dtype if dtype is None else dtype

    def call(key: tuple[int, ...], blocks: tuple[np.ndarray, ...]) -> Any:
        made = kernel(*blocks)
        refuse_mask(made)
        return made

    return call, name, [index(n) for n in bound], to_name(dtype)


def _tried(kernel: Callable[..., Any], operands: list[Relation], name: str) -> np.ndarray:
    """What a function gives for blocks of ones."""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(kernel(*[np.ones(operand.bound, operand.dtype) for operand in operands]))
    except Exception as error:
        error.add_note(f"while `{name}` was tried on blocks of ones to find what it gives; say bound=.. and dtype=.. to avoid that")
        raise
