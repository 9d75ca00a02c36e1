"""``embgeo.export``: results in the formats of other programs."""

import os
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.charts.render.paper import Venue
from embgeo.comparison.comparison import COMPARISON_NAME
from embgeo.core import errors
from embgeo.core.arguments import as_path, refuse_if, refuse_name, refuse_type
from embgeo.core.options import known_arguments
from embgeo.core.settings import Positive, parse_value
from embgeo.core.text import printable
from embgeo.core.version import VERSION
from embgeo.files.guard import suggest_file
from embgeo.files.records import as_text
from embgeo.files.saved import temporary_folder, write_file
from embgeo.publish.export import TARGETS, csv_file, projector
from embgeo.publish.export import study as of_study
from embgeo.publish.export.columns import (
    collect_columns,
    describe_columns,
    frequency,
    thin_rows,
)
from embgeo.publish.export.target import FORMAT, FORMAT_VERSION, Request, Target, Vectors
from embgeo.publish.latex import numbers
from embgeo.result.analysis import Analysis, load_analysis
from embgeo.training.study.record import STUDY_NAME, Study, load_study
from embgeo.workflows import folders
from embgeo.workflows.figures import choose_page, folder_name, load_items, make_table
from embgeo.workflows.render import names_result
from embgeo.workflows.saved_analysis import load_analyzed_matrix, result_name, saved_folder

ELSEWHERE = f"choose another place with {errors.argument('out')}"


@dataclass(frozen=True, slots=True)
class ExportedFiles:
    """The files of an export.

    Attributes
    ----------
    paths : tuple of Path
    points : int
        Number of written vectors; 0 for formats without vectors.
    shown_points : int
        Number of points that the projector shows of them.
    """

    paths: tuple[Path, ...]
    points: int = 0
    shown_points: int = 0


@known_arguments
def export(
    source: Analysis | Study | Path | str,
    to: str,
    out: Path | str | None = None,
    *,
    checkpoint: Path | str | None = None,
    at_most: int | None = None,
    bytes: bool = False,
    venue: str | None = None,
    command: str = "",
) -> ExportedFiles:
    """Write a saved analysis or comparison, or the tables of a study, for another program.

    Parameters
    ----------
    source : Analysis, Study or path
        A folder that :func:`embgeo.analyze`, :func:`embgeo.diff` or :func:`embgeo.train` saved.
    to : {"projector", "parquet", "csv", "latex", "markdown"}
        Of a study: "csv", "latex" or "markdown". Of an analysis: all but "markdown". Of a
        comparison: "latex".
    out : path, optional
        File, or folder for the projector; named after the source by default.
    checkpoint : path, optional
        Projector: the analyzed checkpoint, if it was moved.
    at_most : int, optional
        Projector: at most this many rows, evenly over the order of frequency.
    bytes : bool
        Projector: write vectors as bare numbers, not as text.
    venue : {"iclr", "neurips", "icml", "acl"}, optional
        LaTeX: the venue whose widths tables have; "iclr" by default.
    command : str
        Recorded in the export.

    Returns
    -------
    ExportedFiles

    Raises
    ------
    BadOption
        If an argument is not about the format, or `out` exists and is not an export.
    EmbgeoError
        If the source cannot be read or the export cannot be written.

    Examples
    --------
    >>> import embgeo
    >>> analysis = embgeo.load_analysis("baseline.embgeo")  # doctest: +SKIP
    >>> embgeo.export(analysis, "csv", "rows.csv").paths  # doctest: +SKIP
    (PosixPath('rows.csv'), PosixPath('rows.csv.suspects.csv'))
    """
    targets = {target.name: target for target in TARGETS}
    if to not in (names := {**targets, **of_study.FORMS}):
        raise refuse_name("format", to, names, errors.argument("to"))
    for option, value, kind in (
        ("checkpoint", checkpoint, projector.TARGET.name),
        ("at_most", at_most, projector.TARGET.name),
        ("bytes", bytes or None, projector.TARGET.name),
        ("venue", venue, "latex"),
    ):
        cause = f"is about {errors.argument('to', kind)}"
        useless = value is not None and to != kind
        refuse_if(useless, errors.argument(option), cause, "leave it out")
    at_most = parse_value(at_most, Positive | None, errors.argument("at_most"))
    page = choose_page(venue, None)
    item = Path(source) if isinstance(source, str | os.PathLike) else source
    if not isinstance(item, Analysis | Study | Path):
        raise refuse_type(source, "source", "an analysis or a study, or the folder of one")
    folder = None
    is_study = isinstance(item, Path) and names_result(item, STUDY_NAME)
    if is_study or isinstance(item, Study):
        kind, formats = "a study", [*of_study.FORMS]
    elif isinstance(item, Path) and names_result(item, COMPARISON_NAME):
        kind, formats = "a comparison", ["latex"]
    else:
        kind, formats = "an analysis", [*targets, "latex"]
        if isinstance(item, Path) and (folder := saved_folder(item)) is None:
            cause = "no saved analysis" if item.exists() else "no such folder"
            way_out = suggest_file(item, "make one with: embgeo analyze CHECKPOINT")
            raise errors.UnreadableFile(cause, where=item, way_out=way_out)
    way_out = f"choose from {', '.join(formats)}"
    refuse_if(to not in formats, errors.argument("to", to), f"is not a format of {kind}", way_out)
    if isinstance(item, Study) or (isinstance(item, Path) and is_study):
        return export_study(item, to, page, out, command)
    if to == "latex":
        return export_numbers(item, page, out, command)
    target = targets[to]
    file = item if isinstance(item, Path) else Path(str(item.provenance.get("file") or "analysis"))
    path = choose_path(out, f"{result_name(file)}{target.suffix}", target)
    if isinstance(item, Path):
        item = load_analysis(folder or item)
    record = describe_export(to, str(source) if folder else item.provenance.get("file"), command)
    record |= {"columns": describe_columns(item), "analysis": item.provenance}
    if not target.needs_vectors:
        return ExportedFiles(write_beside(path, partial(target.write, Request(record, item))))
    vectors = read_original(item, folder, checkpoint, at_most)
    request = Request(record, item, vectors, binary=bytes)
    path = path.absolute()
    folders.write_whole(path, partial(target.write, request), projector.FILES, ELSEWHERE)
    written = sorted(path / name for name in folders.find_files(path, projector.FILES))
    return ExportedFiles(tuple(written), vectors.n, min(vectors.n, projector.SHOWN_POINTS))


