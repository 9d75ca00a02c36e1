"""Which suspects came, went and stayed between the baseline and another matrix."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from embgeo.core.suspects import REASONS, Reason, Side
from embgeo.result.analysis import Analysis

#: Number and token of a row; None without one.
Row: TypeAlias = tuple[int, str | None]


@dataclass(frozen=True, slots=True)
class SuspectChange:
    """The suspects of one reason and side: new ones, those of the baseline alone, those of both.

    Rows of `came` and `stayed` are those of the member, rows of `went` those of the baseline.
    """

    #: Place of the member; the baseline is 0.
    member: int
    reason: Reason
    side: Side
    #: Whether they are faults: not those of tokens that nothing uses.
    serious: bool
    came: tuple[Row, ...]
    went: tuple[Row, ...]
    stayed: tuple[Row, ...]


def compare_suspects(
    baseline: Analysis, other: Analysis, member: int, *, by_token: bool
) -> Iterator[SuspectChange]:
    """Yield what changed or stayed for each reason, the most serious first."""
    for serious in (True, False):
        for reason in REASONS:
            for side in ("input", "output"):
                before = find_rows(baseline, reason, side, serious, by_token)
                after = find_rows(other, reason, side, serious, by_token)
                if before or after:
                    yield SuspectChange(
                        member,
                        reason,
                        side,
                        serious,
                        tuple(row for key, row in after.items() if key not in before),
                        tuple(row for key, row in before.items() if key not in after),
                        tuple(row for key, row in after.items() if key in before),
                    )


def find_rows(
    analysis: Analysis, reason: Reason, side: Side, serious: bool, by_token: bool
) -> dict[int | str | None, Row]:
    """Find rows by what matches them: their token, or their number."""
    found: dict[int | str | None, Row] = {}
    for own in analysis.suspects:
        if (own.reason, own.side) == (reason, side):
            own = own.take(own.serious == serious)
            tokens = own.tokens or (None,) * len(own)
            for row, token in zip(own.rows.tolist(), tokens, strict=True):
                found.setdefault(token if by_token else row, (row, token))
    return found
