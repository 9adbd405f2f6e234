"""Arrays of other libraries, read and written block by block."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from conftest import same
from hypothesis import given
from hypothesis import strategies as st
from strategies import arrays, chunks, ours

import tilewright as tw


class Sliced:
    """An array of a library that knows shape, dtype and slicing, and nothing else."""

    def __init__(self, array, chunks=None):
        self.array, self.shape, self.dtype, self.chunks = array, array.shape, array.dtype, chunks
        self.read, self.at_once, self.most = [], 0, 0

    def __getitem__(self, key):
        if any(part.start == part.stop for part in key):
            # Only the type of slices is asked for: nothing is read.
            return self.array[key]
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        threading.Event().wait(0.001)
        self.read.append(tuple((part.start, part.stop) for part in key))
        self.at_once -= 1
        return self.array[key]

    def __setitem__(self, key, value):
        assert type(value) is np.ndarray
        self.array[key] = value


@given(data=st.data())
def test_reading(data):
    x = data.draw(arrays())
    lengths = data.draw(st.sampled_from([1, 2, 3, -1, "auto"]))
    source = Sliced(x)
    array = tw.from_array(source, chunks=lengths, lock=data.draw(st.booleans()))
    # The type of a single element is that of the element.
    assert source.read == ([()] if x.ndim == 0 else [])
    source.read.clear()
    same(array, x)
    # Every block was read, once.
    assert len(source.read) == len(set(source.read)) == (np.prod(array.numblocks) if x.size else 0)
    same(tw.from_array(Sliced(x)), x)


def test_blocks_are_made_of_chunks_of_the_file():
    source = Sliced(np.zeros((100, 64)), chunks=(7, 16))
    array = tw.from_array(source, chunks="8KiB")
    assert all(n % 7 == 0 for n in array.chunks[0][:-1]) and all(n % 16 == 0 for n in array.chunks[1][:-1])
    assert array.chunks[0][0] * array.chunks[1][0] * 8 <= 8192
    assert tw.from_array(Sliced(np.zeros((4, 4)), chunks=(9, 9))).chunks == ((4,), (4,))
    assert tw.from_array(source, chunks=10).chunks[0] == (10,) * 10


def test_a_part_reads_its_blocks_alone():
    source = Sliced(np.arange(100.0))
    assert float(tw.from_array(source, chunks=10)[35]) == 35.0
    assert source.read == [((30, 40),)]


def test_locks():
    for lock in (True, threading.Lock(), threading.RLock()):
        source = Sliced(np.arange(64.0))
        assert float(tw.from_array(source, chunks=2, lock=lock).sum()) == 2016.0
        assert source.most == 1


def test_other_orders_of_bytes_and_memory(tmp_path):
    x = np.arange(12.0).reshape(3, 4)
    same(tw.from_array(Sliced(x.astype(">f8")), chunks=2), x)
    same(tw.from_array(Sliced(np.asfortranarray(x)), chunks=2), x)
    times = np.array(["2020-01-01", "NaT"], dtype="datetime64[s]")
    same(tw.from_array(Sliced(times), chunks=1), times)
    mapped = np.memmap(tmp_path / "x.bin", dtype="float64", mode="w+", shape=(3, 4))
    array = tw.from_array(mapped, chunks=2)
    mapped[:] = x  # Nothing was read so far.
    same(array, x)
    target = np.memmap(tmp_path / "y.bin", dtype="float64", mode="w+", shape=(3, 4))
    (array * 2).store(target)
    np.testing.assert_array_equal(target, 2 * x)


def test_memory_is_copied_at_once():
    x = np.zeros(4)
    array = tw.from_array(x, chunks=2)
    x[:] = 1
    same(array, np.zeros(4))
    assert array.chunks == ((2, 2),)
    same(tw.from_array([[1, 2]], chunks=1), np.array([[1, 2]]))
    same(tw.from_array(tw.ones(3), chunks=2), np.ones(3))


def test_wrong_sources():
    with pytest.raises(TypeError):
        tw.from_array(object())
    with pytest.raises(TypeError):
        tw.from_array(Sliced(np.array([None, 1], dtype=object)))
    with pytest.raises(ValueError):
        tw.from_array(Sliced(np.zeros(3)), chunks=(1, 2))
    # What goes wrong while reading is the library's own error.
    source = Sliced(np.zeros(3))
    source.shape = (4,)
    with pytest.raises(ValueError, match=r"shape \(3,\) instead of \(4,\)"):
        tw.from_array(source).compute()
    source.array = {}
    with pytest.raises((KeyError, TypeError)) as caught:
        tw.from_array(source).compute()
    assert "Sliced" in caught.value.__notes__[0]
    listed = Sliced(np.zeros(3))
    listed.array = type("Listed", (), {"__getitem__": lambda self, key: [0.0] * 3})()
    same(tw.from_array(listed), np.zeros(3))
    with pytest.raises(TypeError, match="no NumPy array"):
        tw.from_array(listed, asarray=False).compute()


@given(data=st.data())
def test_writing(data):
    x = data.draw(arrays())
    array = ours(x, data.draw(chunks))
    target = np.zeros_like(x)
    assert tw.store(array, target, lock=data.draw(st.booleans())) is None
    np.testing.assert_array_equal(target, x)
    # Into a part of something larger, forwards and backwards.
    large = np.zeros(tuple(2 * n + 3 for n in x.shape), dtype=x.dtype)
    steps = [data.draw(st.sampled_from([1, 2, -1, -2])) for _ in x.shape]
    starts = [1 if step > 0 else 2 * n for n, step in zip(x.shape, steps, strict=True)]
    region = tuple(slice(start, start + n * step, step) for n, start, step in zip(x.shape, starts, steps, strict=True))
    expected = large.copy()
    expected[region] = x
    array.store(Sliced(large), regions=region)
    np.testing.assert_array_equal(large, expected)


def test_writing_several_in_one_run():
    x = tw.arange(10.0).rechunk(3)
    first, second, third = np.zeros(10), np.zeros((2, 10)), np.zeros((4, 10))
    tw.store([x, x + 1, x + 2], [first, second, third], regions=[slice(None, None, -1), (1,), (-1, ...)])
    np.testing.assert_array_equal(first, np.arange(10.0)[::-1])
    np.testing.assert_array_equal(second, [np.zeros(10), np.arange(1.0, 11.0)])
    np.testing.assert_array_equal(third[-1], np.arange(2.0, 12.0))


def test_wrong_targets():
    x = tw.ones((2, 3))
    for target, region in ((np.zeros((3, 2)), None), (np.zeros((9, 9)), (slice(0, 3), slice(0, 3))), (np.zeros((2, 3)), (0, 0, 0))):
        with pytest.raises(ValueError):
            tw.store(x, target, regions=region)
    with pytest.raises(IndexError):
        tw.store(x, np.zeros((5, 2, 3)), regions=(5,))
    with pytest.raises(TypeError):
        tw.store(x, (1, 2))
    with pytest.raises(TypeError):
        tw.store(np.ones(2), np.ones(2))
    with pytest.raises(TypeError):
        tw.store(x, np.zeros((2, 3)), regions=([0, 1],))
    with pytest.raises(ValueError):
        tw.store([x, x], [np.zeros((2, 3))])


def test_hdf5(tmp_path):
    h5py = pytest.importorskip("h5py")
    x = np.arange(2000.0).reshape(40, 50)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=x, chunks=(8, 10))
        array = tw.from_array(file["x"], chunks="4KiB")
        assert all(n % 8 == 0 for n in array.chunks[0][:-1])
        same(array, x)
        tw.store(array.T, file.create_dataset("y", (50, 40), dtype="f8"), lock=True)
        np.testing.assert_array_equal(file["y"][:], x.T)


def test_zarr(tmp_path):
    zarr = pytest.importorskip("zarr")
    x = np.arange(2000.0).reshape(40, 50)
    group = zarr.open_group(str(tmp_path / "x.zarr"), mode="w")
    group.create_array("x", shape=x.shape, chunks=(8, 10), dtype=x.dtype)[:] = x
    array = tw.from_array(group["x"], chunks="4KiB")
    same(array, x)
    target = group.create_array("y", shape=(50, 40), chunks=(10, 8), dtype=x.dtype)
    tw.store(array.T, target)
    np.testing.assert_array_equal(target[:], x.T)


def test_netcdf(tmp_path):
    netCDF4 = pytest.importorskip("netCDF4")
    x = np.arange(200.0).reshape(10, 20)
    with netCDF4.Dataset(tmp_path / "x.nc", "w") as file:
        file.createDimension("a", 10)
        file.createDimension("b", 20)
        variable = file.createVariable("x", "f8", ("a", "b"), chunksizes=(5, 5))
        tw.store(tw.asarray(x, chunks=4), variable)
        same(tw.from_array(variable, lock=True, chunks="400B"), x)


def test_read_only_arrays_are_not_copied():
    x = np.arange(1 << 18, dtype="float64")
    x.flags.writeable = False
    array = tw.asarray(x)
    x.flags.writeable = True
    x[0] = 7.0
    # Whoever changes a read-only array all the same sees that it was not copied.
    assert float(array[0]) == 7.0
    same(array.sum(), x.sum(), rtol=1e-12)
    writable = tw.asarray(x)
    # What is only a view of memory that can be written is copied, too.
    view = tw.asarray(np.broadcast_to(x, (2, x.size)))
    x[0] = 9.0
    assert float(writable[0]) == 7.0
    assert float(view[1, 0]) == 7.0


def test_copy_false_reads_in_place():
    x = np.asfortranarray(np.arange(12.0).reshape(3, 4))[:, ::-1]
    array = tw.asarray(x, copy=False)
    x[0, 0] = 100.0
    same(array * 1, x)
    same(tw.from_dlpack(np.arange(3), copy=False), np.arange(3))
    for wrong in ([1, 2], 3.0):
        with pytest.raises(ValueError):
            tw.asarray(wrong, copy=False)
    with pytest.raises(ValueError):
        tw.asarray(np.arange(3), dtype="float32", copy=False)


class Derived(Sliced):
    """An array whose slices are computed from another one."""

    def __init__(self, other, how):
        super().__init__(np.zeros(other.shape))
        self.other, self.how = other, how

    def __getitem__(self, key):
        return self.how(self.other[key])

    def __setitem__(self, key, value):
        self.array[key] = value + self.how(self.other[key])


HOWS = {
    "compute": lambda x: (x + 1).compute(),
    "asarray": lambda x: np.asarray(x + 1),
    "tw.compute": lambda x: tw.compute(x + 1)[0],
    "pending": lambda x: (x + 1).compute(block=False).result(),
    "item": lambda x: np.array([each.item() for each in x + 1]),
    "bool": lambda x: np.array([7.0 if each > 100 else float(each) for each in x + 1]),
    "shape": lambda x: np.full(x[x >= 0].shape, 1.0) + np.asarray(x),
    "persist": lambda x: (x + 1).persist().compute(),
}


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("deep", [1, 2])
def test_readers_that_compute_under_the_lock(how, deep):
    values = np.arange(12.0)
    inner = Sliced(values)
    array = tw.from_array(inner, chunks=1, lock=True)
    for _ in range(deep):
        array = tw.from_array(Derived(array, HOWS[how]), chunks=4, lock=True)
    assert np.array_equal(array.compute(block=False).result(timeout=60), values + deep)
    # The library was called by one thread at a time all the same.
    assert inner.most == 1


def test_writers_that_compute_under_the_lock():
    inner = Sliced(np.arange(12.0))
    target = Derived(tw.from_array(inner, chunks=1, lock=True), HOWS["compute"])
    written = threading.Thread(target=tw.store, args=(tw.ones(12, chunks=3), target), daemon=True)
    written.start()
    written.join(60)
    assert not written.is_alive() and np.array_equal(target.array, np.arange(12.0) + 2)
    assert inner.most == 1


def test_a_reader_that_computes_has_the_lock_again_when_it_goes_on():
    from tilewright._turns import ONE_AT_A_TIME

    seen = []

    def how(x):
        found = (x + 1).compute()
        seen.append(ONE_AT_A_TIME._is_owned())
        if x.size:
            with pytest.raises(ZeroDivisionError):
                tw.map_blocks(lambda block: 1 // 0, x, dtype="float64").compute()
        seen.append(ONE_AT_A_TIME._is_owned())
        return found

    array = tw.from_array(Derived(tw.from_array(Sliced(np.arange(4.0)), chunks=1, lock=True), how), chunks=2, lock=True)
    assert np.array_equal(array.compute(), np.arange(4.0) + 1)
    assert all(seen) and not ONE_AT_A_TIME._is_owned()
