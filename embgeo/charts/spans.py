"""What an axis shows at least, so that chance does not look like a collapse."""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.core.quantities import compare, cosine, frequency, isotropy, spectrum, tokens

#: By quantity: its reference, and a span below which a change is small.
SHOWN: dict[str, tuple[float, float]] = {
    cosine.MEAN.name: (0.0, 0.2),
    spectrum.TOP_SHARE.name: (0.0, 0.2),
    frequency.PROBE_AUC.name: (0.5, 1.0),
    frequency.NORM_RATIO.name: (0.9, 1.1),
    tokens.DAMAGED_ROWS.name: (0.0, 10.0),
    **{
        one.name: (0.0, 1.0)
        for one in (
            isotropy.I1,
            isotropy.I1_UNIT,
            isotropy.I1_UNIT_ROWS,
            isotropy.ISOSCORE,
            compare.NEIGHBOR_OVERLAP,
            compare.SUBSPACE_DISTANCE,
            compare.TOKEN_COSINE,
            compare.CKA,
        )
    },
}
#: Of these the axis begins at 0.
FROM_ZERO = (spectrum.EFFECTIVE_RANK.name, tokens.NORM_MEDIAN.name)
#: Scores of models within this share of their middle are not told apart.
CLOSE = 0.02


def find_span(name: str, values: FloatArray) -> tuple[float, float] | None:
    """Find the range that an axis of this quantity shows at least; None if that of data is enough.

    >>> find_span("cosine.mean", np.array([0.987, 0.99]))
    (0.0, 0.2)
    >>> find_span("valid.perplexity", np.array([99.0, 101.0]))
    (98.0, 102.0)
    """
    if name in SHOWN:
        return SHOWN[name]
    known = values[np.isfinite(values)]
    if not len(known):
        return None
    if name in FROM_ZERO:
        return 0.0, float(known.max())
    if name.partition(".")[0] in ("valid", "test", "train"):
        middle = float(known.min() + known.max()) / 2.0
        return middle - CLOSE * abs(middle), middle + CLOSE * abs(middle)
    return None
