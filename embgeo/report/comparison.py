"""The report of a comparison: one HTML file that needs no network, checkpoint or script.

Tables and vector figures are complete by themselves; the script adds linked maps of the shared
tokens. Every string is untrusted text.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from embgeo.charts import training
from embgeo.charts.items import compared_items
from embgeo.charts.specification import Choices
from embgeo.charts.theme import LINES
from embgeo.comparison.comparison import Comparison, member_name, short_name
from embgeo.comparison.moved import find_moved_table, list_moved_tokens, rare_tokens
from embgeo.comparison.pair import Pair
from embgeo.comparison.sentences import describe_isotropy_move, headline
from embgeo.comparison.shifts import shifts, state_rows
from embgeo.core.quantities import compare, isotropy
from embgeo.core.text import visible
from embgeo.core.values import Quantity
from embgeo.report import comparison_tables
from embgeo.report.analysis import describe_frequency
from embgeo.report.board import describe_line
from embgeo.report.comparison_payload import build, choose_mapped
from embgeo.report.page import Gallery, code, draw_charts, environment
from embgeo.report.tables import group_by_family, list_quantities, provenance_rows
from embgeo.report.text.suspects import describe_change

SECTIONS = (
    ("training", "Over training"),
    ("maps", "Maps"),
    ("spectrum", "Spectrum"),
    ("cosine", "Cosines and the cone"),
    ("isotropy", "Isotropy"),
    ("frequency", "Rare and frequent tokens"),
    ("together", "Pairs of matrices"),
    ("moved", "Moved tokens"),
    ("numbers", "All numbers"),
    ("methods", "Methods"),
    ("provenance", "Provenance"),
)

#: Rows of the table of raw and unit scale.
_ISOTROPY = (
    isotropy.I1_UNIT_ROWS.name,
    isotropy.I1.name,
    isotropy.I1_UNIT.name,
    isotropy.I2.name,
)

#: Checkpoints of a run in one panel of a page, at most.
MOST_STEPS = 5


def render(comparison: Comparison) -> str:
    """Render the whole page as text; equal comparisons give equal text."""
    return environment().get_template("comparison.html.j2").render(context(comparison))


def context(comparison: Comparison, more: Gallery | None = None) -> dict[str, Any]:
    """Return the variables of the templates.

    `more` are charts in addition to those of the comparison.
    """
    track = comparison.track
    payload = build(comparison)
    film = None if payload is None else payload.meta["film"]
    gallery = draw_comparison(comparison)
    if more is not None:
        gallery |= more
    quantities = quantities_of_comparison(comparison)
    return {
        "title": _title(comparison),
        "facts": _facts(comparison),
        "version": _version(comparison),
        "track": track,
        # The topics that both kinds of pages have list the tables of an analysis.
        "tables": {},
        "other_tables": (),
        "notes_by_value": {},
        "notes": comparison.notes,
        "boards": list_boards(comparison),
        "figures": gallery,
        "defined": frozenset(q.name for q in quantities),
        "methods": group_by_family(quantities, lambda q: q.family),
        "frequency": describe_frequency(
            comparison.baseline.analysis.provenance.get("frequency"), counted=False
        ),
        "mapped": [
            {"place": place, "title": member_name(comparison, place)}
            for place in choose_mapped(comparison)
        ],
        "no_maps": explain_no_maps(comparison),
        "film": film,
        "moved": list_moved(comparison),
        "no_moved": explain_no_moved(comparison),
        "stars": bool(rare_tokens(comparison)),
        "matches": comparison_tables.matches(comparison),
        "provenances": _provenances(comparison),
        "sections": [
            {"id": key, "title": title}
            for key, title in SECTIONS
            if key != "training" or track is not None
        ],
        **_numbers(comparison),
        "bends": comparison_tables.list_bends(track) if track else [],
        "curve_families": comparison_tables.curve_families(track) if track else [],
        **code(gallery.charts, payload),
    }


def list_boards(comparison: Comparison) -> list[tuple[str, list[dict[str, Any]], str]]:
    """List for each member its name, the suspects that came or went, and in words the others."""
    boards = []
    for place in sorted({change.member for change in comparison.suspects}):
        own = [change for change in comparison.suspects if change.member == place]
        lines = [
            describe_line(
                f"{verb}: {describe_change(change, rows)}",
                change.serious and verb == "came",
                rows,
            )
            for change in own
            for verb, rows in (("came", change.came), ("went", change.went))
            if rows
        ]
        stayed = [describe_change(change, change.stayed) for change in own if change.stayed]
        boards.append((member_name(comparison, place), lines, ", ".join(stayed)))
    return boards


def draw_comparison(comparison: Comparison) -> Gallery:
    """Draw the charts of all members, and of the run that they make up."""
    subjects = compared_items(comparison)
    most = len(LINES) if comparison.track is None else MOST_STEPS
    choices = Choices(scalars=training.page_names(subjects), most=most)
    return draw_charts(subjects, "comparison", choices)


def _numbers(comparison: Comparison) -> dict[str, Any]:
    """Return the first lines, and every number of the members side by side."""
    places = comparison_tables.choose_places(comparison)
    held = places[-1]
    track = comparison.track
    several = track is None and len(comparison.others) > 1
    # The first screen of a run shows its two ends.
    ends = places if track is None else [held]
    rows = comparison_tables.number_rows(comparison, places)
    by_name = {row.quantity.name: row for row in rows}
    pair_rows = comparison_tables.pair_rows(comparison, places)
    return {
        "members": _names(comparison, range(len(comparison.members))),
        "baseline": _names(comparison, [0])[0],
        "others": _names(comparison, places),
        "ends": _names(comparison, ends),
        "held": _names(comparison, [held])[0],
        "all_others": len(comparison.others),
        "hidden_members": len(comparison.others) > len(places),
        "headline": headline(comparison),
        "tone": tone_of(comparison),
        # Of several, a sentence for each fills a fold.
        "said": () if several else comparison.sentences,
        "more": comparison.sentences if several else (),
        "shifts": shifts(comparison, held) if track or len(places) == 1 else (),
        "states": state_rows(comparison, [0, *places]),
        "headline_rows": comparison_tables.headline_rows(
            comparison_tables.number_rows(comparison, ends)
        ),
        "pair_rows": pair_rows,
        "first_pairs": [row for row in pair_rows if row.quantity in compare.HEADLINE],
        "isotropy_moves": [
            (_names(comparison, [place])[0], text)
            for place in ([held] if track is not None else places)
            if (text := describe_isotropy_move(comparison, place))
        ],
        "isotropy_rows": [by_name[name] for name in _ISOTROPY if name in by_name],
        "families": group_by_family(rows, lambda row: row.quantity.family),
    }


def tone_of(comparison: Comparison) -> str:
    """Return the color of the headline: that of a change, or of what became degenerate."""
    states = [member.analysis.verdict.state for member in comparison.members]
    several = comparison.track is None and len(states) > 2
    return "change" if several or states[-1] != "degenerate" else "degenerate"


def _names(comparison: Comparison, places: Iterable[int]) -> list[dict[str, str]]:
    return [
        {"name": member_name(comparison, place), "head": short_name(comparison, place)}
        for place in places
    ]


def _title(comparison: Comparison) -> str:
    names = [member_name(comparison, place) for place in range(len(comparison.members))]
    if len(names) == 2:
        return f"{names[0]} → {names[1]} – embedding geometry compared"
    return f"{names[0]} and {len(names) - 1} others – embedding geometry compared"


def _facts(comparison: Comparison) -> list[str]:
    """Return the line under the title: what was compared."""
    sizes = [
        f"{m.analysis.kept:,} × {int(m.analysis.provenance.get('d') or 0):,}"
        for m in comparison.members
    ]
    each = [f"{count} of {size}" for size, count in Counter(sizes).items()]
    same = len(each) == 1
    out = [f"{len(sizes)} matrices of {sizes[0]}" if same else f"Matrices: {', '.join(each)}"]
    if comparison.track is not None:
        first, last = comparison.members[0], comparison.members[-1]
        out.insert(0, f"{visible(first.name)} to {visible(last.name)}")
    pairs = [comparison.pair(0, place) for place in range(1, len(comparison.members))]
    held = [p.matching for p in pairs if p is not None]
    shared = sorted({m.shared for m in held})
    if shared:
        span = f"{shared[0]:,}" if len(shared) == 1 else f"{shared[0]:,} to {shared[-1]:,}"
        out.append(f"{span} shared tokens")
    ways = {m.by for m in held}
    if ways == {"token"}:
        out.append("matched by their strings")
    elif ways == {"row"}:
        out.append("matched by row number")
    elif None in ways:
        out.append("not all could be matched")
    return out


def _version(comparison: Comparison) -> str:
    own = comparison.provenance.get("versions") or {}
    one = comparison.baseline.analysis.provenance.get("versions") or {}
    return str(own.get("embgeo") or one.get("embgeo", ""))


def quantities_of_comparison(comparison: Comparison) -> list[Quantity]:
    """Return each quantity once: those of the analyses, then those of pairs."""
    return list_quantities(
        *(member.analysis.values() for member in comparison.members),
        *(pair.values() for pair in comparison.pairs),
        comparison.differences,
    )


def explain_no_maps(comparison: Comparison) -> str:
    for place in range(1, len(comparison.members)):
        pair = comparison.pair(0, place)
        if pair is not None and not pair.matching.by:
            return pair.matching.reason or "rows could not be matched"
    return "the analyses hold no projection of their rows"


def list_moved(comparison: Comparison) -> list[dict[str, Any]]:
    out = []
    for pair in comparison.pairs:
        table = find_moved_table(pair)
        if table is None or not is_moves_shown(comparison, pair):
            continue
        before, after = _names(comparison, [pair.first, pair.second])
        out.append(
            {
                "name": table.name,
                "title": table.quantity.title,
                "note": table.note,
                "before": before["name"],
                "after": after["name"],
                "place": pair.second,
                "lines": list_moved_tokens(comparison, pair),
            }
        )
    return out


def is_moves_shown(comparison: Comparison, pair: Pair) -> bool:
    """Tell whether a pair is the baseline with a shown member; in a track, with the last one."""
    last = len(comparison.members) - 1
    shown = [last] if comparison.track is not None else comparison_tables.choose_places(comparison)
    return pair.first == 0 and pair.second in shown


def explain_no_moved(comparison: Comparison) -> str:
    """Explain why neighbors were not compared, if that is known."""
    overlaps = (pair.scalar(compare.NEIGHBOR_OVERLAP) for pair in comparison.pairs)
    return next((s.undefined for s in overlaps if s is not None and s.undefined), "")


def _provenances(comparison: Comparison) -> list[tuple[str, list[tuple[str, str]]]]:
    out = [("The comparison", provenance_rows(comparison.provenance))]
    for place, member in enumerate(comparison.members):
        own = provenance_rows({"given as": member.given, **member.analysis.provenance})
        own += [("note", note.text) for note in member.analysis.notes]
        out.append((member_name(comparison, place), own))
    return out
