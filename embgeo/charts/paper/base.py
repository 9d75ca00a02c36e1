"""What a figure for a paper is: subjects go in; a drawing, its numbers and a caption come out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from embgeo.charts.paper.style import Page
from embgeo.core.values import Cell
from embgeo.result.analysis import Analysis
from embgeo.training.study.log import Log

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

#: Why a subject is no matter of a figure at all: not worth a word where nobody asked for it.
NO_ANALYSIS = "it is no analysis"
NO_LOG = "it is no run with a metrics.jsonl and no track"
NO_VALUE = "no value of the parameter is known; give --x or --parameter"
NO_MATTER = (NO_ANALYSIS, NO_LOG, NO_VALUE)


@dataclass(frozen=True, slots=True)
class Subject:
    """One line, panel or point of a figure.

    Attributes
    ----------
    label : str
        What a legend calls it; from a file name or the user, so hostile text.
    analysis : Analysis or None
    log : Log or None
        Numbers over training.
    x : float or None
        Its value of the parameter that is swept.
    """

    label: str
    analysis: Analysis | None = None
    log: Log | None = None
    x: float | None = None


@dataclass(frozen=True, slots=True)
class Choices:
    """What a user may choose about the content of figures.

    Attributes
    ----------
    color : {"class", "frequency", "none"}
        What colors the points of a scatter.
    scalars : tuple of str
        Names of the scalars that a sweep or training curves show; empty for the default.
    parameter : str
        What is swept: the label of the x axis; hostile text.
    """

    color: str = "class"
    scalars: tuple[str, ...] = ()
    parameter: str = ""


@dataclass(frozen=True, slots=True)
class Data:
    """The numbers behind a figure, as a table."""

    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]]


@dataclass(frozen=True, slots=True)
class Made:
    """A figure that was drawn.

    Attributes
    ----------
    drawing : matplotlib Figure
    data : Data
        What was drawn.
    caption : str
        What is seen, in plain text.
    notes : tuple of str
        What a caption should not hide (points outside the picture, …).
    """

    drawing: Drawing
    data: Data
    caption: str
    notes: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """One kind of figure.

    Attributes
    ----------
    name : str
        Of the option and of the file.
    missing : callable
        Why a subject cannot be drawn; empty if it can.
    draw : callable
        From subjects that lack nothing to the figure; call it within :func:`style.settings`.
    least : int
        Subjects without which there is nothing to see.
    """

    name: str
    missing: Callable[[Subject, Choices], str]
    draw: Callable[[Sequence[Subject], Page, Choices], Made]
    least: int = 1
