"""Draws around the mean of all healthy rows with a small share of their covariance.

Hewitt 2021, "Initializing New Word Embeddings for Pretrained Language Models": its code draws from
the normal distribution of mean μ and covariance 10⁻⁵ Σ.
"""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.replacement.methods.method import RowSource
from embgeo.replacement.survey import Length

NAME = "mean-cov"
LENGTH: Length = "rms"
SEEDED = True

#: Share of the covariance.
SHARE = 1e-5


def compute(source: RowSource, rows: IntArray) -> FloatArray:
    """A draw for each row, in ascending order of the rows.

    Σᵢ zᵢ (wᵢ − μ) / √n with standard normal zᵢ has the covariance of the n rows, so that no d×d
    matrix has to be decomposed.
    """
    d, k, n = source.input.matrix.d, len(rows), int(source.input.healthy.sum())
    generator = np.random.default_rng(source.seed)
    total, drawn, weights = np.zeros(d), np.zeros((k, d)), np.zeros(k)
    for block in source.healthy_blocks():
        z = generator.standard_normal((len(block), k))
        total += block.sum(axis=0)
        drawn += z.T @ block
        weights += z.sum(axis=0)
    mean = total / n
    return np.asarray(mean + np.sqrt(SHARE / n) * (drawn - weights[:, None] * mean))
