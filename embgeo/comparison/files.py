"""A comparison as a folder, saved and read back.

The folder holds ``comparison.json`` (how it came about, differences, numbers that take both
matrices), ``arrays.npz`` (which kept row of one is which of the other, and whatever else has one
entry a shared token), one folder with the analysis of each compared matrix (``0-baseline``, …),
and, once rendered, ``report.html``.
"""

from __future__ import annotations

from pathlib import Path

from embgeo.comparison.comparison import Comparison, Member
from embgeo.comparison.saved import COMPARISON_NAME, FORMAT, check_folders
from embgeo.core.errors import UnreadableFile
from embgeo.io.bounded.records import ARRAYS_NAME
from embgeo.result.analysis import load_analysis


def load_comparison(folder: Path | str) -> Comparison:
    """Read a folder that :meth:`Comparison.save` wrote.

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
        check_folders(folders)
    except (UnreadableFile, LookupError, TypeError, ValueError):
        return []
    return folders
