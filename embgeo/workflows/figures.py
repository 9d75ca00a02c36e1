"""``embgeo.figures``: figures and LaTeX tables for papers, from saved results."""

import difflib
import math
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from embgeo.charts import CHARTS, film, seeds
from embgeo.charts.items import (
    ChartItem,
    Unrelated,
    compared_items,
    log_curves,
    method_curves,
    method_items,
)
from embgeo.charts.render.film import render_gif
from embgeo.charts.render.paper import LIMIT, VENUES, Venue, check_format, plain_text, render_paper
from embgeo.charts.render.table import render_csv
from embgeo.charts.specification import Chart, Choices
from embgeo.comparison.comparison import (
    COMPARISON_NAME,
    Comparison,
    distinguish_names,
    load_comparison,
)
from embgeo.core.arguments import as_path, as_texts, refuse_if, refuse_name, refuse_type
from embgeo.core.errors import BadOption, UnreadableFile, argument
from embgeo.core.numbers import format_p
from embgeo.core.options import known_arguments
from embgeo.core.settings import parse_value
from embgeo.core.version import VERSION
from embgeo.files.guard import suggest_file
from embgeo.files.records import as_text
from embgeo.files.saved import csv_lines
from embgeo.measure.provenance import installed
from embgeo.publish.latex import TABLES
from embgeo.publish.latex.latex_table import (
    DEFINITION,
    LatexTable,
    TableColumn,
    latex_text,
    render_table,
)
from embgeo.result.analysis import Analysis, load_analysis
from embgeo.result.saved import JSON_NAME
from embgeo.training.study.log import LOG_NAME, read_log
from embgeo.training.study.record import STUDY_NAME, Run, load_study
from embgeo.workflows.folders import check_free, write_set
from embgeo.workflows.saved_analysis import result_name

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
#: A result, or the path of one.
Result = Analysis | Comparison | Path | str
#: A number behind the name of a parameter in a path.
NUMBER = r"[=_:-]?(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?![a-z0-9%]|[.,_]\d)"
#: Arguments about all figures, but no table.
OF_FIGURES = ("format", "text")
FORMAT = "embgeo.figure"
FORMAT_VERSION = 1
#: Matplotlib's labels of logarithmic axes use this command without a definition.
MATHDEFAULT = r"\providecommand{\mathdefault}[1]{#1}"


@dataclass(frozen=True, slots=True)
class WrittenFigure:
    """A figure or table.

    Attributes
    ----------
    name : str
    files : dict of str to bytes
        The drawing, its data and its record, by file name.
    record : dict
        The content of ``NAME.json``: how it was made.
    size : tuple of two floats or None
        Width and height of a figure in inches.
    """

    name: str
    files: dict[str, bytes] = field(repr=False)
    record: dict[str, Any] = field(repr=False)
    size: tuple[float, float] | None = None


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
    against: Sequence[Path | str] = (),
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
    against : sequence of path
        A second group, such as seeds, which the results are the baseline of: paths of saved
        analyses and checkpoints. Figures show means and spreads over the members of both.
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

    Examples
    --------
    >>> import embgeo
    >>> analysis = embgeo.analyze("fixtures/cosreg.safetensors", sections="cosine", reference=False)
    >>> sorted(embgeo.figures(analysis, figure="cosines", format="svg").files)
    ['cosines.csv', 'cosines.json', 'cosines.svg']
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
    single, way_out = against and parameter, f"leave out {argument('against')}"
    refuse_if(bool(single), argument("parameter"), "is about single results", way_out)
    groups, said = load_groups(results, against, label) if against else ([], [])
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
            [*notes, *said] if one is seeds.CHART else notes,
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
    items = groups or load_items(results, label, parameter or "")
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


# --- the files of a figure, and the items that are drawn -----------------------------------------


