"""Arrays to test with: types, shapes, cuts into blocks, empty arrays and NaN."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tilewright as tw

FLOATS = ["float32", "float64"]
REALS = ["int8", "int32", "int64", "uint8", "uint32", *FLOATS]
NUMBERS = [*REALS, "complex64", "complex128"]
ALL = ["bool", *NUMBERS]


def elements(dtype: str) -> st.SearchStrategy:
    kind = np.dtype(dtype).kind
    if kind == "b":
        return st.booleans()
    if kind in "iu":
        info = np.iinfo(dtype)
        return st.integers(max(info.min, -20), min(info.max, 20))
    width = 32 if dtype in ("float32", "complex64") else 64
    finite = st.floats(-8, 8, width=width, allow_subnormal=False)
    if kind == "c":
        return st.builds(complex, finite, finite)
    return finite | st.sampled_from([np.nan, np.inf, -np.inf, 0.0, -0.0])


@st.composite
def arrays(draw, dtypes=ALL, max_dims=3, min_dims=0, min_side=0, finite=False):
    dtype = draw(st.sampled_from(dtypes))
    shape = draw(hnp.array_shapes(min_dims=min_dims, max_dims=max_dims, min_side=min_side, max_side=5)) if max_dims else ()
    if min_dims == 0 and draw(st.integers(0, 5)) == 0:
        shape = ()
    values = draw(hnp.arrays(dtype, shape, elements=elements(dtype)))
    return np.nan_to_num(values, nan=1.5, posinf=2.5, neginf=-2.5) if finite and values.dtype.kind == "f" else values


def ours(draw_or_array, chunk=None):
    array = tw.asarray(draw_or_array)
    return array if chunk is None or array.ndim == 0 else array.rechunk(chunk)


chunks = st.sampled_from([None, 1, 2, 3])
