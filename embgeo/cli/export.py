"""``embgeo export``: saved results in the formats of other programs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from embgeo.cli import options as o
from embgeo.cli.shared import command_line, guarded, print_lines


@guarded
def export(
    *,
    source: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="Folder that embgeo analyze, diff or train wrote."),
    ],
    to: Annotated[
        Literal["projector", "parquet", "csv", "latex", "markdown"],
        o.option("Format; of a study csv, latex or markdown, of a comparison latex."),
    ],
    out: Annotated[
        Path | None,
        o.option(
            "Output file (folder for the projector); NAME.format here by default.", "--out", "-o"
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None, o.option("Projector: where the analyzed checkpoint is, if it was moved.")
    ] = None,
    at_most: Annotated[
        int | None,
        o.option("Projector: N rows, evenly over the order of frequency.", metavar="N"),
    ] = None,
    binary: Annotated[
        bool, o.option("Projector: vectors as bare numbers, not as text.", "--bytes")
    ] = False,
    venue: o.Venue = None,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Write a saved analysis, or a study, in the format of another program.

    Example: embgeo export baseline.embgeo --to csv
    """
    from embgeo.workflows import export as workflow

    written = workflow.export(
        source,
        to,
        out,
        checkpoint=checkpoint,
        at_most=at_most,
        bytes=binary,
        venue=venue,
        command=command_line(),
    )
    if not quiet:
        for path in written.paths:
            print_lines(str(path))
        if written.points > written.shown_points:
            print(
                f"  note: the projector shows the first {written.shown_points:,} points of "
                f"{written.points:,}; --at-most chooses as many evenly over the order of frequency"
            )