def make_figure(
    chart: Chart,
    items: Sequence[ChartItem],
    notes: Sequence[str],
    *,
    formats: Sequence[str],
    width: float,
    choices: Choices,
    command: str,
) -> WrittenFigure:
    spec = chart.specify(items, choices)
    assert spec is not None
    files: dict[str, bytes] = {}
    creator = f"embgeo {VERSION}"
    for form in formats:
        # PGF is LaTeX source, in which labels have to be escaped for TeX.
        drawn = render_paper(
            spec,
            form,
            width,
            creator,
            write_name=partial(latex_text, limit=LIMIT) if form == "pgf" else plain_text,
            preamble=DEFINITION,
        )
        if form == "pgf":
            name = f"{chart.name}.pgf"
            drawn.files[name] = f"{DEFINITION}\n{MATHDEFAULT}\n".encode() + drawn.files[name]
        files |= drawn.files
    if spec.film:
        files[f"{chart.name}.gif"] = render_gif(spec)
    files[f"{chart.name}.csv"] = render_csv(spec)
    fields = {
        "caption": spec.print_caption or spec.caption,
        "width": drawn.width,
        "height": drawn.height,
    }
    few = [f"{len(spec.members)} of {spec.total} are shown"]
    notes = [*notes, *(few if len(spec.members) < spec.total else ()), *spec.notes, *drawn.notes]
    written = add_record(chart.name, items, files, fields, notes, command)
    return replace(written, size=(drawn.width, drawn.height))


def choose_page(venue: str | None, width: float | None) -> Venue:
    """Choose the widths of a column and of the text: those of the venue, or one for both."""
    if width is not None:
        return Venue(width, width)
    if venue is not None and venue not in VENUES:
        raise refuse_name("venue", venue, VENUES, argument("venue"))
    return VENUES[venue or "iclr"]


def make_table(
    table: LatexTable,
    items: Sequence[ChartItem],
    notes: Sequence[str],
    *,
    signs: str,
    page: Venue,
    command: str,
    record: str = "",
) -> WrittenFigure:
    methods = [
        TableColumn(s.label, s.analysis, s.runs, s.group) for s in items if s.analysis is not None
    ]
    content = table.fill(methods, signs, page)
    maker = f"made by embgeo {VERSION}; {record or f'{table.name}.json'} says how"
    files = {
        f"{table.name}.tex": render_table(table, content, maker).encode(),
        f"{table.name}.csv": b"".join(csv_lines(content.columns, content.rows)),
    }
    return add_record(table.name, items, files, {}, notes, command)


def add_record(
    name: str,
    items: Sequence[ChartItem],
    files: dict[str, bytes],
    fields: dict[str, Any],
    notes: Sequence[str],
    command: str,
) -> WrittenFigure:
    record = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "name": name,
        **fields,
        "notes": list(notes),
        "files": sorted(files),
        "sources": [describe_source(item) for item in items],
        "command": command,
        "versions": {
            "embgeo": VERSION,
            "matplotlib": installed("matplotlib"),
            "numpy": installed("numpy"),
            "python": platform.python_version(),
        },
    }
    return WrittenFigure(name, files | {f"{name}.json": as_text(record).encode()}, record)


def describe_source(item: ChartItem) -> dict[str, Any]:
    source: dict[str, Any] = {"label": item.label}
    if item.x is not None:
        source["x"] = item.x
    if item.analysis is not None:
        of = item.analysis.provenance
        keys = ("file", "tensor", "sha256", "n", "d", "kept", "seed")
        source |= {key: of.get(key) for key in keys}
        source["embgeo"] = of.get("versions", {}).get("embgeo")
    if item.step_curves:
        source["curves"] = sorted(item.step_curves)
    return source


