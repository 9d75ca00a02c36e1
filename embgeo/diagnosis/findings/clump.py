"""Do some rows lie together, apart from all others? By a second mode of angles and norms."""

from __future__ import annotations

from embgeo.core.quantities import clump, cosine
from embgeo.core.values import Quantity, format_number
from embgeo.diagnosis import thresholds as limits
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
    if _is_one_of_clusters(a):
        raise Undecided("the rows form clusters, of which these rows are one")
    share, angle = need(a, clump.CLUMP_SHARE), need(a, clump.CLUMP_ANGLE)
    verb = "lies" if rows == 1 else "lie together"
    parts: list[Part] = [
        Quote(found.name, _count(rows, "row")),
        " (",
        Quote(share.name, format_percent(value_of(share))),
        f") {verb} within ",
        Quote(angle.name, f"{format_number(value_of(angle), 3)}°"),
        *_quote_place(a),
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


def _quote_place(a: Numbers) -> tuple[Part, ...]:
    """Around which direction, and the tests."""
    tilt = a.scalar(clump.CLUMP_TILT)
    parts: list[Part] = [" of the mean direction"]
    tests = [("angles ", clump.ANGLE_EXCESS), (", norms ", clump.NORM_EXCESS)]
    if tilt is not None and tilt.value:
        away = Quote(tilt.name, f"{format_number(tilt.value, 3)}°")
        parts = [" of a direction ", away, " away from the mean direction"]
        tests = [("angles ", clump.DENSE_EXCESS)]
    parts.append(", apart from all others (excess mass of a second mode: ")
    return (*parts, *_quote_modes(a, tests))


def _quote_modes(a: Numbers, quoted: list[tuple[str, Quantity]]) -> tuple[Part, ...]:
    """How large the second modes are, and what one mode stays below."""
    parts: list[Part] = []
    chance = None
    for lead, quantity in quoted:
        scalar = need(a, quantity)
        parts += [lead, Quote(scalar.name, format_short(value_of(scalar)))]
        chance = scalar.reference
    return (*parts, f"; chance stays below {format_short(chance)})" if chance else ")")


def _is_one_of_clusters(a: Numbers) -> bool:
    """Whether the other rows lie together in the same way, which is another question."""
    tilt, silhouette = a.scalar(clump.CLUMP_TILT), a.scalar(cosine.SILHOUETTE)
    if tilt is None or not tilt.value or silhouette is None or silhouette.value is None:
        return False
    return limits.CLUSTERS.state(silhouette.value) != "healthy"


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
