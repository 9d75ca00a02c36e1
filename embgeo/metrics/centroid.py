"""Distances of the rows to their mean row, and whether some rows are far nearer than others.

Examples
--------
>>> import embgeo
>>> W = np.random.default_rng(0).standard_normal((2000, 32))
>>> W[:150] *= 0.1
>>> found = embgeo.analyze(W, sections=["tokens"], reference=False)
>>> int(found["tokens.centroid_near_rows"].value)
150
"""

from __future__ import annotations

import numpy as np

from embgeo.core.quantities import clump as q
from embgeo.core.values import Column, Value
from embgeo.metrics.facts import Facts
from embgeo.metrics.row_norms import root_mean_square
from embgeo.metrics.shared import SharedStatistics
from embgeo.numerics.excess_mass import LEAST, find_critical_excess, find_modes
from embgeo.stats.statistic import Statistic

FAMILY = "tokens"
FIRST = ("norms", "moments")
FEW_ROWS = f"fewer than {LEAST} rows differ from the mean row"
ONE_MODE = "the distances have one mode, their curve has no knee"


def second(shared: SharedStatistics) -> list[Statistic]:
    return shared.request_mean_distances()


def compute(facts: Facts, shared: SharedStatistics) -> list[Value]:
    distances = shared.mean_distances
    column = Column(q.CENTROID_DISTANCE, facts.take_listed(distances), "‖w − μ‖")
    # The logarithm of a distance below the rounding error is arbitrary.
    apart = distances[distances > facts.rounding * root_mean_square(shared.norms)]
    if len(apart) < LEAST:
        undefined = (q.CENTROID_EXCESS, q.CENTROID_NEAR_ROWS, q.CENTROID_KNEE)
        return [*(one.undefined(FEW_ROWS) for one in undefined), column]
    modes, critical = find_modes(np.log(apart)), find_critical_excess(len(apart))
    excess = q.CENTROID_EXCESS.measured(
        modes.excess, reference=critical, reference_note="what one mode stays below"
    )
    near, knee = 0, q.CENTROID_KNEE.undefined(ONE_MODE)
    if modes.excess >= critical:
        knee = q.CENTROID_KNEE.measured(float(np.exp(modes.valley)))
        near = int((distances <= float(knee)).sum())
    return [excess, q.CENTROID_NEAR_ROWS.measured(near), knee, column]
