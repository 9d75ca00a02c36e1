"""Charts as data: what every renderer reads, before anything is drawn.

Text of the user (names of members, titles of logged numbers) is hostile: renderers make it safe.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from embgeo.charts.items import ChartItem
from embgeo.comparison.film import Film
from embgeo.core.arrays import FloatArray
from embgeo.core.text import visible
from embgeo.core.values import Cell


@dataclass(frozen=True, slots=True)
class MemberStyle:
    """The look of a line: a place in a scale of the theme.

    The scales are for members next to each other, for steps of one run, and for references.
    """

    scale: Literal["line", "age", "guide"] = "line"
    index: int = 0
    #: From 0 (pale) to 1: of several runs the hue is the run, and the shade the step.
    shade: float = 1.0


#: Items that a chart does not refuse, each with its style.
StyledItems: TypeAlias = Sequence[tuple[ChartItem, MemberStyle]]


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis."""

    label: str
    log: bool = False
    #: Limits; None to fit the data.
    low: float | None = None
    high: float | None = None
    #: A range that is shown at least, whatever the data.
    shows: tuple[float, float] | None = None
    #: Places of labels; empty for the renderer's choice.
    ticks: tuple[float, ...] = ()
    #: Whether labels are large whole numbers: 5,000 and 10k.
    whole: bool = False
    #: Whether places along it have numbers; without, they only stand apart.
    numbered: bool = True


@dataclass(frozen=True, slots=True)
class Line:
    """Points joined by a line, or points alone."""

    #: Shape (m,); a y that is not finite is a gap.
    x: FloatArray
    y: FloatArray
    style: MemberStyle = MemberStyle()
    #: The member that the line belongs to; empty if the chart has one member.
    member: str = ""
    #: Name of the line among those of a member; empty if each has one.
    part: str = ""
    #: With markers where there are few points, without markers, markers alone, small dots alone,
    #: hollow markers alone, an arrow from the first point to the last.
    form: Literal["line", "plain", "marks", "dots", "hollow", "arrow"] = "line"
    #: A band around the line.
    low: FloatArray | None = None
    high: FloatArray | None = None
    #: Half the length of an error bar at each point.
    error: FloatArray | None = None
    #: The same for a horizontal bar, in addition to a vertical one.
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
    """A line across a panel, at a value of one axis: dotted, or dashed if no legend lists it."""

    value: float
    #: Its name in a legend and on pages; may be empty.
    label: str = ""
    axis: Literal["x", "y"] = "x"
    #: Whether a legend lists it: not if panels have different ones, which the caption explains.
    listed: bool = True


@dataclass(frozen=True, slots=True)
class NamedPoint:
    """A token that is named at its place; untrusted text."""

    x: float
    y: float
    name: str
    #: Whether the others are its neighbors.
    center: bool = False
    rare: bool = False


