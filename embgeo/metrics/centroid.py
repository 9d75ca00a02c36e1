"""How far the rows are from their mean row, and whether some are far nearer than the others.

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

from embgeo.core.options import Options
from embgeo.core.quantities import clump as q
from embgeo.core.values import Column, Value
from embgeo.metrics.facts import Facts
from embgeo.metrics.row_norms import root_mean_square
from embgeo.metrics.shared import SharedStatistics, row_moments
from embgeo.numerics.excess_mass import LEAST, find_critical_excess, find_modes
from embgeo.stats import DistanceTo
from embgeo.stats.statistic import Statistic

FAMILY = "tokens"
KEY = ("distance to", "mean row")
FEW_ROWS = f"fewer than {LEAST} rows differ from the mean row"
ONE_MODE = "the distances have one mode, their curve has no knee"


def first(facts: Facts, options: Options) -> list[Statistic]:
    return [row_moments(facts, options)]


def second(shared: SharedStatistics) -> list[Statistic]:
    return [DistanceTo("mean row", shared.moments.mean)]


def compute(facts: Facts, shared: SharedStatistics) -> list[Value]:
    distances = shared.find(DistanceTo, KEY).values()
    column = Column(q.CENTROID_DISTANCE, facts.take_listed(distances), "‖w − μ‖")
    # The logarithm of a distance that is rounding is arbitrary.
    apart = distances[distances > facts.rounding * root_mean_square(shared.norms)]
    if len(apart) < LEAST:
        undefined = (q.CENTROID_EXCESS, q.CENTROID_NEAR_ROWS, q.CENTROID_KNEE)
        return [*(one.undefined(FEW_ROWS) for one in undefined), column]
    modes, critical = find_modes(np.log(apart)), find_critical_excess(len(apart))
    excess = q.CENTROID_EXCESS.measured(
        modes.excess,
        reference=critical,
        reference_kind="chance",
        reference_note="what one mode stays below",
    )
    if modes.excess < critical:
        return [
            excess,
            q.CENTROID_NEAR_ROWS.measured(0),
            q.CENTROID_KNEE.undefined(ONE_MODE),
            column,
        ]
    knee = float(np.exp(modes.valley))
    near = int((distances <= knee).sum())
    return [excess, q.CENTROID_NEAR_ROWS.measured(near), q.CENTROID_KNEE.measured(knee), column]
