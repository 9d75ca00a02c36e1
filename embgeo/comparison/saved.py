"""The content of ``comparison.json``, which is saved next to the analyses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from embgeo.comparison.pair import Difference, Pair
from embgeo.comparison.track import Track
from embgeo.io.bounded.records import RecordFormat

COMPARISON_NAME = "comparison.json"
#: Names of folders of members: place, hyphen, plain characters.
MEMBER_FOLDER = re.compile(r"\d{1,4}-[A-Za-z0-9._-]{0,60}")


@dataclass(frozen=True, slots=True)
class SavedMember:
    """A member without its analysis, which is in `folder`."""

    name: str
    given: str
    folder: str
    from_saved: bool
    matrix_absent: str
    step: float | None


@dataclass(frozen=True, slots=True)
class SavedComparison:
    """The content of ``comparison.json``; ``docs/diff.md`` describes every field."""

    provenance: dict[str, Any]
    members: tuple[SavedMember, ...]
    sentences: tuple[str, ...]
    notes: tuple[str, ...]
    pairs: tuple[Pair, ...]
    differences: tuple[Difference, ...]
    track: Track | None
    timing: dict[str, float]


def _check(saved: SavedComparison) -> None:
    """Raise ValueError unless places and lengths fit the members."""
    check_folders([member.folder for member in saved.members])
    count = len(saved.members)
    for pair in saved.pairs:
        _check_pair(pair, count)
    if any(not 0 < d.member < count for d in saved.differences):
        raise ValueError("a difference of no member")
    curves = saved.track.curves if saved.track else ()
    lengths = {len(values) for c in curves for values in (c.values, c.standard_errors)}
    if saved.track and not lengths | {len(saved.track.steps)} <= {count}:
        raise ValueError(f"not every curve has {count} points")
    if saved.track:
        _check_duplicates(saved.track, count)


def _check_duplicates(track: Track, members: int) -> None:
    if len(track.same_as) not in (0, members) or any(
        same is not None and not 0 <= same < place for place, same in enumerate(track.same_as)
    ):
        raise ValueError("a duplicate of no member before it")
    if any(not 0 <= place < members for place in track.outliers):
        raise ValueError("an outlier that is not a member")


def check_folders(folders: list[Any]) -> None:
    named = all(isinstance(name, str) and MEMBER_FOLDER.fullmatch(name) for name in folders)
    if not named or len(folders) < 2:
        raise ValueError("its list of members is damaged")


def _check_pair(pair: Pair, members: int) -> None:
    if not (0 <= pair.first < pair.second < members):
        raise ValueError("a pair of no members")
    lengths = {len(pair.matching.second), *(len(c.values) for c in pair.columns)}
    if lengths != {pair.matching.shared}:
        raise ValueError(f"not everything has {pair.matching.shared:,} shared tokens")


FORMAT = RecordFormat(
    "embgeo.comparison",
    3,
    SavedComparison,
    COMPARISON_NAME,
    what="a comparison",
    again="compare again with: embgeo diff",
    check=_check,
)
