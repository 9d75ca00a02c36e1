"""Registry of models, methods and tasks that plug-ins add, by name.

Files named on the command line add to it by `embgeo.training.plugins`. An installed package does by
entry points of the groups ``embgeo.train.models``, ``embgeo.train.methods`` and
``embgeo.train.tasks``, whose code is imported once a setting names one of them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, Literal

from embgeo.core.errors import BadOption

Kind = Literal["models", "methods", "tasks"]
GROUP = "embgeo.train."

#: What a file of settings holds, and None for what it leaves out.
_DEFAULTS = (bool, int, float, str, list, tuple, dict, NoneType)
#: A name is that of a folder, too.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")

_ADDED: dict[Kind, dict[str, Any]] = {"models": {}, "methods": {}, "tasks": {}}


def is_name(name: object) -> bool:
    """Whether a name is valid."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def check_name(name: Any) -> str:
    """Return the name; ValueError for an invalid one."""
    if not is_name(name):
        raise ValueError(f"its name is {name!r}; a name is of letters, digits, - and _")
    return str(name)


def check_defaults(kind: type, defaults: Mapping[str, Any]) -> None:
    """ValueError for a setting without a default that a file of settings can hold."""
    for name, default in defaults.items():
        if not isinstance(default, _DEFAULTS):
            raise ValueError(f"the setting {name} of {kind.__name__} has no plain default")


def file_of(thing: object) -> str | None:
    """The file of a class, or of the class of an object."""
    kind = thing if isinstance(thing, type) else type(thing)
    return getattr(sys.modules.get(kind.__module__), "__file__", None)


def list_files() -> list[str]:
    """Files of registered objects, without those of embgeo; a method has the files of its parts."""
    things = [thing for known in _ADDED.values() for thing in known.values()]
    parts = [one for thing in things for one in getattr(thing, "parts", (thing,))]
    files = {file_of(one) for one in parts if not one.__module__.startswith("embgeo.")}
    return sorted(file for file in files if file is not None)


def add(kind: Kind, name: str, thing: Any) -> None:
    """Register an object by its name, replacing an earlier one."""
    _ADDED[kind][name] = thing


def remove(kind: Kind, name: str) -> None:
    """Remove an object."""
    del _ADDED[kind][name]


def list_added(kind: Kind) -> tuple[str, ...]:
    """Registered names, in the order of registration."""
    return tuple(_ADDED[kind])


def find_added(kind: Kind, name: str, check: Callable[[Any], str]) -> Any | None:
    """Find an object by name, in files and installed packages; None without one.

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
    """Load an entry point; an exception becomes a one-line error."""
    try:
        found = entry.load()
        own = check(found)
    except Exception as error:
        cause = f"the plug-in {name!r} of {entry.value} cannot be used ({error})"
        raise BadOption(cause, way_out="repair or remove the package that installs it") from error
    if own != name:
        raise BadOption(f"{entry.value} is named {own!r}, and its entry point {name!r}")
    return found
