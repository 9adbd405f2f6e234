"""Programs of reductions, running results and statistics: quantiles, histograms, covariances, averages, integrals, convolution."""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import ALL, BOOLS, COMPLEX, NUMBERS, REAL, WHOLE, Case, call, sometimes

REDUCTIONS = """
    sum prod max min mean var std any all argmax argmin count_nonzero ptp median nansum nanprod nanmax nanmin nanmean nanvar
    nanstd nanargmax nanargmin nanmedian
""".split()


def reduction(case: Case) -> None:
    name = case.pick(REDUCTIONS)
    product = "prod" in name
    a = case.array(ALL if case.chance(0.3) else NUMBERS, low=-2 if product else -20, high=2 if product else 20, finite=case.chance(0.5))
    values = case.of(a)
    single = "arg" in name
    options = {"axis": sometimes(case, case.axis(values.ndim) if single else case.axes(values.ndim), 0.75),
               "keepdims": sometimes(case, True, 0.3)}
    if name in ("sum", "prod", "mean", "nansum", "nanprod", "nanmean", "var",
                "std") and values.dtype.kind not in "Mm" and case.chance(0.15):
        options["dtype"] = repr(case.pick(["f4", "f8", "i8", "c16", "u4"]))
        if values.dtype.kind in "fc":
            case.arrays[a] = np.nan_to_num(values, nan=1, posinf=1, neginf=1).clip(0, 9)
    if name in ("sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "nansum", "nanmax") and case.chance(0.4):
        options["where"] = case.mask(values.shape)
        if options.get("dtype") in ("'i8'", "'u4'"):
            # What NaN becomes there is not defined.
            del options["dtype"]
        if name in ("max", "min", "nanmax"):
            options["initial"] = case.number(values.dtype)
    if name in ("sum", "prod", "max", "min") and "initial" not in options and case.chance(0.25):
        options["initial"] = case.number(values.dtype)
    if name in ("var", "std", "nanvar", "nanstd"):
        options["ddof"] = sometimes(case, case.pick([0, 1, 2, 0.5])) if "dtype" not in options else ...
    method = name in ("sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmax", "argmin") and case.chance(0.3)
    call(case, name, a, **options)
    if "where" in options:
        case.name = f"{name} where="
    if method:
        case.lines[-1] = case.lines[-1].replace(f"xp.{name}({a}, ", f"{a}.{name}(").replace(f"xp.{name}({a})", f"{a}.{name}()")
    if case.chance(0.1) and "dtype" not in options:
        found = case.peek(case.lines[-1][4:])
        if found is not None and found.dtype.kind not in "Mm":
            out = case.array([found.dtype.str], shape=np.shape(found), finite=True)
            case.lines[-1] = (case.lines[-1].replace("r = ", "s = ", 1)[:-1] + f", out={out})").replace("(, ", "(")
            case.line(f"r = (s, {out})")


def cumulative(case: Case) -> None:
    name = case.pick(["cumsum", "cumprod", "nancumsum", "nancumprod", "diff", "cumulative_sum", "cumulative_prod", "ediff1d"])
    product = "prod" in name
    # Running products of halves overflow here where they do at last, in NumPy also on the way.
    dtypes = [each for each in (NUMBERS if case.chance(0.8) else ALL) if each != "f2" or not product]
    a = case.array(dtypes, low=-2 if product else -20, high=2 if product else 20)
    values = case.of(a)
    if name == "diff":
        edge = case.array([values.dtype.str], shape=(), finite=True)
        call(case, name, a, n=sometimes(case, case.int(0, 3)), axis=sometimes(case, case.axis(values.ndim, none=False)),
             prepend=sometimes(case, edge, 0.2), append=sometimes(case, edge, 0.2))
    elif name == "ediff1d":
        call(case, name, a, to_end=sometimes(case, case.array([values.dtype.str], shape=(2,), finite=True), 0.3))
    elif "cumulative" in name:
        call(case, name, a, axis=case.axis(values.ndim, none=values.ndim < 2), include_initial=sometimes(case, True))
    else:
        call(case, name, a, axis=sometimes(case, case.axis(values.ndim), 0.7),
             dtype=sometimes(case, "'f8'", 0.1) if values.dtype.kind not in "Mm" else ...)


# Statistics

STATISTICS = """
    quantile percentile nanquantile nanpercentile histogram histogram_bin_edges histogram2d histogramdd bincount digitize cov
    corrcoef average trapezoid gradient interp convolve correlate
""".split()


def statistics(case: Case) -> None:
    name = case.pick(STATISTICS)
    make = MAKERS.get(name, quantiles)
    case.loose = 10
    make(case, name)


METHODS = """
    linear linear lower higher midpoint nearest hazen weibull median_unbiased normal_unbiased inverted_cdf averaged_inverted_cdf
    closest_observation interpolated_inverted_cdf
""".split()


def quantiles(case: Case, name: str) -> None:
    a = case.array(BOOLS + REAL if case.chance(0.2) else REAL)
    if case.of(a).dtype.kind == "f":
        # Beside an infinity NumPy finds NaN, where a quantile is known.
        case.arrays[a] = np.nan_to_num(case.of(a), nan=np.nan, posinf=9, neginf=-9)
    if case.of(a).dtype == "f2":
        # NumPy rounds distances of halves.
        case.loose = 4e8
    scale = 100 if "percentile" in name else 1
    levels = [case.pick([0, 0.25, 0.5, 0.3, 0.9, 1.0]) * scale for _ in range(case.int(1, 3))]
    methods = METHODS
    call(case, name, a, levels if case.chance(0.5) else levels[0], axis=sometimes(case, case.axes(case.of(a).ndim), 0.7),
         method=sometimes(case, repr(case.pick(methods)), 0.6), keepdims=sometimes(case, True, 0.3))


def bins_of(case: Case) -> Any:
    return case.pick([case.int(1, 6), [-5, 0, 1, 4], [-2.5, 2.5], case.int(1, 6)])


def histograms(case: Case, name: str) -> None:
    a = case.array(REAL, finite=True, low=-9, high=9)
    values = case.of(a)
    if name in ("histogram", "histogram_bin_edges"):
        weights = case.array(WHOLE + ["f4", "f8"], shape=values.shape, finite=True, low=0, high=5)
        options = {} if name != "histogram" else {"density": sometimes(case, True, 0.3), "weights": sometimes(case, weights, 0.3)}
        call(case, name, a, bins_of(case), range=sometimes(case, (-4, 5), 0.3), **options)
        return
    points = [case.array(["f8", "i4"], shape=(9,), finite=True, low=-9, high=9) for _ in range(2)]
    if name == "histogram2d":
        call(case, name, *points, bins=sometimes(case, case.pick([3, (2, 3), [[-5, 0, 5], [-9, 9]]])), density=sometimes(case, True, 0.3))
    else:
        case.line(f"s = xp.stack([{', '.join(points)}], axis=1)")
        call(case, name, "s", bins=case.pick([3, (2, 4)]), density=sometimes(case, True, 0.3))


def counts(case: Case, name: str) -> None:
    if name == "bincount":
        a = case.array(WHOLE + BOOLS, shape=case.shape(1, 1), low=0, high=9)
        weights = case.array(REAL, shape=case.of(a).shape, finite=True)
        call(case, name, a, weights=sometimes(case, weights), minlength=sometimes(case, case.int(0, 12)))
    else:
        edges = sorted(case.pick([[0, 1, 2], [-3.5, 0.0, 4], [1], [0, 0, 3]]), reverse=case.chance(0.3))
        call(case, name, case.array(REAL), edges, right=sometimes(case, True))


def covariances(case: Case, name: str) -> None:
    a = case.array(NUMBERS, shape=case.shape(1, 2, 1), finite=True, low=-9, high=9)
    shape = case.of(a).shape
    options: dict[str, Any] = {"rowvar": sometimes(case, False, 0.3)}
    if name == "cov":
        n = shape[0] if options["rowvar"] is False and len(shape) == 2 else shape[-1]
        options |= {"bias": sometimes(case, True, 0.3), "ddof": sometimes(case, case.int(0, 2), 0.3)}
        options["fweights"] = sometimes(case, case.array(["i8"], shape=(n,), low=1, high=4), 0.2)
        options["aweights"] = sometimes(case, case.array(["f8"], shape=(n,), finite=True, low=1, high=4), 0.2)
    b = case.array(REAL, shape=shape, finite=True)
    call(case, name, a, y=sometimes(case, b, 0.3), **options)


def averages(case: Case, name: str) -> None:
    a = case.array(NUMBERS, finite=True)
    values = case.of(a)
    axis = case.axes(values.ndim)
    shape = values.shape
    if isinstance(axis, int) and -values.ndim <= axis < values.ndim and case.chance(0.5):
        shape = (shape[axis],)
    weights = case.array(REAL, shape=shape, finite=True, low=1, high=5)
    call(case, name, a, axis=axis, weights=sometimes(case, weights, 0.7), returned=sometimes(case, True, 0.3),
         keepdims=sometimes(case, True, 0.2))


def integrals(case: Case, name: str) -> None:
    a = case.array(REAL + COMPLEX, shape=case.shape(1, 3, 1), finite=True)
    axis = case.int(0, case.of(a).ndim - 1)
    n = case.of(a).shape[axis]
    places = case.add(np.cumsum(case.numbers.integers(1, 4, n)).astype(case.pick(["f8", "i4"])))
    if name == "trapezoid":
        call(case, name, a, x=sometimes(case, places), dx=sometimes(case, 0.5, 0.3), axis=axis)
    else:
        spacing = case.pick([[], [2], [0.5], [places]])
        call(case, name, a, *spacing, axis=axis if spacing or case.chance(0.5) else ..., edge_order=sometimes(case, 2, 0.3))


def lines(case: Case, name: str) -> None:
    if name == "interp":
        xp = case.add(np.cumsum(case.numbers.integers(1, 4, 5)) * 1.0)
        fp = case.array(["f8", "i4", "c16"], shape=(5,), finite=True)
        call(case, name, case.array(REAL, low=-2, high=18), xp, fp, left=sometimes(case, 7, 0.3), right=sometimes(case, -7, 0.3),
             period=sometimes(case, 20, 0.15))
    else:
        a, b = (case.array(NUMBERS, shape=(case.int(1, 8),), finite=True, low=-5, high=5) for _ in range(2))
        call(case, name, a, b, mode=sometimes(case, repr(case.pick(["full", "same", "valid"])), 0.8))


#: Who makes programs of a name; all others are quantiles.
MAKERS = {
    "histogram": histograms, "histogram_bin_edges": histograms, "histogram2d": histograms, "histogramdd": histograms,
    "bincount": counts, "digitize": counts, "cov": covariances, "corrcoef": covariances, "average": averages,
    "trapezoid": integrals, "gradient": integrals, "interp": lines, "convolve": lines, "correlate": lines,
}
