"""What a page calls the members of a comparison."""

from __future__ import annotations

from embgeo.comparison.comparison import Comparison, Member
from embgeo.core.visible import drawable, visible

#: Characters that the head of a column holds.
HEAD = 18


def name_of(member: Member, track: bool) -> str:
    """What a legend calls a member."""
    if track and member.step is not None:
        return f"step {member.step:,.10g}"
    return drawable(member.name)


def member_name(comparison: Comparison, place: int) -> str:
    """The step in a track, else the member's name with its hidden characters spelled out."""
    member = comparison.members[place]
    if comparison.track is not None and member.step is not None:
        return name_of(member, True)
    return visible(member.name)


def short_name(comparison: Comparison, place: int) -> str:
    """The same, cut in the middle so that it fits the head of a column."""
    name = member_name(comparison, place)
    if len(name) <= HEAD:
        return name
    return f"{name[: HEAD // 2]}…{name[HEAD // 2 + 1 - HEAD :]}"
