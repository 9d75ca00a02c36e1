"""All quantities of analyses and comparisons, one family in each file.

The constant of a quantity is its name in capitals: ``cosine.MEAN`` is ``"cosine.mean"``. Metrics
and readers use the constants, so that a misspelled name fails at import.
"""

import difflib
import pkgutil
import re
from collections.abc import Collection
from importlib import import_module
from types import ModuleType

from embgeo.core.errors import BadOption
from embgeo.core.quantities import compare, track
from embgeo.core.values import Quantity

#: The families of an analysis: the files of this folder except those of comparisons.
FAMILIES: tuple[ModuleType, ...] = tuple(
    import_module(f"{__name__}.{file.name}")
    for file in pkgutil.iter_modules(__path__)
    if file.name not in ("compare", "track")
)


def quantities_of(*families: ModuleType) -> dict[str, Quantity]:
    """Return the quantities of modules by name."""
    return {
        value.name: value
        for family in families
        for value in vars(family).values()
        if isinstance(value, Quantity)
    }


#: Quantities of an analysis by name.
QUANTITIES: dict[str, Quantity] = quantities_of(*FAMILIES)
#: Quantities of a comparison by name.
OF_PAIRS: dict[str, Quantity] = quantities_of(compare, track)


_OWN = re.compile(r"[a-z]\w*\.[a-z]\w*", re.ASCII)


def is_own(name: str) -> bool:
    """Tell whether a name, such as ``mine.radius``, is of a family of the user's own."""
    families = {quantity.family for quantity in (*QUANTITIES.values(), *OF_PAIRS.values())}
    return _OWN.fullmatch(name) is not None and name.partition(".")[0] not in families


def require_known(name: str, known: Collection[str], where: str) -> None:
    """Raise BadOption for an unknown name, with similar names."""
    if name not in known:
        raise BadOption(f"no value is called {name!r}", where=where, way_out=suggest(name, known))


def suggest(name: str, known: Collection[str]) -> str:
    """Return a way out for an unknown name: similar names, or those of its family.

    >>> suggest("cosine.men", ["cosine.mean", "cosine.std"])
    'did you mean cosine.mean or cosine.std?'
    >>> suggest("mean_cosine", ["cosine.mean", "frequency.weighted_mean_cosine", "verdict"])
    'did you mean cosine.mean or frequency.weighted_mean_cosine?'
    """
    family, _, rest = name.partition(".")
    names, own = sorted(known), rest or family
    # The right word in another section or none, a slip, or some of the words of a name.
    near = [other for other in names if other.partition(".")[2] == own]
    near += difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.7)
    words = {*own.split("_")}
    near += sorted((o for o in names if words <= {*o.replace(".", "_").split("_")}), key=len)
    mates = [other for other in names if other.startswith(f"{family}.")]
    if shown := list(dict.fromkeys(near))[:4]:
        return f"did you mean {' or '.join(shown)}?"
    if mates:
        return f"{family} has {', '.join(mates)}"
    return "docs/metrics.md lists all names"
