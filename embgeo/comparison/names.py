"""Short names that tell compared files apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def distinguish_names(names: Sequence[str], paths: Sequence[Path]) -> list[str]:
    """Equal names with the file's ending, then with the folders around them, else with a number.

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
    # The same file twice has the same folders: a number alone tells it apart.
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
    """Places of names that others have too."""
    return [i for i, name in enumerate(names) if names.count(name) > 1]
