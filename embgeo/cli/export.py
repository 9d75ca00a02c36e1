"""``embgeo export``: saved results in the formats of other programs."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import embgeo
from embgeo.cli.export_vectors import Reading, of_analysis, of_checkpoint
from embgeo.cli.shared import Debug, Quiet, command_line, guarded, printable
from embgeo.core.errors import BadOption, EmbgeoError, UnreadableFile

if TYPE_CHECKING:
    from embgeo.publish.export.base import Request, Target


class To(StrEnum):
    """Where to."""

    projector = "projector"
    parquet = "parquet"
    csv = "csv"
    npz = "npz"
    card = "model-card"


#: Options that are about some targets only.
ABOUT = {
    "--checkpoint": (To.projector,),
    "--tensor": (To.projector,),
    "--rows": (To.projector,),
    "--transpose": (To.projector,),
    "--tokens": (To.projector,),
    "--counts": (To.projector,),
    "--at-most": (To.projector,),
    "--bytes": (To.projector,),
    "--scalar": (To.card,),
    "--name": (To.card,),
    "--task": (To.card,),
}


@guarded
def export(
    source: Annotated[
        Path,
        typer.Argument(
            help="Folder that embgeo analyze wrote; for the projector also a checkpoint."
        ),
    ],
    to: Annotated[To, typer.Option(help="Format.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File, or folder for the projector; NAME.format here."),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Projector: where the analyzed checkpoint is, if it was moved."),
    ] = None,
    tensor: Annotated[
        str | None, typer.Option(help="Projector, of a checkpoint: name of the tensor.")
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(metavar="A:B", help="Projector, of a checkpoint: rows A to B−1."),
    ] = None,
    transpose: Annotated[
        bool,
        typer.Option("--transpose", help="Projector, of a checkpoint: tokens are columns."),
    ] = False,
    tokens: Annotated[
        Path | None, typer.Option(help="Projector, of a checkpoint: token labels.")
    ] = None,
    counts: Annotated[
        Path | None, typer.Option(help="Projector, of a checkpoint: token counts.")
    ] = None,
    at_most: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Projector: N rows, evenly over the order of frequency."
        ),
    ] = None,
    binary: Annotated[
        bool, typer.Option("--bytes", help="Projector: vectors as bare numbers, not as text.")
    ] = False,
    scalar: Annotated[
        list[str] | None,
        typer.Option(help="Model card: a value to show, such as cosine.mean; repeatable."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Model card: name of the model.")] = None,
    task: Annotated[
        str | None, typer.Option(help="Model card: task of the model; text-generation.")
    ] = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write a saved analysis in the format of another program.

    Example: embgeo export baseline.embgeo --to csv
    """
    from embgeo.publish.export import TARGETS

    reading = Reading(tensor, rows, transpose, tokens, counts)
    given = reading.given() | {
        "--checkpoint": checkpoint, "--at-most": at_most, "--bytes": binary or None,
        "--scalar": scalar or None, "--name": name, "--task": task,
    }  # fmt: skip
    check_about(to, given)
    target = next(t for t in TARGETS if t.name == to.value)
    stem = default_stem(source)
    path = out if out is not None else Path(f"{stem}{target.suffix}")
    check_free(target, path)
    request = requested(source, target, reading, given)
    written = write(target, request, path)
    if not quiet:
        for one in written:
            print(printable(str(one)))
        for note in notes(request):
            print(printable(f"  note: {note}"))


def check_about(to: To, given: Mapping[str, object]) -> None:
    """Refuse options that would do nothing.

    Raises
    ------
    BadOption
    """
    for option, value in given.items():
        if value is not None and to not in ABOUT[option]:
            raise BadOption(
                f"is about --to {ABOUT[option][0].value}", where=option, way_out="leave it out"
            )


def default_stem(source: Path) -> str:
    from embgeo.comparison.originals import saved_folder
    from embgeo.workflows.names import default_name

    folder = saved_folder(source)
    if folder is None:
        return default_name(source)
    return folder.resolve().name.removesuffix(".embgeo") or "analysis"


