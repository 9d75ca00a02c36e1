"""What figures of curves share: one line a subject, told apart by color, dash and marker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embgeo.charts.paper import style
from embgeo.charts.paper.base import Subject
from embgeo.charts.paper.style import Page
from embgeo.core.values import Cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

FloatArray = npt.NDArray[np.float64]


def one_panel(page: Page, *, shape: float = 0.62, most: float = 2.3) -> tuple[Drawing, Axes]:
    """A figure with one panel: of the page's width, and not higher than `most` inches."""
    drawing, (ax,) = style.panels(page, 1, 1, float(np.clip(shape * page.width, 1.2, most)))
    return drawing, ax


def name_lines(
    drawing: Drawing, page: Page, handles: Sequence[Any], subjects: Sequence[Subject]
) -> None:
    """A legend with the subjects' names, where there is more than one."""
    if len(subjects) > 1:
        style.legend(drawing, page, handles, [page.text(s.label) for s in subjects])


def cells(values: FloatArray) -> list[Cell]:
    """Numbers as cells of a table: undefined ones are empty."""
    return [value if np.isfinite(value) else None for value in values.tolist()]
