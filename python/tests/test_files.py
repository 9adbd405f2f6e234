"""Files of netCDF4 and h5py: packed and masked variables, and many files in one computation on several threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from conftest import same

import tilewright as tw

netCDF4 = pytest.importorskip("netCDF4")
h5py = pytest.importorskip("h5py")


@pytest.fixture
def packed(tmp_path):
    """A file with variables that are packed and have holes in many ways."""
    with netCDF4.Dataset(tmp_path / "packed.nc", "w") as file:
        file.createDimension("t", 100)
        kelvin = file.createVariable("kelvin", "i2", ("t",), fill_value=-999, chunksizes=(30,))
        kelvin.scale_factor, kelvin.add_offset = 0.01, 280.0
        kelvin[:] = 280 + np.arange(100) * 0.0115
        holes = file.createVariable("holes", "i2", ("t",), fill_value=-999)
        holes.scale_factor = np.float32(0.5)
        holes[:] = np.ma.masked_equal(np.arange(100.0), 7)
        counts = file.createVariable("counts", "i4", ("t",), fill_value=-1)
        counts[:] = np.ma.masked_equal(np.arange(100), 7)
        unsigned = file.createVariable("unsigned", "i1", ("t",))
        unsigned._Unsigned = "true"
        unsigned[:] = np.arange(100) + 100
        plain = file.createVariable("plain", "f4", ("t",))
        plain[:50] = np.arange(50)
        one = file.createVariable("one", "i2", ())
        one.scale_factor = 0.5
        one[...] = 3.5
    with netCDF4.Dataset(tmp_path / "packed.nc") as file:
        yield file


def test_packed_variables_are_as_their_slices(packed):
    x = tw.from_array(packed["kelvin"])
    assert x.dtype == np.float64
    expected = packed["kelvin"][...].data
    assert abs(float(x.mean()) - expected.mean()) < 1e-9 and float(x.mean()) > 280.5
    same(x, expected)
    same(tw.from_array(packed["kelvin"], chunks=7), expected)
    same(tw.from_array(packed["unsigned"]), packed["unsigned"][...].data)
    assert float(tw.from_array(packed["one"])) == 3.5
    packed["kelvin"].set_auto_maskandscale(False)
    same(tw.from_array(packed["kelvin"]), packed["kelvin"][...])


def test_masked_elements_are_nan_or_an_error(packed):
    same(tw.from_array(packed["holes"], chunks=10), packed["holes"][...].filled(np.nan))
    same(tw.from_array(packed["plain"]), packed["plain"][...].filled(np.nan))
    counts = tw.from_array(packed["counts"], chunks=10)
    with pytest.raises(TypeError, match="set_auto_mask"):
        counts.compute()
    packed["counts"].set_auto_mask(False)
    same(tw.from_array(packed["counts"]), np.where(np.arange(100) == 7, -1, np.arange(100)).astype("i4"))
    times = np.ma.masked_array(np.array(["2020-01-01", "2020-01-02"], dtype="M8[D]"), mask=[False, True])
    assert np.isnat(tw.from_array(times).compute()).tolist() == [False, True]
    holes = np.ma.masked_array([1 + 1j, 2], mask=[True, False])
    same(tw.from_array(holes), np.array([complex(np.nan, 0), 2]))


class Lying:
    """Says that it is of whole numbers, and gives others; slices without elements are an error."""

    shape, dtype = (10,), np.dtype("int16")

    def __getitem__(self, key):
        if key[0].start == key[0].stop:
            raise ValueError("nothing to read")
        return np.arange(10)[key] + 0.5


class Listed:
    """Makes arrays of lists, so slices without elements are of floats."""

    shape, dtype = (12,), np.dtype("int64")

    def __getitem__(self, key):
        return np.array([i for i in range(12)[key[0]]])


def test_the_type_of_nothing_is_not_believed():
    assert Listed()[:0,].dtype == np.float64
    same(tw.from_array(Listed(), chunks=2), np.arange(12))


def test_digits_are_never_lost_in_silence():
    with pytest.raises(TypeError, match="float64"):
        tw.from_array(Lying()).compute()


N_FILES, N = 6, 60_000


def _write(kind, path, k):
    values = np.random.default_rng(k).integers(-1000, 1000, N).astype("f8")
    if kind == "h5py":
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=values, chunks=(1000,), compression="gzip", shuffle=True)
    else:
        with netCDF4.Dataset(path, "w") as file:
            file.createDimension("t", N)
            variable = file.createVariable("x", "f8", ("t",), chunksizes=(1000,), zlib=True)
            variable[:] = values
    return values


@pytest.mark.parametrize("kinds", [("netCDF4",), ("h5py",), ("netCDF4", "h5py")])
@pytest.mark.parametrize("lock", [None, True])
def test_many_files_in_one_computation(tmp_path, kinds, lock):
    names = [(kinds[k % len(kinds)], tmp_path / f"{k}.h5") for k in range(N_FILES)]
    values = [_write(kind, path, k) for k, (kind, path) in enumerate(names)]
    files = [h5py.File(path) if kind == "h5py" else netCDF4.Dataset(path) for kind, path in names]
    try:
        with tw.Session(threads=4):
            for _ in range(3):
                arrays = [tw.from_array(file["x"], chunks=2000, lock=lock) for file in files]
                found = tw.compute([array.sum() for array in arrays], tw.concat(arrays).max(), arrays[0] + arrays[-1])
                assert [float(each) for each in found[0]] == [float(each.sum()) for each in values]
                assert float(found[1]) == max(each.max() for each in values)
                np.testing.assert_array_equal(found[2], values[0] + values[-1])
    finally:
        for file in files:
            file.close()


class Counted:
    """A variable of a library over HDF5 that notices when two threads read it at once."""

    shape, dtype, reading, most = (64,), np.dtype("f8"), 0, 0

    def __getitem__(self, key):
        kind = Counted
        kind.reading += 1
        kind.most = max(kind.most, kind.reading)
        threading.Event().wait(0.002)
        kind.reading -= 1
        return np.ones(64)[key]


@pytest.mark.parametrize("lock", [None, True, False])
def test_one_lock_for_the_whole_process(lock):
    library = type("Variable", (Counted,), {"__module__": "netCDF4._netCDF4"})
    derived = type("Mine", (library,), {"__module__": "mine"})
    Counted.most = 0
    with tw.Session(threads=4):
        sources = [tw.from_array(kind(), chunks=4, lock=lock) for kind in (library, derived, library)]
        assert [float(each) for each in tw.compute(*[source.sum() for source in sources])] == [64.0] * 3
    assert Counted.most == 1 or lock is False


def test_reading_and_writing_share_the_lock(tmp_path):
    values = _write("netCDF4", tmp_path / "in.nc", 1)
    with netCDF4.Dataset(tmp_path / "in.nc") as source, netCDF4.Dataset(tmp_path / "out.nc", "w") as target, h5py.File(tmp_path / "out.h5", "w") as other:
        target.createDimension("t", N)
        variable = target.createVariable("x", "f8", ("t",), chunksizes=(1000,), zlib=True)
        dataset = other.create_dataset("x", (N,), "f8", chunks=(1000,))
        with tw.Session(threads=4):
            x = tw.from_array(source["x"], chunks=2000)
            tw.store([x * 2, x * 3], [variable, dataset])
        np.testing.assert_array_equal(variable[...], values * 2)
        np.testing.assert_array_equal(dataset[...], values * 3)