@dataclass(frozen=True, slots=True)
class Cloud:
    """Tokens in a plane."""

    #: Shape (M, 2).
    xy: FloatArray
    #: The class of each token; None if frequencies are not known.
    popular: npt.NDArray[np.bool_] | None = None
    #: Positive values, if tokens are colored by frequency.
    frequency: FloatArray | None = None
    named: tuple[NamedPoint, ...] = ()
    #: The color of tokens without classes and frequencies.
    style: MemberStyle = MemberStyle()
    #: What the map has to show in place of nearly all tokens and the origin; shape (m, 2).
    focus: FloatArray | None = None
    #: An arrow from the origin to this point.
    mean: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes."""

    x: Axis
    y: Axis
    lines: tuple[Line | HistogramSteps, ...] = ()
    guides: tuple[Guide, ...] = ()
    #: Without lines the panel is a map, with equal scales on both axes.
    cloud: Cloud | None = None
    #: Name within the chart; empty for an only panel.
    key: str = ""
    title: str = ""
    #: The member that the panel belongs to, as a title.
    member: str = ""
    #: Name of the quantity, if the panel has one of its own.
    quantity: str = ""
    #: A verdict, which colors the frame.
    tone: str = ""
    #: Whether its axes have no numbers; below lines there are some.
    bare: bool = False

    @property
    def is_map(self) -> bool:
        return self.cloud is not None and not self.lines


@dataclass(frozen=True, slots=True)
class FigureTable:
    """The numbers behind a chart."""

    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Reel:
    """One run of a film."""

    label: str
    film: Film
    #: The classes of its tokens, if they are known.
    popular: npt.NDArray[np.bool_] | None = None

    def cosines(self, k: int) -> "HistogramSteps":
        """Draw the cosines of a checkpoint as high as they are: an early peak flattens no other."""
        densities = self.film.densities[k]
        return HistogramSteps(self.film.edges, densities / densities.max())


@dataclass(frozen=True, slots=True)
class Specification:
    """Everything that is seen of a chart."""

    panels: tuple[Panel, ...]
    #: For a reader who does not know the papers.
    caption: str
    #: A first caption for a paper; empty for `caption`.
    print_caption: str = ""
    #: Name of the quantity whose definition explains the chart.
    quantity: str = ""
    #: The meaning of colors in a map; a page without pictures shows marks of some tokens by class.
    shading: Literal["density", "class", "frequency", "none"] = "density"
    #: Label of a scale of frequencies.
    frequency_label: str = ""
    #: Whether each map has its own scale on paper.
    free_axes: bool = False
    #: None if the table follows from the panels; a large table is made on request.
    table: FigureTable | Callable[[], FigureTable] | None = None
    #: Facts that a caption should mention.
    notes: tuple[str, ...] = ()
    #: As in `Chart`.
    name: str = ""
    alternative: str = ""
    #: Labels of the shown items.
    members: tuple[str, ...] = ()
    #: The number of items that could be shown.
    total: int = 0
    one_row: bool = False
    #: Panels in a row on paper; 0 for as many as the width allows.
    across: int = 0
    #: What moves, in a file of its own.
    film: tuple[Reel, ...] = ()


@dataclass(frozen=True, slots=True)
class Choices:
    """Choices about the content of charts."""

    #: The colors of points in a scatter.
    color: str = "class"
    #: Names of the scalars of a sweep or of training curves; empty for the default.
    scalars: tuple[str, ...] = ()
    #: The swept parameter, the label of the x axis; untrusted text.
    parameter: str = ""
    #: Members in one panel, at most; with more, the first, the last and some evenly between.
    most: int | None = None
    #: Tokens that a scatter names; untrusted text.
    annotate: tuple[str, ...] = ()
    #: Whether each panel of a scatter has its own scale.
    free_axes: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """One kind of chart."""

    #: The choice of the option, the name of files, and the prefix of ids inside a page.
    name: str
    #: The alternative text.
    alternative: str
    #: Why an item cannot be shown; empty if it can.
    refuse: Callable[[ChartItem, Choices], str]
    #: From items that are not refused, with their styles, to the specification.
    build: Callable[[StyledItems, Choices], Specification]
    #: The section of a report: "maps", "spectrum", "plane", "cosine", "isotropy", "frequency",
    #: "subspace", "tokens", "together" (pairs), "training" or "balance"; or a family without a
    #: section of its own, whose numbers the chart follows. Empty for a chart that needs choices
    #: which a report does not make.
    section: str = ""
    #: Kinds of reports with this chart: "analysis", "comparison", "training".
    pages: tuple[str, ...] = ("analysis", "comparison")
    #: The minimum number of items.
    least: int = 1
    #: Items at most, whatever was chosen.
    most: int | None = None
    #: Whether it is as wide as the text of a paper, with the panels in one row if they fit.
    one_row: bool = False

    def specify(
        self, items: Sequence[ChartItem], choices: Choices = Choices()
    ) -> Specification | None:
        """Return the chart of the items that it does not refuse, or None if they are too few."""
        able = [item for item in items if not self.refuse(item, choices)]
        if len(able) < self.least:
            return None
        shown = choose_shown(able, self.most or choices.most)
        if len(shown) > 1:
            # An empty name is a name: "" stands for the only member.
            shown = [replace(s, label=s.label or visible("")) for s in shown]
        built = self.build(list(zip(shown, assign_styles(shown), strict=True)), choices)
        groups = {item.label: item.group for item in shown if item.group}
        if len(set(groups.values())) < len(groups):
            panels = tuple(average_members(panel, groups) for panel in built.panels)
            said = " ".join(filter(None, (built.print_caption or built.caption, OF_GROUPS)))
            built = replace(built, panels=panels, print_caption=said)
        return replace(
            built,
            name=self.name,
            alternative=self.alternative,
            members=tuple(item.label for item in shown),
            total=len(able),
            one_row=self.one_row,
        )


#: Shades of one color, from the first step of a run to its last.
SHADES = 9
#: Checkpoints of each of several runs in one chart: more lines would hide which run is which.
MOST_STEPS = 3


def choose_shown(items: Sequence[ChartItem], most: int | None) -> list[ChartItem]:
    """Choose at most `most` items, in their order.

    Of several runs each gives as many checkpoints as the others, always its last one. Of a study
    the methods come before their controls, of groups their first members. Other items are chosen
    evenly, with both ends.
    """
    first = {item.group: item for item in reversed(items)}
    if "" not in first and most is not None and most < len(items):
        items = list(first.values())[::-1]
    runs = list(dict.fromkeys(item.run for item in items))
    if "" not in runs and len(runs) > 1:
        each = MOST_STEPS if most is None else min(MOST_STEPS, max(1, most // len(runs)))
        shown = []
        for run in (runs[i] for i in spread(len(runs), most or len(runs))):
            steps = [item for item in items if item.run == run]
            shown += [steps[i] for i in spread(len(steps), each)] if each > 1 else steps[-1:]
        alone = len(shown) == len({item.run for item in shown})
        return [replace(item, label=item.run) if alone else item for item in shown]
    places = spread(len(items), most or len(items))
    if len(places) < len(items) and any(item.reference for item in items):
        controls = {item.reference for item in items}
        places = sorted(sorted(range(len(items)), key=lambda i: items[i].label in controls)[:most])
    return [items[i] for i in places]


#: What the caption says of groups.
OF_GROUPS = (
    "Of a group, a line is the mean over its members, and the band one standard deviation; a "
    "histogram is the mean."
)


def average_members(panel: Panel, groups: Mapping[str, str]) -> Panel:
    """Return the panel with one line for the members of a group, where they have the same x.

    `groups`: by member. Lines over different x remain, under the name of the group.
    """
    found: dict[tuple[object, ...], list[Line]] = {}
    bars: dict[tuple[str, str], list[HistogramSteps]] = {}
    lines: list[Line | HistogramSteps] = []
    others: list[Line | HistogramSteps] = []
    for line in panel.lines:
        name = groups.get(line.member)
        if name is None:
            others.append(line)
        elif isinstance(line, HistogramSteps):
            bars.setdefault((name, line.part), []).append(replace(line, member=name))
        else:
            key = name, line.part, line.x.tobytes()
            found.setdefault(key, []).append(replace(line, member=name))
    for steps in bars.values():
        edges = np.unique(np.concatenate([one.edges for one in steps]))
        heights = np.mean([step_values(one, edges)[:-1] for one in steps], axis=0)
        lines.append(replace(steps[0], edges=edges, heights=heights))
    for own in found.values():
        if len(own) == 1:
            lines += own
            continue
        table = np.array([one.y for one in own])
        mean, deviation = table.mean(axis=0), table.std(axis=0, ddof=1)
        ends = mean - deviation, mean + deviation
        lines.append(replace(own[0], y=mean, low=ends[0], high=ends[1], error=None))
    return replace(panel, lines=(*lines, *others))


def step_values(steps: HistogramSteps, edges: FloatArray) -> FloatArray:
    """Get the height on each interval of `edges`, 0 outside the bins; the last edge closes them."""
    at = np.searchsorted(steps.edges, edges, side="right") - 1
    last = len(steps.heights) - 1
    values = np.where((at >= 0) & (at <= last), steps.heights[np.clip(at, 0, last)], 0.0)
    if edges[-1] == steps.edges[-1]:
        values[-1] = steps.heights[-1]
    return values


def assign_styles(items: Sequence[ChartItem]) -> list[MemberStyle]:
    """Assign shades of one color to the steps of a run, else a style to each item by its place.

    Of several runs each has a color, and its steps have shades of it.
    """
    runs = list(dict.fromkeys(item.run for item in items))
    if "" not in runs and len(runs) > 1:
        steps = [[item for item in items if item.run == run] for run in runs]
        return [
            MemberStyle("line", place, (i + 1) / len(of_run))
            for place, of_run in enumerate(steps)
            for i in range(len(of_run))
        ]
    if len(items) > 1 and all(s.step is not None for s in items):
        last = len(items) - 1
        return [MemberStyle("age", round(i * (SHADES - 1) / last)) for i in range(len(items))]
    return [
        MemberStyle("line", i if item.place is None else item.place) for i, item in enumerate(items)
    ]


def spread(n: int, most: int) -> list[int]:
    """Return 0 … n − 1, or `most` of them, evenly spaced with both ends."""
    if n <= most:
        return list(range(n))
    return [int(i) for i in np.rint(np.linspace(0, n - 1, most))]
