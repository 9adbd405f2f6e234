"""The cases of `budgets.py`: every public operation that computes on arrays, on data of a given size.

A case is named by its operation, with a variant after a colon where there are several. Its function is given a :class:`Data` and gives arrays: those that are large are stored
in a file, the others are computed, all in one plan.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as tw

COLUMNS = 128
STACKED = 64
PIECE = 1 << 22


class Data:
    """Inputs, in files of about so many bytes. A file is made when a case asks for it first. Without values, for plans alone, it is one long hole."""

    def __init__(self, directory: Path, gigabytes: float, has_values: bool = True) -> None:
        self.has_values = has_values
        self.directory, self.n = directory, max(1 << 14, int(gigabytes * 1e9) // 8) // (COLUMNS * STACKED) * COLUMNS * STACKED

    def file(self, name: str, shape: tuple[int, ...], dtype: str = "f8") -> Path:
        path = self.directory / (f"{name}-{self.n}.npy" if self.has_values else f"{name}-{self.n}-hole.npy")
        if not path.exists():
            part = path.with_suffix(".part")
            values = np.lib.format.open_memmap(part, mode="w+", dtype=dtype, shape=shape).reshape(-1)
            if not self.has_values:
                values = values[:0]
            rng = np.random.default_rng(len(name))
            for start in range(0, len(values), PIECE):
                count = min(PIECE, len(values) - start)
                values[start : start + count] = rng.standard_normal(count) if dtype[0] == "f" else rng.integers(0, self.n, count)
            del values
            part.rename(path)
        return path

    def normal(self, name: str, *shape: int) -> Any:
        return tw.from_npy(self.file(name, shape))

    def random(self, *shape: int) -> Any:
        """Another source: numbers that are drawn when they are needed."""
        return tw.random.default_rng(7).normal(size=shape)

    @cached_property
    def vector(self) -> Any:
        return self.normal("vector", self.n)

    @cached_property
    def half(self) -> Any:
        return self.normal("half", self.n // 2)

    @cached_property
    def other(self) -> Any:
        return self.random(self.n // 2)

    @cached_property
    def tall(self) -> Any:
        return self.normal("tall", self.n // COLUMNS, COLUMNS)

    @cached_property
    def wide(self) -> Any:
        """Few rows, each of which is long."""
        return self.normal("wide", STACKED, self.n // STACKED)

    @property
    def side(self) -> int:
        return int(self.n**0.5)

    @cached_property
    def square(self) -> Any:
        return self.normal("square", self.side, self.side)

    @cached_property
    def cube(self) -> Any:
        side = round(self.n ** (1 / 3))
        return self.normal("cube", side, side, side)

    @cached_property
    def stack(self) -> Any:
        """Many small matrices."""
        return self.normal("stack", self.n // 4096, 64, 64)

    @cached_property
    def definite(self) -> Any:
        return tw.matrix_transpose(self.stack) @ self.stack + 64 * tw.eye(64)

    @cached_property
    def whole(self) -> Any:
        """Whole numbers below their count."""
        return tw.from_npy(self.file("whole", (self.n,), "i8"))

    @cached_property
    def few(self) -> Any:
        """Whole numbers below a thousand."""
        return self.whole % 1000

    @cached_property
    def whole_half(self) -> Any:
        return tw.from_npy(self.file("whole half", (self.n // 2,), "i8"))

    @cached_property
    def other_whole(self) -> Any:
        return tw.random.default_rng(8).integers(0, 1000, self.n // 2)

    @cached_property
    def complex_half(self) -> Any:
        return self.half + 1j * self.other


Case = Callable[[Data], list[Any]]
CASES: dict[str, Case] = {}

#: Public names that compute on no array of any size: types, shapes, settings, and what only makes small things.
NO_CASES = frozenset(
    "Array Pending Relation Session Writing Generator LinAlgError LUResult Matrix shape ndim size result_type can_cast finfo iinfo isdtype iscomplexobj isrealobj "
    "may_share_memory shares_memory broadcast_shapes default_rng seed einsum_path fftfreq rfftfreq from_dlpack open_hdf5 read_mtx read_parquet "
    "diag_indices diag_indices_from tril_indices tril_indices_from triu_indices triu_indices_from ix_ asanyarray array asarray ascontiguousarray "
    "set_printoptions program from_rank".split()
)


def case(name: str) -> Callable[[Case], Case]:
    def add(function: Case) -> Case:
        if name in CASES:
            raise ValueError(f"two cases are called {name}")
        CASES[name] = function
        return function

    return add


def operation(name: str) -> Any:
    found: Any = tw
    for part in name.split(":")[0].split("."):
        found = getattr(found, part)
    return found


def each(names: str, arguments: Callable[[Data], tuple[Any, ...]], reduction: Callable[[Any], Any] | None = tw.sum) -> None:
    """A case for each of several operations that are called alike. What they give is reduced, or stored if there is no reduction."""
    for name in names.split():
        def run(data: Data, name: str = name) -> list[Any]:
            results = operation(name)(*arguments(data))
            results = list(results) if isinstance(results, tuple | list) else [results]
            return [reduction(result) for result in results] if reduction else results

        case(name)(run)


def several(cases: dict[str, Callable[[Data], Any]]) -> None:
    """Cases whose functions give one array, or several as a tuple or list."""
    for name, function in cases.items():
        def run(data: Data, function: Callable[[Data], Any] = function) -> list[Any]:
            results = function(data)
            return list(results) if isinstance(results, tuple | list) else [results]

        case(name)(run)


def changed(array: Any, change: Callable[[Any], Any]) -> Any:
    """A copy of an array after something was written into it."""
    copy = tw.copy(array)
    change(copy)
    return copy


each(
    "abs acos acosh asin asinh atan atanh cbrt ceil conj cos cosh exp exp2 expm1 floor imag isfinite isinf isnan log log10 log1p log2 logical_not negative positive real "
    "reciprocal rint round sign signbit sin sinh sqrt square tan tanh trunc angle deg2rad fabs fix frexp modf nan_to_num rad2deg sinc iscomplex isneginf isposinf isreal",
    lambda d: (d.vector,),
)
each(
    "add atan2 copysign divide equal floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum minimum multiply nextafter "
    "not_equal pow remainder subtract divmod float_power fmax fmin fmod heaviside logaddexp2 isclose",
    lambda d: (d.half, d.other),
)
each("bitwise_and bitwise_or bitwise_xor gcd lcm", lambda d: (d.whole_half, d.other_whole))
each("bitwise_left_shift bitwise_right_shift", lambda d: (d.whole_half, d.other_whole % 8))
each("bitwise_invert", lambda d: (d.whole,))
each("allclose array_equal array_equiv", lambda d: (d.half, d.half + 0), None)
each("vdot vecdot linalg.vecdot inner dot", lambda d: (d.half, d.other), None)
each("sum prod min max mean std var all any argmax argmin count_nonzero ptp average median", lambda d: (d.vector,), None)
each("nansum nanprod nanmin nanmax nanmean nanstd nanvar nanargmax nanargmin nanmedian", lambda d: (tw.where(d.vector > 3, tw.nan, d.vector),), None)
each("cumsum cumprod cumulative_sum cumulative_prod nancumsum nancumprod diff ediff1d sort argsort flip ravel", lambda d: (d.vector,), None)
each("argpartition partition", lambda d: (d.vector, 1000), None)
each("nonzero flatnonzero", lambda d: (d.vector > 0,), None)
each("unique unique_all unique_counts unique_inverse unique_values", lambda d: (d.whole,), None)
each("intersect1d setdiff1d setxor1d union1d", lambda d: (d.whole_half, d.other_whole), None)
each("zeros_like ones_like empty_like copy", lambda d: (d.vector,), None)
each("fliplr flipud rot90 transpose tril triu matrix_transpose linalg.matrix_transpose", lambda d: (d.square,), None)
each("diagonal linalg.diagonal diag trace linalg.trace", lambda d: (d.square,), None)
each("linalg.eigh linalg.eigvalsh linalg.eig linalg.eigvals linalg.svdvals linalg.det linalg.slogdet linalg.inv linalg.pinv linalg.qr linalg.matrix_rank linalg.cond linalg.matrix_norm linalg.svd",
     lambda d: (d.stack,), None)  # fmt: skip
each("linalg.cholesky", lambda d: (d.definite,), None)
each("fft.fft fft.ifft fft.hfft fft.irfft", lambda d: (d.tall + 0j,), None)
each("fft.rfft fft.ihfft fft.fftshift fft.ifftshift", lambda d: (d.tall,), None)
each("fft.fft2 fft.ifft2 fft.rfft2 fft.irfft2 fft.rfftn", lambda d: (d.stack,), None)
each("fft.fftn fft.ifftn fft.irfftn", lambda d: (d.cube,), None)
for drawn in (
    "normal uniform random standard_normal standard_exponential standard_cauchy exponential gumbel laplace logistic lognormal rayleigh"
).split():
    several({
        f"random.{drawn}": lambda d, drawn=drawn: getattr(tw.random, drawn)(size=d.n).sum(),
        f"random.Generator.{drawn}": lambda d, drawn=drawn: getattr(tw.random.default_rng(3), drawn)(size=d.n).max(),
    })  # fmt: skip
for drawn, parameters in {"binomial": (20, 0.3), "geometric": (0.2,), "pareto": (3.0,), "poisson": (4.0,), "power": (2.0,), "triangular": (0.0, 1.0, 3.0), "weibull": (2.0,)}.items():
    several({
        f"random.{drawn}": lambda d, drawn=drawn, parameters=parameters: getattr(tw.random, drawn)(*parameters, size=d.n).sum(),
        f"random.Generator.{drawn}": lambda d, drawn=drawn, parameters=parameters: getattr(tw.random.default_rng(3), drawn)(*parameters, size=d.n).max(),
    })  # fmt: skip
several({
    "random.rand": lambda d: tw.random.rand(d.n).sum(),
    "random.randn": lambda d: tw.random.randn(d.n).sum(),
    "random.randint": lambda d: tw.random.randint(0, 9, d.n).sum(),
    "random.Generator.integers": lambda d: tw.random.default_rng(1).integers(0, 9, d.n).sum(),
    "random.choice": lambda d: tw.random.choice(1000, d.n),
    "random.Generator.choice": lambda d: tw.random.default_rng(1).choice(d.vector, d.n // 4),
    "random.permutation": lambda d: tw.random.permutation(d.n),
    "random.Generator.permutation": lambda d: tw.random.default_rng(1).permutation(d.tall),
    "random.permuted": lambda d: tw.random.permuted(d.tall, axis=1),
    "random.Generator.permuted": lambda d: tw.random.default_rng(1).permuted(d.tall, axis=1),
    "random.Generator.permuted: long axis": lambda d: tw.random.default_rng(1).permuted(d.tall, axis=0),
    "random.shuffle": lambda d: changed(d.vector, tw.random.shuffle),
    "random.Generator.shuffle": lambda d: changed(d.tall, tw.random.default_rng(1).shuffle),
})  # fmt: skip
several({
    # Making arrays.
    "arange": lambda d: tw.arange(d.n),
    "zeros": lambda d: tw.zeros(d.n),
    "ones": lambda d: tw.ones(d.n),
    "empty": lambda d: tw.empty(d.n),
    "full": lambda d: tw.full(d.n, 3.0),
    "full_like": lambda d: tw.full_like(d.vector, 2.0),
    "eye": lambda d: tw.eye(d.side),
    "identity": lambda d: tw.identity(d.side),
    "tri": lambda d: tw.tri(d.side),
    "linspace": lambda d: tw.linspace(0.0, 1.0, d.n),
    "logspace": lambda d: tw.logspace(0.0, 1.0, d.n),
    "geomspace": lambda d: tw.geomspace(1.0, 9.0, d.n),
    "meshgrid": lambda d: [grid.sum(axis=0) for grid in tw.meshgrid(tw.arange(d.side), tw.arange(d.side))],
    "indices": lambda d: tw.indices((d.side, d.side)).sum(axis=0),
    "fromfunction": lambda d: tw.fromfunction(lambda i, j: i + j, (d.side, d.side)),
    "from_npy": lambda d: d.vector,
    "from_array": lambda d: tw.from_array(np.load(d.file("tall", d.tall.shape), mmap_mode="r")).sum(axis=0),
    "open_files": lambda d: tw.open_files([str(d.file("half", (d.n // 2,)))] * 2) + 1,
    # Types and elements.
    "astype": lambda d: tw.astype(d.vector, "float32"),
    "clip": lambda d: tw.clip(d.vector, -1, 1),
    "ldexp": lambda d: tw.ldexp(d.half, d.other_whole % 8).sum(),
    "isnat": lambda d: tw.isnat(d.whole.astype("M8[s]")).sum(),
    "where": lambda d: tw.where(d.half > d.other, d.half, d.other),
    "add: stored": lambda d: d.half + d.other,
    "standardise": lambda d: (d.tall - d.tall.mean(axis=0)) / d.tall.std(axis=0),
    "softmax": lambda d: (lambda e: e / e.sum(axis=1, keepdims=True))(tw.exp(d.tall - d.tall.max(axis=1, keepdims=True))),
    # Reductions.
    **{f"{name}: axis 0": lambda d, name=name: operation(name)(d.tall, axis=0) for name in "sum prod max mean std argmax median average ptp count_nonzero nanmean nanmedian nanvar".split()},
    **{f"{name}: axis 1": lambda d, name=name: operation(name)(d.tall, axis=1) for name in "sum max mean std argmin median nanmax nanmedian".split()},
    **{f"{name}: long rows": lambda d, name=name: operation(name)(d.wide, axis=1) for name in "sum std argmax median nanmedian".split()},
    **{f"{name}: keepdims": lambda d, name=name: operation(name)(d.square, axis=axis, keepdims=True) for axis, name in enumerate(["mean", "max"])},
    "sum: several": lambda d: (d.tall.sum(), d.tall.max(), d.tall.mean(axis=0), d.tall.std(axis=1).sum()),
    "sum: cube": lambda d: (d.cube.sum(axis=0), d.cube.sum(axis=1), d.cube.sum(axis=2)),
    **{f"{name}: axis 0": lambda d, name=name: operation(name)(d.tall, axis=0) for name in "cumsum cumprod sort argsort diff unique".split()},
    **{f"{name}: axis 1": lambda d, name=name: operation(name)(d.tall, axis=1) for name in "cumsum sort argsort diff".split()},
    **{f"{name}: long rows": lambda d, name=name: operation(name)(d.wide, axis=1) for name in "cumsum sort argsort diff".split()},
    "sort: square": lambda d: tw.sort(d.square, axis=0),
    # Statistics.
    "cov": lambda d: tw.cov(d.tall.T),
    "corrcoef": lambda d: tw.corrcoef(d.tall.T),
    "corrcoef: long rows": lambda d: tw.corrcoef(d.wide),
    "trapezoid": lambda d: tw.trapezoid(d.tall, axis=0),
    **{f"{name}": lambda d, name=name, q=q: operation(name)(d.vector, q) for name, q in {"quantile": 0.3, "percentile": 30.0, "nanquantile": 0.3, "nanpercentile": 30.0}.items()},
    **{f"{name}: axis 0": lambda d, name=name, q=q: operation(name)(d.tall, q, axis=0) for name, q in {"quantile": 0.3, "percentile": 30.0, "nanquantile": 0.3, "nanpercentile": 30.0}.items()},
    "quantile: many": lambda d: tw.quantile(d.vector, np.linspace(0, 1, 101)),
    "group_reduce": lambda d: tw.group_reduce("mean", d.tall, np.arange(d.n // COLUMNS) % 12),
    "group_reduce: columns": lambda d: tw.group_reduce("sum", d.tall, np.arange(COLUMNS) % 12, axis=1),
    # Histograms and counting.
    "bincount": lambda d: tw.bincount(d.few),
    "bincount: many": lambda d: tw.bincount(d.whole, minlength=d.n),
    "bincount: weights": lambda d: tw.bincount(d.whole_half % 1000, weights=d.half),
    "digitize": lambda d: tw.digitize(d.vector, np.linspace(-3, 3, 50)),
    "histogram": lambda d: tw.histogram(d.vector, bins=100, range=(-4, 4)),
    "histogram: automatic": lambda d: tw.histogram(d.vector, bins=100),
    "histogram: a column": lambda d: tw.histogram(d.tall[:, 3], bins=100),
    "histogram: matrix": lambda d: tw.histogram(d.tall, bins=100, range=(-4, 4)),
    "histogram_bin_edges": lambda d: tw.histogram_bin_edges(d.vector, bins=50),
    "histogram2d": lambda d: tw.histogram2d(d.half, d.other, bins=20, range=[[-4, 4], [-4, 4]])[0],
    "histogramdd": lambda d: tw.histogramdd(d.normal("triples", d.n // 3, 3), bins=10, range=[(-4, 4)] * 3)[0],
    # Sorting, searching, selecting.
    "argtopk": lambda d: tw.argtopk(d.vector, 10),
    "topk": lambda d: tw.topk(d.vector, 10),
    "topk: axis 0": lambda d: tw.topk(d.tall, 10, axis=0),
    "argwhere": lambda d: tw.argwhere(d.tall > 2),
    "lexsort": lambda d: tw.lexsort((d.half, d.other)),
    "searchsorted": lambda d: tw.searchsorted(np.linspace(-3, 3, 1000), d.vector),
    "searchsorted: long": lambda d: tw.searchsorted(tw.sort(d.half), d.other),
    "take": lambda d: tw.take(d.vector, d.whole[: d.n // 8]),
    "take: constant": lambda d: tw.take(d.tall, np.random.default_rng(1).integers(0, d.n // COLUMNS, 10_000), axis=0),
    "take: columns": lambda d: tw.take(d.tall, [5, 3, 100], axis=1),
    "take_along_axis": lambda d: tw.take_along_axis(d.tall, tw.argsort(d.tall, axis=1)[:, :5], axis=1),
    "take_along_axis: axis 0": lambda d: tw.take_along_axis(d.tall, tw.argmax(d.tall, axis=0, keepdims=True), axis=0),
    "x[mask]": lambda d: d.vector[d.vector > 1],
    "x[mask]: rows": lambda d: d.tall[d.tall[:, 0] > 1],
    "x[mask]: mean": lambda d: d.tall[d.tall[:, 0] > 1].mean(axis=0),
    "x[slice]": lambda d: d.tall[1::3, ::2],
    "x[indices]": lambda d: d.vector[d.few],
    "choose": lambda d: tw.choose(d.whole_half % 2, [d.half, d.other]),
    "compress": lambda d: tw.compress(d.tall[:, 0] > 0, d.tall, axis=0),
    "extract": lambda d: tw.extract(d.vector > 0, d.vector),
    "piecewise": lambda d: tw.piecewise(d.vector, [d.vector < 0, d.vector >= 0], [-1.0, lambda v: v + 1]),
    "select": lambda d: tw.select([d.half < 0, d.half > 1], [d.other, d.half], 0.0),
    "ravel_multi_index": lambda d: tw.ravel_multi_index((d.whole_half % 100, d.other_whole % 50), (100, 50)),
    "unravel_index": lambda d: tw.unravel_index(d.few, (100, 10)),
    "trim_zeros": lambda d: tw.trim_zeros(tw.where(tw.arange(d.n) > 1000, d.vector, 0.0)),
    "isin": lambda d: tw.isin(d.whole, np.arange(0, 1000, 3)).sum(),
    "isin: long": lambda d: tw.isin(d.whole_half, d.other_whole).sum(),
    # Writing.
    "copyto": lambda d: changed(d.half, lambda x: tw.copyto(x, d.other, where=d.other > 0)),
    "fill_diagonal": lambda d: changed(d.square, lambda x: tw.fill_diagonal(x, 1.0)),
    "place": lambda d: changed(d.vector, lambda x: tw.place(x, d.vector > 2, [1.0, 2.0])),
    "put": lambda d: changed(d.vector, lambda x: tw.put(x, d.whole[: d.n // 64], 1.0)),
    "put_along_axis": lambda d: changed(d.tall, lambda x: tw.put_along_axis(x, tw.argmax(d.tall, axis=1, keepdims=True), 0.0, axis=1)),
    "putmask": lambda d: changed(d.vector, lambda x: tw.putmask(x, d.vector > 2, [1.0, 2.0])),
    "x[mask] = v": lambda d: changed(d.vector, lambda x: x.__setitem__(x > 1, 0.0)),
    "x[mask] *= v": lambda d: changed(d.vector, lambda x: x.__setitem__(x > 1, x[x > 1] * -1)),
    "x[slice] = v": lambda d: changed(d.tall, lambda x: x.__setitem__((slice(None, None, 3), 2), 0.0)),
    "x[indices] = v": lambda d: changed(d.vector, lambda x: x.__setitem__(d.whole[: d.n // 64], 1.0)),
    # Shapes.
    "broadcast_arrays": lambda d: [x.sum(axis=0) for x in tw.broadcast_arrays(d.tall, d.tall[0])],
    "broadcast_to": lambda d: tw.broadcast_to(d.tall[:1000], (d.n // COLUMNS // 1000, 1000, COLUMNS)).sum(axis=0),
    "concat": lambda d: tw.concat([d.half, d.other]),
    "concatenate": lambda d: tw.concatenate([d.tall, d.tall], axis=1).sum(axis=0),
    "concatenate: columns": lambda d: tw.concatenate([d.tall[:, :64], d.random(d.n // COLUMNS, 64)], axis=1),
    "expand_dims": lambda d: tw.expand_dims(d.vector, 0),
    "moveaxis": lambda d: tw.moveaxis(d.cube, 0, -1),
    "permute_dims": lambda d: tw.permute_dims(d.cube, (2, 1, 0)),
    "repeat": lambda d: tw.repeat(d.vector[: d.n // 4], 4),
    "repeat: array": lambda d: tw.repeat(d.vector[: d.n // 4], d.whole[: d.n // 4] % 4),
    "reshape": lambda d: tw.reshape(d.vector, (1000, -1)) if d.n % 1000 == 0 else tw.reshape(d.vector, (COLUMNS, -1)),
    "reshape: of a matrix": lambda d: tw.reshape(d.tall, (64, -1)),
    "roll": lambda d: tw.roll(d.vector, 12345),
    "squeeze": lambda d: tw.squeeze(d.vector[None]),
    "stack": lambda d: tw.stack([d.half, d.other]),
    "stack: last axis": lambda d: tw.stack([d.half, d.other], axis=-1),
    "tile": lambda d: tw.tile(d.vector[: d.n // 4], 4),
    "unstack": lambda d: [x.sum() for x in tw.unstack(d.tall, axis=1)[:5]],
    "atleast_1d": lambda d: tw.atleast_1d(d.vector),
    "atleast_2d": lambda d: tw.atleast_2d(d.vector),
    "atleast_3d": lambda d: tw.atleast_3d(d.square),
    "diagflat": lambda d: tw.diagflat(d.vector[: d.side]),
    "diag: matrix": lambda d: tw.diag(d.vector[: d.side]),
    "resize": lambda d: tw.resize(d.half, (2, d.n // 2)),
    "rollaxis": lambda d: tw.rollaxis(d.cube, 2),
    "swapaxes": lambda d: tw.swapaxes(d.cube, 0, 1),
    "rechunk: columns": lambda d: d.square.rechunk((d.side, max(1, (1 << 21) // d.side))),
    # Joining and splitting.
    "append": lambda d: tw.append(d.half, d.other),
    "array_split": lambda d: [x.sum() for x in tw.array_split(d.vector, 7)],
    "split": lambda d: [x.max() for x in tw.split(d.vector, 8)],
    "vsplit": lambda d: [x.sum(axis=0) for x in tw.vsplit(d.tall, 4)],
    "hsplit": lambda d: [x.sum(axis=0) for x in tw.hsplit(d.tall, 4)],
    "dsplit": lambda d: [x.sum() for x in tw.dsplit(d.stack, 4)],
    "block": lambda d: tw.block([[d.tall[:, :64], d.random(d.n // COLUMNS, 64)]]),
    "column_stack": lambda d: tw.column_stack([d.half, d.other]),
    "dstack": lambda d: tw.dstack([d.half, d.other]),
    "hstack": lambda d: tw.hstack([d.half, d.other]),
    "vstack": lambda d: tw.vstack([d.half, d.other]),
    "delete": lambda d: tw.delete(d.tall, [3, 5], axis=1),
    "insert": lambda d: tw.insert(d.tall, 3, 0.0, axis=0),
    "pad": lambda d: tw.pad(d.tall, 2, mode="reflect"),
    # Products.
    "einsum": lambda d: tw.einsum("ij,ik->jk", d.tall, d.tall),
    "einsum: diagonals": lambda d: tw.einsum("kii->k", d.stack),
    "matmul": lambda d: d.normal("left", int((d.n / 2) ** 0.5), int((d.n / 2) ** 0.5)) @ d.random(int((d.n / 2) ** 0.5), int((d.n / 2) ** 0.5)),
    "matmul: tall": lambda d: tw.matmul(d.tall, np.ones((COLUMNS, 16))),
    "linalg.matmul": lambda d: tw.linalg.matmul(d.stack, d.stack).sum(axis=0),
    "tensordot": lambda d: tw.tensordot(d.cube, d.cube[:, :, :64], axes=((0, 1), (0, 1))),
    "linalg.tensordot": lambda d: tw.linalg.tensordot(d.tall.T, d.tall, axes=1),
    "cross": lambda d: tw.cross(d.half[: d.n // 6 * 3].reshape((-1, 3)), d.other[: d.n // 6 * 3].reshape((-1, 3))),
    "linalg.cross": lambda d: tw.linalg.cross(d.half[: d.n // 6 * 3].reshape((-1, 3)), d.other[: d.n // 6 * 3].reshape((-1, 3))),
    "kron": lambda d: tw.kron(d.tall, np.ones((2, 2))).sum(axis=0),
    "outer": lambda d: tw.outer(d.vector[: d.side], d.vector[-d.side :]),
    "linalg.outer": lambda d: tw.linalg.outer(d.vector[: d.side], d.vector[-d.side :]),
    "polyval": lambda d: tw.polyval([1.0, 2.0, 3.0], d.vector),
    "vander": lambda d: tw.vander(d.vector[: d.n // 8], 8),
    # Signals and windows.
    "apply_over_axes": lambda d: tw.apply_over_axes(tw.sum, d.cube, [0, 2]),
    "coarsen": lambda d: tw.coarsen(tw.mean, d.square, {0: 4, 1: 4}, trim_excess=True),
    "convolve": lambda d: tw.convolve(d.vector, np.ones(9)),
    "correlate": lambda d: tw.correlate(d.vector, np.ones(9)),
    "interp": lambda d: tw.interp(d.vector, np.linspace(-4, 4, 100), np.arange(100.0)),
    "sliding_window_view": lambda d: tw.sliding_window_view(d.vector, 16).mean(axis=-1),
    "sliding_window_view: axis 0": lambda d: tw.sliding_window_view(d.tall, 7, axis=0).max(axis=-1),
    "gradient": lambda d: tw.gradient(d.vector),
    "gradient: axes": lambda d: tw.gradient(d.square),
    "unwrap": lambda d: tw.unwrap(d.vector),
    # Functions of blocks.
    # Chunks are 128 MiB unless they are chosen, and a call takes whole ones.
    "map_blocks: chunks of 8 MiB": lambda d: tw.map_blocks(np.sqrt, tw.abs(d.tall.rechunk("8MiB")), dtype="f8"),
    "blockwise: chunks of 8 MiB": lambda d: (lambda x: tw.blockwise(np.add, "i", x, "i", d.other.rechunk(x.chunks), "i", dtype="f8"))(d.half.rechunk("8MiB")),
    "map_overlap: chunks of 8 MiB": lambda d: tw.map_overlap(lambda b: b + 1, d.tall.rechunk("8MiB"), depth={0: 1}, boundary="nearest"),
    "overlap: chunks of 8 MiB": lambda d: tw.overlap(d.tall.rechunk("8MiB"), {0: 1}, "nearest"),
    "map_blocks": lambda d: tw.map_blocks(np.sqrt, tw.abs(d.tall), dtype="f8"),
    "blockwise": lambda d: tw.blockwise(np.add, "i", d.half, "i", d.other.rechunk(d.half.chunks), "i", dtype="f8"),
    "map_overlap": lambda d: tw.map_overlap(lambda b: b + 1, d.tall, depth={0: 1}, boundary="nearest"),
    "overlap": lambda d: tw.overlap(d.tall, {0: 1}, "nearest"),
    "apply_along_axis": lambda d: tw.apply_along_axis(np.sum, 1, d.tall),
    "apply_gufunc": lambda d: tw.apply_gufunc(lambda b: b.mean(axis=-1), "(i)->()", d.tall, output_dtypes="f8"),
    "frompyfunc": lambda d: tw.frompyfunc(lambda v: v + 1, 1, 1, otypes="d")(d.vector[: d.n // 256]).sum(),
    "vectorize": lambda d: tw.vectorize(lambda v: v + 1, otypes="d")(d.vector[: d.n // 256]).sum(),
    # Linear algebra of one large matrix.
    "linalg.lstsq": lambda d: tw.linalg.lstsq(d.tall[:, 1:], d.tall[:, 0]),
    "linalg.qr: tall": lambda d: tw.linalg.qr(d.tall),
    "linalg.qr: r": lambda d: tw.linalg.qr(d.tall, mode="r"),
    "linalg.qr: square": lambda d: tw.linalg.qr(d.square, mode="r"),
    "linalg.tsqr": lambda d: tw.linalg.tsqr(d.tall),
    "linalg.tsqr: indirect": lambda d: tw.linalg.tsqr(d.tall, method="indirect"),
    "linalg.svd: tall": lambda d: tw.linalg.svd(d.tall, full_matrices=False),
    "linalg.svd: values and Vh": lambda d: tw.linalg.svd(d.tall, full_matrices=False)[1:],
    "linalg.svdvals: tall": lambda d: tw.linalg.svdvals(d.tall),
    "linalg.svd: long rows": lambda d: tw.linalg.svd(d.wide, full_matrices=False)[:2],
    "linalg.svd_compressed": lambda d: tw.linalg.svd_compressed(d.square, 5, seed=1)[1],
    "linalg.pinv: tall": lambda d: tw.linalg.pinv(d.tall),
    "linalg.matrix_rank: tall": lambda d: tw.linalg.matrix_rank(d.tall),
    "linalg.norm": lambda d: tw.linalg.norm(d.square),
    "linalg.norm: 1": lambda d: tw.linalg.norm(d.square, 1),
    "linalg.vector_norm": lambda d: tw.linalg.vector_norm(d.vector),
    "linalg.matrix_power": lambda d: tw.linalg.matrix_power(d.stack, 3).sum(axis=0),
    "linalg.multi_dot": lambda d: tw.linalg.multi_dot([d.tall.T, d.tall, np.ones((COLUMNS, 4))]),
    "linalg.solve": lambda d: tw.linalg.solve(d.definite, d.stack),
    "linalg.solve: square": lambda d: tw.linalg.solve(d.square + d.side * tw.eye(d.side), d.vector[: d.side]),
    "linalg.solve_triangular": lambda d: tw.linalg.solve_triangular(d.square + d.side * tw.eye(d.side), d.vector[: d.side]),
    "linalg.cholesky: square": lambda d: tw.linalg.cholesky(d.square * 1e-3 + d.square.T * 1e-3 + d.side * tw.eye(d.side)),
    "linalg.lu: square": lambda d: tw.linalg.lu(d.square, p_indices=True),
    "linalg.inv: square": lambda d: tw.linalg.inv(d.square + d.side * tw.eye(d.side)),
    "linalg.slogdet: square": lambda d: tw.linalg.slogdet(d.square),
    # Fourier transforms along long axes.
    "fft.fft: axis 0": lambda d: tw.fft.fft(d.tall, axis=0),
    "fft.rfft: long rows": lambda d: tw.fft.rfft(d.wide),
    "fft.rfft: vector": lambda d: tw.fft.rfft(d.vector),
    "fft.fft2: square": lambda d: tw.fft.fft2(d.square),
    # Files.
    "read_csv": lambda d: tw.read_csv(text_table(d), table=True).sum(axis=0),
    "open_zarr": lambda d: tw.open_zarr(zarr_store(d)).mean(axis=0),
})  # fmt: skip


def text_table(data: Data) -> Path:
    """A table of numbers as text, of about the bytes that its numbers take."""
    path = data.directory / f"table-{data.n}.csv"
    if not path.exists():
        rng, part = np.random.default_rng(5), path.with_suffix(".part")
        with open(part, "w") as file:
            file.write("a,b,c,d\n")
            for start in range(0, data.n // 4, 1 << 18):
                numbers = rng.integers(0, 10**6, (min(1 << 18, data.n // 4 - start), 4)).tolist()
                file.writelines("%d.5,%d.25,%d,%d\n" % tuple(row) for row in numbers)
        part.rename(path)
    return path


def zarr_store(data: Data) -> Path:
    path = data.directory / f"store-{data.n}.zarr"
    if not path.exists():
        part = path.with_suffix(".part")
        with tw.Session():
            tw.to_zarr(data.tall, part, chunks=((1 << 18) // COLUMNS, COLUMNS))
        part.rename(path)
    return path


@case("to_zarr")
def to_zarr(data: Data) -> list[Any]:
    """Stored below as a Zarr array, as several large results are."""
    return [data.tall * 2, data.tall + 1]


@case("to_parquet")
def to_parquet(data: Data) -> list[Any]:
    path = data.directory / "stored.parquet"
    tw.to_parquet(data.tall * 2, path)
    return [tw.read_parquet(path, "0")["0"].sum()]


@case("to_csv")
def to_csv(data: Data) -> list[Any]:
    path = data.directory / "stored.csv"
    tw.to_csv((data.tall * 2)[:: 1 << 10], path)
    return [tw.read_csv(path)["0"].sum()]


@case("store")
def store(data: Data) -> list[Any]:
    target = np.lib.format.open_memmap(data.directory / "stored.npy", mode="w+", dtype="f8", shape=data.tall.shape)
    tw.store(data.tall * 2, target)
    return [tw.asarray(target[::1000].copy())]


@case("persist")
def persist(data: Data) -> list[Any]:
    kept = (data.tall * 2).persist()
    return [kept.sum(axis=0)]


@case("compute")
def compute(data: Data) -> list[Any]:
    return [tw.asarray(value) for value in tw.compute(data.tall.sum(axis=0), data.tall.max())]


#: Cases that read or compute values while they are set up, so that plans alone cannot be made of files without values.
NEEDS_VALUES = frozenset({"read_csv", "open_zarr", "store", "persist", "compute", "from_array"})
