"""Chunks of results follow those of their operands, as in dask."""

import numpy as np
import pytest
from chunk_programs import program, run, shape_of

import tilewright as tw


class Dask:
    """dask.array, with what it keeps elsewhere."""

    def __getattr__(self, name):
        import dask.array as da

        return da.lib.stride_tricks.sliding_window_view if name == "sliding_window_view" else getattr(da, name)


def ours(chunks):
    return {name: tw.asarray(np.ones(shape_of(own)), chunks=own) for name, own in chunks.items()}


@pytest.mark.parametrize("seed", range(300))
def test_random_programs_have_the_chunks_of_dask(seed):
    da = pytest.importorskip("dask.array")
    chunks, text = program(seed)
    theirs = run(text, Dask(), {name: da.from_array(np.ones(shape_of(own)), chunks=own) for name, own in chunks.items()})
    assert run(text, tw, ours(chunks)).chunks == theirs.chunks, (chunks, text)


X = {"x": ((4, 4, 2), (3, 3)), "y": ((5, 5), (2, 4)), "row": ((4, 2),)}

#: What dask gives for arrays of shape (10, 6) in the chunks above.
TABLE = {
    "x + 1": ((4, 4, 2), (3, 3)),
    "x + y": ((4, 1, 3, 2), (2, 1, 3)),
    "x * row": ((4, 4, 2), (3, 1, 2)),
    "xp.where(x > 0, y, 0)": ((4, 1, 3, 2), (2, 1, 3)),
    "x.astype('f4')": ((4, 4, 2), (3, 3)),
    "x[::2]": ((2, 2, 1), (3, 3)),
    "x[3:9, 1:]": ((1, 4, 1), (2, 3)),
    "x[::-1]": ((2, 4, 4), (3, 3)),
    "x[8:1:-3]": ((1, 1, 1), (3, 3)),
    "x[5]": ((3, 3),),
    "x[None, :, 2]": ((1,), (4, 4, 2)),
    "x[4:4]": ((0,), (3, 3)),
    "x.sum(axis=0)": ((3, 3),),
    "x.mean(axis=1, keepdims=True)": ((4, 4, 2), (1,)),
    "x.max()": (),
    "x.cumsum(axis=0)": ((4, 4, 2), (3, 3)),
    "x.T": ((3, 3), (4, 4, 2)),
    "xp.concatenate([x, y])": ((4, 4, 2, 5, 5), (2, 1, 3)),
    "xp.concatenate([x, x], axis=1)": ((4, 4, 2), (3, 3, 3, 3)),
    "xp.stack([x, x])": ((1, 1), (4, 4, 2), (3, 3)),
    "xp.broadcast_to(x, (2, 10, 6))": ((2,), (4, 4, 2), (3, 3)),
    "x @ y.T": ((4, 4, 2), (5, 5)),
    "xp.tensordot(x, y, axes=((0,), (0,)))": ((3, 3), (2, 4)),
    "xp.roll(x, 3, 0)": ((1, 2, 4, 3), (3, 3)),
    "xp.diff(x, axis=0)": ((3, 1, 3, 1, 1), (3, 3)),
    "windows(x, 3, 0)": ((4, 4), (3, 3), (3,)),
    "x.map_blocks(lambda block: block * 2)": ((4, 4, 2), (3, 3)),
    "x.reshape((10, 2, 3))": ((4, 4, 2), (1, 1), (3,)),
    "x[:, :3].reshape(-1)": ((12, 12, 6),),
    "xp.zeros_like(x)": ((4, 4, 2), (3, 3)),
    "xp.pad(x, ((1, 0), (0, 2)))": ((1, 4, 4, 2), (3, 3, 2)),
    "x[[0, 9, 3]]": ((3,), (3, 3)),
}


@pytest.mark.parametrize("text", list(TABLE))
def test_table(text):
    made = run(text, tw, ours(X))
    assert made.chunks == TABLE[text]
    plain = run(text, np, {name: np.ones(shape_of(own)) for name, own in X.items()})
    assert made.shape == plain.shape
    assert np.array_equal(made.compute(), plain)


def test_functions_of_blocks_are_called_once_per_chunk_of_the_operand():
    x = tw.ones((10, 6), chunks=((4, 4, 2), (3, 3)))
    calls = []
    result = tw.map_blocks(lambda block: (calls.append(block.shape), block)[1], x + 1, dtype="f8")
    assert result.chunks == x.chunks
    assert np.array_equal(result.compute(), np.full((10, 6), 2.0))
    assert sorted(calls) == sorted([(4, 3)] * 4 + [(2, 3)] * 2)


def test_automatic_chunks_are_handed_on():
    x = tw.ones((1 << 14, 1 << 12))
    assert x.chunks == ((1 << 12,) * 4, (1 << 12,))
    assert (x + 1).chunks == x.T.T.chunks == x.chunks
    assert x.sum(axis=1).chunks == ((1 << 12,) * 4,)
    assert x.astype("f4").chunks == x.chunks


def test_chunks_of_open_lengths_are_concrete():
    x = tw.arange(10).rechunk(4)
    chosen = x[x > 4]
    assert chosen.chunks == ((5,),) and (chosen + 1).chunks == ((5,),)


def test_overlapping_blocks_follow_the_operand():
    x = tw.arange(10.0).rechunk(5)
    assert tw.overlap(x + 1, 1).chunks == ((6, 6),)
    assert tw.map_overlap(lambda block: block, x * 2, depth=1).chunks == ((5, 5),)
    assert (x * 2).blocks[1].compute().tolist() == [10.0, 12.0, 14.0, 16.0, 18.0]


def test_assignment_keeps_chunks():
    x = tw.zeros(10, chunks=4)
    x[2:5] = tw.ones(3, chunks=1)
    x += 1
    assert x.chunks == ((4, 4, 2),)
    x[x > 1] = 0
    assert x.chunks == ((4, 4, 2),)


def test_chunks_follow_the_operands():
    a, i = tw.ones(10, chunks=5), tw.zeros(10, dtype=int, chunks=5)
    for mode in ("raise", "clip", "wrap"):
        assert tw.choose(i, [a, a], mode=mode).chunks == ((5, 5),)
    assert tw.choose(tw.zeros(10_000, dtype=int), [tw.ones(10_000)] * 2).npartitions == 1
    assert tw.gradient(a).chunks == tw.gradient(a, tw.arange(10.0)).chunks == ((5, 5),)
    assert [each.chunks for each in tw.gradient(tw.ones((6, 4), chunks=(2, 3)))] == [((2, 2, 2), (3, 1))] * 2
    x = tw.ones((12, 8), chunks=(4, 8))
    assert tw.fft.fft(x).chunks == tw.fft.ifft(x.rechunk((4, 3))).chunks == ((4, 4, 4), (8,))
    assert tw.fft.rfft(x).chunks == ((4, 4, 4), (5,)) and tw.fft.fft(x, axis=0).chunks == ((12,), (8,))
    assert tw.fft.fft2(tw.ones((3, 12, 8), chunks=(1, 4, 4))).chunks == ((1, 1, 1), (12,), (8,))
    # Blocks that are seen are those that functions of blocks get.
    sizes = tw.map_blocks(lambda block: np.full((1, 1), block.size), tw.fft.fft(x), chunks=((1, 1, 1), (1,)), dtype="int64")
    assert sizes.tolist() == [[32]] * 3