def check_free(target: Target, path: Path) -> None:
    """Refuse, before anything is read, to write over what is not ours.

    Raises
    ------
    BadOption
    """
    try:
        taken = path.exists() or path.is_symlink()
        empty = path.is_dir() and target.needs_vectors and not any(path.iterdir())
    except OSError as error:  # too long a name, a loop of links, a folder that may not be read
        cause = f"cannot be used: {error.strerror or error}"
        raise BadOption(cause, where=path, way_out="choose another place with -o") from error
    if taken and not empty and not target.is_ours(path):
        raise BadOption(
            "exists and was not made by this command",
            where=path,
            way_out="choose another place with -o",
        )


def requested(source: Path, target: Target, reading: Reading, given: Mapping[str, Any]) -> Request:
    """What is exported, read.

    Raises
    ------
    EmbgeoError
    """
    from embgeo.comparison.originals import saved_folder
    from embgeo.publish.export.base import FORMAT, FORMAT_VERSION, Request
    from embgeo.publish.export.columns import meanings
    from embgeo.result.analysis import load_analysis

    record: dict[str, Any] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "target": target.name,
        "source": printable(str(source)),
        "command": printable(command_line()),
        "versions": {"embgeo": embgeo.__version__, "python": platform.python_version()},
    }
    folder = saved_folder(source)
    if folder is None:
        if not target.needs_vectors:
            raise UnreadableFile(
                "no saved analysis" if source.exists() else "no such folder",
                where=source,
                way_out="make one with: embgeo analyze CHECKPOINT",
            )
        refuse_given(given, ("--checkpoint",), "a saved analysis, and this is a checkpoint")
        vectors = of_checkpoint(source, reading, given["--at-most"])
        record |= {"matrix": vectors.origin}
        return Request(record, vectors=vectors, binary=bool(given["--bytes"]))
    refuse_given(given, tuple(reading.given()), "a checkpoint, and this is a saved analysis")
    analysis = load_analysis(folder)
    record |= {"columns": meanings(analysis), "analysis": analysis.provenance}
    return Request(
        record,
        analysis,
        of_analysis(analysis, folder, given["--checkpoint"], given["--at-most"])
        if target.needs_vectors
        else None,
        scalars=tuple(dict.fromkeys(given["--scalar"] or ())),
        model=given["--name"] or default_stem(source),
        task=given["--task"] or "text-generation",
        binary=bool(given["--bytes"]),
    )


def refuse_given(given: Mapping[str, object], options: tuple[str, ...], about: str) -> None:
    for option in options:
        if given[option] is not None:
            raise BadOption(f"is about {about}", where=option, way_out="leave it out")


def write(target: Target, request: Request, path: Path) -> list[Path]:
    """Write whole or not at all; the paths that were written.

    Raises
    ------
    EmbgeoError
    """
    path = path.absolute()
    fresh: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=".embgeo.", dir=path.parent))
        target.write(request, fresh / path.name)
        written = sorted(p.relative_to(fresh) for p in fresh.rglob("*") if p.is_file())
        for name in written:
            (path.parent / name).parent.mkdir(exist_ok=True)
            os.replace(fresh / name, path.parent / name)
    except OSError as error:
        raise EmbgeoError(
            f"cannot be written: {error.strerror or error}",
            where=path,
            way_out="choose another place with -o",
        ) from error
    finally:
        if fresh is not None:
            shutil.rmtree(fresh, ignore_errors=True)
    return [path] if path.is_file() else [path.parent / name for name in written]


def notes(request: Request) -> list[str]:
    """What a user has to know about what was written."""
    from embgeo.publish.export.projector import SHOWN_POINTS

    if request.vectors is None or request.vectors.n <= SHOWN_POINTS:
        return []
    return [
        f"the projector shows the first {SHOWN_POINTS:,} points of {request.vectors.n:,}; "
        "--at-most chooses as many evenly over the order of frequency"
    ]
