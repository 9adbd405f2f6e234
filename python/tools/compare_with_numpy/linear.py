"""Programs of products, linear algebra and transforms."""

from __future__ import annotations

import numpy as np

from .case import BOOLS, NUMBERS, REAL, WHOLE, WIDE, Case, call, sometimes

PRODUCTS = """
    matmul @ dot inner outer vdot tensordot vecdot kron cross einsum polyval vander
""".split()


def products(case: Case) -> None:
    name = case.pick(PRODUCTS)
    case.loose = 10
    types = NUMBERS if name != "polyval" else REAL
    n, m, k = (case.int(1, 5) for _ in range(3))
    batch = case.pick([(), (), (2,), (1,), (2, 3)])
    if name in ("matmul", "@", "dot"):
        first = case.pick([(*batch, n, m), (m,), (n, m)])
        second = case.pick([(*batch, m, k), (m,), (m, k)]) if case.chance(0.97) else (m + 1, k)
        a, b = (case.array(types, shape=s, finite=True, low=-5, high=5) for s in (first, second))
        case.name = name
        case.line(f"r = {a} @ {b}" if name == "@" else f"r = xp.{name}({a}, {b})")
    elif name in ("inner", "vecdot", "vdot"):
        a, b = (case.array(types, shape=s, finite=True, low=-5, high=5) for s in ((n, m), case.pick([(m,), (n, m)])))
        call(case, name, a, b)
    elif name in ("outer", "kron"):
        a, b = (case.array(types, shape=case.shape(0, 2), finite=True, low=-5, high=5) for _ in range(2))
        call(case, name, a, b)
    elif name == "tensordot":
        a, b = (case.array(types, shape=s, finite=True, low=-5, high=5) for s in ((n, m, k), (m, k, n)))
        call(case, name, a, b, axes=case.pick([0, 2, 1, "([1, 2], [0, 1])", "(0, 2)", "([0, 2], [2, 1])"]))
    elif name == "cross":
        a, b = (case.array(types, shape=s, finite=True, low=-5, high=5) for s in ((n, 3), case.pick([(3,), (n, 3)])))
        call(case, name, a, b)
    elif name == "einsum":
        text, letters = case.pick([("ij,jk->ik", 2), ("ij,ij->", 2), ("ij->ji", 1), ("ij,j", 2), ("i,j->ij", 2), ("ii->i", 1),
                                   ("ij,jk,kl->il", 3), ("...j,j->...", 2), ("ij->j", 1), ("ij,kj->ijk", 2), ("ii", 1)])
        sizes = dict.fromkeys("ijkl", n) if "ii" in text else dict(zip("ijkl", (n, m, k, 2), strict=True))
        shapes = [tuple(sizes[letter] for letter in part.replace("...", "i")) for part in text.split("->")[0].split(",")]
        call(case, name, repr(text), *(case.array(types, shape=s, finite=True, low=-4, high=4) for s in shapes))
    elif name == "polyval":
        call(case, name, case.array(types, shape=(4,), finite=True, low=-3, high=3), case.array(["f8", "i8"], finite=True, low=-3, high=3))
    else:
        call(case, name, case.array(types, shape=(n,), finite=True, low=-3, high=3), N=sometimes(case, 3), increasing=sometimes(case, True))


LINALG = """
    det inv solve qr svd svdvals eigh eigvalsh eigvals cholesky norm matrix_norm vector_norm matrix_power matrix_rank pinv slogdet
    lstsq cond multi_dot trace diagonal outer cross matmul tensordot vecdot matrix_transpose
""".split()


