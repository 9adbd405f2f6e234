"""Python functions over blocks, against the same function over parts of a NumPy array."""

from __future__ import annotations

import gc
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import traceback
import weakref

import numpy as np
import pytest
from conftest import same
from hypothesis import given
from hypothesis import strategies as st
from strategies import NUMBERS, arrays, chunks, ours

import tilewright as tw


def by_blocks(func, x, cuts):
    """What a function of blocks gives, block by block."""
    out = np.empty_like(x)
    ends = [[0, *np.cumsum(cut)] for cut in cuts]
    for place in itertools.product(*[range(len(cut)) for cut in cuts]):
        part = tuple(slice(e[k], e[k + 1]) for e, k in zip(ends, place, strict=True))
        out[part] = func(x[part], place)
    return out


@given(data=st.data())
def test_every_type_and_cut(data):
    x = data.draw(arrays())
    array = ours(x, data.draw(chunks))
    backwards = lambda block: block[(slice(None, None, -1),) * block.ndim]  # noqa: E731
    same(tw.map_blocks(backwards, array), by_blocks(lambda block, _: backwards(block), x, array.chunks))
    same(array.map_blocks(np.isnan if x.dtype.kind in "fc" else np.logical_not), np.isnan(x) if x.dtype.kind in "fc" else np.logical_not(x))
    same(tw.map_blocks(lambda block: block.real.astype("float32"), array, dtype="float32"), x.real.astype("float32"))


@given(data=st.data())
def test_several_arrays_are_broadcast(data):
    x = data.draw(arrays(NUMBERS, min_dims=1))
    y = np.ones(x.shape[data.draw(st.integers(0, x.ndim)) :], dtype=x.dtype)
    one = tuple(1 if data.draw(st.booleans()) else n for n in x.shape)
    z = np.full(one, 2, dtype=x.dtype)
    draw = lambda array: ours(array, data.draw(chunks))  # noqa: E731
    with np.errstate(all="ignore"):
        same(tw.map_blocks(lambda a, b, c, more: a + b * c + more, draw(x), draw(y), draw(z), np.int8(1)), x + y * z + np.int8(1))


@given(data=st.data())
def test_places_of_blocks(data):
    x = data.draw(arrays(["int64"], min_dims=1, min_side=1))
    array = ours(x, data.draw(chunks))
    number = lambda block, place: np.full_like(block, sum(10**axis * k for axis, k in enumerate(place)))  # noqa: E731
    found = tw.map_blocks(lambda block, block_id=None: number(block, block_id), array)
    same(found, by_blocks(number, x, array.chunks))

    def check(block, block_info=None):
        told = block_info[0]
        part = tuple(slice(*ends) for ends in told["array-location"])
        np.testing.assert_array_equal(block, x[part])
        assert told["shape"] == x.shape and told["num-chunks"] == array.numblocks
        assert block_info[None]["chunk-shape"] == block.shape and block_info[None]["chunk-location"] == told["chunk-location"]
        assert block_info[None]["dtype"] == block.dtype
        return block

    same(tw.map_blocks(check, array, dtype=x.dtype), x)


@given(data=st.data())
def test_axes_come_and_go(data):
    x = data.draw(arrays(["float64", "int32"], min_dims=2, finite=True))
    array = ours(x, data.draw(chunks))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    same(tw.map_blocks(lambda block: block.sum(axis=axis), array, drop_axis=axis), x.sum(axis=axis))
    same(tw.map_blocks(lambda block: np.expand_dims(block, axis), array, new_axis=axis), np.expand_dims(x, axis))
    doubled = tuple(tuple(2 * n for n in cut) if k == axis % x.ndim else cut for k, cut in enumerate(array.chunks))
    same(tw.map_blocks(lambda block: np.repeat(block, 2, axis), array, chunks=doubled), np.repeat(x, 2, axis))
    # One element per block.
    lengths = [1 if n else 0 for n in x.shape]
    counts = tw.map_blocks(lambda block: np.full((1,) * block.ndim, block.size), array, chunks=lengths, dtype="int64")
    assert int(counts.sum()) == x.size


def test_blocks_from_nothing():
    found = tw.map_blocks(lambda block_id=None: np.full((2, 3), block_id[0]), chunks=((2, 2), (3,)), dtype="int64")
    same(found, np.repeat([[0], [1]], 2, axis=0) * np.ones((1, 3), dtype="int64"))
    same(tw.map_blocks(lambda: np.float64(3), chunks=(), dtype="float64"), np.float64(3))


