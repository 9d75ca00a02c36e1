"""What plug-ins add: models, methods and tasks by name.

Files named on the command line add to it by `embgeo.training.plugins`. An installed package does by
entry points of the groups ``embgeo.train.models``, ``embgeo.train.methods`` and
``embgeo.train.tasks``, whose code is imported once a setting names one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from embgeo.core.errors import BadOption

Kind = Literal["models", "methods", "tasks"]
GROUP = "embgeo.train."

_ADDED: dict[Kind, dict[str, Any]] = {"models": {}, "methods": {}, "tasks": {}}


def add(kind: Kind, name: str, thing: Any) -> None:
    """Make a thing known by its name, in the place of an earlier one."""
    _ADDED[kind][name] = thing


def remove(kind: Kind, name: str) -> None:
    """Forget a thing."""
    del _ADDED[kind][name]


def list_added(kind: Kind) -> tuple[str, ...]:
    """The names that are known, in the order in which they were added."""
    return tuple(_ADDED[kind])


def find_added(kind: Kind, name: str, check: Callable[[Any], str]) -> Any | None:
    """The thing of that name; None where no file and no installed package has it.

    `check`: gives the name of what a package has under this entry point.

    Raises
    ------
    BadOption
        The package cannot be imported, or what it has is not of that kind or name.
    """
    if name not in _ADDED[kind]:
        from importlib.metadata import entry_points

        for entry in entry_points(group=GROUP + kind, name=name):
            add(kind, name, load_entry(entry, name, check))
    return _ADDED[kind].get(name)


def load_entry(entry: Any, name: str, check: Callable[[Any], str]) -> Any:
    """What a package has under an entry point; whatever it raises becomes one line."""
    try:
        found = entry.load()
        own = check(found)
    except Exception as error:
        cause = f"the plug-in {name!r} of {entry.value} cannot be used ({error})"
        raise BadOption(cause, way_out="repair or remove the package that installs it") from error
    if own != name:
        raise BadOption(f"{entry.value} is named {own!r}, and its entry point {name!r}")
    return found
