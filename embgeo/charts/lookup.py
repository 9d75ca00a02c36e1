"""Values of an analysis or a pair, by name."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from embgeo.charts.items import ChartItem, Unrelated
from embgeo.charts.specification import Choices, StyledItems
from embgeo.comparison.pair import Pair
from embgeo.core.arrays import FloatArray
from embgeo.core.quantities import spectrum
from embgeo.core.values import Cell, Histogram, Points, Series, Table
from embgeo.diagnosis.finding import find_scalar
from embgeo.result.analysis import Analysis

NO_FREQUENCIES = "no token frequencies were given to its analysis"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Lookup(Generic[T]):
    """What a chart shows of each item: a value of its analysis, or of its pair.

    `reason` says why an item lacks it.
    """

    find: Callable[[Any], T | None]
    reason: str
    of_pair: bool = False

    def find_in(self, item: ChartItem) -> T | None:
        home = item.pair if self.of_pair else item.analysis
        return None if home is None else self.find(home)

    def refuse(self, item: ChartItem, _choices: Choices) -> str:
        """Explain why the item cannot be shown; empty if it can."""
        if not self.of_pair and item.analysis is None:
            return Unrelated.NO_ANALYSIS
        return self.reason if self.find_in(item) is None else ""

    def collect(self, items: StyledItems) -> list[T]:
        """Collect the values of items that were not refused."""
        return [value for item, _ in items if (value := self.find_in(item)) is not None]


def find_series(of: Analysis | Pair, name: str) -> Series | None:
    """Find a series that is not empty."""
    return next((s for s in of.series if s.name == name and len(s.x) and s.y), None)


def find_singular_values(analysis: Analysis, name: str) -> Series | None:
    """Find the series up to the numerical rank: values beyond it are rounding errors."""
    curve, rank = find_series(analysis, name), find_scalar(analysis, spectrum.NUMERICAL_RANK)
    if curve is None or not rank:
        return curve
    kept = int(rank)
    return replace(curve, x=curve.x[:kept], y={label: y[:kept] for label, y in curve.y.items()})


def find_histogram(analysis: Analysis, name: str) -> Histogram | None:
    """Find a histogram in which something was counted."""
    return next((h for h in analysis.histograms if h.name == name and h.counts.sum()), None)


def find_points(analysis: Analysis, name: str) -> Points | None:
    """Find a projection that is not empty."""
    return next((p for p in analysis.points if p.name == name and len(p.xy)), None)


def find_table(analysis: Analysis, name: str) -> Table | None:
    return next((t for t in analysis.tables if t.name == name and t.rows), None)


def column_of(table: Table, name: str) -> FloatArray:
    """Return one column of numbers, NaN in empty cells."""
    index = table.find_column(name)
    cells = (row[index] for row in table.rows)
    return np.array([float(c) if isinstance(c, int | float) else np.nan for c in cells])


@dataclass(frozen=True, slots=True)
class Frequencies:
    """For each kept token, how often it occurs, or its rank from 1, the most frequent."""

    kind: Literal["count", "rank"]
    values: FloatArray

    @property
    def positive(self) -> FloatArray:
        """1 + count, or the rank: a positive number, which a logarithmic axis can show."""
        return self.values + (self.kind == "count")

    @property
    def positive_label(self) -> str:
        return "1 + count" if self.kind == "count" else "frequency rank"


def find_frequencies(analysis: Analysis) -> Frequencies | None:
    """Find the frequencies of the kept tokens, if the analysis has any."""
    stored = analysis.provenance.get("frequency")
    if analysis.counts is None or not isinstance(stored, dict):
        return None
    if stored.get("kind") == "rank":
        # Ranks are kept as falling numbers, so that larger is more frequent.
        return Frequencies("rank", float(analysis.provenance["n"]) + 1.0 - analysis.counts)
    return Frequencies("count", analysis.counts)


FREQUENCIES = Lookup(find_frequencies, NO_FREQUENCIES)


def make_alike(known: Sequence[Frequencies]) -> list[Frequencies]:
    """Make all as counts, or all as ranks if some are ranks."""
    if all(f.kind == "count" for f in known):
        return list(known)
    return [f if f.kind == "rank" else Frequencies("rank", rank_counts(f.values)) for f in known]


def rank_counts(counts: FloatArray) -> FloatArray:
    """Return ranks from 1, the largest count; ties in the order of the rows."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(-counts, method="ordinal"), dtype=np.float64)


def list_tokens(analysis: Analysis) -> Iterator[tuple[Cell, ...]]:
    """Yield for each kept row: row number, token, class, count and rank, None if not known."""
    known = find_frequencies(analysis)
    for i, row in enumerate(analysis.rows.tolist()):
        token = None if analysis.tokens is None else analysis.tokens[i]
        kind = None
        if analysis.popular is not None:
            kind = "frequent" if analysis.popular[i] else "rare"
        value = None if known is None else float(known.values[i])
        is_count = known is not None and known.kind == "count"
        yield (row, token, kind, value if is_count else None, None if is_count else value)