def test_blockwise():
    x, y = np.arange(12.0).reshape(3, 4), np.arange(20.0).reshape(4, 5)
    a, b = tw.asarray(x, chunks=2), tw.asarray(y, chunks=2)
    same(tw.blockwise(np.matmul, "ik", a, "ij", b, "jk"), x @ y)
    same(tw.blockwise(lambda v, more: v.T + more, "ji", a, "ij", 1, None), x.T + 1)
    same(tw.blockwise(lambda v: np.repeat(v, 2, 0), "ij", a, "ij", adjust_chunks={"i": lambda n: 2 * n}), np.repeat(x, 2, 0))
    same(tw.blockwise(lambda v: v[None], "zij", a, "ij", new_axes={"z": 1}), x[None])
    for wrong in ((a,), (a, "i"), (1, "i")):
        with pytest.raises((TypeError, ValueError)):
            tw.blockwise(np.negative, "ij", *wrong)
    with pytest.raises(ValueError, match="new_axes"):
        tw.blockwise(np.negative, "iz", a, "ij")


def test_times():
    x = np.array(["2020-01-01", "NaT", "2021-05-05"], dtype="datetime64[D]")
    day = np.timedelta64(1, "D")
    same(tw.map_blocks(lambda block: block + day, tw.asarray(x, chunks=2)), x + day)


def test_wrong_calls():
    x = tw.ones((4, 4)).rechunk(2)
    for wrong in ({"chunks": (2,)}, {"chunks": ((2, 1, 1), 2)}, {"chunks": (-1, 2)}, {"drop_axis": 2}, {"new_axis": 5}, {"executor": "magic"}):
        with pytest.raises(ValueError):
            tw.map_blocks(np.negative, x, **wrong)
    with pytest.raises(TypeError):
        tw.map_blocks(3, x)
    with pytest.raises(ValueError, match="lengths 4 and 3"):
        tw.map_blocks(np.add, x, tw.ones(3))
    with pytest.raises(TypeError):
        tw.map_blocks(lambda block: object(), x)


def test_wrong_results():
    x = tw.ones((4, 4)).rechunk(2)
    with pytest.raises(TypeError, match="float32 instead of float64"):
        tw.map_blocks(lambda block: block.astype("float32"), x, dtype="float64").compute()
    with pytest.raises(ValueError, match=r"shape \(1, 2\) instead of \(2, 2\)"):
        tw.map_blocks(lambda block: block[:1], x).compute()
    both = tw.apply_gufunc(lambda block: (block,), "()->(),()", x, output_dtypes=["float64"] * 2)
    with pytest.raises(ValueError, match="1 results instead of 2"):
        both[0].compute()


class Broken(Exception):
    """What only these tests raise."""


def test_exceptions_keep_type_object_and_traceback():
    thrown = []

    def fails_inside(block, block_id=None):
        if block_id == (1, 0):
            thrown.append(Broken("here"))
            raise thrown[0]
        return block

    x = tw.ones((4, 4)).rechunk(2)
    y = tw.map_blocks(fails_inside, x, dtype="float64") + 1
    with pytest.raises(Broken) as caught:
        y.sum().compute()
    assert caught.value is thrown[0]
    assert "fails_inside" in "".join(traceback.format_tb(caught.value.__traceback__))
    (note,) = caught.value.__notes__
    line = test_exceptions_keep_type_object_and_traceback.__code__.co_firstlineno + 10
    assert "block (1, 0) of `fails_inside`" in note and f"test_blocks.py:{line}" in note
    # The session lives on.
    assert float(x.sum()) == 16.0


def test_the_function_may_compute():
    inner = tw.arange(3.0)
    found = tw.map_blocks(lambda block: block + float(inner.sum()), tw.zeros(4).rechunk(1), dtype="float64")
    same(found, np.full(4, 3.0))


def test_functions_are_let_go():
    class Function:
        def __call__(self, block):
            return block

    function = Function()
    alive = weakref.ref(function)
    x = tw.map_blocks(function, tw.ones(4).rechunk(2))
    x.sum().compute()
    x.explain().to_dict()
    del function, x
    gc.collect()
    # Decrements from threads without Python's lock are made up for later.
    tw.ones(1).compute()
    assert alive() is None


def test_several_threads_at_once():
    found = []

    def work(k):
        found.append(float(tw.map_blocks(lambda block: block + k, tw.zeros(8).rechunk(2), dtype="float64").sum()))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0.0, 8.0, 16.0, 24.0]


