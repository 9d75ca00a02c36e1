"""``embgeo repair``: damaged rows get new values, in a copy of the model."""

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
    rows: Annotated[
        str,
        typer.Option(
            metavar="damaged|special|FILE",
            help="Rows to replace: damaged ones, those among special tokens only, or the row "
            "numbers or tokens in a file, one a line.",
        ),
    ] = "damaged",
    method: Annotated[
        str | None,
        typer.Option(
            metavar="output|subwords|mean",
            help="What new rows are made of; output for untied models by default, else mean.",
        ),
    ] = None,
    max_rows: Annotated[int, typer.Option(min=1, help="Refuse to replace more than this.")] = 256,
    min_norm: o.MinNorm = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be written, and write nothing.")
    ] = False,
    diff: Annotated[bool, typer.Option(help="Compare the new model with the old one.")] = True,
    tensor: o.Tensor = None,
    output: o.Output = None,
    max_download: o.MaxDownload = None,
    json_: o.Json = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Give damaged rows of a model new values, in a copy.

    Only the file that holds the matrix is written anew, and in it only those rows; all other files
    of the model are linked. The copy says in embgeo-repair.json what was changed.

    Example: embgeo repair fixtures/cosreg.safetensors --dry-run
    """
    from embgeo.workflows.repair import repair as run

    with progress_bar(quiet) as progress:
        done = run(
            model,
            out,
            rows=rows,
            method=method,
            max_rows=max_rows,
            min_norm=min_norm,
            dry_run=dry_run,
            diff=diff and not (quiet or json_),
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
    """Print the replaced rows, the comparison of old and new, and the folder of the new model."""
    if done.record is None:
        print_lines(f"{model}: no row needs repair")
        return
    from embgeo.report.text.repair import render

    notes = (f"  note: {note}" for note in done.notes)
    end = "nothing was written" if done.folder is None else f"repaired: {done.folder}"
    print_lines(*render(done.record, done.comparison), *notes, end)
