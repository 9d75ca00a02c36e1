"""Short names that tell compared files apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def told_apart(names: Sequence[str], paths: Sequence[Path]) -> list[str]:
    """Equal names with the folders around them in front, as many as it takes, else a number.

    >>> told_apart(["model", "model"], [Path("a/run/model.pt"), Path("b/run/model.pt")])
    ['a/run/model', 'b/run/model']
    """
    folders = [
        [part for part in path.parent.parts if part not in ("/", ".", "..")] for path in paths
    ]
    out = list(names)
    for depth in range(1, 1 + max(map(len, folders), default=0)):
        equal = [i for i, name in enumerate(out) if out.count(name) > 1]
        if not equal:
            return out
        for i in equal:
            out[i] = "/".join([*folders[i][-depth:], names[i]])
    return [
        f"{name} ({out[: i + 1].count(name)})" if out.count(name) > 1 else name
        for i, name in enumerate(out)
    ]
