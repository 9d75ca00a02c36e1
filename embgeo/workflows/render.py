"""Rendering: the HTML report of a result, which is one file."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path

from embgeo.comparison.comparison import Comparison, load_comparison
from embgeo.comparison.saved import COMPARISON_NAME
from embgeo.core.arguments import as_path
from embgeo.core.errors import BadOption, argument, looking_at, writing
from embgeo.io.bounded.saved import write_text
from embgeo.result.analysis import REPORT_NAME, Analysis, load_analysis
from embgeo.training.study.training import COMPARISON_FOLDER, TRAINING_NAME, Training, load_training

_ELSEWHERE = f"choose another file with {argument('out')}"


def render(
    result: Analysis | Comparison | Training | Path | str, out: Path | str | None = None
) -> str:
    """Render the report of a result as one HTML page, without the checkpoints.

    Parameters
    ----------
    result : Analysis, Comparison, Training or path
        Or a folder that :func:`embgeo.analyze`, :func:`embgeo.compare` or :func:`embgeo.train`
        saved one in.
    out : path, optional
        HTML file to write; it may exist if it is one.

    Returns
    -------
    str
        The page.

    Raises
    ------
    UnreadableFile
        If there is no result, or a damaged one.
    BadOption
        If `out` exists and is not an HTML page.
    EmbgeoError
        If `out` cannot be written.
    """
    draw = open_page(result)
    if out is None:
        return draw()
    target = as_path(out, "out")
    check_target(target)
    page = draw()
    with writing(target, _ELSEWHERE):
        write_text(target, page)
    return page


def open_page(result: Analysis | Comparison | Training | Path | str) -> Callable[[], str]:
    """What draws the page of a result; one that is saved is read at once."""
    from embgeo.report import analysis as single
    from embgeo.report import comparison as several
    from embgeo.report import study as methods

    compared: Comparison | None = None
    if isinstance(result, str | PathLike):
        folder = Path(result)
        if is_of(folder, TRAINING_NAME):
            beside = (folder if folder.is_dir() else folder.parent) / COMPARISON_FOLDER
            result = load_training(folder)
            compared = load_comparison(beside) if is_of(beside, COMPARISON_NAME) else None
        elif is_of(folder, COMPARISON_NAME):
            result = load_comparison(folder)
        else:
            result = load_analysis(folder)
    shown = result
    if isinstance(shown, Training):
        return lambda: methods.render(shown, compared)
    if isinstance(shown, Comparison):
        return lambda: several.render(shown)
    if not isinstance(shown, Analysis):
        raise BadOption(
            f"{type(shown).__name__} is not a result",
            where=argument("result"),
            way_out="give an analysis, a comparison, or the folder that holds one",
        )
    return lambda: single.render(shown)


def is_of(folder: Path, name: str) -> bool:
    """Whether a path is the file of that name, or a folder that holds it."""
    return folder.name == name or (folder / name).is_file()


def default_target(folder: Path) -> Path:
    """``report.html`` next to a saved result."""
    return (folder if folder.is_dir() else folder.parent) / REPORT_NAME


def check_target(target: Path) -> None:
    """Refuse to write over a file that is not an HTML page."""
    with looking_at(target):
        if not target.exists():
            return
        with target.open("rb") as stream:
            page = stream.read(64).lstrip().lower().startswith((b"<!doctype html", b"<html"))
    if not page:
        raise BadOption("exists and is not an HTML page", where=target, way_out=_ELSEWHERE)
