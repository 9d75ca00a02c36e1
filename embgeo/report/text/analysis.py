"""An analysis for a terminal: verdict, headline numbers, missing families, notes."""

from collections.abc import Iterator

from embgeo.core.quantities import frequency
from embgeo.core.text import ColoredLine, Tone
from embgeo.diagnosis.finding import State
from embgeo.report.text import suspects
from embgeo.result.analysis import HEADLINE, Analysis

TONES: dict[State, Tone] = {"healthy": "good", "mild": "warning", "degenerate": "bad"}


def render(analysis: Analysis) -> Iterator[str]:
    p = analysis.provenance
    verdict = analysis.verdict
    yield f"{p['file']}  {p['tensor']}  {p['n']:,} × {p['d']:,}  {p['dtype']}"
    yield ColoredLine.of(verdict.headline, TONES.get(verdict.tone))
    yield from suspects.render(analysis.suspects)
    if repair := suspects.write_repair(analysis):
        yield f"  repair: {repair}"
    output = p.get("output") or {}
    if "verdict" in output:
        yield f"Output matrix {output['tensor']} – {output['verdict']['headline']}"
    shown = headline_rows(analysis)
    width = max((len(title) for title, *_ in shown), default=0)
    for title, value, reference in shown:
        yield f"  {title:<{width}}  {value}" + (f"  ({reference})" if reference else "")
    if p["options"].get("show_neighbors"):
        yield from describe_neighbors(analysis)
    for family in ("frequency", "subspace"):
        if family in analysis.absent:
            yield f"  skipped {family}: {analysis.absent[family]}"
    for note in analysis.notes:
        yield f"  note: {note}"


def describe_neighbors(analysis: Analysis) -> Iterator[str]:
    """Yield the nearest tokens of the requested ones, and the ranks of those given with them."""
    by_name = {table.name: table for table in analysis.tables}
    for name in (frequency.NEIGHBORS.name, frequency.NEIGHBOR_RANKS.name):
        for row in () if name not in by_name else by_name[name].rows:
            if name == frequency.NEIGHBORS.name:
                yield f"  Neighbors of {row[0]}: {', '.join(map(str, row[1:]))}"
            else:
                yield f"  Rank of {row[1]} among the neighbors of {row[0]}: {row[3]}"


def headline_rows(analysis: Analysis) -> list[tuple[str, str, str]]:
    """Return the title, value and reference of the headline numbers that were measured."""
    rows = []
    # Not by truth: a value of 0 is one, and one that is undefined has none.
    for scalar in (s for q in HEADLINE if (s := analysis.find_scalar(q)) is not None):
        kind = "chance" if scalar.reference_kind == "chance" else "isotropic rows"
        reference = "" if scalar.reference is None else f"{kind}: {scalar.reference_text}"
        rows.append((scalar.quantity.title, scalar.text, reference))
    return rows
