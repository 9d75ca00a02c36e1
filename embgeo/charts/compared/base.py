"""What figures of a comparison share: which members are drawn, and how each of them looks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embgeo.charts import style
from embgeo.comparison.comparison import Comparison, Member
from embgeo.comparison.member_names import name_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

#: Lines of different matrices: told apart by color, and by dashes.
COLORS = (
    style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.GOLD, style.INK, style.GRAY,
    style.SKY,
)  # fmt: skip
#: Lines of one run: pale at its beginning, dark at its end.
AGES = style.DENSITY[2:]
#: Members that one drawing holds, at most: as many as there are colors.
MOST_LINES = len(COLORS)
MOST_AGES = len(AGES)


@dataclass(frozen=True, slots=True)
class ComparedFigure:
    """One figure of a comparison; the fields are those of :class:`embgeo.charts.base.Figure`."""

    name: str
    caption: str
    alternative: str
    draw: Callable[[Comparison], Drawing | None]


@dataclass(frozen=True, slots=True)
class Look:
    """A member as it is drawn.

    Attributes
    ----------
    place : int
        Among the members.
    member : Member
    label : str
        Its name, or its step in a track; free of control characters.
    color, dash
        For matplotlib.
    shade : int
        Index of the color in `COLORS`, or in `AGES` for a track.
    """

    place: int
    member: Member
    label: str
    color: str
    dash: Any
    shade: int


def most_lines(comparison: Comparison) -> int:
    """Members that a drawing holds, unless it says otherwise."""
    return MOST_LINES if comparison.track is None else MOST_AGES


def looks(comparison: Comparison, most: int | None = None) -> tuple[Look, ...]:
    """At most `most` members: all, or the first, the last, and evenly between."""
    members = comparison.members
    places = spread(len(members), most_lines(comparison) if most is None else most)
    track = comparison.track is not None
    out = []
    for i, place in enumerate(places):
        if track:
            shade = round(i * (len(AGES) - 1) / max(1, len(places) - 1))
            color, dash = AGES[shade], "-"
        else:
            # By the place among all: the same wherever the member is drawn.
            shade = place % len(COLORS)
            color, dash = COLORS[shade], style.DASHES[place % len(style.DASHES)]
        member = members[place]
        out.append(Look(place, member, name_of(member, track), color, dash, shade))
    return tuple(out)


def spread(n: int, most: int) -> list[int]:
    """0 … n − 1, or `most` of them with both ends, evenly apart."""
    if n <= most:
        return list(range(n))
    return [int(i) for i in np.rint(np.linspace(0, n - 1, most))]


def legend_of(ax: Axes, drawn: tuple[Look, ...]) -> None:
    """One entry a member, whatever lines it has."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=look.color, ls=look.dash, lw=1.6) for look in drawn]
    style.legend(ax, handles=handles, labels=[look.label for look in drawn])
