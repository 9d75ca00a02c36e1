"""Short unique names of compared files, and the names of members on a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from embgeo.comparison.comparison import Comparison, Member
from embgeo.core.visible import drawable, visible

#: Longest head of a column, in characters.
HEAD = 18


def distinguish_names(names: Sequence[str], paths: Sequence[Path]) -> list[str]:
    """Make equal names unique: by the ending of the file, then by its folders, else by a number.

    >>> distinguish_names(["model", "model"], [Path("a/run/model.pt"), Path("b/run/model.pt")])
    ['a/run/model', 'b/run/model']
    >>> distinguish_names(["model", "model"], [Path("model.pt"), Path("model.npy")])
    ['model.pt', 'model.npy']
    >>> distinguish_names(["model", "model"], [Path("run/model.pt"), Path("run/model.pt")])
    ['model (1)', 'model (2)']
    """
    out = list(names)
    for i in equal(names):
        twins = [j for j in equal(names) if names[j] == names[i] and j != i]
        if all(paths[i].name != paths[j].name for j in twins):
            out[i] = paths[i].name
    # The same file twice has the same folders: only a number distinguishes the two.
    folders = [
        [] if paths.count(path) > 1 else [p for p in path.parent.parts if p not in ("/", ".", "..")]
        for path in paths
    ]
    for depth in range(1, 1 + max(map(len, folders), default=0)):
        for i in equal(out):
            out[i] = "/".join([*folders[i][-depth:], names[i]])
    return [
        f"{name} ({out[: i + 1].count(name)})" if out.count(name) > 1 else name
        for i, name in enumerate(out)
    ]


def equal(names: Sequence[str]) -> list[int]:
    """Places of names that occur several times."""
    return [i for i, name in enumerate(names) if names.count(name) > 1]


def name_of(member: Member, track: bool) -> str:
    """The name of a member in a legend."""
    if track and member.step is not None:
        return f"step {member.step:,.10g}"
    return drawable(member.name)


def member_name(comparison: Comparison, place: int) -> str:
    """The step in a track, else the name with hidden characters spelled out."""
    member = comparison.members[place]
    if comparison.track is not None and member.step is not None:
        return name_of(member, True)
    return visible(member.name)


def short_name(comparison: Comparison, place: int) -> str:
    """The name cut in the middle, so that it fits the head of a column."""
    name = member_name(comparison, place)
    if len(name) <= HEAD:
        return name
    return f"{name[: HEAD // 2]}…{name[HEAD // 2 + 1 - HEAD :]}"
