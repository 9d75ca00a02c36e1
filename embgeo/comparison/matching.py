"""Matching the rows of two matrices: by token, else by row number."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import IntArray
from embgeo.core.rows import EVERY
from embgeo.files.records import in_archive
from embgeo.result.analysis import Analysis

By = Literal["token", "row"]
#: Named tokens of those that are left out.
EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Kept rows of one side that are not among the shared ones."""

    #: Rows whose token (or row number) the other side does not have.
    missing: int = 0
    #: The first of those tokens; untrusted text.
    examples: tuple[str, ...] = ()
    #: Rows whose token occurs in several rows, which are not the same on both sides.
    ambiguous: int = 0
    #: The first of those tokens; untrusted text.
    ambiguous_examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Matching:
    """The matched rows of two matrices."""

    #: None if rows could not be matched.
    by: Literal["token", "row"] | None
    #: Why rows were matched in this way, or why they could not be.
    reason: str
    #: Positions among the *kept* rows of either analysis (as in ``analysis.tokens`` and
    #: ``points[].xy``), one pair for each shared token, in the order of rows of the first; shape
    #: (S,).
    first: npt.NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(0, np.int64), metadata=in_archive("first")
    )
    second: npt.NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(0, np.int64), metadata=in_archive("second")
    )
    #: Rows of the first and of the second that are left out.
    left_out: tuple[LeftOut, LeftOut] = (LeftOut(), LeftOut())
    #: S, the number of shared tokens.
    shared: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shared", len(self.first))


def match_rows(first: Analysis, second: Analysis, match: By | None = None) -> Matching:
    """Match the kept rows of two analyses.

    Tokens are matched by their string if both sides have them. A string in several rows is
    ambiguous: such rows are matched if they have the same row numbers on both sides, and left out
    otherwise. Without tokens, rows are matched by their number in the file, if both matrices are
    cut in the same way.

    `match`: the choice of the user; by default what the analyses allow.
    """
    cuts = [(offset(a), a.provenance.get("n", len(a.rows))) for a in (first, second)]
    if "listed" in first.provenance or "listed" in second.provenance:
        # Equal row numbers of very large matrices are equal tokens if both are cut alike.
        reason = f"analyses of more than {EVERY:,} rows list some of them, by their numbers"
        if match == "token" or (match is None and cuts[0] != cuts[1]):
            return Matching(None, f"{reason}: --match row pairs those that both list")
        return by_row(first, second, reason)
    if first.tokens is not None and second.tokens is not None and match != "row":
        return by_token(first, second)
    if match == "token":
        return Matching(None, f"{without_tokens(first, second)}, so none can be matched by token")
    reason = "as requested" if match == "row" else without_tokens(first, second)
    if match is None and cuts[0] != cuts[1]:
        ours, theirs = (f"{start:,} to {start + n - 1:,}" for start, n in cuts)
        return Matching(
            None,
            f"{reason}, and rows {ours} are not rows {theirs}: --tokens FILE labels "
            "them, --rows A:B cuts what both share, --match row pairs equal row numbers",
        )
    return by_row(first, second, reason)


def without_tokens(first: Analysis, second: Analysis) -> str:
    missing = [a.tokens is None for a in (first, second)]
    return "neither side has tokens" if all(missing) else "one side has no tokens"


def offset(analysis: Analysis) -> int:
    """Return the row number, in the file, of the first analyzed row."""
    cut = analysis.provenance.get("row_range")
    return int(cut[0]) if cut else 0


def by_row(first: Analysis, second: Analysis, reason: str) -> Matching:
    ours, theirs = (a.rows + offset(a) for a in (first, second))
    shared, at_first, at_second = np.intersect1d(
        ours, theirs, assume_unique=True, return_indices=True
    )
    return Matching(
        "row",
        reason,
        at_first.astype(np.int64),
        at_second.astype(np.int64),
        (missing_rows(ours, shared), missing_rows(theirs, shared)),
    )


def missing_rows(rows: IntArray, shared: IntArray) -> LeftOut:
    missing = np.setdiff1d(rows, shared, assume_unique=True)
    return LeftOut(len(missing), tuple(f"row {row}" for row in missing[:EXAMPLES].tolist()))


def by_token(first: Analysis, second: Analysis) -> Matching:
    places = [places_of(a.tokens or ()) for a in (first, second)]
    numbers = [(a.rows + offset(a)).tolist() for a in (first, second)]
    pairs: list[tuple[int, int]] = []
    ambiguous: set[str] = set()
    for token, ours in places[0].items():
        theirs = places[1].get(token)
        if theirs is None:
            continue
        same_rows = [numbers[0][i] for i in ours] == [numbers[1][i] for i in theirs]
        if same_rows or len(ours) == len(theirs) == 1:
            pairs += zip(ours, theirs, strict=True)
        else:
            ambiguous.add(token)
    matched = np.asarray(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    return Matching(
        "token",
        "both have tokens",
        matched[:, 0].copy(),
        matched[:, 1].copy(),
        (
            count_unshared(places[0], places[1], ambiguous),
            count_unshared(places[1], places[0], ambiguous),
        ),
    )


def places_of(tokens: Sequence[str]) -> dict[str, list[int]]:
    """Return the positions of each token, ascending."""
    places: dict[str, list[int]] = {}
    for place, token in enumerate(tokens):
        places.setdefault(token, []).append(place)
    return places


def count_unshared(
    ours: Mapping[str, Sequence[int]], theirs: Mapping[str, Sequence[int]], ambiguous: set[str]
) -> LeftOut:
    missing = [token for token in ours if token not in theirs]
    unclear = [token for token in ours if token in ambiguous]
    return LeftOut(
        sum(len(ours[token]) for token in missing),
        tuple(missing[:EXAMPLES]),
        sum(len(ours[token]) for token in unclear),
        tuple(unclear[:EXAMPLES]),
    )