def load_items(
    results: Sequence[Result],
    labels: Sequence[str] = (),
    parameter: str = "",
) -> list[ChartItem]:
    """Load one item for each analysis or run, in the order of the results.

    A comparison gives its members, and the run if it is a track; a study gives its methods. A path
    names a folder, or the JSON file in it. The values of `parameter` are parsed from the paths.
    """
    refuse_if(not results, argument("results"), "there is nothing to draw", "give one")
    for result in results:
        if not isinstance(result, Analysis | Comparison | Path | str):
            raise refuse_type(result, "results", "analyses, comparisons, or folders of them")
    of_results = [list_items(result) for result in results]
    pairs = [pair for of_result in of_results for pair in of_result]
    items = [item for item, _ in pairs]
    paths = [path for _, path in pairs]
    if parameter:
        values = [parse_parameter(str(path), parameter) for path in paths]
        unknown = all(value is None for value in values)
        cause, way_out = f"no path names a value of {parameter}", f"name one {parameter}=0.5"
        refuse_if(unknown, argument("parameter"), cause, way_out)
        items = [replace(s, x=x) for s, x in zip(items, values, strict=True)]
    names = distinguish_names([s.label for s in items], paths)
    if labels and len(labels) == len(results) < len(items):
        names = name_runs(names, items, of_results, labels)
    elif labels:
        check_labels(labels, items)
        names = list(labels)
    named = [replace(s, label=name) for s, name in zip(items, names, strict=True)]
    return mark_runs(named) if sum(s.track is not None for s in named) > 1 else named


def load_groups(
    baseline: Sequence[Result], against: Sequence[Path | str], labels: Sequence[str]
) -> tuple[list[ChartItem], list[str]]:
    """Load two groups, such as seeds: their members, and each as a whole; and how they differ."""
    from embgeo.workflows.groups import find_unlike, list_differences, name_unlike, open_groups

    paths = [path for path in baseline if isinstance(path, Path | str)]
    way_out = "give folders of analyses, or checkpoints"
    refuse_if(len(paths) < len(baseline), argument("against"), "compares groups of paths", way_out)
    cause, way_out = f"{len(labels)} for 2 groups", "give one for each"
    refuse_if(len(labels) not in (0, 2), argument("label"), cause, way_out)
    groups, paired = open_groups(paths, against)
    names = labels or ("baseline", "against")
    items = []
    for place, (label, group) in enumerate(zip(names, groups, strict=True)):
        own = distinguish_names([result_name(path) for path in group.paths], group.paths)
        runs = [
            member_run(label, *one)
            for one in zip(group.paths, group.keys, group.members, strict=True)
        ]
        items += [
            ChartItem(f"{label}, {name}", analysis, runs=(run,), place=place, group=label)
            for name, analysis, run in zip(own, group.members, runs, strict=True)
        ]
        reference = names[0] if place else ""
        curves = method_curves(runs)
        items.append(
            ChartItem(label, None, curves, runs=tuple(runs), reference=reference, place=place)
        )
    unlike = find_unlike(groups)
    differences = [
        f"{one.title}: {one.before} and {one.after}, {one.word}"
        + ("" if one.p_adjusted is None else f" (p {format_p(one.p_adjusted)} after Holm)")
        for one in list_differences(groups, unlike, paired)
        if one.name in seeds.NAMES
    ]
    shown = {name: why for name, why in unlike.items() if name in seeds.NAMES}
    return items, [*differences, *name_unlike(shown)]


def member_run(label: str, path: Path, seed: int, analysis: Analysis) -> Run:
    """Make the run of a member; one of ``embgeo train`` has the scores of its result."""
    from embgeo.training.study.assemble import make_run
    from embgeo.training.study.run_result import is_finished, read_run, thin_curves

    if is_finished(path):
        made = make_run(read_run(path.absolute().parents[1], path.absolute()), {})
        return replace(made, method=label, seed=seed)
    numbers = {one.name: one.value for one in analysis.scalars if one.value is not None}
    log = path / LOG_NAME
    curves = thin_curves(read_log(log)) if log.is_file() else {}
    return Run(label, seed, numbers=numbers, curves=curves)


def mark_runs(items: Sequence[ChartItem]) -> list[ChartItem]:
    """Give the checkpoints of each of several tracks the name of their run, which follows them."""
    marked: list[ChartItem] = []
    run = ""
    for item in reversed(items):
        run = item.label if item.track is not None else run if item.step is not None else ""
        of_run = bool(run) and item.track is None
        label = f"{run}, step {item.step:,.10g}" if of_run else item.label
        marked.append(replace(item, label=label, run=run if of_run else ""))
    return marked[::-1]


