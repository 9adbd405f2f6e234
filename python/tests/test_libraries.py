"""The library that multiplies and factors matrices: which one it is, what it leaves alone, and that threads do not show."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright._libraries import matrix_provider

NUMPYS = sorted((Path(np.__file__).parent.parent / "numpy.libs").glob("libscipy_openblas*.so"))
needs_openblas = pytest.mark.skipif(not NUMPYS, reason="this NumPy does not bring OpenBLAS as a file")


def run(code: str, **environment: str) -> dict:
    """What a program prints last, as JSON, in a process of its own."""
    inherited = {key: value for key, value in os.environ.items() if key != "TILEWRIGHT_BLAS"}
    program = "import json, numpy as np, tilewright as tw\n" + code
    done = subprocess.run(
        [sys.executable, "-c", program], env={**inherited, **environment}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def threads_of_numpy() -> int:
    """The number of threads of the OpenBLAS that NumPy has loaded."""
    library = ctypes.CDLL(str(NUMPYS[0]))
    for name in ("scipy_openblas_get_num_threads64_", "scipy_openblas_get_num_threads"):
        if hasattr(library, name):
            return getattr(library, name)()
    raise AssertionError("no way to ask")


def work(n: int = 60) -> list[np.ndarray]:
    x = tw.asarray(np.random.default_rng(0).standard_normal((n, n))).rechunk(n // 3)
    positive = x @ x.T + n * tw.eye(n)
    parts = [x @ x, tw.linalg.cholesky(positive), *tw.linalg.qr(x), tw.linalg.inv(x), *tw.linalg.svd(x), *tw.linalg.eigh(positive)]
    return [np.asarray(each) for each in tw.compute(*parts)]


@needs_openblas
@pytest.mark.skipif(os.environ.get("TILEWRIGHT_BLAS") is not None, reason="another library was asked for")
def test_numpys_library_is_found():
    assert "OpenBLAS" in matrix_provider()


@needs_openblas
def test_numpy_keeps_its_threads():
    code = """
import sys; sys.path.insert(0, TESTS)
import test_libraries as t
from concurrent.futures import ThreadPoolExecutor
before = t.threads_of_numpy()
a = np.random.default_rng(1).standard_normal((300, 300))
with ThreadPoolExecutor(2) as pool:
    during = [pool.submit(lambda: (np.linalg.svd(a), t.threads_of_numpy())[1]) for _ in range(4)]
    t.work()
seen = {each.result() for each in during}
from tilewright._libraries import matrix_provider
print(json.dumps([before, t.threads_of_numpy(), sorted(seen), matrix_provider()]))
""".replace("TESTS", repr(str(Path(__file__).parent)))
    for n in ("1", str(min(2, os.cpu_count() or 1))):
        before, after, during, name = run(code, OPENBLAS_NUM_THREADS=n)
        assert before == after == int(n) and during == [int(n)], (before, after, during)
        assert "OpenBLAS" in name


@needs_openblas
def test_nothing_is_loaded_before_it_is_needed():
    code = """
def files():
    return [line for line in open("/proc/self/maps") if "tilewright-blas" in line]
found = [len(files())]
float((tw.arange(10.0) * 2).sum()); found.append(len(files()))
x = tw.asarray(np.ones((40, 40))); tw.compute(x @ x.T); found.append(len(files()) > 0)
import os, tempfile
found.append([name for name in os.listdir(tempfile.gettempdir()) if name.startswith(f"tilewright-blas-{os.getpid()}")])
print(json.dumps(found))
"""
    if sys.platform == "linux":
        assert run(code) == [0, 0, True, []]


@pytest.mark.parametrize("library", ["none", "default"])
def test_threads_do_not_show(library):
    code = """
import sys; sys.path.insert(0, TESTS)
import test_libraries as t, hashlib
digests = []
for threads in (1, 2, 4):
    with tw.Session(threads=threads):
        digests.append(hashlib.sha256(b"".join(each.tobytes() for each in t.work(90))).hexdigest())
print(json.dumps(digests))
""".replace("TESTS", repr(str(Path(__file__).parent)))
    digests = run(code, **({"TILEWRIGHT_BLAS": "none"} if library == "none" else {}))
    assert len(set(digests)) == 1


def test_none_is_none():
    code = "from tilewright._libraries import matrix_provider\nprint(json.dumps(matrix_provider()))"
    assert run(code, TILEWRIGHT_BLAS="none").startswith("rust")
    assert run(code, TILEWRIGHT_BLAS="/nowhere/libblas.so").startswith("rust")


@needs_openblas
@pytest.mark.parametrize("package", ["numpy", "scipy"])
def test_a_library_can_be_named(package):
    found = sorted((Path(np.__file__).parent.parent / f"{package}.libs").glob("libscipy_openblas*.so"))
    if not found:
        pytest.skip(f"{package} brings no library")
    code = """
import sys; sys.path.insert(0, TESTS)
import test_libraries as t
from tilewright._libraries import matrix_provider
theirs = t.work()
print(json.dumps([matrix_provider(), float(sum(np.abs(each).sum() for each in theirs))]))
""".replace("TESTS", repr(str(Path(__file__).parent)))
    name, total = run(code, TILEWRIGHT_BLAS=str(found[0]))
    assert "OpenBLAS" in name
    assert np.isclose(total, run(code, TILEWRIGHT_BLAS="none")[1], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [((50, 60), (60, 70)), ((3, 40, 30), (3, 30, 40)), ((30, 200), (200, 30))])
def test_products(dtype, shape):
    rng = np.random.default_rng(3)
    a, b = (
        (rng.standard_normal(each) + (1j * rng.standard_normal(each) if dtype[0] == "c" else 0)).astype(dtype) for each in shape
    )
    tolerance = 1e-4 if dtype in ("float32", "complex64") else 1e-12
    np.testing.assert_allclose((tw.asarray(a) @ tw.asarray(b)).compute(), a @ b, rtol=tolerance, atol=10 * tolerance)
    left = tw.asarray(np.ascontiguousarray(np.swapaxes(a, -1, -2)))
    found = (tw.matrix_transpose(left) @ tw.asarray(b)).compute()
    np.testing.assert_allclose(found, a @ b, rtol=tolerance, atol=10 * tolerance)


def test_scales_without_a_library():
    """The tests of scales once more, with Tilewright's own code."""
    tests = Path(__file__).parent / "test_scales.py"
    chosen = "1e-300 or 1e-170 or 1e-30 or 1e+300 or examples or ends or singles"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(tests), "-k", chosen]
    done = subprocess.run(command, env={**os.environ, "TILEWRIGHT_BLAS": "none"}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:]
