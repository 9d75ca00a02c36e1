"""Exporting: results in the formats of other programs."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embgeo.comparison.originals import saved_folder
from embgeo.core.arguments import as_path, as_texts
from embgeo.core.errors import BadOption, UnreadableFile, argument, looking_at
from embgeo.core.version import embgeo_version
from embgeo.core.visible import printable
from embgeo.publish.export import TARGETS, projector
from embgeo.publish.export.columns import describe_columns
from embgeo.publish.export.target import FORMAT, FORMAT_VERSION, Request, Target
from embgeo.result.analysis import Analysis, load_analysis
from embgeo.workflows.export_vectors import of_analysis, of_checkpoint
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
            f"{type(source).__name__} is no analysis",
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
        raise BadOption(
            f"{name!r} is unknown",
            where=argument("to"),
            way_out=f"choose among {', '.join(known)}",
        )
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
        "versions": {"embgeo": embgeo_version(), "python": platform.python_version()},
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
        move_files(fresh, path.parent, written)
    return [path] if path.is_file() else [path.parent / name for name in written]
