"""A comparison as a folder, saved and read back.

The folder holds ``comparison.json`` (how it came about, differences, numbers that take both
matrices), ``arrays.npz`` (which kept row of one is which of the other, and whatever else has one
entry a shared token), one folder with the analysis of each compared matrix (``0-baseline``, …),
and, once rendered, ``report.html``.

Format history
--------------
1 : first version (embgeo 0.1).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.comparison import stored
from embgeo.comparison.comparison import Comparison, Member, Pair
from embgeo.core.errors import EmbgeoError, UnreadableFile
from embgeo.io.bounded.records import ARRAYS_NAME
from embgeo.io.bounded.saved import DAMAGE, AtomicFile, read_json, write_text
from embgeo.result.analysis import Analysis, load_analysis

FORMAT = "embgeo.comparison"
FORMAT_VERSION = 1
COMPARISON_NAME = "comparison.json"
#: What a folder of a member may be called: its place, a hyphen, something plain.
MEMBER_FOLDER = re.compile(r"\d{1,4}-[A-Za-z0-9._-]{0,60}")

_AGAIN = "compare again with: embgeo diff"


def comparison_to_json(comparison: Comparison) -> dict[str, Any]:
    """The content of ``comparison.json``; equal runs differ in ``timing`` only."""
    track = comparison.track
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "provenance": comparison.provenance,
        "members": [
            {
                "name": m.name,
                "given": m.given,
                "folder": m.folder(place),
                "from_saved": m.from_saved,
                "matrix_absent": m.matrix_absent,
                "step": m.step,
            }
            for place, m in enumerate(comparison.members)
        ],
        "sentences": list(comparison.sentences),
        "notes": list(comparison.notes),
        "pairs": [stored.pair_to_json(p) for p in comparison.pairs],
        "differences": [stored.difference_to_json(d) for d in comparison.differences],
        "track": None if track is None else stored.track_to_json(track),
        "timing": dict(comparison.timing),
    }


def save_comparison(comparison: Comparison, folder: Path) -> None:
    """Write everything but the report; ``comparison.json`` comes last.

    Raises
    ------
    EmbgeoError
        If `folder` cannot be written to.
    """
    content = comparison_to_json(comparison)
    text = json.dumps(content, indent=1, ensure_ascii=True, allow_nan=False) + "\n"
    arrays: dict[str, npt.NDArray[Any]] = {}
    for pair in comparison.pairs:
        arrays |= stored.pair_arrays(pair)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for place, member in enumerate(comparison.members):
            member.analysis.save(folder / member.folder(place))
        with AtomicFile(folder / ARRAYS_NAME) as temporary, temporary.open("wb") as stream:
            np.savez_compressed(stream, allow_pickle=False, **arrays)
        write_text(folder / COMPARISON_NAME, text)
    except OSError as error:
        raise EmbgeoError(
            f"cannot be written: {error.strerror or error}",
            where=folder,
            way_out="choose another folder with -o",
        ) from error


def load_comparison(folder: Path) -> Comparison:
    """Read a folder that :func:`save_comparison` wrote.

    Raises
    ------
    UnreadableFile
        If there is no comparison, a damaged one, or one of a format version that this embgeo does
        not know.
    """
    path = folder / COMPARISON_NAME if folder.is_dir() else folder
    d = _content(path, folder)
    analyses = [load_analysis(path.parent / name) for name in member_folders(d, path)]
    arrays_path = path.parent / ARRAYS_NAME
    try:
        # Opened here: np.load leaves its own file open where the archive turns out to be damaged.
        with arrays_path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
        comparison = _from_json(d, analyses, arrays)
        _check_belongs_together(comparison)
        return comparison
    except DAMAGE as error:
        raise UnreadableFile(
            f"damaged, or does not belong to its {COMPARISON_NAME} ({error})",
            where=arrays_path,
            way_out=_AGAIN,
        ) from error


def _content(path: Path, given: Path) -> dict[str, Any]:
    return read_json(path, given, (FORMAT, FORMAT_VERSION), "a comparison", _AGAIN)


def member_folders(d: dict[str, Any], path: Path) -> list[str]:
    """Names of the members' folders; nothing that leads out of the comparison's own.

    Raises
    ------
    UnreadableFile
    """
    try:
        folders: list[str] = [m["folder"] for m in d["members"]]
        sound = all(MEMBER_FOLDER.fullmatch(name) for name in folders) and len(folders) > 1
    except DAMAGE:
        sound = False
    if not sound:
        raise UnreadableFile("its list of members is damaged", where=path, way_out=_AGAIN)
    return folders


def earlier_folders(folder: Path) -> list[str]:
    """Names of the members' folders of the comparison in `folder`; none if it is damaged."""
    path = folder / COMPARISON_NAME
    try:
        return member_folders(_content(path, folder), path)
    except UnreadableFile:
        return []


def _from_json(
    d: dict[str, Any], analyses: list[Analysis], arrays: dict[str, npt.NDArray[Any]]
) -> Comparison:
    return Comparison(
        provenance=d["provenance"],
        members=tuple(
            Member(m["name"], m["given"], analysis, m["from_saved"], m["matrix_absent"], m["step"])
            for m, analysis in zip(d["members"], analyses, strict=True)
        ),
        pairs=tuple(stored.pair_from_json(p, arrays) for p in d["pairs"]),
        differences=tuple(map(stored.difference_from_json, d["differences"])),
        sentences=tuple(d["sentences"]),
        notes=tuple(d["notes"]),
        track=None if d["track"] is None else stored.track_from_json(d["track"]),
        timing=d["timing"],
    )


def _check_belongs_together(comparison: Comparison) -> None:
    """ValueError unless places, row numbers and lengths fit the analyses."""
    members = comparison.members
    for pair in comparison.pairs:
        _check_pair(pair, len(members))
        kept = (members[pair.first].analysis.rows, members[pair.second].analysis.rows)
        for at, rows in zip((pair.matching.first, pair.matching.second), kept, strict=True):
            if at.dtype.kind != "i" or at.ndim != 1:
                raise ValueError("row numbers are none")
            if len(at) and not (at.min() >= 0 and at.max() < len(rows)):
                raise ValueError("row numbers beyond the matrix")
    if any(not 0 < d.member < len(members) for d in comparison.differences):
        raise ValueError("a difference of no member")
    track = comparison.track
    lengths = set() if track is None else {len(track.steps)}
    if track is not None:
        lengths |= {len(c.values) for c in track.curves}
        lengths |= {len(c.standard_errors) for c in track.curves}
    if not lengths <= {len(members)}:
        raise ValueError(f"not every curve has {len(members)} points")


def _check_pair(pair: Pair, members: int) -> None:
    if not (0 <= pair.first < pair.second < members):
        raise ValueError("a pair of no members")
    lengths = {len(pair.matching.second), *(len(c.values) for c in pair.columns)}
    if lengths != {pair.matching.shared}:
        raise ValueError(f"not everything has {pair.matching.shared:,} shared tokens")
