"""Panels of stored histograms and of stored curves, and what an axis shows at least."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embgeo.charts import specification as spec
from embgeo.core.arrays import FloatArray
from embgeo.core.quantities import compare, cosine, frequency, isotropy, spectrum, tokens
from embgeo.core.values import Cell, Histogram, Series


def compute_density(bars: Histogram) -> FloatArray:
    """Compute the share of all counts by unit of x; the area under it is 1."""
    widths = np.diff(bars.edges)
    total = bars.counts.sum()
    return np.asarray(bars.counts / (widths * total if total else widths))


def overlay(
    items: spec.StyledItems,
    histograms: Sequence[Histogram],
    *,
    guides: tuple[spec.Guide, ...] = (),
    limits: tuple[float, float] | None = None,
    ticks: tuple[float, ...] = (),
    isotropic: tuple[spec.HistogramSteps, ...] = (),
) -> spec.Panel:
    """Return one panel with the densities of all histograms, whose bins may differ.

    `isotropic` are the densities of isotropic rows, in the background.
    """
    alone = len(items) == 1
    lines = tuple(
        spec.HistogramSteps(bars.edges, compute_density(bars), style, "" if alone else item.label)
        for (item, style), bars in zip(items, histograms, strict=True)
    )
    low, high = limits or (None, None)
    return spec.Panel(
        spec.Axis(histograms[0].x_label, low=low, high=high, ticks=ticks),
        spec.Axis(f"density of {histograms[0].y_label}", low=0.0),
        (*lines, *isotropic),
        guides,
    )


def tabulate(
    items: spec.StyledItems,
    histograms: Sequence[Histogram],
    isotropic: Sequence[spec.HistogramSteps] = (),
) -> spec.FigureTable:
    """Return a row for each bin: its ends, the count and the density."""
    rows: list[tuple[Cell, ...]] = [
        (item.label, *map(float, cells))
        for (item, _), bars in zip(items, histograms, strict=True)
        for cells in zip(
            bars.edges[:-1], bars.edges[1:], bars.counts, compute_density(bars), strict=True
        )
    ]
    for steps in isotropic:
        for low, high, height in zip(steps.edges[:-1], steps.edges[1:], steps.heights, strict=True):
            rows.append((steps.part, float(low), float(high), None, float(height)))
    return spec.FigureTable(("analysis", "from", "to", histograms[0].y_label, "density"), rows)


def series_lines(items: spec.StyledItems, curves: Sequence[Series]) -> tuple[spec.Line, ...]:
    """Return every line of every curve: named by part for one member, by member for several."""
    if len(items) == 1:
        (_, style), (curve,) = items[0], curves
        return tuple(
            spec.Line(
                curve.x,
                drawable_values(y, curve.log_y),
                spec.MemberStyle("line", style.index + i) if i else style,
                part=label if len(curve.y) > 1 else "",
            )
            for i, (label, y) in enumerate(curve.y.items())
        )
    return tuple(
        spec.Line(curve.x, drawable_values(y, curve.log_y), style, item.label, label)
        for (item, style), curve in zip(items, curves, strict=True)
        for label, y in (curve.y if len(curve.y) > 1 else {"": first_line(curve)}).items()
    )


def first_line(curve: Series) -> FloatArray:
    """Return the values of a curve with one line, whatever its label."""
    return next(iter(curve.y.values()))


def series_panel(
    curve: Series, lines: tuple[spec.Line, ...], guides: tuple[spec.Guide, ...] = ()
) -> spec.Panel:
    """Return a panel with the labels of `curve`; logarithmic if that is requested and useful."""
    log_x = curve.log_x and is_wide(np.concatenate([line.x for line in lines]))
    log_y = curve.log_y and is_wide(np.concatenate([line.y for line in lines]))
    return spec.Panel(
        spec.Axis(curve.x_label, log_x), spec.Axis(curve.y_label, log_y), lines, guides
    )


def is_wide(values: FloatArray, ratio: float = 3.0) -> bool:
    """Tell whether the positive values span more than `ratio`.

    Within a factor of three a linear axis shows the same and has more labels.
    """
    positive = values[np.isfinite(values) & (values > 0)]
    # Logarithms: a quotient of extreme floats would overflow.
    return bool(
        len(positive) and np.log10(positive.max()) - np.log10(positive.min()) > np.log10(ratio)
    )


def drawable_values(values: FloatArray, log: bool) -> FloatArray:
    """Return `values` with gaps where a logarithmic axis cannot show them."""
    return np.where(values > 0, values, np.nan) if log else values


def empty_cells(values: FloatArray) -> list[float | None]:
    """Return numbers as cells of a table; undefined ones are empty."""
    return [value if np.isfinite(value) else None for value in values.tolist()]


#: By quantity: its reference, and a span below which a change is small.
LEAST_SPANS: dict[str, tuple[float, float]] = {
    cosine.MEAN.name: (0.0, 0.2),
    spectrum.TOP_SHARE.name: (0.0, 0.2),
    frequency.PROBE_AUC.name: (0.5, 1.0),
    frequency.NORM_RATIO.name: (0.9, 1.1),
    **{
        one.name: (0.0, 1.0)
        for one in (
            isotropy.I1,
            isotropy.I1_UNIT,
            isotropy.I1_UNIT_ROWS,
            isotropy.ISOSCORE,
            compare.NEIGHBOR_OVERLAP,
            compare.SUBSPACE_DISTANCE,
            compare.TOKEN_COSINE,
            compare.CKA,
        )
    },
}
#: Of these the axis begins at 0.
FROM_ZERO = (spectrum.EFFECTIVE_RANK.name, tokens.NORM_MEDIAN.name)
#: Scores of models within this share of their middle are not told apart.
CLOSE = 0.02


def find_span(name: str, values: FloatArray) -> tuple[float, float] | None:
    """Find the range that an axis of this quantity shows at least; None if that of data is enough.

    With the range of the data alone, chance would look like a collapse.

    >>> find_span("cosine.mean", np.array([0.987, 0.99]))
    (0.0, 0.2)
    >>> find_span("valid.perplexity", np.array([99.0, 101.0]))
    (98.0, 102.0)
    >>> find_span("spectrum.effective_rank", np.array([5.0, 9.0]))
    (0.0, 9.0)
    """
    if name in LEAST_SPANS:
        return LEAST_SPANS[name]
    known = values[np.isfinite(values)]
    if not len(known):
        return None
    if name in FROM_ZERO:
        return 0.0, float(known.max())
    if name.partition(".")[0] in ("valid", "test", "train"):
        middle = float(known.min() + known.max()) / 2.0
        return middle - CLOSE * abs(middle), middle + CLOSE * abs(middle)
    return None
