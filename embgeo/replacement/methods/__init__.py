"""Methods that make new rows, one module each, in the order in which they are listed."""

from __future__ import annotations

from embgeo.replacement.methods import mean, mean_cov, median_norm, output, subwords
from embgeo.replacement.methods.method import ReplacementMethod

METHODS: tuple[ReplacementMethod, ...] = (output, subwords, mean, mean_cov, median_norm)
