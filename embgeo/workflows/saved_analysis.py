"""Saved analyses, their names, and the matrices that they were made of, if still there."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from embgeo.core.errors import EmbgeoError
from embgeo.core.matrix import Matrix
from embgeo.io.places.cache import find_whole_snapshot
from embgeo.io.places.kept import find_kept
from embgeo.io.places.names import is_remote, read_bare_name, read_hub_name, short_name
from embgeo.result.analysis import Analysis
from embgeo.result.saved import JSON_NAME


def saved_folder(path: Path) -> Path | None:
    """Return the folder of a saved analysis, if `path` is one (or its ``analysis.json``)."""
    if path.name == JSON_NAME and path.is_file():
        return path.parent
    return path if path.is_dir() and (path / JSON_NAME).is_file() else None


def load_analyzed_matrix(
    analysis: Analysis, folder: Path | None, *, anywhere: bool = False
) -> tuple[Matrix | None, str]:
    """Load the analyzed matrix, or why it cannot be read.

    `folder` is that of a saved analysis, which may be a stranger's: unless it may lie `anywhere`,
    the file has to lie beside it, or below the working folder. A relative path in the provenance is
    resolved from the working directory, then from the parent of `folder`; then a file of that name
    in `folder` is tried.
    """
    p = analysis.provenance
    given, digest = str(p.get("file") or ""), str(p.get("sha256") or "")
    if p.get("parts") and not digest:
        return None, "the saved analysis was merged from parts"
    if not given or given == "-" or not digest:
        return None, "the saved analysis was made of an array in memory, or of a pipe"
    path = locate_checkpoint(given, folder)
    if path is None:
        return None, f"{given}, the checkpoint of the saved analysis, was not found"
    allowed = anywhere or folder is None or is_remote(given) or is_beside(path, folder)
    if not allowed:
        return None, f"{given}, the checkpoint of the saved analysis, is not in its folder"
    try:
        matrix = load_again(path, p)
    except EmbgeoError as error:
        return None, f"{given}, the checkpoint of the saved analysis, cannot be read: {error.cause}"
    if matrix.origin.sha256 != digest:
        return None, f"{given} has changed since it was analyzed (another sha256)"
    name = matrix.origin.tensor or matrix.name
    if (name, matrix.n, matrix.d) != (p.get("tensor"), p.get("n"), p.get("d")):
        return None, f"{given} gives another matrix than the one that was analyzed"
    return matrix, ""


def locate_checkpoint(given: str, folder: Path | None) -> str | None:
    """Return the path of the existing file."""
    if is_remote(given):
        hub = read_hub_name(given)
        if hub is None:
            return None
        if (snapshot := find_whole_snapshot(hub)) is not None:
            return str(snapshot / hub.path)
        # A bare name never leads to the network, whoever wrote the analysis.
        bare = hub.text.partition("://")[2]
        is_bare = read_bare_name(bare) is not None and find_kept(hub) is not None
        return bare if is_bare else None
    if Path(given).exists():
        return given
    if folder is None:
        return None
    # A run keeps its model next to the analysis, whatever folder it was trained from.
    paths = (folder.absolute().parent / given, folder / Path(given).name)
    return next((str(path) for path in paths if path.exists()), None)


def is_beside(path: str, folder: Path) -> bool:
    """Tell whether a file lies in or below the parent of an analysis, or the working folder."""
    file = Path(path).resolve()
    return any(file.is_relative_to(home) for home in (folder.resolve().parent, Path.cwd()))


def load_again(path: str, provenance: dict[str, Any]) -> Matrix:
    """Load the same tensor, rows and orientation as in the analysis; without labels and counts."""
    from embgeo.io.load import load

    rows = provenance.get("row_range")
    named = str(provenance.get("tensor") or "")
    # The array of a file with a single array has no name: the analysis names it after the file.
    nameless = named == Path(path).name
    return load(
        path,
        tensor=None if nameless else named,
        output="none",
        rows=None if rows is None else (int(rows[0]), int(rows[1])),
        transpose=bool(provenance.get("transposed")),
        padding="keep",
    )


def default_name(path: Path) -> str:
    """Return the name of a folder, or of a file without its last suffix, of a link its own."""
    if str(path) == "-":
        return "stdin"
    if is_remote(path):
        return short_name(path)
    named = Path(os.path.abspath(path))
    return (named.name if named.is_dir() else named.stem) or "analysis"


def result_name(path: Path) -> str:
    """Return the name of the folder of a saved analysis, or of a checkpoint."""
    folder = saved_folder(path)
    if folder is None:
        return default_name(path)
    return Path(os.path.abspath(folder)).name.removesuffix(".embgeo") or "analysis"


def comparison_folder(paths: Sequence[Path], track: bool) -> Path:
    """Name a comparison: ``BASELINE-vs-OTHER.embgeo``, or ``FIRST-to-LAST.embgeo`` for a track."""
    names = [result_name(path)[:60] for path in paths]
    if track:
        return Path(f"{names[0]}-to-{names[-1]}.embgeo")
    others = names[1] if len(names) == 2 else f"{len(names) - 1}-others"
    return Path(f"{names[0]}-vs-{others}.embgeo")
