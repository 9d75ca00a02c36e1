"""Norms and cosines over ten bins of token frequency."""

from functools import partial

import numpy as np

from embgeo.charts import specification as spec
from embgeo.charts.lookup import Lookup, column_of, find_table
from embgeo.core.quantities import frequency

NAME = frequency.BY_FREQUENCY_BIN.name
_BINS = Lookup(partial(find_table, name=NAME), "its analysis holds no bins of frequency")
NORM, INSIDE, MEAN = "median norm", "mean cosine inside", "mean cosine to mean direction"
ONE = (
    "Tokens sorted by frequency into ten bins of equal size. Flat lines mean that frequency has "
    "no effect."
)
SEVERAL = (
    "Tokens sorted by frequency into ten bins of equal size: the median norm of each bin, and the "
    "mean cosine of its rows to the mean direction of their matrix. Flat lines mean that "
    "frequency has no effect."
)


def build(items: spec.StyledItems, _choices: spec.Choices) -> spec.Specification:
    tables = [
        (item, style, table)
        for (item, style), table in zip(items, _BINS.collect(items), strict=True)
    ]
    alone = len(tables) == 1
    bins = tuple(range(1, max(len(table.rows) for _, _, table in tables) + 1))
    x = spec.Axis("frequency bin (1 = most frequent tokens)", ticks=bins)

    def lines(name: str, turn: int = 0, part: str = "") -> tuple[spec.Line, ...]:
        return tuple(
            spec.Line(
                np.arange(1.0, len(table.rows) + 1),
                column_of(table, name),
                spec.MemberStyle("line", style.index + turn) if turn else style,
                "" if alone else item.label,
                part,
            )
            for item, style, table in tables
        )

    cosines = (
        (*lines(INSIDE, 0, "inside the bin"), *lines(MEAN, 1, "to the mean direction"))
        if alone
        else lines(MEAN)
    )
    return spec.Specification(
        (
            spec.Panel(x, spec.Axis("", low=0.0), lines(NORM), key="norm", title="Median norm"),
            spec.Panel(
                x,
                spec.Axis(""),
                cosines,
                (spec.Guide(0.0, "isotropic rows", "y"),),
                key="cosine",
                title="Mean cosine" if alone else "Mean cosine to the mean direction",
            ),
        ),
        ONE if alone else SEVERAL,
        quantity=NAME,
    )


CHART = spec.Chart(
    "frequency",
    "Line charts of norm and cosine over ten frequency bins",
    _BINS.refuse,
    build,
    section="frequency",
)
