"""Maps of two or three matrices and their singular values, as in Gao et al. 2019 (Fig. 1, 2b)."""

from __future__ import annotations

from dataclasses import replace

from embgeo.charts import first_figure, scatter, spectrum
from embgeo.charts.specification import Chart, Choices, Line, Specification, StyledSubjects
from embgeo.charts.subject import Subject

PARTS = (scatter.PLAIN, spectrum.LINEAR)
#: Rows whose names stand in their map, at most: classes, not words.
MOST_NAMES = 20
CAPTION = (
    "Rank-2 approximation (SVD) of each matrix, not centered, each on scales of its own; the cross "
    "is the origin. Rows around the origin point in all directions; rows to one side of it lie in "
    "a cone. In brackets: the share of the energy on each axis. Right: the singular values, "
    "divided by the largest."
)


def refuse(subject: Subject, choices: Choices) -> str:
    """Why one of the parts cannot show a subject; empty if both can."""
    return next(filter(None, (part.refuse(subject, choices) for part in PARTS)), "")


def build(subjects: StyledSubjects, choices: Choices) -> Specification:
    tokens = [s.analysis.tokens or () for s, _ in subjects if s.analysis is not None]
    few = tuple(token for names in tokens if len(names) <= MOST_NAMES for token in names)
    plain = replace(choices, color="none", annotate=few, free_axes=True)
    specs = [part.build(subjects, plain) for part in PARTS]
    maps, values = (spec.panels for spec in specs)
    named = [
        panel
        if len(names) <= MOST_NAMES or panel.cloud is None
        else replace(panel, cloud=replace(panel.cloud, named=()))
        for panel, names in zip(maps, tokens, strict=True)
    ]
    lines = tuple(
        line for line in values[0].lines if isinstance(line, Line) and line.style.scale != "guide"
    )
    return replace(
        specs[0],
        panels=(*named, replace(values[0], lines=lines, key="spectrum")),
        caption=CAPTION,
        print_caption=CAPTION,
        table=lambda: first_figure.tabulate(PARTS, specs),
    )


CHART = Chart(
    "gao-figure-1",
    "Maps of the rows of each matrix around the origin, and their singular values",
    refuse,
    build,
    pages=(),
    least=2,
    most=3,
    one_row=True,
)
