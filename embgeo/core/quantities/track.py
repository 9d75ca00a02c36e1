"""Checkpoints of one run, taken together."""

from embgeo.core.values import Quantity

DUPLICATES = Quantity(
    "track.duplicates",
    "Duplicate checkpoints",
    "How many checkpoints of a run hold the same matrix, byte by byte, as one of an earlier step.",
    "#{i : W_i = W_j for a j < i}",
    "comparison of bytes",
)
OUTLIERS = Quantity(
    "track.outliers",
    "Checkpoints that do not fit their neighbors",
    "How many checkpoints of a run lie outside of what their neighbors have, in most numbers of "
    "one checkpoint or of it and the first, by far more than neighbors differ; are unrelated to "
    "their neighbors, row by row; or could not be measured.",
    "#{i : median over curves of dist(v_i, [v_{i−1}, v_{i+1}]) / median_j |v_j − (v_{j−1} + "
    "v_{j+1})/2| > 6}",
    "leave-one-out residuals; median absolute deviation",
)
