"""Exporting: results in the formats of other programs."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.comparison.originals import original, saved_folder
from embgeo.core.arguments import as_path, as_texts, refuse_name
from embgeo.core.errors import BadOption, UnreadableFile, argument, looking_at
from embgeo.core.matrix import Matrix
from embgeo.core.version import VERSION
from embgeo.core.visible import printable
from embgeo.publish.export import TARGETS, projector
from embgeo.publish.export.columns import (
    collect_columns,
    describe_columns,
    frequency,
    thin_rows,
)
from embgeo.publish.export.target import (
    FORMAT,
    FORMAT_VERSION,
    Labels,
    Request,
    Target,
    Vectors,
)
from embgeo.result.analysis import Analysis, load_analysis
from embgeo.workflows.folders import fresh_folder, move_files, result_name
from embgeo.workflows.request import AnalysisRequest

_ELSEWHERE = f"choose another place with {argument('out')}"
PROJECTOR, CARD = "projector", "model-card"
#: The target that an option is about; loading options are about the projector too.
ABOUT = {
    "checkpoint": PROJECTOR,
    "at_most": PROJECTOR,
    "bytes": PROJECTOR,
    "scalar": CARD,
    "name": CARD,
    "task": CARD,
}


@dataclass(frozen=True, slots=True)
class ExportedFiles:
    """What an export wrote.

    Attributes
    ----------
    paths : tuple of Path
    points : int
        Vectors that were written; 0 where the format takes none.
    shown_points : int
        Of these, how many the projector shows.
    """

    paths: tuple[Path, ...]
    points: int = 0
    shown_points: int = 0


def export(
    source: Analysis | Path | str,
    to: str,
    out: Path | str | None = None,
    *,
    checkpoint: Path | str | None = None,
    at_most: int | None = None,
    bytes: bool = False,
    scalar: Sequence[str] = (),
    name: str | None = None,
    task: str | None = None,
    command: str = "",
    **loading: Any,
) -> ExportedFiles:
    """Write a saved analysis in the format of another program.

    Parameters
    ----------
    source : Analysis or path
        A folder that :func:`embgeo.analyze` saved; for the projector also a checkpoint.
    to : {"projector", "parquet", "csv", "npz", "model-card"}
    out : path, optional
        File, or folder for the projector; named after the source by default.
    checkpoint : path, optional
        Projector: where the analyzed checkpoint is, if it was moved.
    at_most : int, optional
        Projector: at most this many rows, evenly over the order of frequency.
    bytes : bool
        Projector: vectors as bare numbers, not as text.
    scalar : sequence of str
        Model card: names of values to show, such as ``"cosine.mean"``.
    name, task : str, optional
        Model card: name and task of the model.
    command : str
        Recorded in the export.
    **loading
        Projector, of a checkpoint: arguments of :func:`embgeo.load`.

    Returns
    -------
    ExportedFiles

    Raises
    ------
    BadOption
        An argument that does not belong to the format, or a path that embgeo did not write.
    EmbgeoError
        If the source cannot be read, or the export not written.
    """
    target = target_called(to)
    chosen = {
        "checkpoint": checkpoint,
        "at_most": at_most,
        "bytes": bytes or None,
        "scalar": as_texts(scalar, "scalar") or None,
        "name": name,
        "task": task,
    }
    check_about(to, {**loading, **{key: v for key, v in chosen.items() if v is not None}})
    if not isinstance(source, Analysis | str | os.PathLike):
        raise BadOption(
            f"{type(source).__name__} is not an analysis",
            where=argument("source"),
            way_out="give an analysis, or the folder that holds one",
        )
    item = source if isinstance(source, Analysis) else Path(source)
    path = as_path(out, "out") if out is not None else Path(f"{stem_of(item)}{target.suffix}")
    check_free(target, path)
    request = export_request(item, target, loading, chosen, command)
    points = 0 if request.vectors is None else request.vectors.n
    written = write_export(target, request, path)
    return ExportedFiles(tuple(written), points, min(points, projector.SHOWN_POINTS))


def target_called(name: str) -> Target:
    """The format of that name."""
    known = {target.name: target for target in TARGETS}
    if name not in known:
        raise refuse_name("format", name, known, argument("to"))
    return known[name]


def check_about(to: str, given: Mapping[str, object]) -> None:
    """Refuse options that would do nothing."""
    for name in given:
        about = ABOUT.get(name, PROJECTOR)
        if to != about:
            cause = f"is about {argument('to', about)}"
            raise BadOption(cause, where=argument(name), way_out="leave it out")


def stem_of(source: Analysis | Path) -> str:
    if isinstance(source, Path):
        return result_name(source)
    return result_name(Path(str(source.provenance.get("file") or "analysis")))


def check_free(target: Target, path: Path) -> None:
    """Refuse, before anything is read, to write over what is not ours."""
    with looking_at(path, _ELSEWHERE):
        taken = path.exists() or path.is_symlink()
        empty = path.is_dir() and target.needs_vectors and not any(path.iterdir())
    if taken and not empty and not target.is_ours(path):
        cause = "exists and was not made by this command"
        raise BadOption(cause, where=path, way_out=_ELSEWHERE)


def export_request(
    source: Analysis | Path,
    target: Target,
    loading: Mapping[str, Any],
    chosen: Mapping[str, Any],
    command: str,
) -> Request:
    """What is exported, read."""
    shown = str(source) if isinstance(source, Path) else str(source.provenance.get("file") or "")
    record: dict[str, Any] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "target": target.name,
        "source": printable(shown),
        "command": printable(command),
        "versions": {"embgeo": VERSION, "python": platform.python_version()},
    }
    folder = saved_folder(source) if isinstance(source, Path) else Path()
    if folder is None:
        assert isinstance(source, Path)
        if not target.needs_vectors:
            raise UnreadableFile(
                "no saved analysis" if source.exists() else "no such folder",
                where=source,
                way_out="make one with: embgeo analyze CHECKPOINT",
            )
        if chosen["checkpoint"] is not None:
            refuse_given("checkpoint", "a saved analysis, and this is a checkpoint")
        request = AnalysisRequest.of(source, **{"output": "none", **loading})
        vectors = of_checkpoint(request, chosen["at_most"])
        record |= {"matrix": vectors.origin}
        return Request(record, vectors=vectors, binary=bool(chosen["bytes"]))
    for name in loading:
        refuse_given(name, "a checkpoint, and this is a saved analysis")
    analysis = load_analysis(folder) if isinstance(source, Path) else source
    record |= {"columns": describe_columns(analysis), "analysis": analysis.provenance}
    return Request(
        record,
        analysis,
        of_analysis(analysis, folder, chosen["checkpoint"], chosen["at_most"])
        if target.needs_vectors
        else None,
        scalars=tuple(dict.fromkeys(chosen["scalar"] or ())),
        model=chosen["name"] or stem_of(source),
        task=chosen["task"] or "text-generation",
        binary=bool(chosen["bytes"]),
    )


def refuse_given(name: str, about: str) -> None:
    raise BadOption(f"is about {about}", where=argument(name), way_out="leave it out")


def write_export(target: Target, request: Request, path: Path) -> list[Path]:
    """Write whole or not at all; the paths that were written."""
    path = path.absolute()
    with fresh_folder(path.parent, path, _ELSEWHERE) as fresh:
        target.write(request, fresh / path.name)
        written = sorted(p.relative_to(fresh) for p in fresh.rglob("*") if p.is_file())
        # The record first: what is half there is known as ours. What the projector looks for last.
        order = sorted(
            written, key=lambda p: (p.suffix != ".json", p.name == projector.CONFIGURATION)
        )
        if path.is_dir():
            (path / projector.CONFIGURATION).unlink(missing_ok=True)
        move_files(fresh, path.parent, order)
    return [path] if path.is_file() else [path.parent / name for name in written]


def of_analysis(
    analysis: Analysis, folder: Path, checkpoint: Path | str | None, at_most: int | None
) -> Vectors:
    """The kept rows of the matrix that was analyzed, with what the analysis says of each."""
    named = analysis
    if checkpoint is not None:
        named = replace(analysis, provenance={**analysis.provenance, "file": str(checkpoint)})
    matrix, why = original(named, folder)
    if matrix is None:
        raise BadOption(
            why, where=folder, way_out=f"name the checkpoint with {argument('checkpoint')}"
        )
    known = frequency(analysis)
    falling = None
    if known is not None:
        falling = known[1] if known[0] == "count" else -known[1]
    positions = choose_rows(falling, len(analysis.rows), at_most)
    columns = {
        k: v for k, v in collect_columns(analysis).items() if not k.startswith("projection.")
    }
    if analysis.popular is not None:
        # Words, which the projector colors as classes.
        columns["class"] = ["popular" if p else "rare" for p in columns.pop("popular")]
    # Tokens come first: the projector shows the first column.
    names = sorted(columns, key=lambda name: (name != "token", name != "row"))
    labels = picked({name: columns[name] for name in names}, positions)
    return vectors(matrix, analysis.rows[positions], labels)


def of_checkpoint(request: AnalysisRequest, at_most: int | None) -> Vectors:
    """The rows of a checkpoint that are finite and no padding, with tokens and counts."""
    matrix = request.load()
    usable = np.ones(matrix.n, dtype=bool)
    for masked in matrix.masked.values():
        usable[masked] = False
    for index, block in matrix.blocks():
        usable[index] &= np.isfinite(block).all(axis=1)
    kept = np.flatnonzero(usable)
    if not len(kept):
        raise BadOption(
            "no row is finite",
            where=request.source.path,
            way_out=f"choose another {argument('tensor')}",
        )
    columns: dict[str, Any] = {"row": kept}
    if matrix.tokens is not None:
        columns = {"token": [matrix.tokens[i] for i in kept], **columns}
    falling = None
    if matrix.frequency is not None:
        falling = matrix.frequency.counts[kept]
        if matrix.frequency.kind == "counts":
            columns["count"] = falling.astype(np.int64)
    positions = choose_rows(falling, len(kept), at_most)
    return vectors(matrix, kept[positions], picked(columns, positions))


def choose_rows(
    falling: npt.NDArray[Any] | None, rows: int, at_most: int | None
) -> npt.NDArray[np.int64]:
    as_float = None if falling is None else np.asarray(falling, dtype=np.float64)
    return thin_rows(as_float, rows, rows if at_most is None else at_most)


def picked(columns: dict[str, Any], positions: npt.NDArray[np.int64]) -> Labels:
    """The columns at these positions, as Python's own values."""
    values = []
    for column in columns.values():
        if isinstance(column, np.ndarray):
            values.append(column[positions].tolist())
        else:
            values.append([column[i] for i in positions.tolist()])
    return Labels(tuple(columns), tuple(values))


def vectors(matrix: Matrix, rows: npt.NDArray[np.int64], labels: Labels) -> Vectors:
    def blocks() -> Iterator[npt.NDArray[np.float64]]:
        for _, block in matrix.blocks(rows):
            yield block

    origin = {
        "file": matrix.origin.path,
        "tensor": matrix.origin.tensor,
        "sha256": matrix.origin.sha256,
        "n": matrix.n,
        "d": matrix.d,
    }
    name = matrix.origin.tensor or matrix.name
    return Vectors(name, len(rows), matrix.d, blocks, labels, origin)
