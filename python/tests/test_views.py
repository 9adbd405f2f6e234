"""Arrays that share elements: a write to one shows in all, as in NumPy, or is refused."""

import gc
import itertools
import operator
import random
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tilewright as tw


def pair(shape=(3, 4), dtype="f8"):
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    return tw.asarray(values), values.copy()


def check(program, *, shape=(3, 4), dtype="f8"):
    """Runs a program on an array of ours and on NumPy's, and compares what it leaves there."""
    ours, theirs = pair(shape, dtype)
    program(ours)
    program(theirs)
    assert np.array_equal(ours.compute(), theirs)


def assign_to_slice(x):
    x[1:][0] = 7


def add_to_slice(x):
    x[::2] += 1


def add_to_named_slice(x):
    part = x[:, 1:3]
    part += 1
    part *= 2


def write_transposed(x):
    x.T[0] = 5
    x.mT[1] -= 3
    np.swapaxes(x, 0, 1)[2, 1] = -1
    np.moveaxis(x, 0, 1)[3] = 8


def write_reshaped(x):
    x.reshape(-1)[3] = 9
    x.ravel()[-1] = 10
    x.reshape(2, 6)[1] *= 2
    np.expand_dims(x, 1)[:, 0, 2] = 4
    x[None].squeeze(0)[0, 0] = 11


def write_flipped(x):
    np.flip(x)[0, 0] = 1
    np.fliplr(x)[0, 0] = 2
    np.rot90(x)[0, 0] = 3
    np.rot90(x, 0)[1, 1] = 4
    x[::-1, ::-2][1] += 100


def write_new_axes(x):
    x[None, ..., None][0, 1, 2, 0] = 5
    x[:, None][2, 0] = 6


def write_split(x):
    for half in np.split(x, 2, axis=1):
        half -= 1
    np.array_split(x, 2)[1][0] = 3


def iterate(x):
    for row in x:
        row += 1
    for row in x:
        for value in row:
            value += 1  # A number, as in NumPy: nothing changes.


def copies(x):
    x.copy()[0] = 1
    x.flatten()[0] = 1
    x.T.ravel()[0] = 1
    x[::2].ravel()[0] = 1
    x.T.reshape(-1)[0] = 1
    x[[0, 1]][0] = 1
    x[x > 3][0] = 1
    x.astype("f4")[0] = 1
    np.repeat(x, 2)[0] = 1
    np.tile(x, 1)[0] = 1
    np.roll(x, 0)[0] = 1
    np.concatenate([x])[0] = 1
    np.resize(x, (3, 4))[0] = 1
    np.where(True, x, x)[0] = 1
    (+x)[0] = 1
    (x + 0)[0] = 1


def swap(x):
    first = x[0, 0]
    x[0, 0] = x[0, 1]
    x[0, 1] = first


def advanced(x):
    x[:, [0, 1]] += 1
    x[1:][:, [2]] = 0
    x[1:][x[1:] > 8] = -1


def sort_rows(x):
    x[0, ::-1].sort()
    x[1][:2].sort()


def matrix_product(x):
    x[:, :3] @= np.full((3, 3), 2.0)


