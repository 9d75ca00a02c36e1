"""The files of a figure or LaTeX table, and the items that are drawn, from saved results."""

import math
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from embgeo.charts.items import ChartItem, compared_items, log_curves, method_items
from embgeo.charts.render.film import render_gif
from embgeo.charts.render.paper import VENUES, Venue, plain_text, render_paper
from embgeo.charts.render.table import render_csv
from embgeo.charts.specification import Chart, Choices
from embgeo.comparison.comparison import (
    COMPARISON_NAME,
    Comparison,
    distinguish_names,
    load_comparison,
)
from embgeo.core.arguments import refuse_if, refuse_name, refuse_type
from embgeo.core.errors import UnreadableFile, argument
from embgeo.core.version import VERSION
from embgeo.files.guard import suggest_file
from embgeo.files.records import as_text
from embgeo.files.saved import csv_lines
from embgeo.measure.provenance import installed
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
from embgeo.training.study.record import STUDY_NAME, load_study

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
            write_name=latex_text if form == "pgf" else plain_text,
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
) -> WrittenFigure:
    methods = [TableColumn(s.label, s.analysis, s.runs) for s in items if s.analysis is not None]
    content = table.fill(methods, signs, page)
    maker = f"made by embgeo {VERSION}; {table.name}.json says how"
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


NUMBER = r"[=_:-]?(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
#: A result, or the path of one.
Result = Analysis | Comparison | Path | str


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
    """
    # "beta" does not mention "eta".
    pattern = rf"(?<![^\W\d_]){re.escape(parameter)}{NUMBER}"
    numbers = re.findall(pattern, name, re.IGNORECASE)
    value = float(numbers[-1]) if numbers else math.nan
    return value if math.isfinite(value) else None