def test_interrupt_stops_after_the_current_block():
    calls = []

    def slow(block):
        calls.append(1)
        time.sleep(0.1)
        return block

    threading.Timer(0.15, os.kill, (os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        tw.map_blocks(slow, tw.zeros(1000).rechunk(1), dtype="float64").compute()
    assert time.monotonic() - start < 5
    time.sleep(0.3)
    n = len(calls)
    time.sleep(0.3)
    assert len(calls) == n
    same(tw.map_blocks(np.negative, tw.ones(2)), -np.ones(2))


def test_python_may_leave_while_a_function_runs():
    script = """
        import os, signal, threading, time
        import tilewright as tw
        def slow(block):
            time.sleep(0.5)
            for _ in range(1000):
                pass
            return block
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            tw.map_blocks(slow, tw.zeros(50).rechunk(1), dtype="float64").compute()
        except KeyboardInterrupt:
            print("left")
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout.strip(), ran.stderr) == (0, "left", "")


# Worker processes import this module, so their functions are here.


def number_of_process(block):
    return np.full_like(block, os.getpid())


def fails(block):
    raise Broken("far away")


def dies(block):
    os._exit(3)


def test_processes():
    x = np.arange(200_000.0).reshape(4, 50_000)
    with tw.Session(threads=2) as session:
        array = tw.asarray(x, chunks=(1, 50_000))
        same(tw.map_blocks(np.add, array, 1, executor="processes"), x + 1)
        same(tw.map_blocks(np.negative, tw.ones(3), executor="processes"), -np.ones(3))
        pids = tw.map_blocks(number_of_process, array[:, :3].rechunk((1, 3)), executor="processes").compute()
        assert os.getpid() not in pids
        with pytest.raises(Broken, match="far away") as caught:
            tw.map_blocks(fails, array, dtype="float64", executor="processes").compute()
        assert "in fails" in str(caught.value.__cause__) and "block (" in caught.value.__notes__[0]
        with pytest.raises(Exception, match="terminated abruptly"):
            tw.map_blocks(dies, tw.ones(1), dtype="float64", executor="processes").compute()
        # A new pool takes the place of the one that died.
        same(tw.map_blocks(np.negative, tw.ones(3), executor="processes"), -np.ones(3))
        with pytest.raises(TypeError, match="another process"):
            tw.map_blocks(lambda block: block, array, executor="processes")
    assert session._processes._pool is None


def test_compiled_functions():
    import ctypes

    pointer = ctypes.POINTER(ctypes.c_double)

    class Compiled:
        """What numba's cfunc looks like."""

        __name__ = "compiled"

        def __init__(self, *types):
            self.ctypes = ctypes.CFUNCTYPE(None, *types)(self.run)
            self.address = ctypes.cast(self.ctypes, ctypes.c_void_p).value

        def run(self, *args):
            *operands, result, n = args
            for k in range(n):
                result[k] = sum(operand[k] for operand in operands) + 1

    one, two = Compiled(pointer, pointer, ctypes.c_ssize_t), Compiled(pointer, pointer, pointer, ctypes.c_ssize_t)
    x = np.arange(12.0).reshape(3, 4)
    for chunk in (None, 1, 2):
        same(tw.map_blocks(one, ours(x, chunk)), x + 1)
        same(tw.map_blocks(two, ours(x, chunk), tw.arange(4.0)), x + np.arange(4.0) + 1)
    same(tw.map_blocks(one, tw.zeros((0, 3))), np.zeros((0, 3)))
    same(tw.map_blocks(one, tw.asarray(2.0)), np.float64(3.0))
    with pytest.raises(TypeError, match="takes pointers to float64"):
        tw.map_blocks(one, tw.arange(3))
    with pytest.raises(TypeError):
        tw.map_blocks(one, tw.ones(3), 4)
    with pytest.raises(TypeError, match="not of the form"):
        tw.map_blocks(Compiled(pointer, ctypes.c_ssize_t), tw.ones(3))


def test_numba():
    numba = pytest.importorskip("numba")

    @numba.cfunc("void(CPointer(double), CPointer(double), intp)")
    def cube(x, result, n):
        for k in range(n):
            result[k] = x[k] ** 3

    x = np.arange(1000.0)
    same(tw.map_blocks(cube, tw.asarray(x, chunks=100)), x**3)


def test_results_do_not_hold_their_operands():
    n = 100_000
    with tw.Session(threads=1) as session:
        x = tw.zeros(n).rechunk(n // 2)
        for _ in range(6):
            x = tw.map_blocks(lambda block: block + 1, x, dtype="float64").persist()
        assert session.report()["held_bytes"] <= 3 * 8 * n


def test_attributes_of_functions_are_their_own():
    class Halves:
        tried = None
        untrimmed = "mine"

        def __call__(self, block):
            return block / 2

    same(tw.map_blocks(Halves(), tw.arange(4)), np.arange(4) / 2)
    same(tw.map_overlap(Halves(), tw.arange(4), depth=1), np.arange(4) / 2)


def test_blocks_in_a_row_are_cut_once(monkeypatch):
    x = tw.arange(60).reshape((10, 6)).rechunk((1, 2))
    asked, chunks = [], tw.Array.chunks
    monkeypatch.setattr(tw.Array, "chunks", property(lambda self: asked.append(self) or chunks.fget(self)))
    blocks = x.blocks.ravel()
    assert sum(each is x for each in asked) == 1
    assert [block.chunks for block in blocks] == [((1,), (2,))] * 30
    np.testing.assert_array_equal(np.concatenate([block.compute().ravel() for block in blocks]), np.arange(60))
