"""The files of a figure or LaTeX table: the drawing, its data and its record."""

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from embgeo.charts.items import ChartItem
from embgeo.charts.render.film import render_gif
from embgeo.charts.render.paper import plain_text, render_paper
from embgeo.charts.render.table import render_csv
from embgeo.charts.specification import Chart, Choices
from embgeo.core.version import VERSION
from embgeo.io.bounded.records import as_text
from embgeo.io.bounded.saved import csv_lines
from embgeo.measure.provenance import installed
from embgeo.publish.latex.latex_table import LatexTable, TableColumn, render_table
from embgeo.publish.latex.latex_text import DEFINITION, latex_text

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
    """Make a figure in all formats."""
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


def make_table(
    table: LatexTable,
    items: Sequence[ChartItem],
    notes: Sequence[str],
    *,
    signs: str,
    command: str,
) -> WrittenFigure:
    """Make a table in LaTeX."""
    methods = [TableColumn(s.label, s.analysis) for s in items if s.analysis is not None]
    content = table.fill(methods, signs)
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
    """Add the record."""
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
    """Write the provenance of an item."""
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
