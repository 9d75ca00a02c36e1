"""A repair for a terminal: rows before and after, and the difference of new and old model."""

from collections.abc import Iterator

from embgeo.comparison.comparison import Comparison
from embgeo.core.numbers import format_optional
from embgeo.core.quantities import compare, tokens
from embgeo.core.text import align
from embgeo.core.values import format_number
from embgeo.report.text.comparison import cells, indented
from embgeo.row_repair.record import RepairRecord

#: Rows that are shown at most; the record has all.
MOST_ROWS = 12
#: Compared numbers of both models.
HEALTH = (
    tokens.DAMAGED_ROWS,
    tokens.SPECIAL_DAMAGED_ROWS,
    tokens.NONFINITE_ROWS,
    tokens.NORM_MIN,
    tokens.NORM_MEDIAN,
    tokens.NORM_RMS,
)


def render(record: RepairRecord, comparison: Comparison | None) -> Iterator[str]:
    n, d = record.shape
    yield f"{record.source}  {record.tensor}  {n:,} × {d:,}  {record.dtype}"
    count = f"{len(record.rows):,} row{'' if len(record.rows) == 1 else 's'}"
    yield f"  {count} replaced: method {record.method}, norm {format_number(record.norm)}"
    yield from indented(align(list(list_rows(record)), left=frozenset({1, 2})))
    if len(record.rows) > MOST_ROWS:
        yield f"  and {len(record.rows) - MOST_ROWS:,} more rows"
    if comparison is not None:
        yield from indented(align(list(list_differences(comparison)), left=frozenset({0, 3})))


def list_rows(record: RepairRecord) -> Iterator[tuple[str, ...]]:
    """Yield special tokens first, those of the chat template before the others."""
    yield "row", "token", "state", "norm", "new norm"
    ordered = sorted(record.rows, key=lambda one: ("template" not in one.roles, not one.roles))
    for one in ordered[:MOST_ROWS]:
        norms = map(format_optional, (one.norm_before, one.norm_after))
        yield f"{one.row:,}", one.token or "", one.state or "masked", *norms


def list_differences(comparison: Comparison) -> Iterator[tuple[str, ...]]:
    """Yield numbers about the health of rows, then numbers of two matrices."""
    yield "", "old", "new", "difference"
    known = {one.name: one for one in comparison.differences_of(1) if not one.undefined}
    yield from (cells(known[quantity.name]) for quantity in HEALTH if quantity.name in known)
    pair = comparison.pair(0, 1)
    headline = {quantity.name for quantity in compare.HEADLINE}
    for scalar in pair.scalars if pair else ():
        if scalar.name in headline and not scalar.undefined:
            yield scalar.quantity.title, "", "", scalar.text
