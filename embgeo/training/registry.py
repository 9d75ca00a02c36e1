"""Models, methods and tasks by name: what their names and settings have to be."""

import re
import sys
from collections.abc import Mapping
from types import NoneType
from typing import Any, TypeVar

from embgeo.core.arguments import refuse_name

T = TypeVar("T")

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


def require(kind: str, known: Mapping[str, T], name: str) -> T:
    """Return the model or task of a name; `BadOption` without one."""
    if name not in known:
        raise refuse_name(kind, name, known, f"name of [{kind}]")
    return known[name]
