"""A comparison for a terminal: verdicts, headline numbers with their differences, notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from embgeo.comparison.comparison import Comparison
from embgeo.comparison.pair import Difference, Pair
from embgeo.comparison.track import Curve, Track
from embgeo.core.quantities import compare, tokens
from embgeo.core.tone import ToneLine
from embgeo.core.values import format_number
from embgeo.report.text.analysis import TONES
from embgeo.report.text.columns import align
from embgeo.result.analysis import HEADLINE

#: Steps of a track that are shown at most; the report shows all.
MOST_STEPS = 12
MOST_NOTES = 8
MOST_TOKENS = 5
LONGEST_TOKEN = 40


def render(comparison: Comparison) -> Iterator[str]:
    """The lines."""
    yield from verdicts(comparison)
    if comparison.track is not None:
        yield from track_table(comparison.track)
    else:
        for place in range(1, len(comparison.members)):
            yield from differences_table(comparison, place)
    yield from comparison.sentences
    for note in comparison.notes[:MOST_NOTES]:
        yield f"  note: {note}"
    if len(comparison.notes) > MOST_NOTES:
        yield f"  and {len(comparison.notes) - MOST_NOTES} more notes in the report"


def verdicts(comparison: Comparison) -> Iterator[str]:
    shown = comparison.members
    if comparison.track is not None:
        shown = (shown[0], shown[-1])
    for member in shown:
        p = member.analysis.provenance
        shape = f"{p.get('n', 0):,} × {p.get('d', 0):,}"
        yield f"{member.name}  {member.given}  {p.get('tensor', '')}  {shape}"
        verdict = member.analysis.verdict
        yield ToneLine.of(f"  {verdict.headline}", TONES.get(verdict.tone))


def differences_table(comparison: Comparison, place: int) -> Iterator[str]:
    """Headline numbers of one member next to the baseline's, and those of the pair."""
    yield from indented(align(difference_rows(comparison, place), left=frozenset({0, 3})))
    pair = comparison.pair(0, place)
    if pair is not None:
        yield from pair_lines(pair)


def difference_rows(comparison: Comparison, place: int) -> list[tuple[str, ...]]:
    """Heads and headline numbers, as cells."""
    rows = {d.name: d for d in comparison.differences_of(place)}
    chosen = [rows[q.name] for q in HEADLINE if q.name in rows and not rows[q.name].undefined]
    heads = ("", comparison.baseline.name, comparison.members[place].name, "difference")
    return [heads, *map(cells, chosen)]


def cells(row: Difference) -> tuple[str, str, str, str]:
    values = [format_number(v) for v in (row.baseline, row.value) if v is not None]
    return row.quantity.title, values[0], values[1], difference_text(row)


def difference_text(row: Difference) -> str:
    """The difference with its sign, its error, and whether it may be chance."""
    if row.difference is None:
        return ""
    if row.change == "equal":
        return "equal"
    text = f"{'+' if row.difference > 0 else ''}{format_number(row.difference)}"
    if row.standard_error is not None:
        text += f" ± {format_number(row.standard_error, 2)}"
    remark = {"within error": "within error", "not judged": "sampled"}.get(row.change, "")
    remark = ", ".join(filter(None, (row.direction, remark)))
    return f"{text} ({remark})" if remark else text


def pair_lines(pair: Pair) -> Iterator[str]:
    """What takes both matrices; one reason once where nothing is defined."""
    headline = [quantity.name for quantity in compare.HEADLINE]
    shown = [s for s in pair.scalars if s.name in headline]
    reasons = {s.undefined for s in shown}
    if len(reasons) == 1 and "" not in reasons:
        yield f"  both matrices: not defined: {reasons.pop()}"
        return
    width = max(len(s.quantity.title) for s in shown)
    for scalar in shown:
        chance = "" if scalar.reference is None else f"  (chance: {scalar.reference_text})"
        yield f"  {scalar.quantity.title:<{width}}  {scalar.text}{chance}"
    moved = next((t for t in pair.tables if t.name == compare.MOVED.name), None)
    if moved is not None and moved.rows:
        tokens = ", ".join(short(str(row[0])) for row in moved.rows[:MOST_TOKENS])
        yield f"  Moved most: {tokens}"


def short(token: str) -> str:
    return token if len(token) <= LONGEST_TOKEN else f"{token[:LONGEST_TOKEN]}…"


def track_rows(track: Track) -> tuple[list[tuple[str, ...]], str]:
    """Heads and headline curves as cells, a column a step; and how many steps there are of all."""
    by_name = {c.quantity.name: c for c in track.curves if not c.against}
    shown = (*HEADLINE, tokens.NORM_MEDIAN, tokens.DAMAGED_ROWS)
    curves = [by_name[q.name] for q in shown if q.name in by_name]
    paired = [quantity.name for quantity in (*compare.HEADLINE, compare.TOKEN_COSINE)]
    to_first = [c for c in track.curves if c.against == "first" and is_known(c)]
    curves += [c for c in to_first if c.quantity.name in paired]
    if not curves:
        return [], ""
    steps = len(track.steps)
    places = list(range(steps))
    if steps > MOST_STEPS:
        places = sorted({round(i * (steps - 1) / (MOST_STEPS - 1)) for i in range(MOST_STEPS)})
    rows = [("step", *(format_number(track.steps[i]) for i in places))]
    for curve in curves:
        head = f"{curve.quantity.title}{', to the first' if curve.against else ''}"
        rows.append((head, *(format_cell(track, curve, i) for i in places)))
    return rows, f"{len(places)} of {steps} steps" if len(places) < steps else ""


def track_table(track: Track) -> Iterator[str]:
    """Headline curves, a column a step."""
    rows, left_out = track_rows(track)
    if rows:
        lines = [*align(rows), *filter(None, [left_out]), f"steps: {track.source}"]
        yield from indented(lines)


def is_known(curve: Curve) -> bool:
    return any(value is not None for value in curve.values)


def format_cell(track: Track, curve: Curve, place: int) -> str:
    """The number, or a sign for a checkpoint that holds the matrix of an earlier one."""
    if track.original_of(place) is not None:
        return "="
    value = curve.values[place]
    return "–" if value is None else format_number(value)


def indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)
