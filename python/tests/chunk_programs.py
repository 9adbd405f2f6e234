"""Random programs whose chunks are compared with dask's: text that runs with either library."""

import random

import numpy as np


def cut(rng, n):
    """Lengths of blocks that add up to n."""
    lengths = []
    while n:
        lengths.append(rng.randint(1, min(n, 5)))
        n -= lengths[-1]
    return tuple(lengths)


def inputs(rng):
    """Chunks of three arrays: two of one shape, and a row for them."""
    shape = rng.choice([(10,), (7, 9), (6, 8), (4, 5, 6)])
    return {"x": tuple(cut(rng, n) for n in shape), "y": tuple(cut(rng, n) for n in shape), "row": (cut(rng, shape[-1]),)}


def shape_of(chunks):
    return tuple(sum(lengths) for lengths in chunks)


def _slice(rng, n):
    start, stop = sorted((rng.randint(0, n), rng.randint(0, n)))
    return rng.choice([":", f"{start}:", f":{stop or n}", f"{start}:{max(stop, start + 1)}", "::2", "::-1", f"{start}::3", "1:-1", "::-2", "-4:"])


def _steps(rng, a, names):
    """Texts of one more operation, of which a random one is taken."""
    n = a.ndim
    axis = rng.randrange(n) if n else 0
    texts = ["{} + 1", "-{}", "xp.sqrt(abs({}))", "xp.where({0} > 3, {0}, 0)", "{}[None]", "{}[..., None]", "{0}.astype('f4') * {0}",
             "xp.broadcast_to({}, %r)" % ((3, *a.shape),), "{}.map_blocks(lambda block: block * 2)"]  # fmt: skip
    texts += [f"{{}} + {name}" for name, other in names.items() if other.shape == a.shape[n - other.ndim :]]
    texts += [f"xp.{join}([{{0}}, {{0}}[::-1], {name}], axis={axis})" for name, other in names.items() if other.shape == a.shape and n
              for join in ("concatenate", "stack")]  # fmt: skip
    if n:
        key = ", ".join(_slice(rng, length) for length in a.shape[: rng.randint(1, n)])
        texts += [f"{{}}[{key}]"] * 6
        texts += [f"{{}}[{', '.join([':'] * axis + [str(rng.randrange(max(a.shape[axis], 1)))])}]"] if a.shape[axis] else []
        texts += [f"{{}}.{name}(axis={axis}{keep})" for name in ("sum", "mean", "max", "std") for keep in ("", ", keepdims=True")]
        texts += [f"{{}}.cumsum(axis={axis})", f"xp.flip({{}}, {axis})", f"xp.roll({{}}, 2, {axis})", f"xp.expand_dims({{}}, {axis})", "{}.sum()"]
        if a.shape[axis] > 3:
            texts.append(f"xp.diff({{}}, axis={axis})")
    if n > 1:
        other = (axis + 1) % n
        texts += ["{}.T", f"xp.swapaxes({{}}, {axis}, {other})", f"xp.moveaxis({{}}, {axis}, 0)", f"xp.transpose({{}}, {tuple(rng.sample(range(n), n))})"] * 2
    if n == 2:
        texts += ["{0} @ {0}.T", "{0}.T @ {0}", "xp.tensordot({0}, {0}, axes=((0,), (0,)))"]
    if n and all(a.shape):
        texts += ["{}.reshape(%r)" % ((1, *a.shape),), "{}.reshape(%r)" % ((*a.shape, 1),)]
    return texts


def program(seed):
    """Chunks of the inputs and the text of a program."""
    rng = random.Random(seed)
    chunks = inputs(rng)
    names = {name: np.ones(shape_of(own)) for name, own in chunks.items()}
    text, value = "x", names["x"]
    for _ in range(rng.randint(1, 4)):
        if value.ndim > 4 or value.size > 20000:
            break
        step = rng.choice(_steps(rng, value, names))
        text = step.format(f"({text})" if text != "x" else "x")
        value = run(text, np, names)
        if 0 in value.shape:
            break
    return chunks, text


def run(text, xp, names):
    """Runs a program with arrays of some library."""

    def windows(x, length, axis):
        view = getattr(xp, "sliding_window_view", None) or xp.lib.stride_tricks.sliding_window_view
        return view(x, length, axis)

    if xp is np:  # NumPy has no blocks.
        text = text.replace(".map_blocks(lambda block: block * 2)", " * 2")
    return eval(text, {"xp": xp, "windows": windows, **names})  # noqa: S307
