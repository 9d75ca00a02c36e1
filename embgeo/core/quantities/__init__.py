"""Every value that an analysis or a comparison can hold, defined once: one family a file.

The constant of a quantity is its name in capitals: ``cosine.MEAN`` is ``"cosine.mean"``. Metrics
make values of them, readers look values up by them, so that a misspelled one fails at import.
"""

from __future__ import annotations

import difflib
import pkgutil
from collections.abc import Collection
from importlib import import_module
from types import ModuleType

from embgeo.core.errors import BadOption
from embgeo.core.quantities import compare, live, track
from embgeo.core.values import Quantity

#: Every family of an analysis: the files of this folder but those of comparisons and trainings.
FAMILIES: tuple[ModuleType, ...] = tuple(
    import_module(f"{__name__}.{file.name}")
    for file in pkgutil.iter_modules(__path__)
    if file.name not in ("compare", "live", "track")
)


def quantities_of(*families: ModuleType) -> dict[str, Quantity]:
    """The quantities that these modules define, by name."""
    return {
        value.name: value
        for family in families
        for value in vars(family).values()
        if isinstance(value, Quantity)
    }


#: What an analysis can hold, by name.
QUANTITIES: dict[str, Quantity] = quantities_of(*FAMILIES)
#: What a comparison adds, by name.
OF_PAIRS: dict[str, Quantity] = quantities_of(compare, track)
#: What is measured at each step of a training, by name.
LIVE: dict[str, Quantity] = quantities_of(live)


def require_known(name: str, known: Collection[str], where: str) -> None:
    """Refuse a name that nothing has, with the ones that look like it."""
    if name not in known:
        raise BadOption(f"no value is called {name!r}", where=where, way_out=suggest(name, known))


def suggest(name: str, known: Collection[str]) -> str:
    """What a misspelled name may stand for, as a way out.

    >>> suggest("cosine.men", ["cosine.mean", "cosine.std"])
    'did you mean cosine.mean or cosine.std?'
    """
    family, _, rest = name.partition(".")
    # The right word in the wrong section, a slip, or with a piece of the name left out.
    near = [other for other in sorted(known) if other.partition(".")[2] == rest]
    near += difflib.get_close_matches(name.lower(), sorted(known), n=3, cutoff=0.7)
    near += [
        other for other in sorted(known) if rest and rest in other.partition(".")[2].split("_")
    ]
    mates = [other for other in sorted(known) if other.startswith(f"{family}.")]
    shown = list(dict.fromkeys(near))[:4]
    if shown:
        return f"did you mean {' or '.join(shown)}?"
    if mates:
        return f"{family} has {', '.join(mates)}"
    return "docs/metrics.md lists all names"
