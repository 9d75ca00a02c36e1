"""A result in Python: as a small table in a notebook, as DataFrames, as the report."""

from __future__ import annotations

import html
import importlib
import sys
import tempfile
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from embgeo.core.frames import import_pandas
from embgeo.core.text import visible_text
from embgeo.diagnosis.verdict import judge
from embgeo.files.saved import write_file
from embgeo.report.tables import headline_rows
from embgeo.result.analysis import REPORT_NAME, Analysis

if TYPE_CHECKING:
    import pandas as pd

#: Height of the report in a notebook, in pixels.
HEIGHT = 820


def to_html(analysis: Analysis) -> str:
    """Return the verdict and the headline numbers as a table without classes, styles or scripts."""
    p = analysis.provenance
    head = " ".join(str(part) for part in (p.get("file"), p.get("tensor")) if part)
    rows = "".join(
        f"<tr><td>{text(quantity.title)}</td><td>{text(scalar.text)}</td>"
        f"<td>{text(scalar.reference_text)}</td></tr>"
        for quantity, _, scalar in headline_rows(analysis)
    )
    more = len(analysis.values()) - len(headline_rows(analysis))
    return (
        f"<p><b>{text(judge(analysis).headline)}</b></p>"
        f"<table><caption>{text(head)}, {p['n']:,} × {p['d']:,}</caption>"
        "<thead><tr><th>value</th><th>measured</th><th>isotropic rows, or chance</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
        f"<p>{more} more values: <code>.to_pandas()</code>, <code>.show()</code></p>"
    )


def text(value: str) -> str:
    return html.escape(visible_text(value))


def scalars_frame(analysis: Analysis) -> pd.DataFrame:
    """Return one row for each single number, by name.

    Raises
    ------
    EmbgeoError
        If pandas is not installed.
    """
    frame: pd.DataFrame = import_pandas().DataFrame(
        {
            "title": [s.quantity.title for s in analysis.scalars],
            **{
                name: np.array([getattr(s, name) for s in analysis.scalars], dtype=np.float64)
                for name in ("value", "standard_error", "population_error", "reference")
            },
            "unit": [s.quantity.unit for s in analysis.scalars],
            "convention": [s.convention for s in analysis.scalars],
            "undefined": [s.undefined for s in analysis.scalars],
        },
        index=[s.name for s in analysis.scalars],
    )
    frame.index.name = "name"
    return frame


def rows_frame(analysis: Analysis) -> pd.DataFrame:
    """Return one row for each kept row of the matrix: token, count, coordinates, norm and so on.

    Raises
    ------
    EmbgeoError
        If pandas is not installed.
    """
    pandas = import_pandas()
    columns: dict[str, Any] = {}
    if analysis.tokens is not None:
        # As objects: Arrow's strings, pandas' default, cannot hold every token.
        columns["token"] = pandas.Series(analysis.tokens, index=analysis.rows, dtype=object)
    if analysis.counts is not None:
        columns["count"] = analysis.counts
    if analysis.popular is not None:
        columns["popular"] = analysis.popular
    for column in analysis.columns:
        columns[column.name] = column.values
    for points in analysis.points:
        columns[f"{points.name}.x"] = points.xy[:, 0]
        columns[f"{points.name}.y"] = points.xy[:, 1]
    frame: pd.DataFrame = pandas.DataFrame(columns, index=analysis.rows)
    frame.index.name = "row"
    return frame


def show(analysis: Analysis) -> None:
    """Show the whole report: in a notebook below the cell, elsewhere in the browser."""
    from embgeo.report.analysis import render

    page = render(analysis)
    if is_notebook():
        display: Any = importlib.import_module("IPython.display")
        frame = (
            f'<iframe srcdoc="{html.escape(page)}" width="100%" height="{HEIGHT}" '
            'sandbox="allow-scripts" frameborder="0"></iframe>'
        )
        display.display(display.HTML(frame))
        return
    path = Path(tempfile.mkdtemp(prefix="embgeo-")) / REPORT_NAME
    write_file(path, page)
    if not webbrowser.open(path.as_uri()):
        print(f"report: {path}")


def is_notebook() -> bool:
    """Tell whether this process is the kernel of a notebook."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None
