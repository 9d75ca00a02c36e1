"""Mergeable statistics, one per file; `statistic` states the law that they obey."""

from embgeo.stats.census import Census
from embgeo.stats.group_moments import GroupMoments
from embgeo.stats.log_partition import LogPartition
from embgeo.stats.moments import Moments
from embgeo.stats.nearest_distances import NearestDistances
from embgeo.stats.pair_cosines import PairHistogram, PairSample
from embgeo.stats.paired_sums import PairedSums
from embgeo.stats.per_row import (
    AngleAfterRemoval,
    AngleTo,
    DistanceTo,
    Norms,
    OutputNorms,
    Projection2,
    RowHashes,
)
from embgeo.stats.reduced_sums import ReducedSums
from embgeo.stats.stacked_qr import StackedQR
from embgeo.stats.top_neighbors import CloserRows, TopNeighbors
from embgeo.stats.weighted_sum import WeightedSum

#: Every statistic; the tests of the monoid law run over this tuple.
STATISTICS = (
    AngleAfterRemoval,
    AngleTo,
    Census,
    CloserRows,
    DistanceTo,
    GroupMoments,
    LogPartition,
    Moments,
    Norms,
    OutputNorms,
    PairHistogram,
    PairSample,
    PairedSums,
    Projection2,
    ReducedSums,
    RowHashes,
    StackedQR,
    TopNeighbors,
    NearestDistances,
    WeightedSum,
)

__all__ = [
    "STATISTICS",
    "AngleAfterRemoval",
    "AngleTo",
    "Census",
    "CloserRows",
    "DistanceTo",
    "GroupMoments",
    "LogPartition",
    "Moments",
    "NearestDistances",
    "Norms",
    "OutputNorms",
    "PairHistogram",
    "PairSample",
    "PairedSums",
    "Projection2",
    "ReducedSums",
    "RowHashes",
    "StackedQR",
    "TopNeighbors",
    "WeightedSum",
]
