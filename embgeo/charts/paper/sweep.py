"""A scalar against a parameter that is swept, as in Inan et al. 2017 (Fig. 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from embgeo.charts.paper import style
from embgeo.charts.paper.base import NO_VALUE, Choices, Data, Made, PaperFigure, Subject
from embgeo.charts.paper.lines import cells
from embgeo.charts.paper.style import Page
from embgeo.core.values import Cell, Scalar

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DEFAULT = "subspace.distance"
#: Parameters of the literature, as mathematics has them.
GREEK = {"alpha", "beta", "gamma", "delta", "epsilon", "eta", "lambda", "mu", "rho", "sigma", "tau"}
CAPTIONS = {
    DEFAULT: "Subspace distance between input and output embedding (Inan et al. 2017, appendix B): "
    "0 for the same subspace, 1 for orthogonal ones."
}


def names_of(choices: Choices) -> tuple[str, ...]:
    """The scalars that are shown, a panel each."""
    return choices.scalars or (DEFAULT,)


def found_value(subject: Subject, name: str) -> tuple[float | None, float | None, Scalar | None]:
    """Value, standard error and scalar: of the analysis, else the last value of the log."""
    scalar = None if subject.analysis is None else subject.analysis.scalar(name)
    if scalar is not None:
        return scalar.value, scalar.standard_error, scalar
    return (None if subject.log is None else subject.log.last(name)), None, None


def missing(subject: Subject, choices: Choices) -> str:
    if subject.x is None:
        return NO_VALUE
    reasons = [why_missing(subject, name) for name in names_of(choices)]
    return "" if "" in reasons else reasons[0]


def why_missing(subject: Subject, name: str) -> str:
    """Why the subject has no value of that name; empty if it has one."""
    value, _, scalar = found_value(subject, name)
    if value is not None:
        return ""
    if scalar is not None:
        return f"{name} is not defined: {scalar.undefined}"
    absent = {} if subject.analysis is None else subject.analysis.absent
    return absent.get(name.partition(".")[0]) or f"it holds no {name}"


def draw(subjects: Sequence[Subject], page: Page, choices: Choices) -> Made:
    names = [n for n in names_of(choices) if not all(why_missing(s, n) for s in subjects)]
    across, down = style.grid(page, len(names), least=2.0)
    height = down * float(np.clip(0.62 * page.width / across, 1.2, 2.3))
    drawing, axes = style.panels(page, len(names), across, height)
    ordered = sorted(subjects, key=lambda s: s.x or 0.0)
    rows: list[tuple[Cell, ...]] = []
    captions = []
    for ax, name in zip(axes, names, strict=True):
        held = [s for s in ordered if not why_missing(s, name)]
        more, caption = panel(ax, held, name)
        rows += more
        captions.append(caption)
        ax.set_xlabel(axis_name(choices.parameter, page))
    columns = ("analysis", choices.parameter or "x", "name", "value", "standard error", "reference")
    return Made(drawing, Data(columns, rows), " ".join(captions))


def panel(ax: Axes, subjects: Sequence[Subject], name: str) -> tuple[list[tuple[Cell, ...]], str]:
    """One scalar against the parameter: its rows of the data, and what a caption says."""
    found = [found_value(subject, name) for subject in subjects]
    scalars = [scalar for _, _, scalar in found if scalar is not None]
    x, y = numbers([s.x for s in subjects]), numbers([value for value, _, _ in found])
    errors = numbers([error for _, error, _ in found])
    references = numbers([None if s is None else s.reference for _, _, s in found])
    line = style.line(0, 1)
    places = np.unique(x)
    # Several runs of one value: a mark each, and the line through their means.
    ax.plot(places, [y[x == place].mean() for place in places], **line | {"marker": ""})
    ax.errorbar(x, y, yerr=np.nan_to_num(errors), fmt=line["marker"], color=line["color"],
                elinewidth=0.7, capsize=1.5 if np.isfinite(errors).any() else 0)  # fmt: skip
    if np.isfinite(references).any():
        ax.plot(x, references, color=style.GRAY, ls=(0, (4, 3)), lw=0.8, zorder=1)
    if style.is_wide(x, 30.0):
        style.log_ticks(ax.xaxis)
    if name == DEFAULT:
        ax.set_ylim(0, 1.03)
    ax.set_ylabel(scalars[0].quantity.title.split(",")[0] if scalars else name)
    values = zip(cells(y), cells(errors), cells(references), strict=True)
    rows: list[tuple[Cell, ...]] = [
        (subject.label, subject.x, name, *of) for subject, of in zip(subjects, values, strict=True)
    ]
    return rows, caption_of(name, scalars)


def numbers(values: Sequence[float | None]) -> npt.NDArray[np.float64]:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def axis_name(parameter: str, page: Page) -> str:
    """The parameter as an axis calls it: Greek letters as such."""
    if parameter in GREEK:
        return rf"$\{parameter}$"
    return page.text(parameter) if parameter else "parameter"


def caption_of(name: str, scalars: Sequence[Scalar]) -> str:
    caption = CAPTIONS.get(name, f"{name} against the parameter.")
    notes = sorted({s.reference_note for s in scalars if s.reference is not None})
    return f"{caption} Dashed: {'; '.join(notes)}." if notes else caption


FIGURE = PaperFigure("sweep", missing, draw, least=2)
