"""Models, methods and tasks by name: dictionaries, to which plug-ins add.

Files named on the command line add to them by `embgeo.training.plugins`. An installed package does
by entry points of the groups ``embgeo.train.models``, ``embgeo.train.methods`` and
``embgeo.train.tasks``, whose code is imported once a setting names one of them.
"""

import re
import sys
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, TypeVar

from embgeo.core.arguments import refuse_name
from embgeo.core.errors import BadOption

T = TypeVar("T")
GROUP = "embgeo.train."

#: Types that a file of settings can hold; None stands for a setting that is left out.
_DEFAULTS = (bool, int, float, str, list, tuple, dict, NoneType)
#: A name is also the name of a folder.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


def is_name(name: object) -> bool:
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def check_name(name: Any) -> str:
    """Return the name; ValueError for an invalid one."""
    if not is_name(name):
        raise ValueError(f"its name is {name!r}; a name is of letters, digits, - and _")
    return str(name)


def check_defaults(kind: type, defaults: Mapping[str, Any]) -> None:
    """Raise ValueError for a setting without a default that a file of settings can hold."""
    for name, default in defaults.items():
        if not isinstance(default, _DEFAULTS):
            raise ValueError(f"the setting {name} of {kind.__name__} has no plain default")


def file_of(thing: object) -> str | None:
    """Return the file of a class, or of the class of an object."""
    kind = thing if isinstance(thing, type) else type(thing)
    return getattr(sys.modules.get(kind.__module__), "__file__", None)


def find(kind: str, known: dict[str, T], name: str, check: Callable[[Any], str]) -> T | None:
    """Find the model, method or task of a name, which an installed package may add.

    `check` gives the name of what a package adds; ValueError if that cannot be used. `BadOption` if
    a package cannot be imported, or its entry point has another kind or name.
    """
    if name not in known:
        from importlib.metadata import entry_points

        for entry in entry_points(group=f"{GROUP}{kind}s", name=name):
            try:
                found: T = entry.load()
                own = check(found)
            except Exception as error:
                cause = f"the plug-in {name!r} of {entry.value} cannot be used ({error})"
                way_out = "repair or remove the package that installs it"
                raise BadOption(cause, way_out=way_out) from error
            if own != name:
                raise BadOption(f"{entry.value} is named {own!r}, and its entry point {name!r}")
            known[name] = found
    return known.get(name)


def require(kind: str, known: dict[str, T], name: str, check: Callable[[Any], str]) -> T:
    """Act like `find`, for the name in the table of this kind; raise `BadOption` without one."""
    if (found := find(kind, known, name, check)) is None:
        raise refuse_name(kind, name, known, f"name of [{kind}]")
    return found
