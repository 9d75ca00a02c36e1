"""Rare and frequent tokens: where their rows lie and how long they are (definitions, section 5).

Examples
--------
>>> import embgeo
>>> W = np.random.default_rng(0).standard_normal((500, 8))
>>> counts = np.arange(500, 0, -1)
>>> W[:100] += 1.0  # the most frequent fifth
>>> found = embgeo.analyze(W, counts=counts, sections=["frequency"], reference=False)
>>> for name in ("norm_ratio", "norm_spearman"):
...     print(name, round(found[f"frequency.{name}"].value, 2))
norm_ratio 1.4
norm_spearman 0.31
"""

from dataclasses import dataclass

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, Mask
from embgeo.core.quantities import frequency as q
from embgeo.core.values import Cell, Column, Scalar, Table, Value
from embgeo.metrics.by_half import ByHalf, add_errors
from embgeo.metrics.facts import Facts
from embgeo.metrics.family import Family, Measurement
from embgeo.metrics.shared import norms, unit_moments
from embgeo.numerics.halves import HALVES, hash_numbers
from embgeo.numerics.scores import spearman
from embgeo.numerics.spectra import average_cosine
from embgeo.stats import GroupSums, WeightedSum
from embgeo.stats.statistic import Statistic

#: Bins of equal token counts, by falling frequency (definitions, section 5).
BINS = 10
#: The edge between the classes is moved by the smaller class divided by this, to see its influence.
EDGE_PART = 4
#: There are no classes if tokens of the count at the edge are more than this share of the smaller.
MOST_TIED = 0.25

#: The weighted sum of unit rows, by counts.
COUNTS = "counts"
WITH_ERRORS = (q.NORM_RATIO, q.NORM_SPEARMAN)


@dataclass(frozen=True, slots=True)
class Popularity:
    """The M kept rows by falling frequency; rows of equal counts in an order drawn by a hash."""

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
        """Return 1 popular, 0 rare, −1 left out; shape (N,)."""
        labels = np.full(facts.n, -1, dtype=np.int64)
        labels[facts.kept] = self.popular
        return labels

    def bins(self, facts: Facts) -> IntArray:
        """Return the frequency bin of each of the N rows, 0 the most frequent, −1 left out."""
        labels = np.full(facts.n, -1, dtype=np.int64)
        m = len(self.order)
        labels[facts.kept[self.order]] = np.arange(m) * min(BINS, m) // m
        return labels


def explain_absence(facts: Facts) -> str:
    """Explain why rare and frequent tokens are not known; empty if they are."""
    if facts.frequency is None:
        return (
            "no token frequencies (embgeo analyze --counts FILE, --corpus FILE, or --rank-order if "
            "the rows are sorted by frequency)"
        )
    if facts.m and facts.m < 5:
        return f"{facts.m} rows are too few to call some frequent and some rare"
    if facts.m and np.ptp(facts.frequency.counts[facts.kept]) == 0:
        return "all kept tokens have the same count, none is more frequent than another"
    return ""


def explain_no_classes(facts: Facts) -> str:
    """Explain why no token is called frequent or rare; empty if some are.

    Where equal counts fill much of a class, the share decides what no count tells.
    """
    reason = explain_absence(facts)
    if reason or facts.frequency is None or not facts.m:
        return reason
    counts = np.sort(facts.frequency.counts[facts.kept])[::-1]
    size = count_share(facts, facts.m)
    tied = count_tied(counts, size)
    if not tied:
        return ""
    if counts[size] == 0:
        return (
            f"only {np.count_nonzero(counts):,} of {facts.m:,} tokens occur in the counted text: "
            "count a larger one, or take a smaller share (embgeo analyze --popular-share)"
        )
    if tied > MOST_TIED * min(size, facts.m - size):
        return (
            f"{tied:,} tokens share the count {counts[size]:,.0f} at the edge between frequent and "
            "rare ones: count a larger text, or take another share (embgeo analyze --popular-share)"
        )
    return ""


def count_share(facts: Facts, rows: int) -> int:
    """Return the popular share of a number of rows, as a number of rows."""
    return min(max(1, round(facts.options.popular_share * rows)), rows - 1)


def count_tied(falling: FloatArray, size: int) -> int:
    """Return how many tokens share the count on both sides of an edge below `size`; 0 for none."""
    edge = falling[size]
    return int(np.count_nonzero(falling == edge)) if falling[size - 1] == edge else 0


def count_popular(facts: Facts, falling: FloatArray) -> int:
    """Return how many rows are frequent: about the share, tokens of equal counts all or none."""
    size = count_share(facts, len(falling))
    tied = count_tied(falling, size)
    if not tied:
        return size
    above = int(np.count_nonzero(falling > falling[size]))
    below = above + tied
    nearer_above = size - above < below - size
    return above if below == len(falling) or (above and nearer_above) else below


def rank_by_frequency(facts: Facts) -> Popularity:
    """Call only if `explain_absence` gives no reason."""
    if facts.frequency is None:
        raise ValueError("no counts")
    counts = facts.frequency.counts[facts.kept]
    order = np.lexsort((hash_numbers(facts.kept), -counts))
    m = len(order)
    size, share = count_popular(facts, counts[order]), facts.options.popular_share
    popular = np.zeros(m, dtype=bool)
    popular[order[:size]] = True
    tied = count_tied(counts[order], count_share(facts, m))
    if facts.is_ranked:
        rank = np.empty(m)
        rank[order] = np.arange(1, m + 1)
        log_count = -np.log(rank)
    else:
        log_count = np.log1p(counts)
    convention = (
        f"frequent: the {100 * share:g}% most frequent ({size:,} of {m:,} tokens), by "
        f"{facts.frequency.source}"
    )
    if tied:
        convention += f"; the {tied:,} tokens of the count at the edge are in one class"
    return Popularity(order, popular, counts, log_count, convention)


