"""Facts about single tokens in words: states, the tables that list them, why they are left out."""

from collections.abc import Iterator

import numpy as np

from embgeo.charts.scatter import find_members
from embgeo.core.arrays import IntArray
from embgeo.core.quantities import clump
from embgeo.core.special import classify_token
from embgeo.core.values import Cell, Table
from embgeo.diagnosis.finding import find_scalar
from embgeo.result.analysis import Analysis


def find_states(analysis: Analysis, rows: IntArray) -> dict[str, IntArray]:
    """Find, by state, the places of its tokens among these rows."""
    found: dict[str, IntArray] = {}
    if analysis.tokens is not None:
        groups = [classify_token(analysis.tokens[row]) for row in rows]
        for group in ("special", "unused"):
            found[f"{group} by its spelling"] = np.flatnonzero([one == group for one in groups])
    if analysis.counts is not None and has_counts(analysis):
        found["never counted"] = np.flatnonzero(analysis.counts[rows] == 0)
    count = find_scalar(analysis, clump.CLUMP_ROWS)
    if count:
        members = find_members(analysis)
        if len(members) == count:
            found["in the clump"] = np.flatnonzero(np.isin(rows, members))
    return {word: places for word, places in found.items() if len(places)}


def has_counts(analysis: Analysis) -> bool:
    """Tell whether its frequencies are counts, and not ranks or weights."""
    return (analysis.provenance.get("frequency") or {}).get("kind") == "counts"


def list_findings(analysis: Analysis, rows: IntArray) -> dict[int, list[str]]:
    """List titles (and states) of the tables that list these rows, by their places on the page."""
    place = {int(analysis.rows[row]): at for at, row in enumerate(rows)}
    found: dict[int, list[str]] = {}
    for table, number, cells in list_rows(analysis):
        if (at := place.get(number)) is not None:
            title = table.quantity.title
            state = cells.get("state")
            found.setdefault(at, []).append(f"{title} ({state})" if state else title)
    return found


def list_left_out(analysis: Analysis) -> dict[int, dict[str, Cell]]:
    """State, count and norm of rows that are left out, by their numbers.

    Empty if not every kept row is listed: a row that is not listed may then be kept.
    """
    if analysis.kept > len(analysis.rows):
        return {}
    found = {
        number: {"state": cells["state"], "count": cells.get("count"), "norm": cells.get("‖w‖")}
        for _, number, cells in list_rows(analysis)
        if cells.get("state")
    }
    kept = set(analysis.rows[np.isin(analysis.rows, list(found))].tolist())
    return {number: known for number, known in found.items() if number not in kept}


def list_rows(analysis: Analysis) -> Iterator[tuple[Table, int, dict[str, Cell]]]:
    """Yield each row of the tables of rows: table, number, and cells by column."""
    for table in analysis.tables:
        if table.columns[:1] == ("row",):
            for cells in table.rows:
                if isinstance(cells[0], int):
                    yield table, cells[0], dict(zip(table.columns, cells, strict=True))
