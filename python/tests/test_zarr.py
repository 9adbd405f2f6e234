"""Zarr stores: what zarr writes we read, and what we write it reads."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

import tilewright as tw

zarr = pytest.importorskip("zarr")

CODECS_3 = {
    "none": None,
    "zstd": lambda: zarr.codecs.ZstdCodec(level=3, checksum=True),
    "gzip": lambda: zarr.codecs.GzipCodec(level=4),
    "blosc-lz4": lambda: zarr.codecs.BloscCodec(cname="lz4", clevel=5, shuffle="shuffle"),
    "blosc-lz4hc": lambda: zarr.codecs.BloscCodec(cname="lz4hc", clevel=9, shuffle="shuffle"),
    "blosc-zstd-bits": lambda: zarr.codecs.BloscCodec(cname="zstd", clevel=1, shuffle="bitshuffle"),
    "blosc-blosclz": lambda: zarr.codecs.BloscCodec(cname="blosclz", clevel=9, shuffle="shuffle"),
    "blosc-zlib-none": lambda: zarr.codecs.BloscCodec(cname="zlib", clevel=3, shuffle="noshuffle"),
}

DTYPES = ["bool", "i1", "u1", "i2", "<i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]


def numbers(shape, dtype, seed=0):
    """Numbers that compress a little, with runs and with noise."""
    n = int(np.prod(shape))
    values = np.random.default_rng(seed).integers(0, 9, n) * (np.arange(n) // 50 % 3)
    values = values % 2 if np.dtype(dtype).kind == "b" else values
    values = values + 1j * values[::-1] if np.dtype(dtype).kind == "c" else values
    return values.astype(dtype).reshape(shape)


def check(path, expected, *, parts=True):
    found = tw.open_zarr(path)
    assert found.dtype == expected.dtype.newbyteorder("=") and found.shape == expected.shape
    np.testing.assert_array_equal(found.compute(), expected)
    if parts and expected.ndim:
        part = tuple(slice(n // 3, n // 3 + max(n // 2, 1)) for n in expected.shape)
        np.testing.assert_array_equal(found[part].compute(), expected[part])
        np.testing.assert_array_equal(found.rechunk(tuple(max(n // 3, 1) for n in expected.shape)).sum(axis=0).compute(), expected.sum(axis=0))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_there_and_back(tmp_path, dtype):
    x = numbers((7, 11), dtype)
    for version in (2, 3):
        theirs, ours = tmp_path / f"theirs{version}.zarr", tmp_path / f"ours{version}.zarr"
        zarr.create_array(theirs, data=x, chunks=(3, 4), zarr_format=version)
        check(theirs, x)
        tw.asarray(x).to_zarr(ours, chunks=(3, 4), zarr_format=version)
        read = zarr.open_array(ours, mode="r")
        assert read.chunks == (3, 4) and read.metadata.zarr_format == version and read.dtype == x.dtype
        np.testing.assert_array_equal(read[...], x)


@pytest.mark.parametrize("unit", ["ns", "D", "s"])
def test_times(tmp_path, unit):
    for kind in ("M8", "m8"):
        x = np.array([1, -5, 10**6, 0], dtype="i8").view(f"{kind}[{unit}]")
        for version in (2, 3):
            path = tmp_path / f"{kind}{version}.zarr"
            zarr.create_array(path, data=x, zarr_format=version)
            check(path, x, parts=False)
            tw.asarray(x).to_zarr(path, zarr_format=version)
            np.testing.assert_array_equal(zarr.open_array(path, mode="r")[...], x)


@pytest.mark.parametrize("codec", CODECS_3)
@pytest.mark.parametrize("shape", [(1000,), (60, 70), (5, 6, 300)])
def test_codecs_of_version_3(tmp_path, codec, shape):
    for dtype in ("f8", "i2"):
        x = numbers(shape, dtype)
        chunks = tuple(n // 2 + 1 for n in shape)
        compressors = CODECS_3[codec] and CODECS_3[codec]()
        path = tmp_path / f"{dtype}.zarr"
        zarr.create_array(path, data=x, chunks=chunks, compressors=compressors)
        check(path, x)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("name", ["none", "blosc", "zlib", "gzip", "zstd", "lz4"])
@pytest.mark.parametrize("separator", [".", "/"])
def test_version_2(tmp_path, name, order, separator):
    import numcodecs

    made = {"blosc": lambda: numcodecs.Blosc(cname="lz4", shuffle=-1), "zlib": numcodecs.Zlib, "gzip": numcodecs.GZip, "zstd": numcodecs.Zstd, "lz4": numcodecs.LZ4}
    x = numbers((50, 33, 7), "f4")
    path = tmp_path / "x.zarr"
    compressor = made[name]() if name in made else None
    array = zarr.create_array(
        path, shape=x.shape, dtype=x.dtype, chunks=(20, 10, 7), zarr_format=2, order=order, compressors=compressor, chunk_key_encoding={"name": "v2", "separator": separator}
    )
    array[...] = x
    check(path, x)
    more = numbers((50, 12, 3), "f4", seed=5)
    tw.asarray(more).to_zarr(path, region=(slice(None), slice(5, 17), slice(2, 5)))
    x[:, 5:17, 2:5] = more
    np.testing.assert_array_equal(zarr.open_array(path, mode="r")[...], x)


def test_big_endian(tmp_path):
    x = numbers((9, 9), ">f8")
    zarr.create_array(tmp_path / "x.zarr", data=x, chunks=(4, 4), zarr_format=2)
    check(tmp_path / "x.zarr", x)
    zarr.create_array(tmp_path / "y.zarr", data=x, chunks=(4, 4), serializer=zarr.codecs.BytesCodec(endian="big"))
    check(tmp_path / "y.zarr", x)


@pytest.mark.parametrize("codec", ["none", "zstd", "gzip", "blosc"])
def test_what_we_compress(tmp_path, codec):
    x = numbers((123, 45), "f8")
    for version in (2, 3):
        path = tmp_path / f"{version}.zarr"
        tw.asarray(x).to_zarr(path, chunks=(50, 20), codec=codec, zarr_format=version)
        np.testing.assert_array_equal(zarr.open_array(path, mode="r")[...], x)
        check(path, x)


def test_shards(tmp_path):
    x = numbers((100, 90), "f4")
    zarr.create_array(tmp_path / "theirs.zarr", data=x, chunks=(10, 15), shards=(40, 30))
    check(tmp_path / "theirs.zarr", x)
    tw.asarray(x).to_zarr(tmp_path / "ours.zarr", chunks=(10, 15), shards=(40, 30))
    read = zarr.open_array(tmp_path / "ours.zarr", mode="r")
    assert (read.chunks, read.shards) == ((10, 15), (40, 30))
    np.testing.assert_array_equal(read[...], x)
    check(tmp_path / "ours.zarr", x)
    more = numbers((33, 20), "f4", seed=1)
    tw.asarray(more).to_zarr(tmp_path / "theirs.zarr", region=np.s_[20:53, 41:61])
    x[20:53, 41:61] = more
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "theirs.zarr", mode="r")[...], x)


def test_missing_chunks_hold_the_fill_value(tmp_path):
    for version in (2, 3):
        for fill in (np.nan, -3.5, np.inf):
            path = tmp_path / f"{version}{fill}.zarr"
            array = zarr.create_array(path, shape=(30, 40), chunks=(10, 10), dtype="f8", fill_value=fill, zarr_format=version, overwrite=True)
            array[5:12, 7:9] = 1.0
            check(path, array[...])
            tw.zeros((4, 4)).to_zarr(path, region=np.s_[22:26, 2:6])
            expected = np.full((30, 40), fill)
            expected[5:12, 7:9], expected[22:26, 2:6] = 1, 0
            np.testing.assert_array_equal(zarr.open_array(path, mode="r")[...], expected)


def test_blocks_that_are_zero_need_no_file(tmp_path):
    tw.zeros((100, 100), chunks=(10, 10)).to_zarr(tmp_path / "x.zarr")
    assert sorted(os.listdir(tmp_path / "x.zarr")) == ["zarr.json"]
    check(tmp_path / "x.zarr", np.zeros((100, 100)))


def test_shapes_of_all_kinds(tmp_path):
    for k, shape in enumerate([(), (0,), (3, 0), (1,), (1, 1, 1, 5)]):
        x = np.ones(shape)
        tw.asarray(x).to_zarr(tmp_path / f"{k}.zarr")
        np.testing.assert_array_equal(zarr.open_array(tmp_path / f"{k}.zarr", mode="r")[...], x)
        np.testing.assert_array_equal(tw.open_zarr(tmp_path / f"{k}.zarr").compute(), x)


def test_chunks_are_the_blocks_also_uneven_ones(tmp_path):
    x = numbers((20, 30), "f8")
    for chunks in [((7, 7, 6), (30,)), ((3, 9, 8), (11, 19)), ((4, 8, 8), (10, 20))]:
        tw.asarray(x, chunks=chunks).to_zarr(tmp_path / "x.zarr")
        check(tmp_path / "x.zarr", x)
    both = tw.concatenate([tw.asarray(x, chunks=(7, 30)), tw.asarray(x, chunks=(6, 30))])
    both.to_zarr(tmp_path / "x.zarr")
    check(tmp_path / "x.zarr", np.concatenate([x, x]))


def test_groups_and_consolidated_metadata(tmp_path):
    for version in (2, 3):
        store = tmp_path / f"{version}.zarr"
        group = zarr.create_group(store, zarr_format=version)
        group.create_array("a", data=np.arange(5.0))
        group.create_group("deep").create_array("b", data=np.arange(6).reshape(2, 3))
        zarr.consolidate_metadata(store)
        check(store / "a", np.arange(5.0), parts=False)
        np.testing.assert_array_equal(tw.open_zarr(store, "deep/b").compute(), np.arange(6).reshape(2, 3))
        tw.arange(7.0).to_zarr(store, "deep/c")
        read = zarr.open_consolidated(store)
        np.testing.assert_array_equal(read["deep/c"][...], np.arange(7.0))
        tw.ones(3).to_zarr(store, "deep/c", append_dim=0)
        assert zarr.open_consolidated(store)["deep/c"].shape == (10,)
        with pytest.raises(OSError, match="is a group"):
            tw.open_zarr(store)
        with pytest.raises(OSError, match="is a group"):
            tw.ones(3).to_zarr(store)
        assert not [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]


def test_several_outputs_in_one_pass(tmp_path):
    x = numbers((40, 50), "f8")
    a = tw.asarray(x, chunks=(10, 50))
    tw.to_zarr([a + 1, a.sum(axis=0)], tmp_path / "s.zarr", ["more", "sums"])
    group = zarr.open_group(tmp_path / "s.zarr", mode="r")
    np.testing.assert_array_equal(group["more"][...], x + 1)
    np.testing.assert_allclose(group["sums"][...], x.sum(axis=0))
    tw.to_zarr([a, a * 2], [tmp_path / "p.zarr", tmp_path / "q.zarr"])
    check(tmp_path / "q.zarr", x * 2)
    with pytest.raises(ValueError, match="2 arrays for 1 places"):
        tw.to_zarr([a, a], [tmp_path / "p.zarr"])


def test_attributes_and_names_of_axes(tmp_path):
    tw.ones((2, 3)).to_zarr(tmp_path / "x.zarr", dimension_names=["time", "x"], attributes={"units": "K"})
    read = zarr.open_array(tmp_path / "x.zarr", mode="r")
    assert read.metadata.dimension_names == ("time", "x") and dict(read.attrs) == {"units": "K"}


def test_append(tmp_path):
    for shards in (None, (8, 4)):
        path = tmp_path / f"{shards}.zarr"
        x = numbers((10, 7), "i4")
        tw.asarray(x).to_zarr(path, chunks=(4, 4), shards=shards)
        whole = x
        for n in (3, 1, 9):
            more = numbers((n, 7), "i4", seed=n)
            tw.asarray(more).to_zarr(path, append_dim=0)
            whole = np.concatenate([whole, more])
            np.testing.assert_array_equal(zarr.open_array(path, mode="r")[...], whole)
            check(path, whole)
        with pytest.raises(ValueError, match="cannot be appended"):
            tw.ones((3, 8), dtype="i4").to_zarr(path, append_dim=0)
        with pytest.raises(ValueError, match="f64 cannot be written to"):
            tw.ones((3, 7)).to_zarr(path, append_dim=0)


def test_an_append_that_fails_leaves_the_array(tmp_path):
    path = tmp_path / "x.zarr"
    x = numbers((10, 6), "f8")
    tw.asarray(x).to_zarr(path, chunks=(4, 6))

    def fail(block, block_info=None):
        if block.max() > 5:
            raise RuntimeError("no more")
        return block

    more = tw.map_blocks(fail, tw.arange(60.0, chunks=6).reshape(10, 6), dtype="f8")
    with pytest.raises(RuntimeError, match="no more"):
        more.to_zarr(path, append_dim=0)
    check(path, x)
    tw.asarray(x).to_zarr(path, append_dim=0)
    check(path, np.concatenate([x, x]))


def test_a_result_appears_whole_or_not_at_all(tmp_path):
    def fail(block):
        if block[0, 0] > 50:
            raise RuntimeError("no more")
        return block

    x = tw.arange(100.0, chunks=10).reshape(10, 10)
    with pytest.raises(RuntimeError):
        tw.map_blocks(fail, x, dtype="f8").to_zarr(tmp_path / "x.zarr")
    assert os.listdir(tmp_path) == []
    (x + 1).to_zarr(tmp_path / "x.zarr")
    with pytest.raises(RuntimeError):
        tw.map_blocks(fail, x, dtype="f8").to_zarr(tmp_path / "x.zarr")
    check(tmp_path / "x.zarr", np.arange(100.0).reshape(10, 10) + 1)
    assert os.listdir(tmp_path) == ["x.zarr"]
    # From what it replaces.
    (tw.open_zarr(tmp_path / "x.zarr") * 2).to_zarr(tmp_path / "x.zarr")
    check(tmp_path / "x.zarr", (np.arange(100.0).reshape(10, 10) + 1) * 2)


def test_what_is_not_zarr_is_not_replaced(tmp_path):
    (tmp_path / "x.zarr").mkdir()
    (tmp_path / "x.zarr" / "diary.txt").write_text("dear me")
    with pytest.raises(OSError, match="not a Zarr array, so it is not replaced"):
        tw.ones(3).to_zarr(tmp_path / "x.zarr")
    assert (tmp_path / "x.zarr" / "diary.txt").read_text() == "dear me"
    for component in ("../x", "a/../../b", "/", "a//b"):
        with pytest.raises(ValueError, match="does not name an array"):
            tw.ones(3).to_zarr(tmp_path / "y.zarr", component)
    with pytest.raises(FileNotFoundError):
        tw.open_zarr(tmp_path / "none.zarr")


def test_a_box_reads_only_the_chunks_that_meet_it(tmp_path):
    # Each chunk is a block; smaller ones are read several at a time.
    x = numbers((32, 65536), "f8") + 1
    zarr.create_array(tmp_path / "x.zarr", data=x, chunks=(8, 65536))
    for name in os.listdir(tmp_path / "x.zarr" / "c"):
        if name != "2":
            (tmp_path / "x.zarr" / "c" / name / "0").write_bytes(b"damaged")
    found = tw.open_zarr(tmp_path / "x.zarr")
    np.testing.assert_array_equal(found[17:23, 5:55].compute(), x[17:23, 5:55])
    with pytest.raises(OSError, match="c/3/0"):
        found[20:26, 0:10].compute()


def test_a_store_larger_than_memory_streams(tmp_path):
    x = tw.random.default_rng(1).random((4000, 1000), chunks=(200, 1000))
    x.to_zarr(tmp_path / "x.zarr")
    expected = np.asarray(tw.open_zarr(tmp_path / "x.zarr").sum(axis=0))
    with tw.Session(memory="16MiB", threads=2):
        np.testing.assert_array_equal(tw.open_zarr(tmp_path / "x.zarr").sum(axis=0).compute(), expected)
        (tw.open_zarr(tmp_path / "x.zarr") + 1).to_zarr(tmp_path / "y.zarr")
    assert float(tw.open_zarr(tmp_path / "y.zarr").sum()) == pytest.approx(expected.sum() + 4e6)


def test_programs_read_and_write_stores(tmp_path):
    x = numbers((20, 30), "f8")
    zarr.create_group(tmp_path / "x.zarr").create_array("deep/a", data=x, chunks=(7, 7))
    tw.program(f'input A = "{tmp_path}/x.zarr/deep/a"\nB = A * 2.0\noutput B -> "{tmp_path}/y.zarr"\n')
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "y.zarr", mode="r")[...], x * 2)


# Hostile stores


def store(path, shape, chunks, /, **changes):
    """A store of version 3 with one chunk file that holds zeros, unless changed."""
    metadata = {
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "float64", "fill_value": 7.0, "attributes": {},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "gzip", "configuration": {"level": 1}}],
    }  # fmt: skip
    metadata.update(changes)
    path.mkdir()
    (path / "zarr.json").write_text(json.dumps({key: value for key, value in metadata.items() if value is not None}))
    return path


def test_metadata_that_claims_very_many_chunks(tmp_path):
    for shape, chunks in [([10**15], [1]), ([10**18], [1000]), ([10**6, 10**6, 10**6], [1, 1, 1])]:
        path = store(tmp_path / f"{len(shape)}-{shape[0]}.zarr", shape, chunks)
        with pytest.raises(OSError, match="more than can be planned"):
            tw.open_zarr(path)
    # A few million chunks that are not there are nothing but their fill value.
    x = tw.open_zarr(store(tmp_path / "x.zarr", [10**12], [10**6]))
    np.testing.assert_array_equal(x[10**11 : 10**11 + 5].compute(), [7.0] * 5)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"shape": [2**62, 2**62]}, "more elements|more bytes"),
        ({"shape": [-1]}, "extent of -1"),
        ({"shape": "many"}, "`shape` is missing"),
        ({"shape": [1] * 70}, "rank 70"),
        ({"shape": [10, 10]}, "for an array of shape"),
        ({"data_type": "string"}, "not supported"),
        ({"data_type": {"name": "evil"}}, "not supported"),
        ({"codecs": [{"name": "bytes"}, {"name": "rot13"}]}, "rot13"),
        ({"codecs": []}, "x.zarr"),
        ({"codecs": None}, "`codecs` is missing"),
        ({"chunk_grid": {"name": "rectilinear"}}, "rectilinear"),
        ({"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [0]}}}, "chunks of shape"),
        ({"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2**63]}}}, "chunks of|more"),
        ({"chunk_key_encoding": {"name": "default", "configuration": {"separator": "/../"}}}, "x.zarr"),
        ({"storage_transformers": [{"name": "x"}]}, "transformers"),
        ({"new_thing": {"name": "x"}}, "new_thing"),
        ({"fill_value": "often"}, "x.zarr"),
        ({"zarr_format": 9}, "version 9"),
        ({"codecs": [{"name": "sharding_indexed", "configuration": {"chunk_shape": [3], "codecs": [], "index_codecs": []}}]}, "shards|codec"),
    ],
)
def test_metadata_that_is_wrong(tmp_path, changes, message):
    path = store(tmp_path / "x.zarr", [10], [5], **changes)
    with pytest.raises(OSError, match=message) as error:
        tw.open_zarr(path)
    assert "x.zarr" in str(error.value)


def test_metadata_that_need_not_be_understood(tmp_path):
    path = store(tmp_path / "x.zarr", [10], [5], extra={"must_understand": False, "name": "x"})
    assert float(tw.open_zarr(path).sum()) == 70


def test_chunks_that_unfold_to_too_much(tmp_path):
    import gzip

    import numcodecs

    bomb = bytes(300_000_000)
    for name, packed in [("gzip", gzip.compress(bomb)), ("zstd", numcodecs.Zstd(level=1).encode(bomb)), ("blosc", numcodecs.Blosc(cname="zstd", clevel=9).encode(bomb))]:
        codec = {"name": name, "configuration": {"level": 1, "checksum": False} if name == "zstd" else {"level": 1}}
        path = store(tmp_path / f"{name}.zarr", [10], [5], codecs=[{"name": "bytes", "configuration": {"endian": "little"}}, codec])
        (path / "c").mkdir()
        (path / "c" / "0").write_bytes(packed[:60_000])
        with pytest.raises(OSError, match=r"c/0: the chunk is damaged: .*more than the 40 bytes"):
            tw.open_zarr(path).compute()
    # A file that is far too long is not even read.
    with open(path / "c" / "0", "wb") as file:
        file.truncate(10**13)
    with pytest.raises(OSError, match="more than any encoding"):
        tw.open_zarr(path).compute()


@pytest.mark.parametrize("shards", [None, (20, 20)])
def test_damaged_chunks_are_errors_that_name_their_file(tmp_path, shards):
    x = numbers((40, 40), "f8") + 1
    zarr.create_array(tmp_path / "x.zarr", data=x, chunks=(10, 10), shards=shards)
    file = tmp_path / "x.zarr" / "c" / "0" / "1"
    whole = file.read_bytes()
    generator = np.random.default_rng(3)
    for cut in [0, 1, 10, len(whole) // 2, len(whole) - 1]:
        file.write_bytes(whole[:cut])
        with pytest.raises(OSError, match="c/0/1"):
            tw.open_zarr(tmp_path / "x.zarr").compute()
    for _ in range(60):
        damaged = bytearray(whole)
        for at in generator.integers(0, len(whole), 3):
            damaged[at] ^= int(generator.integers(1, 256))
        if shards:
            # The last bytes are the places of chunks, and their checksum.
            at = int(generator.integers(len(whole) - 68, len(whole)))
            damaged[at : at + 8] = generator.bytes(8)[: len(damaged) - at]
        file.write_bytes(bytes(damaged))
        try:
            tw.open_zarr(tmp_path / "x.zarr").compute()
        except OSError as error:
            assert "c/0/1" in str(error)


def test_shards_whose_places_lie(tmp_path):
    codecs = [{"name": "sharding_indexed", "configuration": {
        "chunk_shape": [5], "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "index_location": "end",
    }}]  # fmt: skip
    path = store(tmp_path / "x.zarr", [10], [10], codecs=codecs)
    (path / "c").mkdir()
    for offset, size in [(2**64 - 2, 40), (2**64 - 2, 2**64 - 2), (10**9, 40), (2**63, 2**63)]:
        index = np.array([0, 40, offset, size], dtype="<u8").tobytes()
        (path / "c" / "0").write_bytes(np.arange(5.0).tobytes() + index)
        with pytest.raises(OSError, match="c/0"):
            tw.open_zarr(path).compute()
    (path / "c" / "0").write_bytes(np.arange(5.0).tobytes() + np.array([0, 40, 2**64 - 1, 2**64 - 1], dtype="<u8").tobytes())
    np.testing.assert_array_equal(tw.open_zarr(path).compute(), [0, 1, 2, 3, 4, 7, 7, 7, 7, 7])
