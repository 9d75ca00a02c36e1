"""What can be left out where only some values are wanted, by name."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from embgeo.core.options import Options
from embgeo.core.quantities import cosine, isotropy

#: What the sample of pairs is for.
OF_PAIRS = (
    cosine.POSITIVE_SHARE,
    cosine.CONE_APERTURE,
    cosine.UNIFORMITY,
    cosine.QUANTILES,
    cosine.HISTOGRAM,
)


def leanest(options: Options, names: Collection[str]) -> Options:
    """Also without the sample of pairs, unless one of the names is of it."""
    needed = any(quantity.name in names for quantity in OF_PAIRS)
    return lean(options if needed else replace(options, pairs=0), names)


def lean(options: Options, names: Collection[str]) -> Options:
    """Without the search of the sphere, which is long, unless one of the names is its value."""
    return options if isotropy.I_SPHERE.name in names else replace(options, sphere=False)
