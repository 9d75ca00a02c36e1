"""Is a row as long as a known initialization makes it?

word2vec draws every entry uniformly from ±1/(2d) (Mikolov et al. 2013, ``InitNet`` of word2vec.c),
fastText from ±1/d (Bojanowski et al. 2017, ``uniform`` of its input matrix), as newer gensim does.
"""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray, Mask

#: Half widths of the uniform distributions, times d.
HALF_WIDTHS = (0.5, 1.0)
#: Standard deviations that a norm may be away from its expectation.
DEVIATIONS = 5.0


def is_initial_norm(norms: FloatArray, d: int) -> Mask:
    """Whether a norm is one that d uniform entries have.

    The squared norm of entries from ±a has mean d·a²/3 and variance d·a⁴·4/45, so that the norm is
    about a·√(d/3), with a relative standard deviation of √(1/(5d)).
    """
    expected = np.array(HALF_WIDTHS) / d * np.sqrt(d / 3.0)
    apart = np.abs(norms[:, None] / expected - 1.0)
    return np.asarray((apart <= DEVIATIONS * np.sqrt(0.2 / d)).any(axis=1))
