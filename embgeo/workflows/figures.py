"""``embgeo.figures``: figures and LaTeX tables for papers."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from embgeo.charts import CHARTS, film
from embgeo.charts.items import ChartItem, Unrelated
from embgeo.charts.render.paper import check_format
from embgeo.charts.specification import Chart, Choices
from embgeo.core.arguments import as_path, as_texts, refuse_if, refuse_name
from embgeo.core.errors import BadOption, argument
from embgeo.core.options import known_arguments
from embgeo.core.settings import parse_value
from embgeo.publish.latex import TABLES
from embgeo.publish.latex.latex_table import LatexTable
from embgeo.workflows.figure_files import (
    FORMAT,
    Result,
    WrittenFigure,
    choose_page,
    load_items,
    make_figure,
    make_table,
)
from embgeo.workflows.folders import check_free, write_set

SCATTERS = ("scatter", "scatter-centered", "figure1")
#: Argument → the figures and tables that it is about.
CONCERNS = {
    "color": SCATTERS,
    "annotate": SCATTERS,
    "free_axes": SCATTERS,
    "parameter": ("sweep",),
    "scalar": ("sweep", "training"),
    "signs": ("isotropy",),
}
#: Types of the arguments that are one value, with their limits.
KINDS: dict[str, Any] = {
    "width": Annotated[float, Meta(ge=1.5, le=20.0)] | None,
    "color": Literal["class", "frequency", "none"] | None,
    "signs": Literal["both", "one"] | None,
}
#: Arguments about all figures, but no table.
OF_FIGURES = ("format", "text")


@dataclass(frozen=True, slots=True)
class FigureSet:
    """The figures and tables of one call.

    Attributes
    ----------
    figures : tuple of WrittenFigure
    left_out : dict of str to str
        Why the others could not be made, by name.
    unrelated : frozenset of str
        Names of figures that are left out because they are about other kinds of results.
    """

    figures: tuple[WrittenFigure, ...]
    left_out: Mapping[str, str]
    unrelated: frozenset[str] = frozenset()

    @property
    def files(self) -> dict[str, bytes]:
        """The content of all files by name."""
        return {name: content for one in self.figures for name, content in one.files.items()}


@known_arguments
def figures(
    *results: Result,
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
    parameter: str | None = None,
    scalar: str | Sequence[str] = (),
    signs: str | None = None,
    command: str = "",
) -> FigureSet:
    """Draw figures and LaTeX tables for a paper.

    Parameters
    ----------
    *results : Analysis, Comparison or path
        Analyses and comparisons, or paths of folders that ``embgeo analyze``, ``diff`` or
        ``train`` wrote, or of runs with a ``metrics.jsonl``.
    figure, table : str or sequence of str
        Names of charts and of tables; by default all that can be made of the results.
    out : Path, optional
        Folder to write to; without it nothing is written.
    label : sequence of str
        Labels of the results in legends.
    format : str or sequence of str
        "pdf" (the default), "svg", "png" or "pgf".
    venue : {"iclr", "neurips", "icml", "acl"}, optional
        The venue whose widths figures have; "iclr" by default.
    text : bool, optional
        Whether figures are as wide as the text of the venue, not as a column.
    width : float, optional
        Width in inches, in place of a venue.
    color : {"class", "frequency", "none"}, optional
        What colors the points of a scatter; "class" by default.
    annotate : str or sequence of str
        Tokens to name in a scatter.
    free_axes : bool
        Whether each panel of a scatter has a scale of its own.
    parameter : str, optional
        Name of the swept parameter, whose values are read from paths such as ``beta=0.5``.
    scalar : str or sequence of str
        What a sweep or training curves show.
    signs : {"both", "one"}, optional
        Signs of the eigenvectors in the table of I1 and I2; "both" by default.
    command : str
        Recorded with the figures.

    Returns
    -------
    FigureSet

    Raises
    ------
    EmbgeoError
        If a result cannot be read, a name is unknown, an argument is about nothing that is made,
        or `out` holds files of these names that embgeo did not write.
    """
    named, latex = as_texts(figure, "figure"), as_texts(table, "table")
    formats, scalars, tokens = (
        tuple(dict.fromkeys(as_texts(value, name)))
        for name, value in (("format", format), ("scalar", scalar), ("annotate", annotate))
    )
    charts, tables = choose(named, latex)
    for name, value in (("width", width), ("color", color), ("signs", signs)):
        parse_value(value, KINDS[name], argument(name))
    used = {
        "format": formats, "venue": venue, "width": width, "text": text, "color": color,
        "parameter": parameter, "scalar": scalars, "signs": signs,
        "annotate": tokens, "free_axes": free_axes or None,
    }  # fmt: skip
    given = [name for name, value in used.items() if value is not None and value != ()]
    check_concerns(given, charts, tables)
    formats = formats or ("pdf",)
    one_width = choose_width(venue, text, width)
    row_width = choose_width(venue, True if width is None else None, width)
    page = choose_page(venue, width)
    choices = Choices(
        color or "class", scalars, parameter or "", annotate=tokens, free_axes=free_axes
    )

    def make(
        one: Chart | LatexTable, able: Sequence[ChartItem], notes: Sequence[str]
    ) -> WrittenFigure:
        if isinstance(one, LatexTable):
            return make_table(one, able, notes, signs=signs or "both", page=page, command=command)
        return make_figure(
            one,
            able,
            notes,
            formats=formats,
            width=row_width if one.one_row else one_width,
            choices=choices,
            command=command,
        )

    for form in formats if charts else ():
        check_format(form)
    endings = tuple(f".{form}" for form in formats)
    kinds: tuple[Chart | LatexTable, ...] = (*charts, *tables)
    for one in kinds if out is not None else ():
        drawn = endings if isinstance(one, Chart) else (".tex",)
        drawn = (*drawn, ".gif") if one is film.CHART else drawn
        check_free(as_path(out, "out"), one.name, (*drawn, ".csv"), FORMAT)
    items = load_items(results, label, parameter or "")
    check_tokens(tokens, items)
    made = make_all(kinds, items, choices, make, require_all=bool(named or latex))
    check_use(made, given)
    if out is not None:
        write_set(Path(out), made.files)
    return made


def choose(
    figures: Sequence[str], tables: Sequence[str]
) -> tuple[tuple[Chart, ...], tuple[LatexTable, ...]]:
    """Choose the named charts and tables; all if nothing is named."""
    known = {"figure": [one.name for one in CHARTS], "table": [one.name for one in TABLES]}
    for kind, names in (("figure", figures), ("table", tables)):
        for name in names:
            if name not in known[kind]:
                raise refuse_name(kind, name, known[kind], argument(kind))
    if not figures and not tables:
        return CHARTS, TABLES
    return (
        tuple(chart for chart in CHARTS if chart.name in figures),
        tuple(table for table in TABLES if table.name in tables),
    )


def check_concerns(
    given: Sequence[str], charts: Sequence[Chart], tables: Sequence[LatexTable]
) -> None:
    """Refuse arguments that have no effect."""
    names = {chart.name for chart in charts} | {table.name for table in tables}
    for name in given:
        concerns = CONCERNS.get(name, ())
        useless = (name in OF_FIGURES and not charts) or (concerns and not names & set(concerns))
        cause = f"is about {' or '.join(concerns) or 'figures'}, which is not requested"
        refuse_if(bool(useless), argument(name), cause, "leave it out, or request that")


def check_tokens(tokens: Sequence[str], items: Sequence[ChartItem]) -> None:
    """Refuse tokens that no analysis holds."""
    known: set[str] = set()
    for item in items if tokens else ():
        known.update((item.analysis and item.analysis.tokens) or ())
    for token in tokens:
        if token not in known:
            near = difflib.get_close_matches(token, known, n=1)
            way_out = f"did you mean {near[0]!r}?" if near else "spell it as the vocabulary does"
            way_out = way_out if known else f"analyze with {argument('tokens', 'FILE')}"
            cause = f"no token is called {token!r}"
            raise BadOption(cause, where=argument("annotate"), way_out=way_out)


def check_use(made: FigureSet, given: Sequence[str]) -> None:
    """Refuse arguments about figures that could not be made."""
    names = {one.name for one in made.figures}
    for name in given:
        concerns = CONCERNS.get(name, ())
        if concerns and not names & set(concerns):
            reason = next(made.left_out[other] for other in concerns if other in made.left_out)
            raise BadOption(f"has nothing to be used for: {reason}", where=argument(name))


def choose_width(venue: str | None, text: bool | None, width: float | None) -> float:
    """Choose the width in inches: as given, or of the venue's text or column."""
    if width is not None:
        both = venue is not None or text is not None
        cause = f"cannot be combined with {argument('venue')} or {argument('text')}"
        refuse_if(both, argument("width"), cause, "leave one of them out")
        return width
    of = choose_page(venue, None)
    return of.text if text else of.column


