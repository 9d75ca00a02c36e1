"""What charts of stored curves share: one line a member, or all lines of a single one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embgeo.charts.specification import (
    Axis,
    Guide,
    Line,
    MemberStyle,
    Panel,
    StyledSubjects,
)
from embgeo.core.arrays import FloatArray
from embgeo.core.values import Series


def series_lines(subjects: StyledSubjects, curves: Sequence[Series]) -> tuple[Line, ...]:
    """Every line of every curve: named by part for one member, by member for several."""
    if len(subjects) == 1:
        (_, style), (curve,) = subjects[0], curves
        return tuple(
            Line(
                curve.x,
                drawable_values(y, curve.log_y),
                MemberStyle("line", style.index + i) if i else style,
                part=label if len(curve.y) > 1 else "",
            )
            for i, (label, y) in enumerate(curve.y.items())
        )
    return tuple(
        Line(curve.x, drawable_values(y, curve.log_y), style, subject.label, label)
        for (subject, style), curve in zip(subjects, curves, strict=True)
        for label, y in (curve.y if len(curve.y) > 1 else {"": first_line(curve)}).items()
    )


def first_line(curve: Series) -> FloatArray:
    """The values of a curve that has one line, whatever its name."""
    return next(iter(curve.y.values()))


def series_panel(curve: Series, lines: tuple[Line, ...], guides: tuple[Guide, ...] = ()) -> Panel:
    """A panel with the labels of `curve`; logarithmic where that is requested and useful."""
    log_x = curve.log_x and is_wide(np.concatenate([line.x for line in lines]))
    log_y = curve.log_y and is_wide(np.concatenate([line.y for line in lines]))
    return Panel(Axis(curve.x_label, log_x), Axis(curve.y_label, log_y), lines, guides)


def is_wide(values: FloatArray, ratio: float = 3.0) -> bool:
    """Whether the positive values span more than `ratio`.

    Within a factor of three a linear axis shows the same and has more labels.
    """
    positive = values[np.isfinite(values) & (values > 0)]
    # Logarithms: a quotient of extreme floats would overflow.
    return bool(
        len(positive) and np.log10(positive.max()) - np.log10(positive.min()) > np.log10(ratio)
    )


def drawable_values(values: FloatArray, log: bool) -> FloatArray:
    """`values` with gaps where a logarithmic axis cannot show them."""
    return np.where(values > 0, values, np.nan) if log else values


def empty_cells(values: FloatArray) -> list[float | None]:
    """Numbers as cells of a table: undefined ones are empty."""
    return [value if np.isfinite(value) else None for value in values.tolist()]
