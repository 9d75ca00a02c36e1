"""Rare against popular tokens: where they lie and how long they are (definitions, section 5)."""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.quantities import frequency as q
from embgeo.core.values import Cell, Column, Scalar, Table, Value
from embgeo.metrics.base import NO_ROWS, Context, Seen
from embgeo.metrics.popularity import BINS, Popularity, popularity, why_absent
from embgeo.numerics.ranking import spearman
from embgeo.stats import GroupMoments, Moments, Norms
from embgeo.stats.statistic import Statistic

FAMILY = "frequency"


def absent(context: Context) -> str:
    return why_absent(context)


def first(context: Context) -> list[Statistic]:
    return [Norms(), Moments(context.d, of="unit")]


def second(context: Context, seen: Seen) -> list[Statistic]:
    if why_absent(context):
        return []
    known = popularity(context)
    return [
        GroupMoments("class", known.labels(context), 2, context.d, of="rows"),
        GroupMoments("bin", known.bins(context), BINS, context.d, of="unit"),
    ]


def rows_read(context: Context, seen: Seen) -> IntArray:
    return NO_ROWS


def compute(context: Context, seen: Seen) -> list[Value]:
    known = popularity(context)
    norms = seen.find(Norms, "Norms").values()
    classes = seen.find(GroupMoments, ("group moments", "class", "rows"))
    bins = seen.find(GroupMoments, ("group moments", "bin", "unit"))
    return [
        *centroids(classes, known),
        *norm_values(norms, known),
        by_bin(context, seen.unit_moments.mean, norms, bins, known),
        frequency_column(context, known),
    ]


def centroids(classes: GroupMoments, known: Popularity) -> list[Scalar]:
    """Cosine and distance of the class means, beside what two random classes of these sizes give.

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
    # Rounding of the means alone leaves about 1e-32 of their squares.
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


def norm_values(norms: FloatArray, known: Popularity) -> list[Scalar]:
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


def by_bin(
    context: Context,
    overall: FloatArray,
    norms: FloatArray,
    bins: GroupMoments,
    known: Popularity,
) -> Table:
    length = float(np.linalg.norm(overall))
    label = known.bins(context)[context.kept]
    rows: list[tuple[Cell, ...]] = []
    for number in range(int(label.max()) + 1):
        inside = label == number
        n = float(bins.n[number])
        total = float(np.square(bins.mean[number] * n).sum())
        rows.append(
            (
                number + 1,
                int(n),
                count_range(known.counts[inside], context),
                float(np.median(norms[inside])),
                (total - n) / (n * (n - 1)) if n > 1 else None,
                float(bins.mean[number] @ overall) / length if length > 1e-13 else None,
            )
        )
    columns = (
        "bin",
        "tokens",
        "ranks" if context.frequency_kind == "rank" else "counts",
        "median norm",
        "mean cosine inside",
        "mean cosine to mean direction",
    )
    return Table(q.BY_FREQUENCY_BIN, columns, tuple(rows), note=known.convention)


def count_range(counts: FloatArray, context: Context) -> str:
    low, high = int(counts.min()), int(counts.max())
    if context.frequency_kind == "rank":
        low, high = context.n + 1 - high, context.n + 1 - low
    return f"{low:,}" if low == high else f"{low:,} – {high:,}"


def frequency_column(context: Context, known: Popularity) -> Column:
    if context.frequency_kind == "rank":
        return Column(q.RANK, -known.log_count / np.log(10.0), "log10 rank")
    return Column(q.LOG_COUNT, known.log_count / np.log(10.0), "log10(1 + count)")
