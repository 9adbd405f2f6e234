"""Tilewright: lazy arrays with NumPy's manners over a planner of tensor programs.

The module is a namespace of the Python array API standard.

>>> import tilewright as tw
>>> x = tw.linspace(0, 1, 5)
>>> float((x * x).sum())
1.875
"""

from math import e, inf, nan, pi

from . import _libraries, _methods, fft, lib, linalg, random
from ._array import Array
from ._blocks import blockwise, map_blocks
from ._choosing import choose, compress, extract, piecewise, ravel_multi_index, select, trim_zeros, unravel_index
from ._creation import (
    arange, array, asanyarray, asarray, ascontiguousarray, empty, empty_like, eye, from_dlpack, from_npy, from_rank, full,
    full_like, identity, linspace, meshgrid, ones, ones_like, tril, triu, zeros, zeros_like,
)  # fmt: skip
from ._dtypes import (
    astype, bool, can_cast, complex64, complex128, finfo, float16, float32, float64, iinfo, int8, int16, int32, int64,
    isdtype, result_type, uint8, uint16, uint32, uint64,
)  # fmt: skip
from ._elementwise import (
    abs, absolute, acos, acosh, add, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, around, asin, asinh, atan,
    atan2, atanh, bitwise_and, bitwise_invert, bitwise_left_shift, bitwise_not, bitwise_or, bitwise_right_shift, bitwise_xor, cbrt, ceil, clip,
    conj, conjugate, copysign, cos, cosh, divide, equal, exp, exp2, expm1, floor, floor_divide, greater, greater_equal,
    hypot, imag, invert, isfinite, isinf, isnan, left_shift, less, less_equal, log, log1p, log2, log10, logaddexp,
    logical_and, logical_not, logical_or, logical_xor, maximum, minimum, mod, multiply, negative, nextafter, not_equal,
    positive, pow, power, real, reciprocal, remainder, right_shift, rint, round, sign, signbit, sin, sinh, sqrt, square,
    subtract, tan, tanh, true_divide, trunc,
)  # fmt: skip
from ._files import open_files, open_hdf5, open_zarr, read_csv, read_mtx, read_parquet, to_csv, to_parquet, to_zarr
from ._foreign import Writing, from_array, store
from ._gradient import gradient, unwrap
from ._grids import (
    diag_indices, diag_indices_from, fromfunction, geomspace, indices, ix_, logspace, tri, tril_indices, tril_indices_from,
    triu_indices, triu_indices_from,
)  # fmt: skip
from ._groups import group_reduce
from ._gufunc import apply_along_axis, apply_gufunc, frompyfunc, vectorize
from ._histograms import bincount, digitize, histogram, histogram2d, histogram_bin_edges, histogramdd
from ._info import __array_namespace_info__
from ._joining import (
    append, array_split, block, column_stack, concatenate, delete, dsplit, dstack, hsplit, hstack, insert, split, vsplit,
    vstack,
)  # fmt: skip
from ._linear import einsum, einsum_path, matmul, tensordot, vecdot
from ._logic import (
    allclose, array_equal, array_equiv, isclose, iscomplex, iscomplexobj, isnat, isneginf, isposinf, isreal, isrealobj,
    may_share_memory, shares_memory,
)  # fmt: skip
from ._manipulation import (
    broadcast_arrays, broadcast_shapes, broadcast_to, concat, expand_dims, flip, matrix_transpose, moveaxis, permute_dims,
    repeat, reshape, roll, squeeze, stack, tile, unstack,
)  # fmt: skip
from ._nan import (
    nanargmax, nanargmin, nancumprod, nancumsum, nanmax, nanmean, nanmin, nanprod, nanstd, nansum, nanvar,
)  # fmt: skip
from ._numeric import (
    angle, deg2rad, degrees, divmod, fabs, fix, float_power, fmax, fmin, fmod, frexp, gcd, heaviside, lcm, ldexp,
    logaddexp2, modf, nan_to_num, rad2deg, radians, sinc,
)  # fmt: skip
from ._overlap import map_overlap, overlap
from ._padding import pad
from ._pending import Pending
from ._products import cross, dot, inner, kron, outer, polyval, vander, vdot
from ._program import program
from ._quantiles import (
    argpartition, median, nanmedian, nanpercentile, nanquantile, partition, percentile, quantile,
)  # fmt: skip
from ._rearranging import (
    atleast_1d, atleast_2d, atleast_3d, copy, diag, diagflat, diagonal, fliplr, flipud, ndim, ravel, resize, rollaxis, rot90,
    shape, size, swapaxes, trace, transpose,
)  # fmt: skip
from ._reductions import (
    all, amax, amin, any, argmax, argmin, count_nonzero, cumprod, cumsum, cumulative_prod, cumulative_sum, diff, max, mean,
    min, prod, std, sum, var,
)  # fmt: skip
from ._relation import Relation
from ._searching import (
    argsort, argtopk, argwhere, flatnonzero, lexsort, nonzero, searchsorted, sort, take, take_along_axis, topk, where,
)  # fmt: skip
from ._session import Session, compute, persist
from ._sets import (
    intersect1d, isin, setdiff1d, setxor1d, union1d, unique, unique_all, unique_counts, unique_inverse, unique_values,
)  # fmt: skip
from ._signal import apply_over_axes, coarsen, convolve, correlate, interp, sliding_window_view
from ._statistics import average, corrcoef, cov, ediff1d, ptp, trapezoid
from ._writing import copyto, fill_diagonal, place, put, put_along_axis, putmask

newaxis = None
__version__ = "0.1.0"
__array_api_version__ = "2025.12"
__array_api_versions__ = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


_libraries.announce()
_methods.attach()

__all__ = [name for name in dir() if not name.startswith("_")]
