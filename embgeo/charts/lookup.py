"""Values of an analysis by name, where it holds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np

from embgeo.charts.specification import Choices, StyledSubjects
from embgeo.charts.subject import Subject, Unrelated
from embgeo.comparison.pair import Pair
from embgeo.core.arrays import FloatArray
from embgeo.core.quantities import spectrum
from embgeo.core.values import Cell, Histogram, Points, Series, Table
from embgeo.result.analysis import Analysis

NO_FREQUENCIES = "no token frequencies were given to its analysis"

T = TypeVar("T")


def refuse_without(
    find: Callable[[Analysis], object | None], reason: str
) -> Callable[[Subject, Choices], str]:
    """Why a subject lacks what `find` looks up in its analysis, as a function of the subject."""

    def refuse(subject: Subject, _choices: Choices) -> str:
        if subject.analysis is None:
            return Unrelated.NO_ANALYSIS
        return reason if find(subject.analysis) is None else ""

    return refuse


def collect_stored(subjects: StyledSubjects, find: Callable[[Analysis], T | None]) -> list[T]:
    """What `find` looks up in the analysis of each subject, all of which have it."""
    analyses = [subject.analysis for subject, _ in subjects if subject.analysis is not None]
    return [value for analysis in analyses if (value := find(analysis)) is not None]


def find_series(of: Analysis | Pair, name: str) -> Series | None:
    """The series of that name, or None."""
    return next((s for s in of.series if s.name == name and len(s.x) and s.y), None)


def find_singular_values(analysis: Analysis, name: str) -> Series | None:
    """The series of that name up to the numerical rank: what lies beyond is rounding error."""
    curve, rank = find_series(analysis, name), analysis.scalar(spectrum.NUMERICAL_RANK.name)
    if curve is None or rank is None or not rank.value:
        return curve
    kept = int(rank.value)
    return replace(curve, x=curve.x[:kept], y={label: y[:kept] for label, y in curve.y.items()})


def find_histogram(of: Analysis | Pair, name: str) -> Histogram | None:
    """The histogram of that name, or None; None, too, if nothing was counted."""
    return next((h for h in of.histograms if h.name == name and h.counts.sum()), None)


def find_points(analysis: Analysis, name: str) -> Points | None:
    """The projection of that name, or None."""
    return next((p for p in analysis.points if p.name == name and len(p.xy)), None)


def find_table(analysis: Analysis, name: str) -> Table | None:
    """The table of that name, or None."""
    return next((t for t in analysis.tables if t.name == name and t.rows), None)


def column_of(table: Table, name: str) -> FloatArray:
    """One column of numbers; NaN where a row has none."""
    index = table.columns.index(name)
    cells = (row[index] for row in table.rows)
    return np.array([float(c) if isinstance(c, int | float) else np.nan for c in cells])


@dataclass(frozen=True, slots=True)
class Frequencies:
    """How often each kept token occurs, or its place in the order.

    Attributes
    ----------
    kind : {"count", "rank"}
    values : FloatArray
        Shape (M,): counts, or ranks from 1, the most frequent.
    """

    kind: Literal["count", "rank"]
    values: FloatArray

    @property
    def positive(self) -> FloatArray:
        """1 + count, or the rank: what a logarithmic axis can show of every token."""
        return self.values + (self.kind == "count")

    @property
    def positive_label(self) -> str:
        return "1 + count" if self.kind == "count" else "frequency rank"


def find_frequencies(analysis: Analysis) -> Frequencies | None:
    """The frequencies of the kept tokens, None where the analysis has none."""
    stored = analysis.provenance.get("frequency")
    if analysis.counts is None or not isinstance(stored, dict):
        return None
    if stored.get("kind") == "rank":
        # Ranks are kept as falling numbers, so that larger is more frequent.
        return Frequencies("rank", float(analysis.provenance["n"]) + 1.0 - analysis.counts)
    return Frequencies("count", analysis.counts)


def make_alike(known: Sequence[Frequencies]) -> list[Frequencies]:
    """All as counts, or all as ranks where only the order is known of some."""
    if all(f.kind == "count" for f in known):
        return list(known)
    return [f if f.kind == "rank" else Frequencies("rank", rank_counts(f.values)) for f in known]


def rank_counts(counts: FloatArray) -> FloatArray:
    """1 for the largest count; equal ones in the order of the rows."""
    out = np.empty(len(counts))
    out[np.argsort(-counts, kind="stable")] = np.arange(1, len(counts) + 1)
    return out


def list_tokens(analysis: Analysis) -> Iterator[tuple[Cell, ...]]:
    """For each kept row: row number, token, class, count and rank, None where not known."""
    known = find_frequencies(analysis)
    for i, row in enumerate(analysis.rows.tolist()):
        token = None if analysis.tokens is None else analysis.tokens[i]
        kind = None
        if analysis.popular is not None:
            kind = "popular" if analysis.popular[i] else "rare"
        value = None if known is None else float(known.values[i])
        is_count = known is not None and known.kind == "count"
        yield (row, token, kind, value if is_count else None, None if is_count else value)
