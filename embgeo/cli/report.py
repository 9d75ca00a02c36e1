"""``embgeo report``: render a saved analysis, comparison or training again, without checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from embgeo.cli.shared import Debug, Quiet, guarded, printable


@guarded
def report(
    folder: Annotated[
        Path, typer.Argument(help="Folder that embgeo analyze, diff or train wrote.")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="HTML file; report.html in FOLDER by default."),
    ] = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Render the report of a saved analysis or comparison again.

    Example: embgeo report baseline.embgeo
    """
    from embgeo.core.errors import EmbgeoError
    from embgeo.io.bounded.saved import write_text
    from embgeo.result.analysis import REPORT_NAME

    draw = saved_page(folder)
    home = folder if folder.is_dir() else folder.parent
    target = out if out is not None else home / REPORT_NAME
    check_target(target)
    page = draw()
    try:
        write_text(target, page)
    except OSError as error:
        raise EmbgeoError(
            f"cannot be written: {error.strerror or error}",
            where=target,
            way_out="choose another file with -o",
        ) from error
    if not quiet:
        print(printable(f"report: {target.absolute()}"))


def saved_page(folder: Path) -> Callable[[], str]:
    """What draws the page of whatever is saved in `folder`, which is read at once."""
    from embgeo.comparison.files import COMPARISON_NAME, load_comparison
    from embgeo.training.study.files import TRAINING_NAME

    if folder.name == TRAINING_NAME or (folder / TRAINING_NAME).is_file():
        return training_page(folder)
    if folder.name == COMPARISON_NAME or (folder / COMPARISON_NAME).is_file():
        from embgeo.report import comparison as several

        compared = load_comparison(folder)
        return lambda: several.render(compared)
    from embgeo.report import analysis as single
    from embgeo.result.analysis import load_analysis

    analysis = load_analysis(folder)
    return lambda: single.render(analysis)


def training_page(folder: Path) -> Callable[[], str]:
    """What draws the page of methods, with their embeddings where those are beside it."""
    from embgeo.comparison.files import COMPARISON_NAME, load_comparison
    from embgeo.report import study as methods
    from embgeo.training.study.files import COMPARISON_FOLDER, load_training

    home = folder if folder.is_dir() else folder.parent
    training = load_training(folder)
    beside = home / COMPARISON_FOLDER
    compared = load_comparison(beside) if (beside / COMPARISON_NAME).is_file() else None
    return lambda: methods.render(training, compared)


def check_target(target: Path) -> None:
    """Refuse to write over a file that is no HTML page."""
    from embgeo.core.errors import BadOption

    try:
        if not target.exists():
            return
        with target.open("rb") as stream:
            page = stream.read(64).lstrip().lower().startswith((b"<!doctype html", b"<html"))
    except OSError as error:
        raise BadOption(f"cannot be used: {error.strerror or error}", where=target) from error
    if not page:
        raise BadOption(
            "exists and is no HTML page", where=target, way_out="choose another file with -o"
        )
