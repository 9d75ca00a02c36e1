"""What a chart shows, before anything is drawn: the data that every renderer reads.

Text of the user (names of members, titles of logged numbers) is hostile: renderers make it safe
for what they write.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from embgeo.charts.subject import Subject
from embgeo.core.arrays import FloatArray
from embgeo.core.values import Cell
from embgeo.core.visible import visible


@dataclass(frozen=True, slots=True)
class MemberStyle:
    """How a line differs from others: a place in a scale of the theme.

    Attributes
    ----------
    scale : {"line", "age", "guide"}
        Members next to each other, steps of one run, or what members are compared with.
    index : int
    """

    scale: Literal["line", "age", "guide"] = "line"
    index: int = 0


#: What a chart is built of: subjects that lack nothing, each with its style.
StyledSubjects: TypeAlias = Sequence[tuple[Subject, MemberStyle]]


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis.

    Attributes
    ----------
    label : str
    log : bool
    low, high : float or None
        Limits; None for what the data need.
    ticks : tuple of float
        Where labels stand; empty for the renderer's choice.
    whole : bool
        Large whole numbers: 5,000 and 10k.
    """

    label: str
    log: bool = False
    low: float | None = None
    high: float | None = None
    ticks: tuple[float, ...] = ()
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """Points joined by a line, or points alone.

    Attributes
    ----------
    x, y : FloatArray
        Shape (m,); a y that is not finite is a gap.
    style : MemberStyle
    member : str
        Whose line it is; empty where the chart has one member.
    part : str
        Which of a member's lines it is; empty where each has one.
    form : {"line", "plain", "marks", "dots", "hollow", "arrow"}
        With markers where there are few points, without markers, markers alone, small dots alone,
        hollow markers alone, an arrow from the first point to the last.
    low, high : FloatArray or None
        A band around the line.
    error : FloatArray or None
        Half the length of an error bar at each point.
    error_x : FloatArray or None
        The same of a bar across, where there is one upright.
    """

    x: FloatArray
    y: FloatArray
    style: MemberStyle = MemberStyle()
    member: str = ""
    part: str = ""
    form: Literal["line", "plain", "marks", "dots", "hollow", "arrow"] = "line"
    low: FloatArray | None = None
    high: FloatArray | None = None
    error: FloatArray | None = None
    error_x: FloatArray | None = None


@dataclass(frozen=True, slots=True)
class HistogramSteps:
    """A histogram: ``heights[i]`` from ``edges[i]`` to ``edges[i + 1]``; the rest as in `Line`."""

    edges: FloatArray
    heights: FloatArray
    style: MemberStyle = MemberStyle()
    member: str = ""
    part: str = ""


@dataclass(frozen=True, slots=True)
class Guide:
    """A dashed line across a panel, at a value of one axis, with its name if it has one."""

    value: float
    label: str = ""
    axis: Literal["x", "y"] = "x"


@dataclass(frozen=True, slots=True)
class Ring:
    """A circle around tokens that belong together.

    Attributes
    ----------
    x, y, radius : float
    label : str
        What they are.
    examples : tuple of str
        Some of the tokens, hidden characters spelled out; hostile text.
    """

    x: float
    y: float
    radius: float
    label: str
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NamedPoint:
    """A token whose name stands at its place; the name is hostile text."""

    x: float
    y: float
    name: str