def name_runs(
    names: Sequence[str],
    items: Sequence[ChartItem],
    of_results: Sequence[Sequence[object]],
    labels: Sequence[str],
) -> list[str]:
    """Give each result a label: of a track it names the run, not the checkpoints."""
    given = [label for held, label in zip(of_results, labels, strict=True) for _ in held]
    counts = [len(held) for held in of_results for _ in held]
    named = [count == 1 or s.track is not None for s, count in zip(items, counts, strict=True)]
    if sum(named) < len(labels):
        check_labels(labels, items)
    return [b if is_named else a for a, b, is_named in zip(names, given, named, strict=True)]


def check_labels(labels: Sequence[str], items: Sequence[ChartItem]) -> None:
    """Refuse more or fewer labels than there are items."""
    named = ", ".join(item.label for item in items)
    cause = f"{len(labels)} for {len(items)} analyses ({named})"
    refuse_if(len(labels) != len(items), argument("label"), cause, "give one for each")


def list_items(result: Result) -> list[tuple[ChartItem, Path]]:
    """List the items of a result, each with a path that names it."""
    if isinstance(result, Analysis):
        file = Path(str(result.provenance.get("file") or "matrix"))
        return [(ChartItem(file.stem, result), file)]
    if isinstance(result, Comparison):
        return list_members(result, Path("comparison"))
    path = Path(result)
    names = (STUDY_NAME, COMPARISON_NAME, JSON_NAME, LOG_NAME)
    home = path.parent if path.name in names and not path.is_dir() else path
    held = [name for name in names if (path / name).is_file() or path.name == name]
    if STUDY_NAME in held:
        return list_methods(home)
    if COMPARISON_NAME in held:
        return list_members(load_comparison(home), home)
    analysis = load_analysis(home) if JSON_NAME in held else None
    step_curves = log_curves(read_log(home / LOG_NAME)) if LOG_NAME in held else {}
    if analysis is None and not step_curves:
        raise UnreadableFile(
            "no saved analysis, comparison or log of a run" if path.exists() else "no such folder",
            where=path,
            way_out=suggest_file(path, "make an analysis with: embgeo analyze CHECKPOINT"),
        )
    return [(ChartItem(folder_name(home), analysis, step_curves), home)]


def list_methods(home: Path) -> list[tuple[ChartItem, Path]]:
    """List each method of a study: its curves, and its analysis for the first common seed."""
    training = load_study(home)
    places = [home / training.choose_shown_run(method.name).folder for method in training.methods]
    return [
        (replace(item, analysis=load_analysis(place)), place)
        for item, place in zip(method_items(training), places, strict=True)
    ]


def list_members(comparison: Comparison, home: Path) -> list[tuple[ChartItem, Path]]:
    """List the compared analyses and, of a track, the run."""
    items = compared_items(comparison)
    members = zip(items, comparison.members, strict=False)
    found = [(replace(s, label=m.name, x=m.step, place=None), Path(m.given)) for s, m in members]
    runs = [replace(s, label=folder_name(home)) for s in items[len(comparison.members) :]]
    return [*found, *((run, home) for run in runs)]


def folder_name(folder: Path) -> str:
    """Return the name of a saved result in legends."""
    return (folder.name or folder.resolve().name).removesuffix(".embgeo")


def parse_parameter(name: str, parameter: str) -> float | None:
    """Parse the finite number behind the last mention of `parameter`, or None.

    >>> parse_parameter("runs/beta=0.25.embgeo", "beta"), parse_parameter("tau2", "tau")
    (0.25, 2.0)
    >>> parse_parameter("beta=2k", "beta")  # 2 or 2,000

    """
    # "beta" does not mention "eta".
    pattern = rf"(?<![^\W\d_]){re.escape(parameter)}{NUMBER}"
    numbers = re.findall(pattern, name, re.IGNORECASE)
    value = float(numbers[-1]) if numbers else math.nan
    return value if math.isfinite(value) else None
