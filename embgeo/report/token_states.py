"""Facts about single tokens in words: states, the tables that list them, why they are left out."""

import numpy as np

from embgeo.core.arrays import IntArray
from embgeo.core.special import classify_token
from embgeo.core.suspects import REASONS
from embgeo.core.values import Cell
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
    for own in analysis.suspects:
        side = "" if own.side == "input" else " in the output"
        places = np.flatnonzero(np.isin(analysis.rows[rows], own.rows))
        found[f"{REASONS[own.reason].one}{side}"] = places
    return {word: places for word, places in found.items() if len(places)}


def has_counts(analysis: Analysis) -> bool:
    """Tell whether its frequencies are counts, and not ranks or weights."""
    return (analysis.provenance.get("frequency") or {}).get("kind") == "counts"


def list_findings(analysis: Analysis, rows: IntArray) -> dict[int, list[str]]:
    """List titles of the tables that list these rows, by their places on the page."""
    place = {int(analysis.rows[row]): at for at, row in enumerate(rows)}
    found: dict[int, list[str]] = {}
    for table in analysis.tables:
        for number, *_ in table.rows if table.columns[:1] == ("row",) else ():
            if isinstance(number, int) and number in place:
                found.setdefault(place[number], []).append(table.quantity.title)
    return found


def list_left_out(analysis: Analysis) -> dict[int, dict[str, Cell]]:
    """State and norm of the suspects that are left out, by row number.

    Empty if not every kept row is listed: a row that is not listed may then be kept.
    """
    if analysis.kept > len(analysis.rows):
        return {}
    found: dict[int, dict[str, Cell]] = {}
    for own in analysis.suspects:
        for at in np.flatnonzero(~np.isin(own.rows, analysis.rows)).tolist():
            norm = None if own.norms is None else float(own.norms[at])
            known = {"state": REASONS[own.reason].one, "norm": norm}
            found.setdefault(int(own.rows[at]), known)
    return found