def export_numbers(
    source: Analysis | Path, page: Venue, out: Path | str | None, command: str
) -> ExportedFiles:
    """Write the table of the main numbers of an analysis or of the members of a comparison."""
    items = load_items([source])
    name = "analysis"
    if isinstance(source, Path):
        name = folder_name(source if source.is_dir() else source.parent)
    path = choose_path(out, f"{name}.tex", csv_file.TARGET)
    beside = f"{path.name}{csv_file.RECORD_ENDING}"
    made = make_table(
        numbers.TABLE, items, (), signs="both", page=page, command=command, record=beside
    )
    record = describe_export("latex", source if isinstance(source, Path) else "", command)
    record["sources"] = made.record["sources"]

    def fill(target: Path) -> None:
        write_file(target, made.files["numbers.tex"])
        write_file(target.with_name(beside), as_text(record))

    return ExportedFiles(write_beside(path, fill))


def export_study(
    source: Study | Path, to: str, page: Venue, out: Path | str | None, command: str
) -> ExportedFiles:
    name = ""
    if isinstance(source, Path):
        name = (source if source.is_dir() else source.parent).resolve().name
    path = choose_path(out, f"{name or 'study'}{of_study.FORMS[to].suffix}", csv_file.TARGET)
    study = load_study(source) if isinstance(source, Path) else source
    record = describe_export(to, source if isinstance(source, Path) else "", command)
    return ExportedFiles(write_beside(path, partial(of_study.write, study, to, page, record)))


def choose_path(out: Path | str | None, usual: str, target: Target) -> Path:
    """Return where to write, before anything is read: only an earlier export is replaced."""
    path = Path(usual) if out is None else as_path(out, "out")
    folders.refuse_place(path, ELSEWHERE)
    with errors.looking_at(path, ELSEWHERE):
        taken = path.exists() or path.is_symlink()
        empty = path.is_dir() and target.needs_vectors and not any(path.iterdir())
    if taken and not empty and not target.is_ours(path):
        cause = "exists and was not made by this command"
        raise errors.BadOption(cause, where=path, way_out=ELSEWHERE)
    return path


def describe_export(to: str, source: Path | str | None, command: str) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "target": to,
        "source": printable(str(source or "")),
        "command": printable(command),
        "versions": {"embgeo": VERSION, "python": platform.python_version()},
    }


def write_beside(path: Path, fill: Callable[[Path], object]) -> tuple[Path, ...]:
    """Write a file and those that ``fill(path)`` puts beside it, all or none; return their paths.

    The record of how they were made is not among the paths.
    """
    path = path.absolute()
    with errors.writing(path, ELSEWHERE), temporary_folder(path.parent) as fresh:
        fill(fresh / path.name)
        named = sorted(one.name for one in fresh.iterdir() if one.suffix != ".json")
        folders.replace_files(fresh, path.parent)
    return tuple(path.parent / name for name in named)


def read_original(
    analysis: Analysis, folder: Path | None, checkpoint: Path | str | None, at_most: int | None
) -> Vectors:
    """Read the kept rows of the analyzed matrix, labeled with the columns of the analysis."""
    moved = {} if checkpoint is None else {"file": str(checkpoint)}
    named = replace(analysis, provenance={**analysis.provenance, **moved})
    matrix, reason = load_analyzed_matrix(named, None if moved else folder)
    if matrix is None:
        way_out = f"name the checkpoint with {errors.argument('checkpoint')}"
        where = folder or str(analysis.provenance.get("file") or "analysis")
        raise errors.BadOption(reason, where=where, way_out=way_out)
    known = frequency(analysis)
    falling = None
    if known is not None:
        falling = known[1] if known[0] == "count" else -known[1]
    columns: dict[str, Any] = {
        k: v for k, v in collect_columns(analysis).items() if not k.startswith("projection.")
    }
    if analysis.popular is not None:
        # Words, which the projector colors as classes.
        columns["class"] = ["frequent" if p else "rare" for p in columns.pop("popular")]
    positions = thin_rows(falling, len(analysis.rows), at_most)

    def blocks() -> Iterator[npt.NDArray[np.float64]]:
        for _, block in matrix.blocks(analysis.rows[positions]):
            yield block

    # Tokens come first: the projector shows the first column.
    names = sorted(columns, key=lambda name: (name != "token", name != "row"))
    labels = {
        name: column[positions].tolist()
        if isinstance(column := columns[name], np.ndarray)
        else [column[i] for i in positions]
        for name in names
    }
    name = matrix.origin.tensor or matrix.name
    return Vectors(name, len(positions), matrix.d, blocks, labels)
