"""Norms and damage of the rows of the vocabulary, in the input and the output matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, Mask
from embgeo.core.special import RowState
from embgeo.metrics.facts import NO_ROWS, Facts
from embgeo.metrics.shared import SharedStatistics
from embgeo.numerics.norm_gap import find_norm_gap, find_norm_limit
from embgeo.stats import OutputNorms


@dataclass(frozen=True, slots=True)
class Side:
    """The rows of the vocabulary in one matrix, ascending, with their norms."""

    rows: IntArray
    norms: FloatArray
    damaged: Mask

    @property
    def healthy_norms(self) -> FloatArray:
        return self.norms[~self.damaged]

    @property
    def known_norms(self) -> FloatArray:
        """Finite norms."""
        return self.norms[np.isfinite(self.norms)]

    @property
    def decades(self) -> float | None:
        """Decades between damaged and other norms, or the widest gap if no row is damaged.

        Zero norms, infinitely many decades away, do not count. None without a gap.
        """
        small = self.norms[self.damaged & np.isfinite(self.norms) & (self.norms > 0)]
        if len(small) and len(self.healthy_norms):
            return float(np.log10(self.healthy_norms.min()) - np.log10(small.max()))
        gap = find_norm_gap(self.healthy_norms)
        return None if gap is None else gap.decades

    def state(self, at: int) -> RowState:
        """The state of the row at a position, by its norm."""
        if not self.damaged[at]:
            return "healthy"
        if not np.isfinite(self.norms[at]):
            return "non-finite"
        return "damaged" if self.norms[at] else "zero"

    def finite_norm(self, at: int) -> float | None:
        """The norm at a position; None if it is not finite."""
        norm = float(self.norms[at])
        return norm if np.isfinite(norm) else None

    def rank(self, at: int) -> float | None:
        """Percentile of the norm at a position among finite norms; None if it is not finite."""
        norm = self.finite_norm(at)
        return None if norm is None else 100.0 * float((self.known_norms <= norm).mean())


def find_input_side(facts: Facts, shared: SharedStatistics) -> Side:
    """The rows of the embedding itself."""
    rows = facts.vocabulary
    norms, damaged = np.full(len(rows), np.nan), np.ones(len(rows), dtype=bool)
    kept = np.searchsorted(rows, facts.kept)
    norms[kept], damaged[kept] = shared.norms, False
    norms[np.searchsorted(rows, facts.zero)] = 0.0
    norms[np.searchsorted(rows, facts.small)] = facts.small_norms
    return Side(rows, norms, damaged)


def find_output_side(facts: Facts, shared: SharedStatistics) -> Side | None:
    """The rows of the output matrix; None if the model is tied or has none."""
    found = shared.get(OutputNorms)
    if found is None:
        return None
    rows = facts.vocabulary
    norms = np.asarray(found.values())[np.searchsorted(found.index(), rows)]
    usable = np.isfinite(norms) & (norms > 0)
    limit = find_norm_limit(norms, facts.options.min_norm)
    return Side(rows, norms, ~usable | (norms < limit))


def find_dead_output_rows(facts: Facts, shared: SharedStatistics) -> IntArray:
    """Kept rows whose output row is damaged, but neither zero nor non-finite."""
    output = find_output_side(facts, shared)
    if output is None:
        return NO_ROWS
    small = output.damaged & np.isfinite(output.norms) & (output.norms > 0)
    return np.intersect1d(output.rows[small], facts.kept)