def make_all(
    kinds: Sequence[Chart | LatexTable],
    items: Sequence[ChartItem],
    choices: Choices,
    make: Callable[[Chart | LatexTable, Sequence[ChartItem], Sequence[str]], WrittenFigure],
    *,
    require_all: bool,
) -> FigureSet:
    """Make all figures and tables that can be made; BadOption for others with `require_all`."""
    made: list[WrittenFigure] = []
    left_out: dict[str, str] = {}
    unrelated: set[str] = set()
    for one in kinds:
        reasons = [(item, refuse(one, item, choices)) for item in items]
        able = [item for item, reason in reasons if not reason]
        refused = [(item.label, reason) for item, reason in reasons if reason]
        least = one.least if isinstance(one, Chart) else 1
        if len(able) >= least:
            related = [pair for pair in refused if not isinstance(pair[1], Unrelated)]
            notes = [f"left out {label}: {reason}" for label, reason in related]
            made.append(make(one, able, notes))
        elif refused:
            label, reason = refused[0]
            left_out[one.name] = f"{label}: {reason}"
            if isinstance(reason, Unrelated):
                unrelated.add(one.name)
        else:
            left_out[one.name] = f"it takes {least} of them"
    if left_out and (require_all or not made):
        name, reason = next(iter(left_out.items()))
        raise BadOption(f"cannot be made; {reason}", where=name)
    return FigureSet(tuple(made), left_out, frozenset(unrelated))


def refuse(one: Chart | LatexTable, item: ChartItem, choices: Choices) -> str:
    """Explain why an item cannot be in a figure or table; empty if it can."""
    if isinstance(one, Chart):
        return one.refuse(item, choices)
    return Unrelated.NO_ANALYSIS if item.analysis is None else one.missing(item.analysis)
