"""Draw figures and LaTeX tables for papers from saved results."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from embgeo.charts import CHARTS
from embgeo.charts.render.paper import VENUES, check_format
from embgeo.charts.specification import Chart, Choices
from embgeo.charts.subject import Subject, Unrelated
from embgeo.core.arguments import as_path, as_texts, refuse_name, require_number
from embgeo.core.errors import BadOption, argument
from embgeo.publish.latex import TABLES
from embgeo.publish.latex.latex_table import LatexTable
from embgeo.workflows.figure_files import (
    FORMAT,
    FigureRequest,
    WrittenFigure,
    make_figure,
    make_table,
)
from embgeo.workflows.figure_subjects import Result, load_subjects
from embgeo.workflows.folders import check_free, write_set

#: Names of 0.1, which are accepted for one version.
OLD_NAMES = {"scatter-centred": "scatter-centered"}

SCATTERS = ("scatter", "scatter-centered", "figure1")
#: The figures and tables that an argument concerns; those of all figures concern "figures".
CONCERNS = {
    "color": SCATTERS,
    "annotate": SCATTERS,
    "free_axes": SCATTERS,
    "x": ("sweep",),
    "parameter": ("sweep",),
    "scalar": ("sweep", "training"),
    "signs": ("isotropy",),
}
OF_FIGURES = ("format", "venue", "width", "text")


@dataclass(frozen=True, slots=True)
class FigureSet:
    """Figures and tables of one call.

    Attributes
    ----------
    figures : tuple of WrittenFigure
    left_out : dict of str to str
        Why the others could not be made, by name.
    unrelated : frozenset of str
        Names of those that have nothing to do with what was given.
    """

    figures: tuple[WrittenFigure, ...]
    left_out: Mapping[str, str]
    unrelated: frozenset[str] = frozenset()

    @property
    def files(self) -> dict[str, bytes]:
        """All files by name."""
        return {name: content for one in self.figures for name, content in one.files.items()}


def draw(
    results: Iterable[Result] | Result,
    *,
    figure: str | Sequence[str] = (),
    table: str | Sequence[str] = (),
    out: Path | str | None = None,
    label: Sequence[str] = (),
    format: str | Sequence[str] = (),
    venue: str | None = None,
    text: bool | None = None,
    width: float | None = None,
    color: str | None = None,
    annotate: str | Sequence[str] = (),
    free_axes: bool = False,
    x: Sequence[float] | str = (),
    parameter: str | None = None,
    scalar: str | Sequence[str] = (),
    signs: str | None = None,
    command: str = "",
) -> FigureSet:
    """Draw figures and LaTeX tables for a paper.

    Parameters
    ----------
    results
        Analyses and comparisons, or paths of folders that ``embgeo analyze``, ``diff`` or
        ``train`` wrote, or of runs with a ``metrics.jsonl``.
    figure, table : str or sequence of str
        Names of charts and of tables; whatever the results hold if neither is given.
    out : Path, optional
        Folder to write to; nothing is written without it.
    label : sequence of str
        What legends call the results, one for each.
    format : str or sequence of str
        "pdf" (the default), "svg", "png" or "pgf".
    venue : {"iclr", "neurips", "icml", "acl"}, optional
        Whose widths figures have; "iclr" by default.
    text : bool, optional
        As wide as the text of the venue, not as one column of it.
    width : float, optional
        Width in inches, instead of a venue's; "figure1" takes the text's by default.
    color : {"class", "frequency", "none"}, optional
        What colors the points of a scatter; "class" by default.
    annotate : str or sequence of str
        Tokens whose names stand at their points in a scatter.
    free_axes : bool
        Whether each panel of a scatter has a scale of its own, in place of one for all.
    x : sequence of float, or str
        Values of the swept parameter, one for each result; ``"0,0.5,1"`` as text.
    parameter : str, optional
        Its name, by which values are read from paths such as ``beta=0.5``.
    scalar : str or sequence of str
        What a sweep or training curves show.
    signs : {"both", "one"}, optional
        Of the eigenvectors in the table of I1 and I2; "both" by default.
    command : str
        What the records name as the command.

    Returns
    -------
    FigureSet

    Raises
    ------
    EmbgeoError
        If a result cannot be read, a name is not known, an argument concerns nothing that is
        made, or files of others stand in `out`.
    """
    formats = tuple(dict.fromkeys(as_texts(format, "format"))) or ("pdf",)
    scalars = tuple(dict.fromkeys(as_texts(scalar, "scalar")))
    x = parse_numbers(x) if isinstance(x, str) else x
    named = tuple(dict.fromkeys(as_texts(annotate, "annotate")))
    asked = bool(as_texts(figure, "figure") or as_texts(table, "table"))
    charts, tables = choose(as_texts(figure, "figure"), as_texts(table, "table"))
    used = {
        "format": as_texts(format, "format"), "venue": venue, "width": width, "text": text,
        "color": color, "x": tuple(x), "parameter": parameter, "scalar": scalars, "signs": signs,
        "annotate": named, "free_axes": free_axes or None,
    }  # fmt: skip
    given = [name for name, value in used.items() if value is not None and value != ()]
    check_concerns(given, charts, tables)
    request = FigureRequest(
        formats,
        choose_width(venue, text, width),
        choose_width(venue, True if width is None else None, width),
        Choices(
            color or "class",
            scalars,
            parameter or "",
            annotate=named,
            free_axes=free_axes,
        ),
        signs or "both",
        command,
    )
    for form in formats if charts else ():
        check_format(form)
    if out is not None:
        check_target(as_path(out, "out"), charts, tables, formats)
    subjects = load_subjects(results, label, x, parameter or "")
    check_tokens(named, subjects)
    made = make_all(charts, tables, subjects, request, asked=asked)
    check_use(made, given)
    if out is not None:
        write_set(Path(out), made.files)
    return made


def choose(
    figures: Sequence[str], tables: Sequence[str]
) -> tuple[tuple[Chart, ...], tuple[LatexTable, ...]]:
    """The named charts and tables; all of both where nothing is named."""
    figures = [OLD_NAMES.get(name, name) for name in figures]
    for names, known, place in (
        (figures, [chart.name for chart in CHARTS], "figure"),
        (tables, [table.name for table in TABLES], "table"),
    ):
        for name in names:
            if name not in known:
                raise refuse_name(place, name, known, argument(place))
    if not figures and not tables:
        return CHARTS, TABLES
    return (
        tuple(chart for chart in CHARTS if chart.name in figures),
        tuple(table for table in TABLES if table.name in tables),
    )


def check_concerns(
    given: Sequence[str], charts: Sequence[Chart], tables: Sequence[LatexTable]
) -> None:
    """Refuse arguments that would do nothing."""
    names = {chart.name for chart in charts} | {table.name for table in tables}
    for name in given:
        concerns = CONCERNS.get(name, ())
        if (name in OF_FIGURES and not charts) or (concerns and not names & set(concerns)):
            raise BadOption(
                f"is about {' or '.join(concerns) or 'figures'}, which is not requested",
                where=argument(name),
                way_out="leave it out, or ask for that",
            )


def parse_numbers(text: str) -> list[float]:
    """Numbers with commas between them."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = [math.nan]
    if not all(map(math.isfinite, values)):
        raise BadOption(
            f"{text!r} is not a list of numbers",
            where=argument("x"),
            way_out=f"write {argument('x', '0,0.5,1')}",
        )
    return values


