"""``embgeo.render``: the HTML report of a result, in one file."""

from os import PathLike
from pathlib import Path

from embgeo.comparison.comparison import COMPARISON_NAME, Comparison, load_comparison
from embgeo.core.arguments import as_path, refuse_if, refuse_type
from embgeo.core.errors import BadOption, argument, looking_at, writing
from embgeo.core.options import known_arguments
from embgeo.files.saved import write_file
from embgeo.result.analysis import REPORT_NAME, Analysis, load_analysis
from embgeo.training.study.record import COMPARISON_FOLDER, STUDY_NAME, Study, load_study
from embgeo.workflows.folders import refuse_place

_ELSEWHERE = f"choose another file with {argument('out')}"


@known_arguments
def render(
    result: Analysis | Comparison | Study | Path | str,
    out: Path | str | None = None,
    *,
    card: bool = False,
) -> str:
    """Render the report of a result as one HTML page; checkpoints are not read.

    Parameters
    ----------
    result : Analysis, Comparison, Study or path
        A result, or the folder of a saved one.
    out : path, optional
        HTML file to write; an HTML page is replaced.
    card : bool
        Whether to write ``card.svg`` and ``card.png`` beside `out`, too, for a post: headline,
        map and numbers; of a study those of the best method and its control.

    Returns
    -------
    str
        The page.

    Raises
    ------
    UnreadableFile
        If there is no result, or it is damaged.
    BadOption
        If `out` exists and is not an HTML page, or there is no card of this result.
    EmbgeoError
        If `out` cannot be written.

    Examples
    --------
    >>> import embgeo
    >>> analysis = embgeo.analyze("fixtures/cosreg.safetensors", sections="cosine", reference=False)
    >>> embgeo.render(analysis)[:15]
    '<!doctype html>'
    """
    shown, compared = open_result(result)
    target = None if out is None else as_path(out, "out")
    if card:
        way_out = f"give {argument('out', 'FILE')}"
        refuse_if(target is None, argument("card"), "is written beside the page", way_out)
    if target is None:
        return draw_page(shown, compared)
    check_target(target)
    page = draw_page(shown, compared)
    with writing(target, _ELSEWHERE):
        write_file(target, page)
    if card:
        from embgeo.report.card import draw_card

        svg, png = draw_card(shown, compared)
        with writing(target.parent, _ELSEWHERE):
            write_file(target.with_name("card.svg"), svg)
            write_file(target.with_name("card.png"), png)
    return page


def open_result(
    result: Analysis | Comparison | Study | Path | str,
) -> tuple[Analysis | Comparison | Study, Comparison | None]:
    """Return a result, which may be saved, and the comparison of a saved study's embeddings."""
    if isinstance(result, str | PathLike):
        folder = Path(result)
        if names_result(folder, STUDY_NAME):
            home = (folder if folder.is_dir() else folder.parent) / COMPARISON_FOLDER
            has_comparison = names_result(home, COMPARISON_NAME)
            return load_study(folder), load_comparison(home) if has_comparison else None
        is_comparison = names_result(folder, COMPARISON_NAME)
        return (load_comparison if is_comparison else load_analysis)(folder), None
    if not isinstance(result, Analysis | Comparison | Study):
        raise refuse_type(result, "result", "an analysis, a comparison, or the folder of one")
    return result, None


def draw_page(shown: Analysis | Comparison | Study, compared: Comparison | None) -> str:
    from embgeo.report import analysis, comparison, study

    if isinstance(shown, Study):
        return study.render(shown, compared)
    return comparison.render(shown) if isinstance(shown, Comparison) else analysis.render(shown)


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
        head = b""
        if target.is_file() or target.is_dir():  # a pipe would wait for a writer
            with target.open("rb") as stream:
                head = stream.read(64).lstrip().lower()
    if not head.startswith((b"<!doctype html", b"<html")):
        raise BadOption("exists and is not an HTML page", where=target, way_out=_ELSEWHERE)
