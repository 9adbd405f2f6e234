"""Blocks of files: whole chunks, as large as a fixed size, and read in parts where a task needs no more."""

import numpy as np
import pytest

import tilewright as tw


class Computed:
    """A chunked variable of a file whose elements are worked out while they are read."""

    dtype = np.dtype("f8")

    def __init__(self, shape, chunks):
        self.shape, self.chunks, self.read = shape, chunks, []

    def __getitem__(self, key):
        # An empty slice only asks for the type.
        if all(part.start < part.stop for part in key):
            self.read.append(tuple((part.start, part.stop) for part in key))
        rows = np.arange(key[0].start, key[0].stop)
        width = np.prod([part.stop - part.start for part in key[1:]], dtype=int)
        return np.sin(rows[:, None] * 1e4 + np.arange(width)).reshape([part.stop - part.start for part in key])


#: 128 MiB in chunks of 2 MiB.
SHAPE, CHUNKS = (512, 32768), (8, 32768)


def test_blocks_are_multiples_of_chunks_up_to_a_fixed_size():
    for memory in (None, "64MiB", "8GiB"):
        with tw.Session(memory=memory, threads=1 if memory else 2):
            large = tw.from_array(Computed((100_000, 32768), (8, 32768)))
            assert large.chunks[1] == (32768,)
            assert large.chunksize[0] % 8 == 0 and 64 << 20 <= large.chunksize[0] * 32768 * 8 <= 128 << 20
            assert tw.from_array(Computed(SHAPE, CHUNKS)).chunks == ((512,), (32768,))


@pytest.mark.parametrize("reduce", [lambda x: x.sum(), lambda x: x.mean(axis=0).sum(), lambda x: x.std(axis=1).max(), lambda x: (x * 2 + 1).sum(axis=0).max()])
def test_a_budget_below_a_block(reduce):
    with tw.Session(threads=2):
        free = float(reduce(tw.from_array(Computed(SHAPE, CHUNKS))))
    source = Computed(SHAPE, CHUNKS)
    with tw.Session(memory="64MiB", threads=2):
        bounded = float(reduce(tw.from_array(source)))
    assert free == bounded
    assert all((stop - start) % 8 == 0 for (start, stop), _ in source.read)
    assert len(source.read) == len(set(source.read))


def test_functions_of_blocks_read_a_block_at_once():
    source = Computed(SHAPE, CHUNKS)
    x = tw.from_array(source, chunks=(256, -1))
    sums = tw.map_blocks(lambda block: block.sum(keepdims=True), x, dtype="f8", chunks=(1, 1))
    sums.compute()
    assert sorted(source.read) == [((0, 256), (0, 32768)), ((256, 512), (0, 32768))]
    assert x.chunks == ((256, 256), (32768,))


def test_parts_end_where_chunks_of_the_file_do():
    source = Computed(SHAPE, CHUNKS)
    x = tw.from_array(source, chunks=((100, 412), -1))
    float(x.sum())
    ends = {end for (_, end), _ in source.read}
    assert len(ends) > 10 and all(end % 8 == 0 for end in ends - {100})
    assert x.chunks == ((100, 412), (32768,))


def test_what_tells_no_chunks_is_read_by_the_blocks_that_were_asked_for():
    source = Computed(SHAPE, None)
    float(tw.from_array(source, chunks=(256, -1)).sum())
    assert sorted(source.read) == [((0, 256), (0, 32768)), ((256, 512), (0, 32768))]


def test_what_is_kept_is_not_read_again():
    source = Computed(SHAPE, CHUNKS)
    x = tw.from_array(source).persist()
    n = len(source.read)
    tw.map_blocks(lambda block: block, x, dtype="f8").sum().compute()
    assert len(source.read) == n


def test_store_under_a_budget_below_a_block(tmp_path):
    target = np.memmap(tmp_path / "target", dtype="f8", mode="w+", shape=SHAPE)
    with tw.Session(memory="64MiB", threads=2):
        tw.store(tw.from_array(Computed(SHAPE, CHUNKS)) + 1, target)
    assert np.array_equal(target[100], Computed(SHAPE, CHUNKS)[100:101, 0:32768][0] + 1)


def test_h5py(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        variable = file.create_dataset("x", data=np.arange(1200.0).reshape(40, 30), chunks=(7, 30))
        x = tw.from_array(variable, chunks="5KB")
        assert x.chunks == ((21, 19), (30,)) or all(n % 7 == 0 for n in x.chunks[0][:-1])
        assert float(x.sum()) == np.arange(1200.0).sum()
        whole = file.create_dataset("whole", shape=(2048, 4096), dtype="f8", fillvalue=1.0)
        x = tw.from_array(whole, lock=True)
        assert x.chunks == ((2048,), (4096,))
        with tw.Session(memory="32MiB"):
            assert float(tw.from_array(whole, lock=True).sum()) == 2048 * 4096
