"""What figures of a comparison share: which members are drawn, and how each of them looks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embgeo.charts import style
from embgeo.comparison.comparison import Comparison, Member

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

#: Lines of different matrices: told apart by colour, and by dashes.
COLOURS = (
    style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.GOLD, style.INK, style.GREY,
    style.SKY,
)  # fmt: skip
#: Lines of one run: pale at its beginning, dark at its end.
AGES = style.DENSITY[2:]
#: Members that one drawing holds, at most: as many as there are colours.
MOST_LINES = len(COLOURS)
MOST_AGES = len(AGES)
#: Longest name in a legend, in characters.
LONGEST = 26


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
    colour, dash
        For matplotlib.
    shade : int
        Index of the colour in `COLOURS`, or in `AGES` for a track.
    """

    place: int
    member: Member
    label: str
    colour: str
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
            colour, dash = AGES[shade], "-"
        else:
            # By the place among all: the same wherever the member is drawn.
            shade = place % len(COLOURS)
            colour, dash = COLOURS[shade], style.DASHES[place % len(style.DASHES)]
        member = members[place]
        out.append(Look(place, member, name_of(member, track), colour, dash, shade))
    return tuple(out)


def spread(n: int, most: int) -> list[int]:
    """0 … n − 1, or `most` of them with both ends, evenly apart."""
    if n <= most:
        return list(range(n))
    return [int(i) for i in np.rint(np.linspace(0, n - 1, most))]


def name_of(member: Member, track: bool) -> str:
    """What a legend calls a member."""
    if track and member.step is not None:
        return f"step {member.step:,.10g}"
    return drawable(member.name)


def drawable(text: str) -> str:
    """`text` without what an SVG must not hold, cut in the middle where it is long."""
    shown = "".join(c if c.isprintable() else "�" for c in text)
    if len(shown) > LONGEST:
        head = LONGEST // 2
        shown = f"{shown[:head]}…{shown[head + 1 - LONGEST :]}"
    # Matplotlib leaves labels that begin with an underscore out of its legends.
    return f"\u2009{shown}" if shown.startswith("_") else shown


def legend_of(ax: Axes, drawn: tuple[Look, ...]) -> None:
    """One entry a member, whatever lines it has."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=look.colour, ls=look.dash, lw=1.6) for look in drawn]
    style.legend(ax, handles=handles, labels=[look.label for look in drawn])