def linear_algebra(case: Case) -> None:
    name = case.pick(LINALG)
    case.loose = 1e4
    n, m = case.int(1, 5), case.int(1, 5)
    batch = case.pick([(), (), (), (2,), (2, 1)])
    types = WIDE if case.chance(0.8) else [*WHOLE, *WIDE, "?"]
    square = case.values(case.pick(types), (*batch, n, n), finite=True, low=-5, high=5)
    case.name = f"linalg.{name}"
    full = f"xp.linalg.{name}"
    if name in ("det", "inv", "slogdet", "solve", "cond", "matrix_power", "eigvals"):
        # Far from singular, so that rounding does not decide.
        a = case.add(square + (20 * np.eye(n)).astype(square.dtype) if square.dtype.kind != "b" else np.broadcast_to(np.eye(n,
            dtype=bool), square.shape).copy())
        other = case.array(WIDE, shape=case.pick([(*batch, n, m), (n,)]) if name == "solve" else (), finite=True)
        more = f", {other}" if name == "solve" else f", {case.int(-2, 4)}" if name == "matrix_power" else ""
        case.line(f"r = {full}({a}{more})")
        case.line("r = xp.sort(xp.abs(r), axis=-1)" if name == "eigvals" else "r = tuple(r)" if name == "slogdet" else "pass")
    elif name in ("eigh", "eigvalsh", "cholesky"):
        product = square @ np.conj(np.swapaxes(square, -1, -2)) if square.dtype.kind in "fc" else square
        a = case.add(product + (20 * np.eye(n)).astype(square.dtype) if square.dtype.kind in "fc" else np.broadcast_to(np.eye(n,
            dtype=square.dtype), square.shape).copy())
        case.line(f"r = {full}({a})")
        if name == "eigh":
            case.line(f"r = (r[0], xp.matmul({a}, r[1]) - r[1] * r[0][..., None, :])")
    elif name in ("qr", "svd", "svdvals", "pinv", "matrix_rank"):
        a = case.array(types, shape=(*batch, n, m), finite=True, low=-5, high=5)
        if name == "qr":
            case.line(f"q, s = {full}({a}{case.pick(['', ', mode=' + repr('complete')])})")
            case.line("r = (xp.matmul(q, s), xp.abs(s))")
        elif name == "svd":
            case.line(f"u, s, v = {full}({a}, full_matrices=False)")
            case.line("r = (s, xp.matmul(u * s[..., None, :], v))")
        else:
            case.line(f"r = {full}({a})")
    elif name == "lstsq":
        a, b = case.array(["f8"], shape=(n + 3, n), finite=True), case.array(["f8"], shape=(n + 3, m), finite=True)
        case.line(f"r = {full}({a}, {b}, rcond=None)[0] @ xp.ones({m})" if case.chance(0.2) else f"s = {full}({a}, {b}); r = (s[0], s[3])")
    elif name in ("norm", "matrix_norm", "vector_norm"):
        a = case.array(types, shape=(*batch, n, m), finite=True, low=-5, high=5)
        orders = {"norm": [None, 1, 2, "np.inf", "'fro'", "'nuc'", -1], "matrix_norm": [1, 2, "np.inf", "'fro'", "'nuc'", -1, -2],
                  "vector_norm": [1, 2, "np.inf", 0, 3, "-np.inf"]}[name]
        axis = ", axis=(-2, -1)" if name == "norm" and batch else ""
        if name == "vector_norm" and case.chance(0.6):
            axis = f", axis={case.axes(len(batch) + 2)}"
        case.line(f"r = {full}({a}{axis}, ord={case.pick(orders)}, keepdims={case.chance(0.3)})")
    elif name == "multi_dot":
        k = case.int(1, 4)
        parts = [case.array(WIDE, shape=s, finite=True, low=-4, high=4) for s in ((n, m), (m, k), (k, 2))]
        case.line(f"r = {full}([{', '.join(parts)}])")
    elif name in ("trace", "diagonal", "matrix_transpose"):
        a = case.array(NUMBERS, shape=(*batch, n, m), finite=True)
        offset = "" if name == "matrix_transpose" or case.chance(0.5) else f", offset={case.int(-2, 2)}"
        case.line(f"r = {full}({a}{offset})")
    else:
        shapes = {"outer": ((n,), (m,)), "cross": ((n, 3), (n, 3)), "matmul": ((*batch, n, m), (*batch, m, n)),
                  "tensordot": ((n, m), (m, n)), "vecdot": ((n, m), (n, m))}[name]
        a, b = (case.array(NUMBERS, shape=s, finite=True, low=-5, high=5) for s in shapes)
        case.line(f"r = {full}({a}, {b}{', axes=1' if name == 'tensordot' else ''})")


TRANSFORMS = """
    fft ifft rfft irfft hfft ihfft fftn ifftn rfftn irfftn fft2 ifft2 rfft2 irfft2 fftfreq rfftfreq fftshift ifftshift
""".split()


def transforms(case: Case) -> None:
    name = case.pick(TRANSFORMS)
    case.name, case.loose = f"fft.{name}", 100
    norm = f", norm={case.pick(['backward', 'ortho', 'forward'])!r}" if case.chance(0.3) else ""
    if name in ("fftfreq", "rfftfreq"):
        case.line(f"r = xp.fft.{name}({case.int(1, 9)}, d={case.pick([1.0, 0.5])})")
        return
    real = name in ("rfft", "rfftn", "rfft2", "ihfft")
    a = case.array(BOOLS + REAL if real else NUMBERS, shape=case.shape(2 if "2" in name else 1, 3, 2), finite=True)
    ndim = case.of(a).ndim
    if "shift" in name:
        case.line(f"r = xp.fft.{name}({a}{'' if case.chance(0.5) else f', axes={case.int(0, ndim - 1)}'})")
    elif name.endswith("n"):
        axes = tuple(case.random.sample(range(ndim), case.int(1, ndim)))
        sizes = f", s={tuple(case.int(2, 6) for _ in axes)}" if case.chance(0.3) else ""
        case.line(f"r = xp.fft.{name}({a}{sizes}{f', axes={axes}' if sizes or case.chance(0.6) else ''}{norm})")
    elif "2" in name:
        case.line(f"r = xp.fft.{name}({a}{norm})")
    else:
        n = f", n={case.int(2, 8)}" if case.chance(0.4) else ""
        axis = f", axis={case.int(-ndim, ndim - 1)}" if case.chance(0.5) else ""
        case.line(f"r = xp.fft.{name}({a}{n}{axis}{norm})")
