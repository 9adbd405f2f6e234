"""The rivals' side of `tw bench`: one process per library, which keeps its data in memory and computes only when asked.

Every line of input is a question in JSON, every line of output an answer. `load` makes data and runs once; `run` runs again and gives seconds.
"""

import json
import os
import sys
import time
import warnings

import numpy as np

THREADS = int(os.environ["TW_BENCH_THREADS"])
SAMPLES = 61
warnings.simplefilter("ignore")


def uniform(seed, shape, dtype, low, high):
    """The same numbers as ours, bit for bit: splitmix64 of the position, scaled."""
    n = int(np.prod(shape, dtype=np.int64))
    result = np.empty(n, dtype)
    for first in range(0, n, 1 << 18):
        z = np.arange(first + 1, min(n, first + (1 << 18)) + 1, dtype=np.uint64)
        z *= np.uint64(0x9E3779B97F4A7C15)
        z += np.uint64(seed) << np.uint64(32)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
        unit = (z >> np.uint64(11)).astype(np.float64) * 2.0**-53
        scaled = low + unit * (high - low)
        result[first : first + len(z)] = np.floor(scaled) if np.issubdtype(dtype, np.integer) else scaled
    return result.reshape(shape)


class Numpy:
    def __init__(self):
        self.version = f"numpy {np.__version__}"

    def prepare(self, program, arrays):
        return lambda: program(np, **arrays), ""

    def fetch(self, result):
        return np.asarray(result)


class Numexpr(Numpy):
    def __init__(self):
        import numexpr

        self.numexpr = numexpr
        numexpr.set_num_threads(THREADS)
        self.version = f"numexpr {numexpr.__version__}"

    def prepare(self, program, arrays):
        text = NUMEXPR[program]
        return lambda: self.numexpr.evaluate(text, local_dict=arrays), ""


class Jax(Numpy):
    def __init__(self):
        import jax

        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_enable_x64", True)
        self.jax = jax
        self.version = f"jax {jax.__version__}"

    def prepare(self, program, arrays):
        compiled = self.jax.jit(lambda arrays: program(self.jax.numpy, **arrays))
        held = {name: self.jax.numpy.asarray(array) for name, array in arrays.items()}
        return lambda: self.jax.block_until_ready(compiled(held)), ""


class Dask:
    # Into how many chunks the axes are cut; the first one is dask's own choice.
    CUTS = [None, (4, 4), (2, 2), (8, 1), (32, 1), (1, 8)]

    def __init__(self):
        import dask
        import dask.array

        self.array = dask.array
        self.version = f"dask {dask.__version__}"

    def prepare(self, program, arrays):
        """Tries several cuts and keeps the fastest."""
        best = None
        for cut in self.CUTS:
            held = {name: self.cut(array, cut) for name, array in arrays.items()}
            run = lambda held=held: self.persist(program(self.array, **held))
            try:
                run()
                seconds = timed(run)[0]
            except ValueError:
                continue  # this cut does not fit the operation
            if best is None or seconds < best[0]:
                largest = max(held.values(), key=lambda array: array.nbytes)
                best = (seconds, run, "chunks " + "x".join(str(n) for n in largest.chunksize))
        if best is None:
            raise ValueError("no cut fits")
        return best[1:]

    def cut(self, array, cut):
        if cut is None:
            return self.array.from_array(array)
        return self.array.from_array(array, chunks=tuple(-(-n // k) for n, k in zip(array.shape, cut)))

    def persist(self, result):
        return result.persist(scheduler="threads", num_workers=THREADS)

    def fetch(self, result):
        return np.asarray(result.compute(scheduler="threads", num_workers=THREADS))


def timed(run):
    begin = time.perf_counter()
    result = run()
    return time.perf_counter() - begin, result


def digest(result):
    """What both sides compare: shape, sum, and elements spread over the whole."""
    flat = result.reshape(-1)
    positions = [k * (flat.size - 1) // (SAMPLES - 1) for k in range(SAMPLES)]
    samples = [float(flat[p]) for p in positions]
    return {"shape": list(result.shape), "sum": float(np.sum(flat, dtype=np.float64)), "samples": samples}


class Driver:
    def __init__(self, library):
        self.library = {"numpy": Numpy, "numexpr": Numexpr, "dask": Dask, "jax": Jax}[library]()
        self.arrays = {}
        self.run = None

    def answer(self, question):
        if "load" in question:
            return self.load(question)
        return {"seconds": self.run()}

    def load(self, question):
        program = globals()[question["load"]]
        if "size" in question:
            self.run = lambda: program(question["size"])
            return {"note": "", "digest": None}
        self.run = None
        wanted = {input["name"]: (input["seed"], *input["shape"], input["dtype"], input["low"], input["high"])
                  for input in question["inputs"]}
        self.arrays = {key: array for key, array in self.arrays.items() if key in wanted.values()}
        for seed, *shape, dtype, low, high in wanted.values():
            key = (seed, *shape, dtype, low, high)
            if key not in self.arrays:
                self.arrays[key] = uniform(seed, shape, np.dtype(dtype), low, high)
        run, note = self.library.prepare(program, {name: self.arrays[key] for name, key in wanted.items()})
        self.run = lambda: timed(run)[0]
        return {"note": note, "digest": digest(self.library.fetch(run()))}


def main():
    # What libraries print must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(answer):
        print(json.dumps(answer), file=answers, flush=True)

    try:
        driver = Driver(sys.argv[1])
    except Exception as error:
        return say({"error": f"{type(error).__name__}: {error}"})
    say({"version": driver.library.version})
    for line in sys.stdin:
        try:
            say(driver.answer(json.loads(line)))
        except Exception as error:
            say({"error": f"{type(error).__name__}: {error}"})


main()
