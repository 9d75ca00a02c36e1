"""Names of all values that an analysis can hold, for whoever asks for one by name."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator
from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules

from embgeo import metrics
from embgeo.core.errors import BadOption
from embgeo.core.values import Quantity

#: What the search of the sphere is for.
SPHERE = "isotropy.i_sphere"


def known_names() -> frozenset[str]:
    """Every ``family.name`` that a module of `embgeo.metrics` defines."""
    found = [m.name for m in iter_modules(metrics.__path__, "embgeo.metrics.")]
    return frozenset[str]().union(*map(names_of, found))


def names_of(module: str) -> frozenset[str]:
    """Every name that one module defines."""
    values = vars(import_module(module)).values()
    return frozenset(quantity.name for value in values for quantity in _inside(value))


def _inside(value: object) -> Iterator[Quantity]:
    if isinstance(value, Quantity):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _inside(item)


def leanest(options: metrics.Options, names: Collection[str]) -> metrics.Options:
    """Also without the sample of pairs, unless one of the names is of it."""
    needed = not names_of("embgeo.metrics.pairs").isdisjoint(names)
    return lean(options if needed else replace(options, pairs=0), names)


def lean(options: metrics.Options, names: Collection[str]) -> metrics.Options:
    """Without the search of the sphere, which is long, unless one of the names is its value."""
    return options if SPHERE in names else replace(options, sphere=False)


def require_known(name: str, known: Collection[str], where: str) -> None:
    """Refuse a name that nothing has, with the ones that look like it.

    Raises
    ------
    BadOption
    """
    if name in known:
        return
    family, _, rest = name.partition(".")
    # The right word in the wrong section, a slip, or with a piece of the name left out.
    near = [other for other in sorted(known) if other.partition(".")[2] == rest]
    near += difflib.get_close_matches(name.lower(), sorted(known), n=3, cutoff=0.7)
    near += [other for other in sorted(known) if rest and rest in other.split(".")[1].split("_")]
    mates = [other for other in sorted(known) if other.startswith(f"{family}.")]
    shown = list(dict.fromkeys(near))[:4]
    if shown:
        way_out = f"is {' or '.join(shown)} meant?"
    elif mates:
        way_out = f"{family} has {', '.join(mates)}"
    else:
        way_out = "docs/metrics.md lists all names"
    raise BadOption(f"no value is called {name!r}", where=where, way_out=way_out)