def absent(m: Measurement) -> str:
    return explain_absence(m.facts)


def second(m: Measurement) -> list[Statistic]:
    facts, known = m.facts, rank_by_frequency(m.facts)
    weights = find_weights(facts)
    weighted = [] if weights is None else [WeightedSum(COUNTS, weights, facts.d)]
    return [
        GroupSums("bin", known.bins(facts), BINS, facts.d),
        *weighted,
    ]


def compute(m: Measurement) -> list[Value]:
    facts, shared = m.facts, m.shared
    known = rank_by_frequency(facts)
    bins = shared.find(GroupSums, "bin")
    compared = compare_norms(shared.norms, known, explain_no_classes(facts))
    return [
        *add_errors(m, compared, WITH_ERRORS, lambda: measure_halves(facts, shared.norms, known)),
        tabulate_bins(facts, shared.unit_moments.mean, shared.norms, bins, known),
        make_frequency_column(facts, known),
        measure_weighted(m),
    ]


def compare_norms(norms: FloatArray, known: Popularity, no_classes: str) -> list[Scalar]:
    if no_classes:
        values = [q.NORM_RATIO.undefined(no_classes, convention=known.convention)]
    else:
        with np.errstate(over="ignore"):  # an infinite ratio is reported as undefined
            ratio = float(np.median(norms[known.popular]) / np.median(norms[~known.popular]))
        values = [
            q.NORM_RATIO.measured(
                ratio, convention=known.convention, reference=1.0, reference_note="no difference"
            )
        ]
    if np.ptp(norms) <= 1e-12 * norms.max():
        values.append(q.NORM_SPEARMAN.undefined("all rows have the same norm"))
    else:
        values.append(
            q.NORM_SPEARMAN.measured(
                float(spearman(norms, known.counts)),
                convention=known.convention,
                reference=0.0,
                reference_note="no relation",
            )
        )
    return values


def measure_halves(facts: Facts, norms: FloatArray, known: Popularity) -> ByHalf:
    """Measure the norms of each half, with classes of the half."""
    groups, ratios, relations = facts.kept_groups, [], []
    if groups is None:
        return {}
    for half in HALVES:
        inside = half[groups]
        order = known.order[inside[known.order]]
        size = count_popular(facts, known.counts[order])
        with np.errstate(over="ignore", invalid="ignore"):
            ratios.append(np.median(norms[order[:size]]) / np.median(norms[order[size:]]))
            relations.append(spearman(norms[inside], known.counts[inside]))
    return {q.NORM_RATIO: np.array(ratios), q.NORM_SPEARMAN: np.array(relations)}


def tabulate_bins(
    facts: Facts, overall: FloatArray, norms: FloatArray, bins: GroupSums, known: Popularity
) -> Table:
    length = float(np.linalg.norm(overall))
    label = known.bins(facts)[facts.kept]
    rows: list[tuple[Cell, ...]] = []
    for number in range(int(label.max()) + 1):
        inside = label == number
        n = float(bins.n[number])
        rows.append(
            (
                number + 1,
                int(n),
                format_count_range(facts, known.counts[inside]),
                float(np.median(norms[inside])),
                average_cosine(bins.sums[number], n) if n > 1 else None,
                float(bins.sums[number] @ overall) / (n * length) if length > 1e-13 else None,
            )
        )
    columns = (
        "bin",
        "tokens",
        "ranks" if facts.is_ranked else "counts",
        "median norm",
        "mean cosine inside",
        "mean cosine to mean direction",
    )
    return Table(q.BY_FREQUENCY_BIN, columns, tuple(rows), note=known.convention)


def format_count_range(facts: Facts, counts: FloatArray) -> str:
    low, high = int(counts.min()), int(counts.max())
    if facts.is_ranked:
        low, high = facts.n + 1 - high, facts.n + 1 - low
    return f"{low:,}" if low == high else f"{low:,} – {high:,}"


def make_frequency_column(facts: Facts, known: Popularity) -> Column:
    decades = facts.take_listed(known.log_count) / np.log(10.0)
    if facts.is_ranked:
        return Column(q.RANK, -decades, "log10 rank")
    return Column(q.LOG_COUNT, decades, "log10(1 + count)")


def find_weights(facts: Facts) -> FloatArray | None:
    """Find the share of each of the N tokens in the text, over kept rows; None if unknown."""
    counts = facts.counts
    if counts is None or not np.count_nonzero(counts[facts.kept]) > 1:
        return None
    weights = np.zeros(facts.n)
    weights[facts.kept] = counts[facts.kept]
    return np.asarray(weights / weights.sum())


def measure_weighted(m: Measurement) -> Scalar:
    """Measure the cone where tokens count as often as they occur (definitions, section 11)."""
    weights = find_weights(m.facts)
    if weights is None:
        return q.WEIGHTED_MEAN_COSINE.undefined(
            "only the order of the frequencies is known"
            if m.facts.is_ranked
            else "fewer than two tokens have a count above 0"
        )
    total, own = m.shared.find(WeightedSum, COUNTS).total, float(weights @ weights)
    return q.WEIGHTED_MEAN_COSINE.measured(
        (float(total @ total) - own) / (1.0 - own),
        convention="over ordered pairs of different tokens, weight p_i·p_j",
        reference=0.0,
        reference_kind="isotropic",
    )


FAMILY = Family(
    "frequency",
    compute,
    first=(norms, unit_moments),
    second=second,
    absent=absent,
)
