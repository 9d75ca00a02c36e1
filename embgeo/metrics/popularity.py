"""Which tokens are popular and which are rare."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, Mask
from embgeo.metrics.facts import Facts

#: Bins of equal token counts, by falling frequency (definitions, section 5).
BINS = 10
#: The edge between the classes is moved by the smaller class divided by this, to see its influence.
EDGE_PART = 4


@dataclass(frozen=True, slots=True)
class Popularity:
    """The M kept rows by falling frequency; rows of equal counts in the order of their numbers."""

    #: Positions among the kept rows, the most frequent first.
    order: IntArray
    popular: Mask
    counts: FloatArray
    #: ln(1 + count), or −ln(rank) if only the order is known.
    log_count: FloatArray
    convention: str

    @property
    def rank(self) -> IntArray:
        """Rank of each kept row by falling frequency, from 0."""
        rank = np.empty(len(self.order), dtype=np.int64)
        rank[self.order] = np.arange(len(self.order))
        return rank

    @property
    def edge_step(self) -> int:
        """How many tokens change class if the edge is moved; 0 if a class is small."""
        edge = int(self.popular.sum())
        return min(edge, len(self.order) - edge) // EDGE_PART

    def labels(self, facts: Facts) -> IntArray:
        """1 popular, 0 rare, −1 left out; shape (N,)."""
        labels = np.full(facts.n, -1, dtype=np.int64)
        labels[facts.kept] = self.popular
        return labels

    def bins(self, facts: Facts) -> IntArray:
        """Frequency bin of each of the N rows, 0 the most frequent, −1 left out."""
        labels = np.full(facts.n, -1, dtype=np.int64)
        m = len(self.order)
        labels[facts.kept[self.order]] = np.arange(m) * min(BINS, m) // m
        return labels


def explain_absence(facts: Facts) -> str:
    """Why rare and popular tokens are not known; empty if they are."""
    if facts.frequency is None:
        return (
            "no token frequencies: give --counts FILE, --corpus FILE, or --rank-order if the rows "
            "are sorted by frequency"
        )
    if facts.m and facts.m < 5:
        return f"{facts.m} rows are too few to call some popular and some rare"
    if facts.m and np.ptp(facts.frequency.counts[facts.kept]) == 0:
        return "all kept tokens have the same count, none is more popular than another"
    return ""


def rank_by_frequency(facts: Facts) -> Popularity:
    """Call only if `explain_absence` gives no reason."""
    if facts.frequency is None:
        raise ValueError("no counts")
    counts = facts.frequency.counts[facts.kept]
    order = np.lexsort((facts.kept, -counts))
    m = len(order)
    share = facts.options.popular_share
    size = min(max(1, round(share * m)), m - 1)
    popular = np.zeros(m, dtype=bool)
    popular[order[:size]] = True
    edge = counts[order[size - 1]]
    tied = int(np.count_nonzero(counts == edge)) if counts[order[size]] == edge else 0
    if facts.is_ranked:
        rank = np.empty(m)
        rank[order] = np.arange(1, m + 1)
        log_count = -np.log(rank)
    else:
        log_count = np.log1p(counts)
    convention = (
        f"popular: the {100 * share:g} % most frequent ({size:,} of {m:,} tokens), by "
        f"{facts.frequency.source}"
    )
    if tied:
        convention += f"; {tied:,} tokens share the count at the edge, lower row numbers first"
    return Popularity(order, popular, counts, log_count, convention)
