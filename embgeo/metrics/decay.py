"""Fits of the decays of spectrum control to the singular values (Wang et al. 2020, §4.2).

Examples
--------
>>> import embgeo
>>> W = np.diag(np.arange(1.0, 9.0) ** -0.5)
>>> fits = embgeo.analyze(W, sections=["spectrum"], reference=False)["spectrum.decay"]
>>> name, c1, _, gamma, *_ = fits.rows[1]
>>> name, round(c1, 6), round(gamma, 6)
('polynomial c₁·k^(−γ)', 1.0, 0.5)
"""

import numpy as np

from embgeo.core.quantities import spectrum as q
from embgeo.core.values import Cell, Series, Table, Value
from embgeo.metrics.family import Family, Measurement
from embgeo.numerics.decay_fit import LARGEST_C2, fit_exponential, fit_polynomial

DECAY_COLUMNS = ("prior", "c1", "c2", "gamma", "residual", "better")


def compute(m: Measurement) -> list[Value]:
    sigma = m.shared.singular_values("uncentered")
    normalized = sigma / sigma[0]
    if len(normalized) < 4:
        note = f"not defined: three parameters cannot be fitted to {len(normalized)} values"
        return [Table(q.DECAY, DECAY_COLUMNS, (), note=note)]
    fits = {
        "exponential c₁·exp(−c₂·k^γ)": fit_exponential(normalized),
        "polynomial c₁·k^(−γ)": fit_polynomial(normalized),
    }
    better = min(fits, key=lambda name: fits[name].residual)
    note = f"uncentered singular values, k from 1; c₂ ≤ {LARGEST_C2:g}"
    rows: list[tuple[Cell, ...]] = []
    for name, fit in fits.items():
        parameters: tuple[Cell, ...] = (fit.c1, fit.c2, fit.gamma)
        if fit.bound:
            parameters = (None, None, None)
            note += f"; {name.split()[0]}: not identifiable, the best fit lies at {fit.bound}"
        rows.append((name, *parameters, fit.residual, "yes" if name == better else ""))
    k = np.arange(1, len(normalized) + 1, dtype=np.float64)
    curves = {name: fit.curve for name, fit in fits.items()}
    return [
        Table(q.DECAY, DECAY_COLUMNS, tuple(rows), note=note),
        Series(q.DECAY_FIT, k, {"σ_k/σ₁": normalized, **curves}, "index k", "σ_k / σ₁", log_y=True),
    ]


FAMILY = Family("spectrum", compute)
