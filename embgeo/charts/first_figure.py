"""The figure that papers on degeneration open with: maps, spectrum and cosines in one row.

As in Gao et al. 2019 (Fig. 1 and 2) and Wang et al. 2020 (Fig. 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from embgeo.charts import cosines, scatter, spectrum
from embgeo.charts.specification import Chart, Choices, FigureTable, Specification, StyledSubjects
from embgeo.charts.subject import Subject
from embgeo.core.values import Cell

PARTS = (scatter.PLAIN, spectrum.LINEAR, cosines.CHART)
#: For each part the column of its table that runs along x, and those that run along y.
COLUMNS = {
    scatter.PLAIN.name: ("x", ("y",)),
    spectrum.LINEAR.name: ("k", ("normalized singular value", "isotropic rows")),
    cosines.CHART.name: ("from", ("density",)),
}


def refuse(subject: Subject, choices: Choices) -> str:
    """Why one of the parts cannot show a subject; empty if all can."""
    return next(filter(None, (part.refuse(subject, choices) for part in PARTS)), "")


def build(subjects: StyledSubjects, choices: Choices) -> Specification:
    maps, values, pairs = specs = [part.build(subjects, choices) for part in PARTS]
    panels = (*maps.panels, replace(values.panels[0], key="spectrum"))
    caption = " ".join(spec.print_caption for spec in specs)
    return replace(
        maps,
        panels=(*panels, replace(pairs.panels[0], key="cosines")),
        caption=caption,
        print_caption=caption,
        table=lambda: tabulate(PARTS, specs),
    )


def tabulate(parts: Sequence[Chart], specs: Sequence[Specification]) -> FigureTable:
    """The places of tokens, singular values by index, and densities by the start of each bin."""
    rows: list[tuple[Cell, ...]] = []
    for part, spec in zip(parts, specs, strict=True):
        across, upward = COLUMNS[part.name]
        table = spec.table() if callable(spec.table) else spec.table
        assert table is not None
        named = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        rows += [
            (part.name, row["analysis"], row.get("token", up), row[across], row[up])
            for up in upward
            for row in named
        ]
    return FigureTable(("part", "analysis", "token or line", "x", "y"), rows)


CHART = Chart(
    "figure1",
    "Maps of the tokens, singular values and cosines in one row",
    refuse,
    build,
    pages=(),
    most=3,
    one_row=True,
)