@dataclass(frozen=True, slots=True)
class Cloud:
    """Tokens in a plane.

    Attributes
    ----------
    xy : FloatArray
        Shape (M, 2).
    popular : bool array or None
        The class of each token; None where frequencies are not known.
    frequency : FloatArray or None
        What colors the tokens where that was asked for, all positive.
    ring : Ring or None
    named : tuple of NamedPoint
    """

    xy: FloatArray
    popular: npt.NDArray[np.bool_] | None = None
    frequency: FloatArray | None = None
    ring: Ring | None = None
    named: tuple[NamedPoint, ...] = ()


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes.

    Attributes
    ----------
    x, y : Axis
    lines : tuple of Line or HistogramSteps
    guides : tuple of Guide
    cloud : Cloud or None
        Without lines the panel is a map, with equal scales on both axes.
    key : str
        Its name within the chart; empty where it is the only one.
    title : str
    member : str
        Whose panel it is, as a title.
    quantity : str
        Name of the quantity that it shows, if it has one of its own.
    """

    x: Axis
    y: Axis
    lines: tuple[Line | HistogramSteps, ...] = ()
    guides: tuple[Guide, ...] = ()
    cloud: Cloud | None = None
    key: str = ""
    title: str = ""
    member: str = ""
    quantity: str = ""

    @property
    def is_map(self) -> bool:
        """Whether it shows tokens in a plane and nothing else."""
        return self.cloud is not None and not self.lines


@dataclass(frozen=True, slots=True)
class FigureTable:
    """The numbers behind a chart."""

    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]]


@dataclass(frozen=True, slots=True)
class Specification:
    """Everything that is seen of a chart, and what is said of it.

    Attributes
    ----------
    panels : tuple of Panel
    caption : str
        What is seen, for a reader who does not know the papers.
    print_caption : str
        A caption to start from in a paper; empty for `caption`.
    quantity : str
        Name of the quantity whose definition explains the chart.
    shading : {"density", "class", "frequency", "none", "share"}
        What the colors of a map mean: "share" is that of rare tokens; the others are those of
        points, which a page without pictures shows by their density.
    frequency_label : str
        What a scale of frequencies is called.
    free_axes : bool
        Whether each map has a scale of its own on paper; else all have one.
    table : FigureTable, callable or None
        None where the table follows from the panels; a large one is made when it is asked for.
    notes : tuple of str
        What a caption should not hide.
    name, alternative : str
        Those of the chart.
    members : tuple of str
        Labels of the subjects that are shown.
    total : int
        Subjects that could be shown.
    one_row : bool
        Whether all panels stand in one row.
    """

    panels: tuple[Panel, ...]
    caption: str
    print_caption: str = ""
    quantity: str = ""
    shading: Literal["density", "class", "frequency", "none", "share"] = "density"
    frequency_label: str = ""
    free_axes: bool = False
    table: FigureTable | Callable[[], FigureTable] | None = None
    notes: tuple[str, ...] = ()
    name: str = ""
    alternative: str = ""
    members: tuple[str, ...] = ()
    total: int = 0
    one_row: bool = False


@dataclass(frozen=True, slots=True)
class Choices:
    """What may be chosen about the content of charts.

    Attributes
    ----------
    color : {"class", "frequency", "none"}
        What colors the points of a scatter.
    scalars : tuple of str
        Names of the scalars that a sweep or training curves show; empty for the default.
    parameter : str
        What is swept: the label of the x axis; hostile text.
    most : int or None
        Members in one panel, at most; with more, the first, the last and some evenly between.
    annotate : tuple of str
        Tokens whose names stand at their points in a scatter; hostile text.
    free_axes : bool
        Whether each panel of a scatter has a scale of its own.
    """

    color: str = "class"
    scalars: tuple[str, ...] = ()
    parameter: str = ""
    most: int | None = None
    annotate: tuple[str, ...] = ()
    free_axes: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """One kind of chart.

    Attributes
    ----------
    name : str
        Of the option, of files, and the prefix of ids inside a page.
    alternative : str
        What a person learns who cannot see it.
    refuse : callable
        Why a subject cannot be shown; empty if it can.
    build : callable
        From subjects that lack nothing, with their looks, to the specification.
    section : str
        Of a report: "maps", "spectrum", "plane", "cosine", "isotropy", "frequency", "subspace",
        "tokens", "together" (pairs), "training" or "balance"; or a family without a section of
        its own, whose numbers it follows. Empty for a chart that takes choices which a report
        does not make.
    pages : tuple of str
        Kinds of reports that show it: "analysis", "comparison", "training".
    least : int
        Subjects without which there is nothing to see.
    most : int or None
        Subjects at most, whatever was chosen.
    one_row : bool
        Whether its panels stand in one row, at the width of the text of a paper.
    """

    name: str
    alternative: str
    refuse: Callable[[Subject, Choices], str]
    build: Callable[[StyledSubjects, Choices], Specification]
    section: str = ""
    pages: tuple[str, ...] = ("analysis", "comparison")
    least: int = 1
    most: int | None = None
    one_row: bool = False

    def specify(
        self, subjects: Sequence[Subject], choices: Choices = Choices()
    ) -> Specification | None:
        """The chart of those subjects that lack nothing, or None if they are too few."""
        able = [subject for subject in subjects if not self.refuse(subject, choices)]
        if len(able) < self.least:
            return None
        shown = [able[i] for i in spread(len(able), self.most or choices.most or len(able))]
        if len(shown) > 1:
            # An empty name is a name: "" stands for the only member.
            shown = [replace(s, label=s.label or visible("")) for s in shown]
        built = self.build(list(zip(shown, assign_styles(shown), strict=True)), choices)
        return replace(
            built,
            name=self.name,
            alternative=self.alternative,
            members=tuple(subject.label for subject in shown),
            total=len(able),
            one_row=self.one_row,
        )


#: Shades of one color, from the first step of a run to its last.
SHADES = 9


def assign_styles(subjects: Sequence[Subject]) -> list[MemberStyle]:
    """Shades of one color for the steps of a run, else a style by the place of each subject."""
    if len(subjects) > 1 and all(s.step is not None for s in subjects):
        last = len(subjects) - 1
        return [MemberStyle("age", round(i * (SHADES - 1) / last)) for i in range(len(subjects))]
    return [
        MemberStyle("line", i if subject.place is None else subject.place)
        for i, subject in enumerate(subjects)
    ]


def spread(n: int, most: int) -> list[int]:
    """0 … n − 1, or `most` of them with both ends, evenly apart."""
    if n <= most:
        return list(range(n))
    return [int(i) for i in np.rint(np.linspace(0, n - 1, most))]
