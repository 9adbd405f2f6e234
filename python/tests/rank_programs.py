"""What ranks run in the tests of several ranks: ``mpirun -n P python rank_programs.py NAME``."""

from __future__ import annotations

import sys

import numpy as np

import tilewright as tw


def everything() -> None:
    """Results are those of NumPy on every rank, and what moves is what was planned."""
    with tw.Session(engine="mpi", threads=1) as session:
        numbers = np.arange(240.0).reshape(12, 20)
        x = tw.asarray(numbers, chunks=5)
        y = (x @ x.T + 1.0).persist()
        np.testing.assert_allclose(y.compute(), numbers @ numbers.T + 1.0)
        on_last = y.compute(rank=session.ranks - 1)
        assert (on_last is None) == (session.rank != session.ranks - 1)
        first, nested = tw.compute(y.sum(), {"largest": y.max()}, rank=0)
        assert (first is None) == (session.rank != 0) and (nested["largest"] is None) == (session.rank != 0)
        # Functions of blocks run where the block is, and an array over a source is read there.
        blocks: list[tuple[int, ...]] = []

        def double(block: np.ndarray) -> np.ndarray:
            blocks.append(block.shape)
            return 2 * block

        doubled = tw.map_blocks(double, tw.from_array(numbers, chunks=4))
        np.testing.assert_array_equal(doubled.compute(), 2 * numbers)
        assert session.ranks == 1 or len(blocks) < 15, "every rank has called the function for its own blocks only"
        # Values decide: a loop, a mask, a branch of Python.
        total, turns = x, 0
        while float(total.max()) < 1e6:
            total, turns = total * 3 + 1, turns + 1
        assert turns == 8, turns
        selected = x[x > 200]
        assert selected.shape == (39,)
        np.testing.assert_array_equal(selected.compute(), numbers[numbers > 200])
        # An array of one rank.
        given = tw.from_rank(numbers if session.rank == 0 else None, 0)
        np.testing.assert_allclose((given - given.mean(axis=0)).compute(), numbers - numbers.mean(axis=0))
        # Random numbers depend on seeds alone.
        noise = tw.random.default_rng(7).normal(size=(30, 4))
        np.testing.assert_allclose((noise.T @ noise).compute(), noise.compute().T @ noise.compute())
        report = session.report()
        assert report["sent_bytes"] == report["planned_sent_bytes"], report
        assert session.ranks == 1 or report["sent_bytes"] + report["received_bytes"] > 0
        plan = (x @ x.T).explain("line").to_dict()
        assert session.ranks == 1 or "machine" in str(plan), plan
        try:
            x.compute(block=False)
            raise AssertionError("ranks have no background")
        except NotImplementedError:
            pass
        session.print("everything is as it should be")


def differing() -> None:
    """The seed differs from rank to rank, which the next call of all ranks notices."""
    with tw.Session(engine="mpi", threads=1) as session:
        x = tw.asarray(np.random.default_rng(session.rank).normal(size=10))  # differs
        print(float((x + 1).sum()))


def failing() -> None:
    """A function of one block raises."""

    def check(block: np.ndarray) -> np.ndarray:
        if block[0] == 8:
            raise RuntimeError("this block is bad")
        return block

    with tw.Session(engine="mpi", threads=1):
        print(tw.map_blocks(check, tw.arange(12, chunks=4)).compute())


def alone() -> None:
    """One rank ends in the middle."""
    with tw.Session(engine="mpi", threads=1) as session:
        x = tw.arange(12, chunks=4).persist()
        if session.rank == 1:
            raise ValueError("rank 1 gives up")
        print(x.compute())


def leaving() -> None:
    """One rank fails while all write a file."""
    with tw.Session(engine="mpi", threads=1):
        x = tw.random.default_rng(1).normal(size=(600, 50), chunks=(100, 50))
        tw.take(x, tw.arange(600) * 3, axis=0).to_npy(f"{sys.argv[2]}/out.npy")


def limited() -> None:
    """Ranks spill within their budgets, and refuse one that is too small together."""
    sums = []
    for memory in ("1GiB", "10MiB"):
        with tw.Session(engine="mpi", threads=1, memory=memory) as session:
            x = tw.random.default_rng(1).normal(size=(2000, 500), chunks=(100, 500))
            sums.append(float((tw.sort(x.reshape(-1)).reshape(2000, 500) @ x.T).sum()))
            report = session.report()
            assert (report["spilled_bytes"] > 0) == (memory == "10MiB"), report
            assert report["peak_bytes"] <= 10 << 20 or memory == "1GiB", report
    assert sums[0] == sums[1], sums
    with tw.Session(engine="mpi", threads=1, memory="1MiB") as session:
        x = tw.random.default_rng(1).normal(size=(2000, 500), chunks=(100, 500))
        try:
            (tw.sort(x.reshape(-1)).reshape(2000, 500) @ x.T).sum().compute()
            raise AssertionError("the budget suffices")
        except MemoryError as error:
            assert "needs them for its part of the plan" in str(error) and "budget that works" in str(error), error
    session.print("within its budget")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
