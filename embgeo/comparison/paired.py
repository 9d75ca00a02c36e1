"""Errors of differences over tokens, paired row by row for shared tokens.

The deviation of a scalar from its population value is a sum of contributions of rows
(:class:`embgeo.core.values.Influence`). A shared token moves both scalars; the variance of their
difference is the sum of squares of the contributions that do not cancel. For the area under the
ROC curve of the probe, this is the paired test of DeLong, DeLong & Clarke-Pearson (1988).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from embgeo.comparison.matching import Matching
from embgeo.core.arrays import FloatArray
from embgeo.core.quantities import isotropy
from embgeo.core.values import Influence, Scalar
from embgeo.result.analysis import Analysis

INDEPENDENT = "errors of both sides added in squares, as if independent"
PAIRED = "paired, token by token"


@dataclass(frozen=True, slots=True)
class PairedError:
    """The standard error over tokens of a difference, and how it was computed."""

    standard_error: float
    note: str


def population_error(
    old: Scalar, new: Scalar, analyses: tuple[Analysis, Analysis], matching: Matching | None
) -> PairedError | None:
    """Standard error over tokens of ``new − old``; None if a side has none.

    `analyses` are those of the two scalars, `matching` is that of their rows.
    """
    before, after = old.population_error, new.population_error
    if before is None or after is None:
        return None
    known = float(np.hypot(before, after))
    first, second = (a.influence(old.name) for a in analyses)
    if (
        first is None
        or second is None
        or matching is None
        or matching.by is None
        or not have_same_choices(old, analyses)
    ):
        return PairedError(known, INDEPENDENT)
    sizes = (len(analyses[0].rows), len(analyses[1].rows))
    values, noise = (
        sum_squares(spread_out(first, part, sizes[0]), spread_out(second, part, sizes[1]), matching)
        for part in ("values", "noise")
    )
    alone = max(values[0] - noise[0], noise[0])
    if not alone:
        return PairedError(known, INDEPENDENT)
    apart = max(values[1] - noise[1], noise[1])
    if old.name == isotropy.Z_RANDOM_STD.name:  # both sides have the same directions
        drawn = np.hypot(old.standard_error or 0.0, new.standard_error or 0.0)
        known = float(np.sqrt(max(known**2 - drawn**2, 0.0)))
    return PairedError(known * float(np.sqrt(apart / alone)), PAIRED)


def have_same_choices(scalar: Scalar, analyses: tuple[Analysis, Analysis]) -> bool:
    """Whether both sides have the same folds or directions, which influences depend on."""
    facts: tuple[str, ...] = ()
    if scalar.name == isotropy.Z_RANDOM_STD.name:
        facts = ("seed", "d")
    elif scalar.error_kind == "population":  # scores out of fold depend on a fit
        facts = ("seed",)
    return all(len({a.provenance.get(fact) for a in analyses}) == 1 for fact in facts)


def sum_squares(a: FloatArray, b: FloatArray, matching: Matching) -> tuple[float, float]:
    """Σa² + Σb², and Σ(a − b)², in which a shared token counts once."""
    alone = float(a @ a + b @ b)
    together = float(a[matching.first] @ b[matching.second])
    return alone, max(0.0, alone - 2.0 * together)


def spread_out(influence: Influence, part: Literal["values", "noise"], rows: int) -> FloatArray:
    """One entry for each kept row, 0 for rows without an influence."""
    found = np.zeros(rows)
    values = getattr(influence, part)
    if values is not None:
        found[slice(None) if influence.rows is None else influence.rows] = values
    return found
