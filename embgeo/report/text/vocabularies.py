"""Added rows for a terminal: how many, whether the others changed, norms of the new ones."""

from collections.abc import Iterator

from embgeo.comparison.vocabularies import RowChange, VocabularyChange
from embgeo.core.numbers import format_optional
from embgeo.core.text import align
from embgeo.core.values import format_number
from embgeo.report.text.comparison import indented

#: Added rows that are shown at most.
MOST_ROWS = 12


def render(change: VocabularyChange) -> Iterator[str]:
    before, after = change.names
    moved = f", {change.moved:,} moved" if change.moved else ""
    yield f"{before} → {after}: {change.added:,} tokens added, {change.removed:,} removed{moved}"
    if change.removed:
        yield f"  removed: {', '.join(change.removed_examples)}"
    if change.missing_rows[1]:
        yield f"  {after} has {change.missing_rows[1]:,} tokens without a row"
    for side in filter(None, (change.input, change.output)):
        yield from render_side(side)


def render_side(side: RowChange) -> Iterator[str]:
    rows = f"{side.rows[0]:,} → {side.rows[1]:,} rows"
    shrunken = ", fewer than before" if side.rows[1] < side.rows[0] else ""
    yield f"{side.tensor}  {rows}{shrunken}"
    yield f"  shared rows: {side.same:,} with the same bits, {side.changed:,} changed"
    if side.norms is None:
        if side.damaged:
            yield f"  added rows: all {side.damaged:,} damaged"
        return
    low, middle, high = map(format_number, side.norms)
    median = format_number(side.median_before)
    yield f"  norms of added rows: {low} to {high}, median {middle} (before: {median})"
    if side.damaged:
        yield f"  {side.damaged:,} added rows are damaged"
    if side.alike > 1:
        yield f"  {side.alike:,} added rows are all alike"
    cells = [("row", "token", "norm", "percentile")]
    for one in side.added[:MOST_ROWS]:
        norm, percentile = map(format_optional, (one.norm, one.percentile))
        cells.append((f"{one.row:,}", one.token or "", norm, percentile))
    yield from indented(align(cells, left=frozenset({1})))
    if len(side.added) > MOST_ROWS:
        yield "  and more"
