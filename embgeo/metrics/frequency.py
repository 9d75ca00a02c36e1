"""Rare and popular tokens: where their rows lie and how long they are (definitions, section 5).

Examples
--------
>>> import embgeo
>>> W = np.random.default_rng(0).standard_normal((500, 8))
>>> counts = np.arange(500, 0, -1)
>>> W[:100] += 1.0  # the most frequent fifth
>>> found = embgeo.analyze(W, counts=counts, sections=["frequency"], reference=False)
>>> for name in ("centroid_distance", "norm_ratio", "norm_spearman"):
...     print(name, round(found[f"frequency.{name}"].value, 2))
centroid_distance 0.99
norm_ratio 1.4
norm_spearman 0.31
"""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.core.quantities import frequency as q
from embgeo.core.values import Cell, Column, Scalar, Table, Value
from embgeo.metrics.facts import Facts
from embgeo.metrics.popularity import BINS, Popularity, explain_absence, rank_by_frequency
from embgeo.metrics.shared import SharedStatistics
from embgeo.numerics.scores import spearman
from embgeo.numerics.spectra import average_cosine
from embgeo.stats import GroupMoments
from embgeo.stats.statistic import Statistic

FAMILY = "frequency"
FIRST = ("norms", "unit moments")
absent = explain_absence


def second(facts: Facts) -> list[Statistic]:
    known = rank_by_frequency(facts)
    return [
        GroupMoments("class", known.labels(facts), 2, facts.d, of="rows"),
        GroupMoments("bin", known.bins(facts), BINS, facts.d, of="unit"),
    ]


def compute(facts: Facts, shared: SharedStatistics) -> list[Value]:
    known = rank_by_frequency(facts)
    norms = shared.norms
    classes = shared.find(GroupMoments, "class")
    bins = shared.find(GroupMoments, "bin")
    return [
        *compare_centroids(classes, known),
        *compare_norms(norms, known),
        tabulate_bins(facts, shared.unit_moments.mean, norms, bins, known),
        make_frequency_column(facts, known),
    ]


def compare_centroids(classes: GroupMoments, known: Popularity) -> list[Scalar]:
    """Cosine and distance of the class means, compared with random classes of the same sizes.

    Random classes differ by sampling alone: E‖μ_p − μ_r‖² = s²(1/n_p + 1/n_r).
    """
    rare, popular = classes.mean
    chance = "chance: two random classes of these sizes"
    pooled = float(classes.spread.sum()) / (float(classes.n.sum()) - 2.0)
    noise = pooled / classes.n
    lengths = np.linalg.norm(classes.mean, axis=1)
    values: list[Scalar] = []
    if min(lengths) <= 1e-13 * float(np.sqrt(classes.spread.sum())):
        values.append(q.CENTROID_COSINE.undefined("the mean of a class is the origin"))
    else:
        overall = float(np.square(classes.n @ classes.mean / classes.n.sum()).sum())
        common = max(overall - pooled / float(classes.n.sum()), 0.0)
        values.append(
            q.CENTROID_COSINE.measured(
                float(np.clip(rare @ popular / lengths.prod(), -1, 1)),
                convention=known.convention,
                reference=common / float(np.prod(np.sqrt(common + noise))) if common else 0.0,
                reference_note=chance,
            )
        )
    # Rounding of the means leaves about 1e-32 of their squares.
    if pooled <= 1e-28 * float(np.square(lengths).max()):
        reason = "within each class all rows are equal, there is no spread to measure in"
        return [*values, q.CENTROID_DISTANCE.undefined(reason)]
    return [
        *values,
        q.CENTROID_DISTANCE.measured(
            float(np.linalg.norm(popular - rare)) / float(np.sqrt(pooled)),
            convention=f"{known.convention}; spread summed over the coordinates",
            reference=float(np.sqrt(np.sum(1.0 / classes.n))),
            reference_note=chance,
        ),
    ]


def compare_norms(norms: FloatArray, known: Popularity) -> list[Scalar]:
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
                spearman(norms, known.counts),
                convention=known.convention,
                reference=0.0,
                reference_note="no relation",
            )
        )
    return values


def tabulate_bins(
    facts: Facts, overall: FloatArray, norms: FloatArray, bins: GroupMoments, known: Popularity
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
                average_cosine(bins.mean[number] * n, n) if n > 1 else None,
                float(bins.mean[number] @ overall) / length if length > 1e-13 else None,
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
