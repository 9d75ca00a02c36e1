"""The matrices that the truth tests run over, and their analyses, computed once each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import ml_dtypes
import numpy as np
import pytest

from embgeo.core.matrix import FinalNorm, Frequency, Matrix
from embgeo.core.options import Options
from embgeo.measure.analyze import analyze
from embgeo.result.analysis import Analysis
from tests.support import naive, naive_frequency

N, D, WIDTH = 60, 6, 4
#: Rows in a block: the whole matrix, an uneven cut, one row at a time.
BLOCKS = (1000, 23, 1)
#: Tokens that are not words, by row.
SPECIALS = {1: "<s>", 2: "[unused1]", 4: "[unused2]", 6: "<0x0A>", 7: "</s>"}
ASKED = (("t3", ("t5", "t9")), ("t8", ("t11",)))


@dataclass(frozen=True)
class Case:
    """A matrix with everything that its twins need."""

    matrix: Matrix

    @cached_property
    def kept(self):
        masked = [int(row) for rows in self.matrix.masked.values() for row in rows]
        return naive.kept_rows(self.matrix.data, masked)

    @cached_property
    def W(self):
        return np.asarray(self.matrix.data[self.kept], dtype=np.float64)

    @cached_property
    def counts(self):
        return self.matrix.frequency.counts[self.kept]

    @cached_property
    def paired(self):
        """Rows of input and output, without those that are damaged in the output."""
        healthy = ~naive.damaged(np.asarray(self.matrix.output.data, np.float64))[self.kept]
        return self.W[healthy], self.output[healthy]

    @cached_property
    def popular(self):
        return naive_frequency.popular_rows(self.counts)

    @cached_property
    def output(self):
        return np.asarray(self.matrix.output.data[self.kept], dtype=np.float64)


def rng(seed):
    return np.random.default_rng([2019, seed])


def gaussian(seed=0, n=N, d=D):
    return rng(seed).standard_normal((n, d))


def from_spectrum(sigma, seed, n=N):
    """A matrix of the given singular values, with random singular vectors."""
    g = rng(seed)
    u = np.linalg.qr(g.standard_normal((n, len(sigma))))[0]
    v = np.linalg.qr(g.standard_normal((len(sigma), len(sigma))))[0]
    return u * sigma @ v.T


def narrow_cone(length=2.0, ratio=1e3, seed=3):
    direction = rng(seed).standard_normal(D)
    direction *= length / np.linalg.norm(direction)
    return direction + length / ratio * gaussian(seed + 100)


def two_sided(seed=4):
    """Half the rows along a direction, half against it: the mean cosine sees nothing."""
    side = np.where(np.arange(N) % 2 == 0, 1.0, -1.0)
    direction = rng(seed).standard_normal(D)
    return 2.0 * side[:, None] * direction / np.linalg.norm(direction) + 0.05 * gaussian(seed + 100)


def dirty():
    """Zero rows, NaN and infinity, exact duplicates (of opposite zeros too)."""
    W = gaussian(5, n=N + 9) + 0.4
    W[[2, 40]] = 0.0
    W[7, 1], W[30, 0] = np.nan, np.inf
    W[50] = W[20] = W[10]
    W[12, 3], W[61] = 0.0, W[12]
    W[61, 3] = -0.0
    return W


def rogue():
    """One coordinate with a large variance, one with a large mean."""
    W = gaussian(17)
    W[:, 2] *= 12.0
    W[:, 4] += 5.0
    return W


MATRICES: dict[str, Callable[[], np.ndarray]] = {
    "gaussian": gaussian,
    "negative": lambda: -0.2 - np.abs(gaussian(1)),
    "narrow cone": narrow_cone,
    "narrow cone, long": lambda: narrow_cone(length=500.0),
    "two-sided": two_sided,
    "ill-conditioned": lambda: from_spectrum(9 * np.array([1, 0.3, 1e-2, 1e-4, 1e-6, 1e-8]), 6),
    "beyond Gram": lambda: from_spectrum(9 * np.array([1, 0.5, 0.2, 1e-2, 1e-3, 1e-5]), 16),
    "gram edge": lambda: from_spectrum(9 * np.array([1, 0.7, 0.3, 0.1, 0.01, 1 / 900]), 7),
    "rank-deficient": lambda: gaussian(8, d=3) @ gaussian(9, n=3) / 2 + 0.0,
    "x100": lambda: gaussian(10) * 100,
    "x1e4": lambda: gaussian(11) * 1e4,
    "fp16": lambda: (gaussian(12) + 1.0).astype(np.float16),
    "bf16": lambda: (gaussian(13) * 0.5 + 0.3).astype(ml_dtypes.bfloat16),
    "dirty": dirty,
    "wide": lambda: gaussian(14, n=14, d=17),
    "rogue coordinates": rogue,
    "d = 2": lambda: gaussian(15, d=2) + 0.3,
}
NAMES = tuple(MATRICES)


@cache
def case(name: str) -> Case:
    data = MATRICES[name]()
    n = len(data)
    g = rng(77)
    counts = np.floor(1000.0 / (1.0 + np.arange(n))) + g.integers(0, 3, size=n)
    output = g.standard_normal((n, WIDTH))
    output[:, 0] = np.nan_to_num(np.asarray(data[:, 0], dtype=np.float64), posinf=0.0)
    h = rng(88)
    hidden = h.standard_normal((40, data.shape[1])) + (n - 60) / 6
    masked = {"padding beyond the vocabulary": np.array([n - 2, n - 1])} if name == "dirty" else {}
    return Case(
        Matrix(
            data,
            name=name,
            tokens=tuple(SPECIALS.get(i, f"t{i}") for i in range(n)),
            frequency=Frequency("counts", g.permutation(counts), "made counts"),
            masked=masked,
            output=Matrix(output, name="output"),
            hidden=Matrix(hidden, name="hidden"),
            final_norm=FinalNorm("ln_f", h.uniform(0.5, 2, data.shape[1]), hidden[0]),
        )
    )


def analyze_matrix(matrix: Matrix, block_rows: int = 1000, sections=None, **options) -> Analysis:
    """An analysis without the reference column, from blocks of that many rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("embgeo.stats.resources.MOST_ROWS", block_rows)
        patch.setattr("embgeo.stats.resources.LEAST_ROWS", 1)
        return analyze(matrix, sections=sections, options=Options(**options), reference=False)


@cache
def analysis(name: str, block_rows: int = 1000) -> Analysis:
    """Of every section, with everything that is optional."""
    m = len(case(name).kept)
    return analyze_matrix(
        case(name).matrix,
        block_rows,
        isotropy_rows=m,
        isotropy_runs=2,
        show_neighbors=ASKED,
    )
