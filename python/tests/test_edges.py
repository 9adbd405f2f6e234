"""Arguments at the edges of what functions take: what NumPy makes of them."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import agree, same
from hypothesis import given
from strategies import arrays, chunks

import tilewright as tw

UNSIGNED = np.array([1, 250, 7], dtype="uint8")
TIMES = np.array(["1970-01-01", "NaT", "2021-05-01"], "M8[D]")


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("logaddexp", (np.array([1, 5, 9], "uint64"), np.array([4, 2, 9], "uint64"))),
        ("logaddexp", (np.array([1, 5], "int64"), -700)),
        ("reciprocal", (np.array([1, -1, 2, -5, 127], "int8"),)),
        ("reciprocal", (np.array([1, 2], "uint32"),)),
        ("reciprocal", (np.array([4.0, -2.0]),)),
        ("rint", (np.array([1, 2], "int64"),)),
        ("rint", (np.array([0.5, 1.5, 2.5], "float32"),)),
        ("nonzero", (TIMES,)),
        ("argwhere", (TIMES,)),
        ("iscomplex", (TIMES,)),
        ("iscomplex", (np.array([1, 1j]),)),
        ("tril", (np.arange(1, 4),)),
        ("triu", (np.arange(1, 4),)),
        ("take", (np.arange(4.0), np.array([True, False]))),
        ("partition", (np.arange(5.0)[::-1].copy(), np.array([0, 1, 2, 3, 4]))),
        ("repeat", (np.arange(3), np.array(2))),
        ("repeat", (np.arange(3), [2])),
        ("repeat", (np.arange(3), 1.5)),
        ("resize", (np.arange(3), np.array([2, 2]))),
        ("pad", (TIMES, 1)),
    ],
)
def test_functions(name, args):
    agree(name, *args, rtol=1e-6)


def test_shapes_may_be_arrays():
    shape = np.array([2, 3])
    for make in (lambda s: tw.zeros(s), lambda s: tw.arange(6).reshape(s), lambda s: tw.broadcast_to(tw.ones(3), s), lambda s: tw.tile(tw.ones((1, 1)), s)):
        assert make(shape).shape == make(tw.asarray(shape)).shape == (2, 3)


def test_times_around_an_array():
    day = np.datetime64("2020-02-02")
    same(tw.pad(tw.asarray(TIMES), 1, constant_values=day), np.pad(TIMES, 1, constant_values=day))


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all"])
def test_numbers_have_a_first_axis_for_reductions(name):
    for axis in (0, -1):
        agree(name, np.array(2.5), axis=axis)
    agree(name, np.array(2.5), axis=1)


@pytest.mark.parametrize(
    "call",
    [
        lambda xp: xp.argmax(xp.ones((2, 2)), axis=(0, 1)),
        lambda xp: xp.split(xp.arange(4), [1.5]),
        lambda xp: xp.repeat(xp.arange(2), xp.asarray([1.0, 2.0])),
        lambda xp: xp.partition(xp.arange(4), 1.5),
        lambda xp: xp.zeros((1.5,)),
    ],
)
def test_fractions_are_refused(call):
    for xp in (np, tw):
        with pytest.raises(TypeError):
            call(xp)


@given(x=arrays(["complex64", "complex128"], min_dims=1), chunk=chunks)
def test_complex_numbers_are_sorted(x, chunk):
    flat = x.reshape(-1)
    flat[::3] = np.where(flat.imag[::3] > 0, np.nan, flat[::3])
    flat[::4] = flat[::4].real + 1j * np.where(flat.imag[::4] > 0, np.nan, 1.0)
    agree("sort", x, chunk=chunk)
    agree("sort", x, axis=0, chunk=chunk)
    agree("sort", x, axis=None, chunk=chunk)
    agree("argsort", x, kind="stable", chunk=chunk)


def test_norms_of_integers():
    x = np.arange(-3, 3).reshape(2, 3)
    for call in (lambda xp, a: xp.linalg.vector_norm(a), lambda xp, a: xp.linalg.matrix_norm(a), lambda xp, a: xp.linalg.norm(a, 1, axis=0)):
        same(call(tw, tw.asarray(x)), call(np, x))
    for vector in (np.zeros(3), np.array([0, 2]), np.array(3.0)):
        assert int(tw.linalg.matrix_rank(tw.asarray(vector))) == np.linalg.matrix_rank(vector)


def test_numbers_before_and_after_differences():
    x = np.arange(6.0).reshape(2, 3) ** 2
    for options in ({"prepend": 0}, {"append": 7.0, "axis": 0}, {"prepend": np.array(1.0), "append": [[2.0]] * 2}):
        agree("diff", x, **options)


def test_operators_of_python():
    x = np.arange(12.0).reshape(3, 4)
    array = tw.asarray(x)
    for found, expected in zip((*divmod(array, 5), *divmod(5, array + 1)), (*divmod(x, 5), *divmod(5, x + 1)), strict=True):
        same(found, expected)
    same(array @ [1, 2, 3, 4], x @ [1, 2, 3, 4])
    same([1, 2, 3] @ array, [1, 2, 3] @ x)
    assert array.item(3) == array.item(0, 3) == array.item((0, 3)) == 3.0 and array.item(-1) == 11.0


@pytest.mark.parametrize("shape", [(), (1,), (6,), (2, 3), (1, 1)])
def test_single_elements(shape):
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    keys = [(), ((),), (1,), ((1,),), (1, 2), ((1, 2),), (0, 0), (0, 0, 0), (-1,), (7,), (0, 5), ([1],), (1.5,), (None,), (True,), (slice(1),), (0, slice(1)), (...,), (np.int8(0),)]
    for key in keys:
        try:
            expected = x.item(*key)
        except (IndexError, TypeError, ValueError) as error:
            with pytest.raises(type(error)):
                tw.asarray(x).item(*key)
        else:
            assert tw.asarray(x).item(*key) == expected


@pytest.mark.parametrize("flags", [True, np.bool_(True), np.array(False), np.array([True, False])])
def test_spans_are_not_divided_by_truth_values(flags):
    spans = np.array([5, 7], "m8[s]")
    own = flags if flags is True else tw.asarray(flags)
    for divided in (lambda x, y: x / y, lambda x, y: x // y, lambda x, y: x % y, divmod):
        with pytest.raises(TypeError):
            divided(spans, flags)
        with pytest.raises(TypeError, match="timedelta64"):
            divided(tw.asarray(spans), own)
    same(tw.asarray(spans) * own, spans * flags)


def test_sorting_in_place_wants_an_axis():
    for axis, error in ((None, TypeError), (1.5, TypeError), (2, np.exceptions.AxisError)):
        for x in (np.array([[3, 1, 2]]), tw.asarray([[3, 1, 2]])):
            with pytest.raises(error):
                x.sort(axis=axis)
            assert x.shape == (1, 3)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "bool"])
def test_small_indices_of_long_axes(dtype):
    x = np.arange(70_000)
    places = np.array([0, 1, 100] if dtype == "bool" else [0, 1, 100, np.iinfo(dtype).min, np.iinfo(dtype).max]).astype(dtype)
    for mode in ("wrap", "clip"):
        for n in (300, 70_000):
            agree("take", x[:n], places, mode=mode)


@pytest.mark.parametrize("bounds", [(0, 1j), (1 + 1j, 2), (0, 3), (0.5, 2), (np.float32(0), np.float32(1)), (np.complex64(1j), 0), (np.int8(3), 5), (3, np.float16(5))])
def test_distances_of_evenly_spaced_values(bounds):
    for num, endpoint in ((3, True), (3, False), (1, True), (1, False), (0, True)):
        values, step = np.linspace(*bounds, num, endpoint=endpoint, retstep=True)
        found, distance = tw.linspace(*bounds, num, endpoint=endpoint, retstep=True)
        same(found, values, rtol=1e-3 if values.dtype == "float16" else 1e-12)
        np.testing.assert_allclose(distance, step, rtol=1e-6)
        assert np.asarray(distance).dtype == np.asarray(step).dtype


def test_cross_products_along_a_first_axis():
    a, b = np.arange(12.0).reshape(3, 4), np.array([1.0, 2.0, 4.0])
    same(tw.linalg.cross(tw.asarray(a), tw.asarray(b), axis=0), np.linalg.cross(a, b, axis=0))
    same(tw.linalg.cross(tw.asarray(a), tw.asarray(a + 1), axis=0), np.linalg.cross(a, a + 1, axis=0))


# Arrays without axes


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize(
    "name", ["cumsum", "cumprod", "nancumsum", "cumulative_sum", "cumulative_prod", "argmax", "argmin", "count_nonzero", "nanmean", "nanvar", "nanstd", "nanargmax", "squeeze", "argsort", "max", "sum", "sort", "mean", "average"]
)  # fmt: skip
def test_the_axis_of_a_number(name, axis):
    agree(name, np.array(3.5), axis=axis)


@pytest.mark.parametrize("axis", [0, -1])
def test_the_axis_of_a_number_in_functions_of_more(axis):
    number = np.array(3.5)
    agree("repeat", number, 2, axis=axis)
    agree("take", number, [0, 0], axis=axis)
    agree("argpartition", number, 0, axis=axis)
    agree("max", number, axis=axis, initial=5)
    agree("mean", number, axis=axis, where=np.array(True))
    agree("average", number, axis=axis, weights=number)
    for name in ("mean", "var", "std"):
        agree(name, number, axis=axis, dtype="i8")
    same(tw.compress(tw.asarray([True]), tw.asarray(number), axis=axis), np.compress([True], number, axis=axis))


def test_running_sums_of_a_number():
    for name in ("cumulative_sum", "cumulative_prod"):
        agree(name, np.array(2.0))
        agree(name, np.array(2.0), include_initial=True)


def test_nothing_is_taken():
    agree("take", np.arange(3), [])
    agree("take", np.arange(6).reshape(2, 3), [], axis=1)


@pytest.mark.parametrize(("shape", "axis"), [((0, 0), 0), ((0, 0), 1), ((2, 0, 0), 1), ((0, 2, 0), 2), ((0, 3), 1), ((3, 0), 0)])
def test_extremes_along_an_empty_axis(shape, axis):
    for name in ("max", "min", "argmax", "argmin", "ptp"):
        agree(name, np.zeros(shape), axis=axis)


# Types that functions refuse


@pytest.mark.parametrize("name", ["conj", "positive", "deg2rad", "rad2deg", "isposinf", "isneginf", "logical_not", "fabs", "sign", "frexp", "modf", "exp2"])
@pytest.mark.parametrize("dtype", ["M8[s]", "m8[s]", "bool", "complex128"])
def test_functions_refuse_what_numpy_refuses(name, dtype):
    x = np.array([1, 0, 3]).astype(dtype)
    try:
        expected = getattr(np, name)(x)
    except TypeError:
        with pytest.raises(TypeError):
            getattr(tw, name)(tw.asarray(x))
        return
    found = getattr(tw, name)(tw.asarray(x))
    for mine, theirs in zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]:
        np.testing.assert_allclose(mine.compute().astype("c16"), theirs.astype("c16"), rtol=1e-3)


def test_times_are_no_exponents():
    for name in ("float_power", "ldexp", "fmod"):
        agree(name, np.array([1, 2], "m8[s]"), np.array([1, 2], "m8[s]"))
    agree("positive", np.array([True]))
    with pytest.raises(TypeError):
        +tw.asarray([True])


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "power", "left_shift", "right_shift", "divmod", "fmod"])
def test_truth_values_are_the_smallest_integers(name):
    x, y = np.array([True, False, True]), np.array([True, True, True])
    agree(name, x, y)
    agree("square", x)
    agree("reciprocal", y)


def test_zeros_have_no_sign():
    x = np.array([complex(-0.0, -0.0), complex(0.0, -0.0), 3 - 4j])
    found = tw.sign(tw.asarray(x)).compute()
    assert not np.signbit(found[:2].real).any() and not np.signbit(found[:2].imag).any()
    agree("sign", x)
    agree("sign", np.array([-3, 0, 9, -(2**63)]).view("m8[s]"))


def test_types_of_sums_of_exponentials():
    agree("logaddexp", np.array([17.0], "f4"), np.int8(0), rtol=1e-6)
    agree("logaddexp", np.array([1.0], "f2"), np.array([2], "u1"), rtol=2e-3)
    agree("logaddexp", np.array([17.0], "f4"), np.array([2], "i8"))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_times_as_complex_numbers(dtype):
    for times in (np.array([3, -5, 0], "M8[s]"), np.array([[7, "NaT"]], "m8[ms]")):
        same(tw.asarray(times).astype(dtype), times.astype(dtype))


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 2), (2, 0, 0)])
@pytest.mark.parametrize("name", ["partition", "argpartition"])
def test_partitions_of_nothing(name, shape):
    agree(name, np.zeros(shape), 5)


@pytest.mark.parametrize(
    "call",
    [
        lambda xp, dates, spans: dates + dates,
        lambda xp, dates, spans: spans * spans,
        lambda xp, dates, spans: xp.hypot(spans, spans),
        lambda xp, dates, spans: dates > spans,
        lambda xp, dates, spans: spans.astype("m8[M]") + spans,
    ],
)
def test_times_that_do_not_fit_are_type_errors(call):
    dates, spans = np.array([3, -5], "M8[D]"), np.array([7, 1], "m8[D]")
    with pytest.raises(TypeError):
        call(np, dates, spans)
    with pytest.raises(TypeError):
        call(tw, tw.asarray(dates), tw.asarray(spans))


def test_indices_into_nothing_are_index_errors():
    nothing = tw.zeros((0, 3))
    with pytest.raises(IndexError):
        nothing[tw.asarray([0, 0])].compute()
    with pytest.raises(IndexError):
        tw.take(nothing, tw.asarray([0]), axis=0).compute()
