"""Nothing is computed before it is asked for."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw

X = np.arange(12.0).reshape(3, 4)

#: One call of every kind of function whose shape does not depend on elements.
CALLS = {
    "reductions": lambda x: (tw.sum(x, where=x > 2), tw.max(x, initial=3), tw.nanvar(x), tw.nanargmax(x), tw.nancumsum(x)),
    "statistics": lambda x: (tw.average(x, weights=x), tw.cov(x), tw.corrcoef(x), tw.gradient(x), tw.trapezoid(x), tw.ptp(x)),
    "histograms": lambda x: (tw.histogram(x, 5), tw.histogram2d(x[0], x[1]), tw.histogram(x, x[0]), tw.digitize(x, x[0])),
    "joining": lambda x: (tw.split(x, 3), tw.block([[x, x]]), tw.insert(x, [0, 2], 1.0), tw.delete(x, [1, 2]), tw.diag(x[0])),
    "padding": lambda x: [tw.pad(x, 2, mode) for mode in ("edge", "mean", "linear_ramp", "reflect", "wrap")],
    "products": lambda x: (tw.kron(x, x), tw.dot(x, x.T), tw.polyval(x[0], x), tw.cross(x[:, :3], x[:, 1:])),
    "signals": lambda x: (tw.convolve(x[0], x[1]), tw.interp(x, x[0], x[1]), tw.sliding_window_view(x, (2, 2)).mean((-1, -2))),
    "choosing": lambda x: (tw.select([x > 1], [x]), tw.choose(tw.astype(x, int), [x, x]), tw.unravel_index(tw.arange(3), (3, 4))),
    "searching": lambda x: (tw.searchsorted(x[0], x), tw.isin(x, x[0]), tw.lexsort((x[0], x[1]))),
    "elements": lambda x: (tw.gcd(tw.astype(x, int), 4), tw.frexp(x), tw.nan_to_num(x), tw.heaviside(x, 0.5)),
    "questions": lambda x: (tw.allclose(x, x), tw.array_equal(x, x), tw.array_equiv(x, x[0])),
    "NumPy's": lambda x: (np.ptp(x, 0), np.nanmean(x), np.histogram(x), np.pad(x, 1), np.add.reduce(x), np.multiply.outer(x, x)),
    "random": lambda x: (tw.random.default_rng(1).permutation(x), tw.random.default_rng(1).choice(x[0], 3, p=x[0])),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_calls_compute_nothing(name):
    with tw.Session(threads=1) as session:
        CALLS[name](tw.asarray(X))
        assert session.report()["tasks"] == 0


def test_shapes_that_depend_on_elements_are_computed():
    with tw.Session(threads=1) as session:
        assert tw.unique(tw.asarray(X)).shape == (12,)
        assert session.report()["tasks"] > 0
