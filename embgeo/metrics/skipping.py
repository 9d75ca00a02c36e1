"""Options under which nothing long is measured that only values without interest need."""

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


def skip_unneeded(options: Options, names: Collection[str]) -> Options:
    """Without the search of the sphere and the sample of pairs, where no name needs them."""
    needed = any(quantity.name in names for quantity in OF_PAIRS)
    return skip_sphere(options if needed else replace(options, pairs=0), names)


def skip_sphere(options: Options, names: Collection[str]) -> Options:
    """Without the search of the sphere, which is long, where no name is its value."""
    return options if isotropy.I_SPHERE.name in names else replace(options, sphere=False)