def check_tokens(tokens: Sequence[str], subjects: Sequence[Subject]) -> None:
    """Refuse tokens that no analysis holds."""
    known: set[str] = set()
    for subject in subjects if tokens else ():
        known.update((subject.analysis and subject.analysis.tokens) or ())
    for token in tokens:
        if token not in known:
            near = difflib.get_close_matches(token, known, n=1)
            way_out = f"did you mean {near[0]!r}?" if near else "spell it as the vocabulary does"
            way_out = way_out if known else f"analyze with {argument('tokens', 'FILE')}"
            cause = f"no token is called {token!r}"
            raise BadOption(cause, where=argument("annotate"), way_out=way_out)


def check_use(made: FigureSet, given: Sequence[str]) -> None:
    """Refuse an argument that concerns figures none of which could be made."""
    names = {one.name for one in made.figures}
    for name in given:
        concerns = CONCERNS.get(name, ())
        if concerns and not names & set(concerns):
            reason = next(made.left_out[other] for other in concerns if other in made.left_out)
            raise BadOption(f"has nothing to be used for: {reason}", where=argument(name))


def choose_width(venue: str | None, text: bool | None, width: float | None) -> float:
    """Width in inches of a column of the venue, unless something else was asked for."""
    if width is not None:
        require_number(width, "width")
        if venue is not None or text is not None:
            raise BadOption(
                f"cannot be combined with {argument('venue')} or {argument('text')}",
                where=argument("width"),
                way_out="leave one of them out",
            )
        return width
    if venue is not None and venue not in VENUES:
        raise refuse_name("venue", venue, VENUES, argument("venue"))
    of = VENUES[venue or "iclr"]
    return of.text if text else of.column


def check_target(
    out: Path, charts: Sequence[Chart], tables: Sequence[LatexTable], formats: Sequence[str]
) -> None:
    """Refuse a folder with files of these names that are not ours to replace."""
    endings = tuple(f".{form}" for form in formats)
    for chart in charts:
        check_free(out, chart.name, (*endings, ".csv"), FORMAT)
    for table in tables:
        check_free(out, table.name, (".tex", ".csv"), FORMAT)


def make_all(
    charts: Sequence[Chart],
    tables: Sequence[LatexTable],
    subjects: Sequence[Subject],
    request: FigureRequest,
    *,
    asked: bool,
) -> FigureSet:
    """Whatever can be made; why the rest cannot.

    `asked`: whether all of them were asked for by name.
    """
    made: list[WrittenFigure] = []
    left_out: dict[str, str] = {}
    unrelated: set[str] = set()
    jobs: tuple[Chart | LatexTable, ...] = (*charts, *tables)
    for one in jobs:
        reasons = [(subject, refuse(one, subject, request)) for subject in subjects]
        able = [subject for subject, reason in reasons if not reason]
        without = [f"{subject.label}: {reason}" for subject, reason in reasons if reason]
        least = one.least if isinstance(one, Chart) else 1
        if len(able) >= least:
            notes = [
                f"left out {subject.label}: {reason}"
                for subject, reason in reasons
                if reason and not isinstance(reason, Unrelated)
            ]
            make = make_figure if isinstance(one, Chart) else make_table
            made.append(make(one, able, request, notes))  # type: ignore[arg-type]
        else:
            left_out[one.name] = without[0] if without else f"it takes {least} of them"
            if isinstance(next((reason for _, reason in reasons if reason), ""), Unrelated):
                unrelated.add(one.name)
    if left_out and (asked or not made):
        name, reason = next(iter(left_out.items()))
        raise BadOption(f"cannot be made; {reason}", where=name)
    return FigureSet(tuple(made), left_out, frozenset(unrelated))


def refuse(one: Chart | LatexTable, subject: Subject, request: FigureRequest) -> str:
    """Why a subject cannot be part of a figure or table; empty if it can."""
    if isinstance(one, Chart):
        return one.refuse(subject, request.choices)
    return Unrelated.NO_ANALYSIS if subject.analysis is None else one.missing(subject.analysis)
