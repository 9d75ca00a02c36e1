"""Added rows for a terminal: how many, whether the others changed, norms of the new ones."""

from collections.abc import Iterator

from embgeo.comparison.vocabularies import RowChange, VocabularyChange
from embgeo.core.values import format_number
from embgeo.report.text import suspects


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
    if change.added:
        count = sum(map(len, change.suspects))
        yield f"of the added rows stand out: {count:,}" if count else "no added row stands out"
        yield from suspects.render(change.suspects)


def render_side(side: RowChange) -> Iterator[str]:
    rows = f"{side.rows[0]:,} → {side.rows[1]:,} rows"
    shrunken = ", fewer than before" if side.rows[1] < side.rows[0] else ""
    yield f"{side.tensor}  {rows}{shrunken}"
    yield f"  shared rows: {side.same:,} with the same bits, {side.changed:,} changed"
    if side.norms is not None:
        low, middle, high = map(format_number, side.norms)
        median = format_number(side.median_before)
        yield f"  norms of added rows: {low} to {high}, median {middle} (before: {median})"
