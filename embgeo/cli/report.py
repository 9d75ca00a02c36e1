"""``embgeo report``: render a saved analysis, comparison or training again, without checkpoints."""

from pathlib import Path
from typing import Annotated

import typer

from embgeo.cli import options as o
from embgeo.cli.shared import guarded, print_report


@guarded
def report(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="Folder that embgeo analyze, diff or train wrote."),
    ],
    out: Annotated[
        Path | None, o.option("HTML file; report.html in FOLDER by default.", "--out", "-o")
    ] = None,
    card: Annotated[
        bool,
        o.option(
            "Write card.svg and card.png, 1200 × 630, beside it: verdict, map, numbers.", "--card"
        ),
    ] = False,
    open_: o.Open = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Render the report of a saved analysis or comparison again.

    Example: embgeo report baseline.embgeo
    """
    from embgeo.workflows.render import default_target, render

    target = out if out is not None else default_target(folder)
    render(folder, target, card=card)
    print_report(target.absolute(), quiet, open_)
