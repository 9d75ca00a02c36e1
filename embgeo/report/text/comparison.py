"""A comparison for a terminal: verdicts, headline numbers with their differences, notes."""

from collections.abc import Iterable, Iterator

from embgeo.charts.specification import spread
from embgeo.comparison.comparison import Comparison
from embgeo.comparison.pair import Difference, Pair
from embgeo.comparison.sentences import has_error
from embgeo.comparison.track import Track
from embgeo.core.numbers import format_optional, format_signed
from embgeo.core.quantities import compare, tokens
from embgeo.core.text import ColoredLine, align
from embgeo.core.values import format_number
from embgeo.report.text import suspects
from embgeo.report.text.analysis import TONES
from embgeo.result.analysis import HEADLINE

#: Steps of a track that are shown at most; the report shows all.
MOST_STEPS = 12
MOST_NOTES = 8
MOST_TOKENS = 5
LONGEST_TOKEN = 40
LEGEND = "differences from the baseline; in parentheses: not significant"


def render(comparison: Comparison) -> Iterator[str]:
    yield from verdicts(comparison)
    if comparison.track is not None:
        yield from track_table(comparison.track)
    elif len(comparison.members) == 2:
        yield from indented(align(difference_rows(comparison, 1), left=frozenset({0, 3})))
        pair = comparison.pair(0, 1)
        if pair is not None:
            yield from pair_lines(pair)
    else:
        yield from members_table(comparison)
    yield from comparison.sentences
    for place, member in enumerate(comparison.members):
        changes = [one for one in comparison.suspects if one.member == place]
        if changes:
            yield f"suspects of {member.name}, against {comparison.baseline.name}:"
            yield from suspects.render_changes(changes)
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
        yield ColoredLine.of(f"  {verdict.headline}", TONES.get(verdict.tone))


def difference_rows(comparison: Comparison, place: int) -> list[tuple[str, ...]]:
    """Return the heads and the headline numbers, as cells."""
    rows = {d.name: d for d in comparison.differences_of(place)}
    chosen = [rows[q.name] for q in HEADLINE if q.name in rows and not rows[q.name].undefined]
    chosen.sort(key=has_error, reverse=True)
    heads = ("", comparison.baseline.name, comparison.members[place].name, "difference")
    lines: list[tuple[str, ...]] = [heads]
    for row in chosen:
        values = (format_number(v) for v in (row.baseline, row.value) if v is not None)
        lines.append((row.quantity.title, *values, difference_text(row)))
    return lines


def difference_text(row: Difference) -> str:
    """Return the difference with its sign and error, and whether it may be chance."""
    if row.difference is None:
        return ""
    if row.change == "equal":
        return "equal"
    text = f"{format_signed(row.difference)} {row.error_text}".rstrip()
    doubt = "not significant" if row.change == "not significant" else ""
    if not has_error(row):
        doubt = "error unknown"
    remark = ", ".join(filter(None, (row.direction, doubt)))
    return f"{text} ({remark})" if remark else text


def pair_lines(pair: Pair) -> Iterator[str]:
    """Yield numbers of two matrices; the reason, once, if none is defined."""
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
    moved = list_moved_tokens(pair)
    if moved:
        yield f"  Moved most: {moved}"


def members_table(comparison: Comparison) -> Iterator[str]:
    """Yield headline numbers of all members, one column per member, and those of each pair."""
    yield from indented([*align(member_rows(comparison)), LEGEND])
    for member, pair in list_pairs(comparison):
        moved = list_moved_tokens(pair)
        if moved:
            yield f"  Moved most, {member}: {moved}"


def member_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """List heads and headline numbers as cells, with differences from the baseline below."""
    rows = [("", *(member.name for member in comparison.members))]
    places = range(1, len(comparison.members))
    by_name = [{d.name: d for d in comparison.differences_of(place)} for place in places]
    for quantity in HEADLINE:
        each = [found.get(quantity.name) for found in by_name]
        known = [one for one in each if one is not None and not one.undefined]
        if known:
            values = [None if one is None else one.value for one in each]
            rows.append((quantity.title, *map(format_optional, (known[0].baseline, *values))))
            rows.append(("  difference", "", *map(short_difference, each)))
    return rows + pair_rows(comparison)


def short_difference(row: Difference | None) -> str:
    """Return the difference with its sign, in parentheses if it is not significant."""
    if row is None or row.difference is None:
        return ""
    if row.change == "equal" or row.difference == 0.0:
        return "="
    text = format_signed(row.difference)
    return f"({text})" if row.change == "not significant" else text


def pair_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """Return the headline numbers of the baseline with each other member, as cells."""
    rows = []
    for quantity in compare.HEADLINE:
        pairs = (pair for _, pair in list_pairs(comparison))
        found = [None if pair is None else pair.scalar(quantity) for pair in pairs]
        known = [one for one in found if one is not None and one.value is not None]
        if known:
            values = (None if one is None else one.value for one in found)
            references = {one.reference_text for one in known if one.reference is not None}
            chance = f" (chance: {references.pop()})" if len(references) == 1 else ""
            rows.append((f"{quantity.title}{chance}", "", *map(format_optional, values)))
    return rows


def list_pairs(comparison: Comparison) -> list[tuple[str, Pair | None]]:
    """List each member but the baseline by name, with its pair.

    None if a matrix was not at hand.
    """
    others = enumerate(comparison.members[1:], 1)
    return [(member.name, comparison.pair(0, place)) for place, member in others]


def list_moved_tokens(pair: Pair | None) -> str:
    """List the tokens that moved most, with commas; empty if that was not measured."""
    tables = () if pair is None else pair.tables
    moved = next((table for table in tables if table.name == compare.MOVED.name), None)
    rows = () if moved is None else moved.rows
    named = (str(row[0]) for row in rows[:MOST_TOKENS])
    return ", ".join(t if len(t) <= LONGEST_TOKEN else f"{t[:LONGEST_TOKEN]}…" for t in named)


def track_rows(track: Track) -> tuple[list[tuple[str, ...]], str]:
    """Get heads and headline curves as cells, one column per step; and how many steps are shown."""
    by_name = {c.quantity.name: c for c in track.curves if not c.against}
    shown = (*HEADLINE, tokens.NORM_MEDIAN)
    curves = [by_name[q.name] for q in shown if q.name in by_name]
    paired = [quantity.name for quantity in (*compare.HEADLINE, compare.TOKEN_COSINE)]
    curves += [
        curve
        for curve in track.curves
        if curve.against == "first"
        and curve.quantity.name in paired
        and any(value is not None for value in curve.values)
    ]
    if not curves:
        return [], ""
    steps = len(track.steps)
    places = spread(steps, MOST_STEPS)
    rows = [("step", *(format_number(track.steps[i]) for i in places))]
    for curve in curves:
        head = f"{curve.quantity.title}{', to the first' if curve.against else ''}"
        # "=": the checkpoint holds the matrix of an earlier one.
        own = (track.original_of(i) is None for i in places)
        texts = (format_optional(curve.values[i]) for i in places)
        rows.append((head, *(text if new else "=" for text, new in zip(texts, own, strict=True))))
    return rows, f"{len(places)} of {steps} steps" if len(places) < steps else ""


def track_table(track: Track) -> Iterator[str]:
    """Yield headline curves, one column per step."""
    rows, left_out = track_rows(track)
    if rows:
        lines = [*align(rows), *filter(None, [left_out]), f"steps: {track.source}"]
        yield from indented(lines)


def indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)
