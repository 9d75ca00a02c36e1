"""Norms of rows against the frequency of their tokens: medians and quartiles."""

import numpy as np

from embgeo.charts import specification as spec
from embgeo.charts.items import ChartItem
from embgeo.charts.lookup import FREQUENCIES, Lookup, make_alike
from embgeo.core.arrays import FloatArray
from embgeo.core.quantities import tokens
from embgeo.core.values import Cell
from embgeo.result.analysis import Analysis

NAME = tokens.NORM.name
BINS = 16
#: The median of fewer tokens is unstable: such a bin is merged with the next.
LEAST_TOKENS = 20
CAPTION = (
    "Norms of the rows by token frequency: medians (lines) and quartiles (bands) in bins of equal "
    "width on the logarithmic axis."
)


def row_norms(analysis: Analysis) -> FloatArray | None:
    return next((c.values for c in analysis.columns if c.name == NAME), None)


_NORMS = Lookup(row_norms, "its analysis left out the section tokens")


def refuse(item: ChartItem, choices: spec.Choices) -> str:
    return FREQUENCIES.refuse(item, choices) or _NORMS.refuse(item, choices)


def build(items: spec.StyledItems, _choices: spec.Choices) -> spec.Specification:
    known = make_alike(FREQUENCIES.collect(items))
    norms = _NORMS.collect(items)
    alone = len(items) == 1
    lines = []
    rows: list[tuple[Cell, ...]] = []
    for (item, style), frequency, values in zip(items, known, norms, strict=True):
        bins = quartiles(frequency.positive, values)
        x, low, middle, high, _ = bins.T
        label = "" if alone else item.label
        lines.append(spec.Line(x, middle, style, label, low=low, high=high))
        rows += [(item.label, int(n), *q) for *q, n in bins.tolist()]
    highest = max(float(line.high.max()) for line in lines if line.high is not None)
    cloud = None
    if alone:
        # The rows themselves, behind the line.
        cloud = spec.Cloud(np.stack([known[0].positive, norms[0]], axis=1))
        highest = float(norms[0].max())
    label = known[0].positive_label
    quartile_names = ("lower quartile", "median norm", "upper quartile")
    return spec.Specification(
        (
            spec.Panel(
                spec.Axis(label, log=True),
                spec.Axis("row norm", low=0.0, high=1.05 * highest),
                tuple(lines),
                cloud=cloud,
            ),
        ),
        CAPTION,
        quantity=NAME,
        table=spec.FigureTable(("analysis", "tokens", f"median {label}", *quartile_names), rows),
    )


def quartiles(x: FloatArray, norms: FloatArray) -> FloatArray:
    """Return bins of equal width in log x, shape (bins, 5).

    Columns: median x, lower quartile, median and upper quartile of the norm, number of tokens.
    """
    order = np.argsort(x, kind="stable")
    x, norms = x[order], norms[order]
    edges = np.geomspace(x[0], x[-1], BINS + 1)[1:-1]
    ends = [*np.searchsorted(x, edges, side="right").tolist(), len(x)]
    starts = [0]
    for end in ends:
        # Equal frequencies stay together; too few tokens wait for the next bin.
        if end - starts[-1] >= min(LEAST_TOKENS, len(x)) and end < len(x):
            starts.append(end)
    if len(starts) > 1 and len(x) - starts[-1] < LEAST_TOKENS:
        starts.pop()
    bins = zip(starts, [*starts[1:], len(x)], strict=True)
    return np.array(
        [(np.median(x[a:b]), *np.quantile(norms[a:b], [0.25, 0.5, 0.75]), b - a) for a, b in bins]
    )


CHART = spec.Chart(
    "norms-by-frequency",
    "Line chart of the median row norm by token frequency, with quartiles",
    refuse,
    build,
)
