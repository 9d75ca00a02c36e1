"""``embgeo repair``: suspects get new rows, in a copy of the model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embgeo.cli import options as o
from embgeo.cli.shared import guarded, print_json, print_lines, progress_bar

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
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="Folder of the repaired copy; must not exist."
        ),
    ] = None,
    only: Annotated[
        str,
        typer.Option(
            metavar="REASON,…",
            help="Suspects to replace: zero, mean, duplicate, …; all serious ones by default.",
        ),
    ] = "",
    rows: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Replace these instead: row numbers or tokens, one a line."
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="draw|mean|copy",
            help="Draw rows from the mean and covariance of the others, take their mean with "
            "noise, or copy a token.",
        ),
    ] = "draw",
    copy: Annotated[
        str | None, typer.Option(metavar="TOKEN", help="The token to copy, with noise.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random numbers.")] = 0,
    min_norm: o.MinNorm = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be written, and write nothing.")
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
    if json_:
        from embgeo.row_repair.record import FORMAT

        record = None if done.record is None else FORMAT.to_json(done.record)
        print_json(record)
    elif not quiet:
        summary(done, model)


def summary(done: Repair, model: Path) -> None:
    """Print the replaced rows, what is left, and the folder of the new model."""
    if done.record is None:
        print_lines(f"{model}: no row needs repair")
        return
    from embgeo.report.text.repair import render

    notes = (f"  note: {note}" for note in done.notes)
    end = "nothing was written" if done.folder is None else f"repaired: {done.folder}"
    print_lines(*render(done.record, done.left), *notes, end)
