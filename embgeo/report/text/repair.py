"""A repair for a terminal: rows before and after on each side, and what is left."""

from collections import Counter
from collections.abc import Iterator, Sequence

from embgeo.core.numbers import format_optional
from embgeo.core.suspects import REASONS, Suspects, describe
from embgeo.core.text import align
from embgeo.report.text import suspects
from embgeo.report.text.comparison import indented
from embgeo.row_repair.record import RepairedSide, RepairRecord

#: Rows that are shown of each side at most; the record has all.
MOST_ROWS = 6


def render(record: RepairRecord, left: Sequence[Suspects] | None) -> Iterator[str]:
    for side in record.sides:
        n, d = side.shape
        yield f"{record.source}  {side.tensor}  {n:,} × {d:,}  {side.dtype}"
        count = f"{len(side.rows):,} row{'' if len(side.rows) == 1 else 's'} of the {side.side}"
        reasons = Counter(one.reason for one in side.rows)
        why = [describe(reason, reasons[reason]) for reason in REASONS if reason in reasons]
        why += [f"{reasons[None]:,} named"] if reasons[None] else []
        copied = "" if record.copied is None else f" of {record.copied}"
        yield f"  {count} replaced: method {record.method}{copied}, {', '.join(why)}"
        yield from indented(align(list(list_rows(side)), left=frozenset({1, 2})))
        if len(side.rows) > MOST_ROWS:
            yield f"  and {len(side.rows) - MOST_ROWS:,} more rows"
    if left is not None:
        yield "  serious suspects left: " + ("none" if not left else "")
        yield from suspects.render(left)


def list_rows(side: RepairedSide) -> Iterator[tuple[str, ...]]:
    yield "row", "token", "reason", "norm", "new norm"
    for one in side.rows[:MOST_ROWS]:
        norms = map(format_optional, (one.norm_before, one.norm_after))
        reason = "named" if one.reason is None else REASONS[one.reason].one
        yield f"{one.row:,}", one.token or "", reason, *norms
