"""Do some rows lie together, apart from all others? By a second mode of angles and norms."""

from __future__ import annotations

from embgeo.core.quantities import clump
from embgeo.core.values import format_number
from embgeo.diagnosis.finding import (
    Numbers,
    Part,
    Quote,
    Undecided,
    format_percent,
    format_short,
    need,
    value_of,
)
from embgeo.diagnosis.question import Answer, Question

#: Kinds of token that the sentence names, at most.
NAMED = 4
#: Share of the tokens known to be unused from which the clump is one of under-trained tokens.
MOST = 0.5


def answer(a: Numbers) -> Answer:
    found = need(a, clump.CLUMP_ROWS)
    rows = int(value_of(found))
    if not rows:
        return "healthy", ("No rows lie together apart from the others.",), ""
    share, angle = need(a, clump.CLUMP_SHARE), need(a, clump.CLUMP_ANGLE)
    verb = "lies" if rows == 1 else "lie together"
    parts: list[Part] = [
        Quote(found.name, _count(rows, "row")),
        " (",
        Quote(share.name, format_percent(value_of(share))),
        f") {verb} within ",
        Quote(angle.name, f"{format_number(value_of(angle), 3)}°"),
        " of the mean direction, apart from all others",
        *_quote_modes(a),
    ]
    kinds = _list_kinds(a)
    if kinds:
        parts.append(f": {kinds}")
    parts.append(".")
    unused = a.scalar(clump.CLUMP_UNUSED_SHARE)
    if unused is None or unused.value is None or unused.value < MOST:
        return "mild", tuple(parts), f"a clump of {_count(rows, 'row')}"
    parts += [
        " ",
        Quote(unused.name, format_percent(unused.value)),
        " of the tokens known to be unused are among them: training hardly touched these rows.",
    ]
    return "mild", tuple(parts), _count(rows, "under-trained token")


def _quote_modes(a: Numbers) -> tuple[Part, ...]:
    """The test: how large the second modes are, and what one mode stays below."""
    angles, norms = a.scalar(clump.ANGLE_EXCESS), a.scalar(clump.NORM_EXCESS)
    if angles is None or norms is None or angles.value is None or norms.value is None:
        raise Undecided("the test for a second mode is missing")
    return (
        " (excess mass of a second mode: angles ",
        Quote(angles.name, format_short(angles.value)),
        ", norms ",
        Quote(norms.name, format_short(norms.value)),
        f"; chance stays below {format_short(angles.reference)})" if angles.reference else ")",
    )


def _list_kinds(a: Numbers) -> str:
    table = next((t for t in a.tables if t.name == clump.CLUMP_KINDS.name), None)
    if table is None or a.tokens is None:
        return ""
    kind, count = table.columns.index("kind"), table.columns.index("rows")
    named = [f"{row[count]:,} {row[kind]}" for row in table.rows[:NAMED]]
    return ", ".join(named) + (" and others" if len(table.rows) > NAMED else "")


def _count(rows: int, noun: str) -> str:
    return f"{rows:,} {noun}{'' if rows == 1 else 's'}"


QUESTION = Question(
    "clump",
    "Do some rows lie together, apart from the others?",
    answer,
    geometry=True,
    shown="fault",
    why="Tokens that training hardly ever produced are pushed the same way, together (Gao et al. "
    "2019); such tokens lead prompts astray (Land and Bartolo 2024).",
    advice="See in the table and on the map which tokens they are. Unused ones can stay; any that "
    "prompts contain should be trained. In training, cosine regularization keeps rows apart "
    "(Gao et al. 2019): embgeo train --data TEXT --compare mle,cosreg.",
)
