"""``embgeo repair``: suspects get new rows, in a copy of the model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embgeo.cli import options as o
from embgeo.cli.shared import guarded, print_found, progress_bar

if TYPE_CHECKING:
    from embgeo.workflows.repair import Repair


@guarded
def repair(
    *,
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="Model folder with safetensors files, one such file, or hf://org/name.",
        ),
    ],
    out: Annotated[
        Path | None,
        o.option("Folder of the repaired copy; must not exist.", "--out", "-o", metavar="FOLDER"),
    ] = None,
    only: Annotated[
        str,
        o.option(
            "Suspects to replace: zero, mean, duplicate, …; all serious ones by default.",
            metavar="REASON,…",
        ),
    ] = "",
    rows: Annotated[
        Path | None,
        o.option("Replace these instead: row numbers or tokens, one a line.", metavar="FILE"),
    ] = None,
    method: Annotated[
        str,
        o.option(
            "Draw rows from the mean and covariance of the others, take their mean with "
            "noise, or copy a token.",
            metavar="draw|mean|copy",
        ),
    ] = "draw",
    copy: Annotated[str | None, o.option("The token to copy, with noise.", metavar="TOKEN")] = None,
    seed: Annotated[int, o.option("Seed of the random numbers.")] = 0,
    min_norm: o.MinNorm = None,
    dry_run: Annotated[
        bool, o.option("Show what would be written, and write nothing.", "--dry-run")
    ] = False,
    tensor: o.Tensor = None,
    output: o.Output = None,
    max_download: o.MaxDownload = None,
    json_: o.Json = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Replace suspicious rows of a model, in a copy.

    Rows of input embedding and output matrix are replaced together. Only the files that hold them
    are written anew, and in them only those rows; all others are linked. The copy says in
    embgeo-repair.json what was changed.

    Example: embgeo repair fixtures/cosreg.safetensors --dry-run
    """
    from embgeo.workflows.repair import repair as run

    with progress_bar(quiet) as progress:
        done = run(
            model,
            out,
            only=only,
            rows=rows,
            method=method,
            copy=copy,
            seed=seed,
            min_norm=min_norm,
            dry_run=dry_run,
            progress=progress,
            tensor=tensor,
            output=output,
            max_download=max_download,
        )
    from embgeo.row_repair.record import FORMAT

    record = None if done.record is None else FORMAT.to_json(done.record)
    print_found(record, summarize(done, model), json_, quiet)


def summarize(done: Repair, model: Path) -> Iterator[str]:
    """Yield the replaced rows, what is left, and the folder of the new model."""
    if done.record is None:
        yield f"{model}: no row needs repair"
        return
    from embgeo.report.text.repair import render

    yield from render(done.record, done.left)
    yield from (f"  note: {note}" for note in done.notes)
    yield "nothing was written" if done.folder is None else f"repaired: {done.folder}"