PROGRAMS = [
    assign_to_slice, add_to_slice, add_to_named_slice, write_transposed, write_reshaped, write_flipped, write_new_axes, write_split,
    iterate, copies, swap, advanced, sort_rows, matrix_product,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_writes_are_those_of_numpy(program):
    check(program)


def test_real_and_imaginary_parts():
    def program(x):
        x.real[0] = 5
        x.imag[:, 1] += 2
        x.real = 3
        x.imag += 1
        np.real(x)[2, 2] = np.inf

    check(program, dtype="c16")
    check(lambda x: np.real(x).__setitem__(0, 3), dtype="f8")
    with pytest.raises(TypeError, match="imaginary"):
        tw.zeros(3).imag = 1


def test_views_follow_their_base_and_each_other():
    x, n = pair()
    views = [(x[1:], n[1:]), (x.T, n.T), (x.ravel(), n.ravel()), (np.broadcast_to(x, (2, 3, 4)), np.broadcast_to(n, (2, 3, 4))),
             (tw.diagonal(x), n.diagonal()), (tw.sliding_window_view(x, 2, 0), np.lib.stride_tricks.sliding_window_view(n, 2, 0))]  # fmt: skip
    x[1, 1] = 50
    n[1, 1] = 50
    views[0][0][0, 0] = 60
    views[0][1][0, 0] = 60
    for ours, theirs in views:
        assert np.array_equal(ours.compute(), theirs)
    del x, n
    a, b = views[0][0], views[1][0]
    del views
    a[0] = -1
    assert np.array_equal(b.compute()[:, 1], [-1] * 4)


@pytest.mark.parametrize("make", [lambda x: tw.broadcast_to(x, (2, 3)), lambda x: tw.diag(x[None]), lambda x: tw.sliding_window_view(x, 2)])
def test_what_numpy_makes_read_only_is_refused(make):
    x = tw.arange(3)
    seen = make(x)
    for write in (lambda: seen.__setitem__(0, 1), lambda: seen.__iadd__(1), lambda: seen[...].__setitem__(0, 1)):
        with pytest.raises(ValueError, match=r"\.copy\(\)"):
            write()
    mine = seen.copy()
    mine[0] = 9
    assert x.compute().tolist() == [0, 1, 2]


def test_in_place_keeps_type_shape_and_identity():
    x = tw.ones(3, dtype="f4")
    same = x
    x += np.ones(3)
    assert x is same and same.dtype == np.float32 and same.compute().tolist() == [2, 2, 2]
    counts = tw.ones(3, dtype=int)
    with pytest.raises(TypeError, match="same_kind"):
        counts /= 2
    with pytest.raises(ValueError, match="shape"):
        x += tw.ones((2, 3))
    assert counts.compute().tolist() == [1, 1, 1]


def test_reshape_copy_follows_the_standard():
    x = tw.zeros((2, 3))
    tw.reshape(x, (6,), copy=True)[0] = 1
    assert not x.any()
    tw.reshape(x, (6,), copy=False)[0] = 1
    assert x.compute()[0, 0] == 1
    with pytest.raises(ValueError, match="copy"):
        tw.reshape(x.T, (6,), copy=False)


@pytest.mark.parametrize("holds", [True, False])
def test_zero_dimensional_masks(holds):
    x, y, m = tw.asarray(1.0), tw.asarray(2.0), tw.asarray(holds)
    x[m] = y[m]
    assert float(x) == (2.0 if holds else 1.0)
    theirs, values = np.zeros((2, 2)), np.ones((2, 2))
    ours, given = tw.asarray(theirs), tw.asarray(values)
    theirs[np.bool_(holds)] = values[np.bool_(holds)]
    ours[m] = given[m]
    assert np.array_equal(ours.compute(), theirs)
    if holds:
        with pytest.raises(ValueError, match="values of shape"):
            x[m] = tw.zeros(0)


def test_a_part_does_not_keep_the_whole():
    x = tw.zeros(1000)
    part = x[:3]
    other = x[1:2]
    assert part._link is not None
    del x, other
    gc.collect()
    assert part._link is None
    rows = list(tw.zeros((4, 4)))
    rows[0] += 1
    assert [float(row.sum()) for row in rows] == [4, 0, 0, 0]


def test_an_array_that_dies_while_a_view_is_made(monkeypatch):
    from tilewright import _views

    x = tw.zeros(10)
    base, others = x[2:8], [x]
    del x
    link = _views.Link

    def collecting(*args):
        others.clear()  # As the garbage collector may do at any time.
        return link(*args)

    monkeypatch.setattr(_views, "Link", collecting)
    part = base[1:3]
    monkeypatch.undo()
    part += 1
    assert base.compute().tolist() == [0, 1, 1, 0, 0, 0]


def test_an_augmented_slice_is_written_once(monkeypatch):
    from tilewright import _core

    calls = []
    replace = _core.replace
    monkeypatch.setattr(_core, "replace", lambda *args: calls.append(args) or replace(*args))
    x = tw.zeros((4, 10))
    x[1:, 2:4] += 1
    x.T[3] *= 2
    assert len(calls) == 2  # One each: Python assigns the result of `+=` once more, which changes nothing.
    assert float(x.sum()) == 9


def test_views_of_open_lengths():
    x = tw.arange(10)
    chosen = x[x > 4]
    chosen[::2] += 100
    chosen.ravel()[-1] = 0
    assert chosen.compute().tolist() == [105, 6, 107, 8, 0]
    assert x.compute().tolist() == list(range(10))


def views_of(rng, a):
    """Operations that give views of an array, or copies where NumPy makes one."""
    n = a.ndim

    def part(x, key):
        return x[key]

    key = tuple(
        rng.choice([slice(None), slice(1, None), slice(None, None, -1), slice(None, None, 2), slice(0, 2), *([0] if n > 1 else [])])
        for _ in range(rng.randint(0, n))
    )
    if len(key) == n and all(isinstance(each, int) for each in key):
        key = (..., *key)  # Without the dots NumPy gives a number, not an array.
    options = [lambda x: part(x, key), lambda x: x[..., None], lambda x: x.T, lambda x: x.reshape(-1), lambda x: x.ravel(),
               lambda x: np.flip(x), lambda x: np.squeeze(x), lambda x: x.copy()]  # fmt: skip
    if n:
        order = tuple(rng.sample(range(n), n))
        options += [lambda x: x.transpose(order), lambda x: np.flip(x, 0), lambda x: np.moveaxis(x, 0, -1)]
        if a.size and a.size % 2 == 0:
            options += [lambda x: x.reshape(2, -1), lambda x: x.reshape(-1, 2)]
    return rng.choice(options)


def writes_to(rng, a):
    value = rng.randint(-9, 9)

    def assign(x):
        x[...] = value

    def add(x):
        x += value

    def first(x):
        x[:1] = value

    def masked(x):
        x[x > value] = 1

    def itself(x):
        x[::2] = x[::-2][: (len(x) + 1) // 2]

    def sliced(x):
        x[1:] *= 2

    options = [assign, add, masked]
    return rng.choice([*options, first, sliced, itself] if a.ndim and a.shape[0] else options)


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed):
    rng = random.Random(seed)
    shape = rng.choice([(6,), (3, 4), (2, 3, 2), (1, 4), (4, 1, 2), ()])
    arrays = [pair(shape, "i8")]
    for _ in range(25):
        ours, theirs = rng.choice(arrays)
        what = rng.random()
        if what < 0.5:
            if theirs.ndim > 4:
                continue
            view = views_of(rng, theirs)
            made = view(ours), view(theirs)
            if isinstance(made[1], np.ndarray):  # And no number, as np.flip makes of an array without axes.
                arrays.append(made)
        elif what < 0.85:
            write = writes_to(rng, theirs)
            write(ours)
            write(theirs)
        elif len(arrays) > 1:
            arrays = [each for each in arrays if each[0] is not ours]
            del ours
        for mine, other in arrays:
            assert mine.shape == other.shape
            assert np.array_equal(mine.compute(), other), (seed, mine, other)


#: Functions that take one array of numbers, with what they need beside it.
ONE_ARRAY = {
    "broadcast_arrays": (), "atleast_1d": (), "atleast_2d": (), "atleast_3d": (), "copy": (), "ravel": (), "transpose": (), "squeeze": (),
    "flip": (), "fliplr": (), "flipud": (), "rot90": (), "array": (), "asarray": (), "ascontiguousarray": (), "asanyarray": (),
    "nan_to_num": (), "real": (), "sort": (), "unique": (), "tril": (), "triu": (), "around": (), "positive": (), "absolute": (), "floor": (),
    "ceil": (), "trunc": (), "rint": (), "conj": (), "matrix_transpose": (), "cumsum": (1,), "tile": (1,), "repeat": (1,), "roll": (0,),
    "resize": ((3, 4),), "delete": ([], 0), "insert": ([], 0, 0), "append": (np.zeros((0, 4)), 0), "take": ([0, 1, 2], 0),
    "full_like": (2,), "clip": (0, 5), "expand_dims": (0,), "swapaxes": (0, 1), "moveaxis": (0, 1), "rollaxis": (1,), "reshape": ((4, 3),),
    "split": (3,), "array_split": (3,), "hsplit": (2,), "vsplit": (3,), "unstack": (), 
    "pad": (0,), "permute_dims": ((1, 0),), "maximum": (0,), "round": (),
    "ones_like": (), "zeros_like": (), "empty_like": (), "partition": (1,), "nanmax": (0,), "sum": ((),),
    "max": ((),), "ediff1d": (), "fix": (), "average": (0,), "amax": (0,), "astype": ("f8",), "flatnonzero": (),
}  # fmt: skip


@pytest.mark.parametrize("name", list(ONE_ARRAY))
@pytest.mark.parametrize("dtype", ["f8", "i8"])
def test_functions_share_what_numpy_shares(name, dtype):
    ours, theirs = pair(dtype=dtype)
    if not hasattr(tw, name) or not hasattr(np, name):
        pytest.skip("only one of the two has it")
    try:
        expected = getattr(np, name)(theirs, *ONE_ARRAY[name])
    except TypeError:
        pytest.skip("NumPy takes other arguments")
    made = getattr(tw, name)(ours, *ONE_ARRAY[name])
    made = list(made) if isinstance(made, (tuple, list)) else [made]
    expected = list(expected) if isinstance(expected, (tuple, list)) else [expected]
    before = ours.compute()
    made[0][...] = 77
    shares = not np.array_equal(before, ours.compute())
    assert shares == np.shares_memory(expected[0], theirs)


def test_full_meshgrid_and_joined_arrays_are_copies():
    x = tw.asarray(1.0)
    wide = tw.full(3, x)
    wide[0] = 5
    lines = tw.arange(3)
    grid = tw.meshgrid(lines, lines)
    grid[0][0, 0] = 9
    joined = tw.concat([lines])
    joined[0] = 4
    assert float(x) == 1 and lines.compute().tolist() == [0, 1, 2]


def test_neighbours_that_numpy_shares_or_writes():
    x, n = pair()
    x[0, 0] = n[0, 0] = np.nan
    for a in (x, n):
        a.conj()[1, 1] = 50
        np.nan_to_num(a[:2], copy=False, nan=7.0)
        np.block(a)[2, 2] = 99
    tw.from_dlpack(x)[2, 0] = -1
    n[2, 0] = -1
    tw.from_dlpack(x, copy=True)[2, 1] = -1
    assert np.array_equal(x.compute(), n)


OACONVOLVE = """
import numpy as np, scipy.signal as s, tilewright as tw
rng = np.random.default_rng(0)
for n, m, mode in [(1000, 20, "full"), (1000, 37, "same"), (500, 13, "valid")]:
    a, b = rng.random(n), rng.random(m)
    ours = s.oaconvolve(tw.asarray(a), tw.asarray(b), mode=mode)
    assert isinstance(ours, tw.Array), type(ours)
    assert np.allclose(ours.compute(), s.oaconvolve(a, b, mode=mode))
a, b = rng.random((100, 90)), rng.random((7, 5))
assert np.allclose(s.oaconvolve(tw.asarray(a), tw.asarray(b)).compute(), s.oaconvolve(a, b))
print("right")
"""


def test_scipy_overlap_add():
    pytest.importorskip("scipy.signal")
    import os

    run = subprocess.run(
        [sys.executable, "-c", OACONVOLVE], capture_output=True, text=True, env={**os.environ, "SCIPY_ARRAY_API": "1"}, check=False
    )
    assert run.stdout.strip() == "right", run.stderr


@pytest.fixture
def hasty():
    """Threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def at_once(*calls):
    """Runs functions on threads of their own, and raises what they have raised."""
    with ThreadPoolExecutor(len(calls)) as pool:
        ready = threading.Barrier(len(calls))
        for each in [pool.submit(lambda call=call: (ready.wait(), call())) for call in calls]:
            each.result(timeout=60)


@pytest.mark.parametrize("how", ["views", "parts", "new views", "masks", "out"])
def test_threads_that_write_to_disjoint_parts_lose_nothing(hasty, how):
    n_threads, n_writes = 4, 200 if how in ("views", "parts", "out") else 40
    x = tw.zeros((n_threads, 3))
    views = [x[k] for k in range(n_threads)] if how == "views" else None
    if how == "masks":
        x += tw.arange(n_threads)[:, None] * 100
    start = x.compute()

    def count(k):
        for _ in range(n_writes):
            if how == "views":
                views[k][...] = views[k] + 1
            elif how == "parts":
                x[k] = x.compute()[k] + 1
            elif how == "new views":
                row = x.T[:, k]
                row += 1
            elif how == "out":
                tw.add(x.compute(), 1, out=x, where=tw.arange(n_threads)[:, None] == k)
            else:
                x[(x >= k * 100) & (x < k * 100 + 100)] += 1

    at_once(*(lambda k=k: count(k) for k in range(n_threads)))
    assert np.array_equal(x.compute(), start + n_writes)


def test_views_that_threads_take_of_one_array_share_its_elements(hasty):
    for _ in range(100):
        x, found = tw.zeros(8), [None] * 4

        def take(k, x=x, found=found):
            found[k] = x[2 * k : 2 * k + 2]
            found[k] += k + 1

        at_once(*(lambda k=k: take(k) for k in range(4)))
        assert x.tolist() == [1, 1, 2, 2, 3, 3, 4, 4] and [v.tolist() for v in found] == [[k, k] for k in range(1, 5)]
        x += 1
        assert [v.tolist() for v in found] == [[k + 1, k + 1] for k in range(1, 5)]


def test_the_last_array_of_a_memory_and_writes_on_another_thread(hasty):
    for _ in range(100):
        x = tw.zeros(8)
        v = x[2:6]
        other = [x[1:]]
        del x

        def write(v=v):
            for _ in range(5):
                v[1:3] = v[1:3] + 1

        at_once(write, other.clear)
        assert v.tolist() == [0, 5, 5, 0]


def test_what_dies_in_a_write_may_write():
    x = tw.zeros(4)
    part = x[2:]

    class Function:
        def __call__(self, block):
            return block + 1

        def __del__(self):
            part[...] = 7

    tw.add(tw.map_blocks(Function(), tw.ones(4), dtype="float64"), 0, out=x)
    tw.add(tw.ones(4), 2, out=x)
    gc.collect()
    assert x.tolist() == [3, 3, 7, 7]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="signals of Unix")
def test_handlers_of_signals_may_write():
    x = tw.zeros(2, dtype="int64")
    mine, theirs = x[:1], x[1:]
    seen = 0

    def handler(*_):
        nonlocal seen
        seen += 1
        theirs[...] = theirs + 1
        # Now: handlers are interrupted as well.
        signal.setitimer(signal.ITIMER_REAL, 0.0005)

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0005)
    try:
        for _ in range(300):
            mine[...] = mine + 1
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert seen and x.tolist() == [300, seen]


SHARED = [
    "x", "x[1:]", "x[:1]", "x[::2]", "x[1::2]", "x[..., 0]", "x[..., -1]", "x[:, ::-1]", "x.T", "x.T[1:3]", "x.reshape(-1)[5:]", "x.reshape(-1)[:5]", "x[None, 1]",
    "x.real", "x.imag", "x.imag[1:]", "x[2, 3:3]", "x.copy()", "x + 0", "np.flip(x[:2])", "np.flip(x, 1)[:, :2]", "np.squeeze(x[1:2])", "np.expand_dims(x[1], 0)", "x[0][1:][::2]",
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_which_views_share_elements(dtype):
    ours, theirs = pair((4, 4), dtype)
    views = [[eval(each, {"np": np, "x": x}) for each in SHARED] for x in (ours, theirs)]
    for i, j in itertools.product(range(len(SHARED)), repeat=2):
        if dtype == "f8" and "imag" in SHARED[i] + SHARED[j]:
            continue
        names = SHARED[i], SHARED[j]
        assert np.shares_memory(views[0][i], views[0][j]) is bool(np.shares_memory(views[1][i], views[1][j])), names
        assert np.may_share_memory(views[0][i], views[0][j]) is bool(np.may_share_memory(views[1][i], views[1][j])), names


def test_who_else_shares_no_elements():
    x = tw.arange(6.0)
    assert not np.may_share_memory(x, x.compute()) and not np.shares_memory(np.zeros(3), x)
    assert np.shares_memory(x, tw.broadcast_to(x, (2, 6))) and not np.shares_memory(x, tw.broadcast_to(tw.arange(6.0), (2, 6)))
    # A view that has left its memory shares nothing any more.
    v = x[1:]
    del x
    gc.collect()
    assert np.shares_memory(v, v[1:]) and not np.shares_memory(v[:1], v[2:])


@pytest.mark.filterwarnings("ignore:you are shuffling")
@pytest.mark.parametrize("shuffle", [np.random.default_rng(0).shuffle, np.random.RandomState(0).shuffle])
def test_numpy_shuffles_no_rows_of_ours(shuffle):
    values = np.arange(10).reshape(5, 2)
    x = tw.asarray(values)
    for rows in (x, x[:, None], x.T.T, x[:4]):
        with pytest.raises(TypeError, match=r"tw\.random\.shuffle"):
            shuffle(rows)
    assert np.array_equal(x.compute(), values)
    tw.random.default_rng(0).shuffle(x)
    assert np.array_equal(np.sort(x.compute()[:, 0]), values[:, 0])
    # Elements are no views.
    v = tw.arange(20)
    shuffle(v)
    assert sorted(v.tolist()) == list(range(20))
    assert sorted(np.random.default_rng(0).permutation(v).tolist()) == list(range(20))
    # Written in Python, rows are exchanged as NumPy exchanges them.
    x, y = tw.asarray(values), values.copy()
    for z in (x, y):
        z[0], z[1] = z[1], z[0]
        row = z[3]
        operator.setitem(z, 2, z[4])
        z[3] = row
    assert np.array_equal(x.compute(), y)
