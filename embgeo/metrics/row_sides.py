"""Norms and damage of all rows of the vocabulary, on the input and on the output side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, Mask
from embgeo.core.options import Options
from embgeo.core.special import RowState
from embgeo.metrics.facts import NO_ROWS, Facts
from embgeo.metrics.shared import SharedStatistics
from embgeo.numerics.norm_gap import find_norm_gap, find_norm_limit
from embgeo.stats import OutputNorms


@dataclass(frozen=True, slots=True)
class Side:
    """The rows of the vocabulary in one matrix.

    Attributes
    ----------
    rows : int array, shape (V,)
        Ascending.
    norms : float64 array, shape (V,)
        Not finite where an entry is not.
    damaged : bool array, shape (V,)
    """

    rows: IntArray
    norms: FloatArray
    damaged: Mask

    @property
    def healthy_norms(self) -> FloatArray:
        return self.norms[~self.damaged]

    @property
    def known_norms(self) -> FloatArray:
        """Those that are finite."""
        return self.norms[np.isfinite(self.norms)]

    @property
    def decades(self) -> float | None:
        """Between damaged and other norms; where none is small, the widest gap; None without one.

        Zero norms are infinitely many decades away, and do not count.
        """
        small = self.norms[self.damaged & np.isfinite(self.norms) & (self.norms > 0)]
        if len(small) and len(self.healthy_norms):
            return float(np.log10(self.healthy_norms.min()) - np.log10(small.max()))
        gap = find_norm_gap(self.healthy_norms)
        return None if gap is None else gap.decades

    def state(self, at: int) -> RowState:
        """What the norm says of a row, by its position."""
        if not self.damaged[at]:
            return "healthy"
        if not np.isfinite(self.norms[at]):
            return "non-finite"
        return "damaged" if self.norms[at] else "zero"

    def rank(self, at: int) -> float | None:
        """Percentile of a row's norm among all of them; None where it is not finite."""
        norm, known = self.norms[at], self.known_norms
        return 100.0 * float((known <= norm).mean()) if np.isfinite(norm) else None


def find_input_side(facts: Facts, shared: SharedStatistics) -> Side:
    """The rows of the embedding itself."""
    rows = facts.vocabulary
    norms, damaged = np.full(len(rows), np.nan), np.ones(len(rows), dtype=bool)
    kept = np.searchsorted(rows, facts.kept)
    norms[kept], damaged[kept] = shared.norms, False
    norms[np.searchsorted(rows, facts.zero)] = 0.0
    norms[np.searchsorted(rows, facts.small)] = facts.small_norms
    return Side(rows, norms, damaged)


def find_output_side(facts: Facts, options: Options, shared: SharedStatistics) -> Side | None:
    """The rows of the output matrix; None where the model is tied or has none."""
    found = shared.statistics.get("OutputNorms")
    if not isinstance(found, OutputNorms):
        return None
    rows = facts.vocabulary
    norms = np.asarray(found.values())[np.searchsorted(found.index(), rows)]
    usable = np.isfinite(norms) & (norms > 0)
    limit = find_norm_limit(norms, options.damaged_below)
    return Side(rows, norms, ~usable | (norms < limit))


def find_dead_output_rows(facts: Facts, options: Options, shared: SharedStatistics) -> IntArray:
    """Kept rows whose output row is not zero and finite, but damaged; none of a tied model."""
    output = find_output_side(facts, options, shared)
    if output is None:
        return NO_ROWS
    small = output.damaged & np.isfinite(output.norms) & (output.norms > 0)
    return np.intersect1d(output.rows[small], facts.kept)
