"""What is known of single tokens, as words: states, the tables that list them, and why left out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from embgeo.charts.ring import find_members
from embgeo.core.arrays import IntArray
from embgeo.core.quantities import clump
from embgeo.core.token_spelling import classify_token
from embgeo.core.values import Table
from embgeo.result.analysis import Analysis


def find_states(analysis: Analysis, rows: IntArray) -> dict[str, IntArray]:
    """By word, the places among these rows of the tokens that are in that state."""
    found: dict[str, IntArray] = {}
    if analysis.tokens is not None:
        groups = [classify_token(analysis.tokens[row]) for row in rows]
        for group in ("special", "unused"):
            found[f"{group} by its spelling"] = np.flatnonzero([one == group for one in groups])
    if analysis.counts is not None and has_counts(analysis):
        found["never counted"] = np.flatnonzero(analysis.counts[rows] == 0)
    count = analysis.scalar(clump.CLUMP_ROWS)
    if count is not None and count.value:
        members = find_members(analysis)
        if len(members) == count.value:
            found["in the clump"] = np.flatnonzero(np.isin(rows, members))
    return {word: places for word, places in found.items() if len(places)}


def has_counts(analysis: Analysis) -> bool:
    """Whether its frequencies are counts, and not ranks or weights."""
    return (analysis.provenance.get("frequency") or {}).get("kind") == "counts"


def list_findings(analysis: Analysis, rows: IntArray) -> dict[int, list[str]]:
    """What tables list of these rows, by their places on the page: a title, and a state."""
    place = {int(analysis.rows[row]): at for at, row in enumerate(rows)}
    found: dict[int, list[str]] = {}
    for number, _, words in list_rows(analysis):
        if (at := place.get(number)) is not None:
            found.setdefault(at, []).append(words)
    return found


def list_left_out(analysis: Analysis) -> dict[int, str]:
    """Why rows that tables list are left out, by their numbers; none where kept ones are, too."""
    if analysis.kept > len(analysis.rows):
        return {}
    states = {number: state for number, state, _ in list_rows(analysis) if state}
    kept = set(analysis.rows[np.isin(analysis.rows, list(states))].tolist())
    return {number: state for number, state in states.items() if number not in kept}


def list_rows(analysis: Analysis) -> Iterator[tuple[int, str, str]]:
    """Number, state and words for each row of the tables of rows."""
    for table in analysis.tables:
        if table.columns[:1] == ("row",):
            yield from describe_rows(table)


def describe_rows(table: Table) -> Iterator[tuple[int, str, str]]:
    title = table.quantity.title
    at = table.columns.index("state") if "state" in table.columns else None
    for cells in table.rows:
        if isinstance(cells[0], int):
            state = "" if at is None else str(cells[at])
            yield cells[0], state, f"{title} ({state})" if state else title
