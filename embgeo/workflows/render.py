"""``embgeo.render``: the HTML report of a result, in one file."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path

from embgeo.comparison.comparison import COMPARISON_NAME, Comparison, load_comparison
from embgeo.core.arguments import as_path, refuse_if, refuse_type
from embgeo.core.errors import BadOption, argument, looking_at, writing
from embgeo.core.options import known_arguments
from embgeo.files.saved import atomic_file, write_text
from embgeo.result.analysis import REPORT_NAME, Analysis, load_analysis
from embgeo.training.study.record import COMPARISON_FOLDER, STUDY_NAME, Study, load_study
from embgeo.workflows.folders import refuse_place

_ELSEWHERE = f"choose another file with {argument('out')}"


@known_arguments
def render(
    result: Analysis | Comparison | Study | Path | str, out: Path | str | None = None
) -> str:
    """Render the report of a result as one HTML page; checkpoints are not read.

    Parameters
    ----------
    result : Analysis, Comparison, Study or path
        A result, or the folder of a saved one.
    out : path, optional
        HTML file to write; an HTML page is replaced.

    Returns
    -------
    str
        The page.

    Raises
    ------
    UnreadableFile
        If there is no result, or it is damaged.
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


def open_page(result: Analysis | Comparison | Study | Path | str) -> Callable[[], str]:
    """Open a function that renders a result; a saved one is read at once."""
    from embgeo.report import analysis as single
    from embgeo.report import comparison as several
    from embgeo.report import study as methods

    compared: Comparison | None = None
    if isinstance(result, str | PathLike):
        folder = Path(result)
        if names_result(folder, STUDY_NAME):
            home = (folder if folder.is_dir() else folder.parent) / COMPARISON_FOLDER
            result = load_study(folder)
            compared = load_comparison(home) if names_result(home, COMPARISON_NAME) else None
        elif names_result(folder, COMPARISON_NAME):
            result = load_comparison(folder)
        else:
            result = load_analysis(folder)
    shown = result
    if isinstance(shown, Study):
        return lambda: methods.render(shown, compared)
    if isinstance(shown, Comparison):
        return lambda: several.render(shown)
    if not isinstance(shown, Analysis):
        raise refuse_type(shown, "result", "an analysis, a comparison, or the folder of one")
    return lambda: single.render(shown)


def write_card(folder: Path, out: Path) -> None:
    """Write ``card.svg`` and ``card.png`` of a saved analysis or comparison."""
    from embgeo.report.card import draw_card

    is_study = names_result(folder, STUDY_NAME)
    refuse_if(
        is_study, argument("card"), "shows no runs", f"name {COMPARISON_FOLDER} in the folder"
    )
    load = load_comparison if names_result(folder, COMPARISON_NAME) else load_analysis
    svg, png = draw_card(load(folder))
    with writing(out, _ELSEWHERE):
        write_text(out / "card.svg", svg)
        with atomic_file(out / "card.png") as temporary:
            temporary.write_bytes(png)


def names_result(folder: Path, name: str) -> bool:
    """Tell whether a path is a file of this name, or a folder that holds it."""
    return folder.name == name or (folder / name).is_file()


def default_target(folder: Path) -> Path:
    """Return ``report.html`` next to a saved result."""
    return (folder if folder.is_dir() else folder.parent) / REPORT_NAME


def check_target(target: Path) -> None:
    """Refuse to replace a file that is not an HTML page."""
    refuse_place(target, _ELSEWHERE)
    with looking_at(target, _ELSEWHERE):
        if not target.exists():
            return
        with target.open("rb") as stream:
            page = stream.read(64).lstrip().lower().startswith((b"<!doctype html", b"<html"))
    if not page:
        raise BadOption("exists and is not an HTML page", where=target, way_out=_ELSEWHERE)
