"""What the rivals compute: one function per bench, over `xp`, which is numpy, dask.array or jax.numpy."""


def matmul(xp, A, B):
    return A @ B


def xtx(xp, X):
    return X.T @ X


def minplus(xp, A, B):
    return xp.min(A[:, :, None] + B[None, :, :], axis=1)


def sum_sin(xp, A, B):
    return xp.sum(xp.sin(A) + 2 * B - 0.5)


def fused(xp, A, B):
    return A * B + A - 0.5


def choose(xp, A, B):
    return xp.where((A > B) & (A < 0.75), 2 * A, B)


def exp(xp, A):
    return xp.exp(A)


def log(xp, A):
    return xp.log(A)


def tanh(xp, A):
    return xp.tanh(A)


def power(xp, A, B):
    return A**B


def softmax(xp, A):
    e = xp.exp(A - xp.max(A, axis=1, keepdims=True))
    return e / xp.sum(e, axis=1, keepdims=True)


def layer_norm(xp, A):
    m = xp.mean(A, axis=1, keepdims=True)
    v = xp.var(A, axis=1, keepdims=True)
    return (A - m) / xp.sqrt(v + 1e-5)


def mean_rows(xp, A):
    return xp.mean(A, axis=1)


def mean_columns(xp, A):
    return xp.mean(A, axis=0)


def var_rows(xp, A):
    return xp.var(A, axis=1)


def var_columns(xp, A):
    return xp.var(A, axis=0)


def argmax_rows(xp, A):
    return xp.argmax(A, axis=1)


def argmax_columns(xp, A):
    return xp.argmax(A, axis=0)


def cumsum_rows(xp, A):
    return xp.cumsum(A, axis=1)


def cumsum_columns(xp, A):
    return xp.cumsum(A, axis=0)


def transpose(xp, A):
    # In NumPy a transpose alone is a view; compiled by JAX it is a new array.
    return np.ascontiguousarray(A.T) if xp is np else A.T


def concat_rows(xp, A, B):
    return xp.concatenate([A, B], axis=0)


def concat_columns(xp, A, B):
    return xp.concatenate([A, B], axis=1)


def take(xp, T, index):
    return xp.take(T, index, axis=0)


def sort(xp, A):
    return xp.sort(A)


def argsort(xp, A):
    return xp.argsort(A)


NUMEXPR = {
    sum_sin: "sum(sin(A) + 2 * B - 0.5)",
    fused: "A * B + A - 0.5",
    choose: "where((A > B) & (A < 0.75), 2 * A, B)",
    exp: "exp(A)",
    log: "log(A)",
    tanh: "tanh(A)",
    power: "A ** B",
}


def follow(x, y):
    return max(x, y) + 1


def timed_overhead(tasks):
    """Trivial tasks in as many chains as each has steps; every step waits for two of the step before."""
    import dask.threaded

    width = int(tasks**0.5)
    steps = tasks // width
    graph = {("x", 0, c): 1 for c in range(width)}
    for k in range(1, steps + 1):
        for c in range(width):
            graph["x", k, c] = (follow, ("x", k - 1, c), ("x", k - 1, (c + 1) % width))
    keys = [("x", steps, c) for c in range(width)]
    begin = time.perf_counter()
    dask.threaded.get(graph, keys, num_workers=THREADS)
    return (time.perf_counter() - begin) / (width * steps)


def timed_plan(blocks):
    """The graph of a matrix product and its order; no data is touched."""
    import dask.array as da
    import dask.order

    begin = time.perf_counter()
    n = blocks * 1000
    a = da.ones((n, n), chunks=1000)
    b = da.ones((n, n), chunks=1000)
    graph = dict((a @ b).__dask_graph__())
    dask.order.order(graph)
    return (time.perf_counter() - begin) / len(graph)


def timed_segment(runs):
    """sum(x + 1) of 1000 elements."""
    import dask.array as da

    x = da.from_array(np.random.default_rng(1).random(1000), chunks=1000)
    begin = time.perf_counter()
    for _ in range(runs):
        (x + 1).sum().compute(scheduler="threads", num_workers=THREADS)
    return (time.perf_counter() - begin) / runs
