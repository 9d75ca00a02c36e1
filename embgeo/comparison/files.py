"""A comparison as a folder, saved and read back.

The folder holds ``comparison.json`` (how it came about, differences, numbers that take both
matrices), ``arrays.npz`` (which kept row of one is which of the other, and whatever else has one
entry a shared token), one folder with the analysis of each compared matrix (``0-baseline``, …),
and, once rendered, ``report.html``.

Format history
--------------
1 : first version (embgeo 0.1). Facts of scalars stood in prose, and the arrays of a matching in one
    list.
2 : typed facts of scalars.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embgeo.comparison.comparison import Comparison, Difference, Member, Pair, Track
from embgeo.core.errors import UnreadableFile
from embgeo.io.bounded.records import ARRAYS_NAME, Json, RecordFormat
from embgeo.result.analysis import load_analysis
from embgeo.result.saved import typed_facts

COMPARISON_NAME = "comparison.json"
#: What a folder of a member may be called: its place, a hyphen, something plain.
MEMBER_FOLDER = re.compile(r"\d{1,4}-[A-Za-z0-9._-]{0,60}")


@dataclass(frozen=True, slots=True)
class SavedMember:
    """A member without its analysis, which lies in `folder`."""

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
    """ValueError unless places and lengths fit the members, whose folders lie in this one."""
    _check_folders([member.folder for member in saved.members])
    count = len(saved.members)
    for pair in saved.pairs:
        _check_pair(pair, count)
    if any(not 0 < d.member < count for d in saved.differences):
        raise ValueError("a difference of no member")
    curves = saved.track.curves if saved.track else ()
    lengths = {len(values) for c in curves for values in (c.values, c.standard_errors)}
    if saved.track and not lengths | {len(saved.track.steps)} <= {count}:
        raise ValueError(f"not every curve has {count} points")


def _check_folders(folders: list[Any]) -> None:
    named = all(isinstance(name, str) and MEMBER_FOLDER.fullmatch(name) for name in folders)
    if not named or len(folders) < 2:
        raise ValueError("its list of members is damaged")


def _check_pair(pair: Pair, members: int) -> None:
    if not (0 <= pair.first < pair.second < members):
        raise ValueError("a pair of no members")
    lengths = {len(pair.matching.second), *(len(c.values) for c in pair.columns)}
    if lengths != {pair.matching.shared}:
        raise ValueError(f"not everything has {pair.matching.shared:,} shared tokens")


def _upgrade_1(content: Json) -> Json:
    """Version 1 as version 2."""
    for pair in content["pairs"]:
        for kind in ("series", "histograms", "columns", "tables"):
            pair[kind] = [{"better": None, **value} for value in pair[kind]]
        matching = pair["matching"]
        matching["first"], matching["second"] = matching.pop("arrays")
        pair["scalars"] = [scalar | typed_facts(scalar) for scalar in pair["scalars"]]
    return content


FORMAT = RecordFormat(
    "embgeo.comparison",
    2,
    SavedComparison,
    COMPARISON_NAME,
    what="a comparison",
    again="compare again with: embgeo diff",
    check=_check,
    upgrades={1: _upgrade_1},
)


def comparison_to_json(comparison: Comparison) -> Json:
    """The content of ``comparison.json``; equal runs differ in ``timing`` only."""
    return FORMAT.to_json(_to_saved(comparison))


def save_comparison(comparison: Comparison, folder: Path) -> None:
    """Write everything but the report; ``comparison.json`` comes last.

    Raises
    ------
    EmbgeoError
        If `folder` cannot be written to.
    """
    for place, member in enumerate(comparison.members):
        member.analysis.save(folder / member.folder(place))
    FORMAT.save(_to_saved(comparison), folder)


def _to_saved(comparison: Comparison) -> SavedComparison:
    return SavedComparison(
        comparison.provenance,
        tuple(
            SavedMember(m.name, m.given, m.folder(place), m.from_saved, m.matrix_absent, m.step)
            for place, m in enumerate(comparison.members)
        ),
        comparison.sentences,
        comparison.notes,
        comparison.pairs,
        comparison.differences,
        comparison.track,
        comparison.timing,
    )


def load_comparison(folder: Path | str) -> Comparison:
    """Read a folder that :func:`save_comparison` wrote.

    Raises
    ------
    UnreadableFile
        If there is no comparison, a damaged one, or one of a format version that this embgeo does
        not know.
    """
    folder = Path(folder)
    saved = FORMAT.load(folder)
    home = folder if folder.is_dir() else folder.parent
    analyses = [load_analysis(home / member.folder) for member in saved.members]
    members = tuple(
        Member(m.name, m.given, analysis, m.from_saved, m.matrix_absent, m.step)
        for m, analysis in zip(saved.members, analyses, strict=True)
    )
    for pair in saved.pairs:
        for place in ("first", "second"):
            at = getattr(pair.matching, place)
            rows = len(members[getattr(pair, place)].analysis.rows)
            if at.ndim != 1 or (len(at) and not (at.min() >= 0 and at.max() < rows)):
                raise UnreadableFile(
                    "damaged (row numbers beyond the matrix)",
                    where=home / ARRAYS_NAME,
                    way_out=FORMAT.again,
                )
    return Comparison(
        saved.provenance,
        members,
        saved.pairs,
        saved.differences,
        saved.sentences,
        saved.notes,
        saved.track,
        saved.timing,
    )


def earlier_folders(folder: Path) -> list[str]:
    """Names of the members' folders of the comparison in `folder`; none if it is damaged."""
    try:
        folders = [member["folder"] for member in FORMAT.read(folder / COMPARISON_NAME)["members"]]
        _check_folders(folders)
    except (UnreadableFile, LookupError, TypeError, ValueError):
        return []
    return folders
