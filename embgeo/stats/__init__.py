"""Mergeable statistics, one per file; `statistic` states the law that they obey."""

from embgeo.stats.by_half import GroupSquares, HalfAngles
from embgeo.stats.log_partition import LogPartition
from embgeo.stats.moments import Moments, StackedQR
from embgeo.stats.nearest import CloserRows, NearestDistances, TopNeighbors
from embgeo.stats.pair_cosines import PairHistogram, PairSample
from embgeo.stats.per_row import (
    AngleAfterRemoval,
    AngleTo,
    Census,
    DistanceTo,
    Norms,
    OutputNorms,
    Projection2,
    RowHashes,
    UnitProjections,
)
from embgeo.stats.sums import GroupSums, PairedSums, RowSums, SumWithout, WeightedSum
from embgeo.stats.treated import TreatedRows

#: Every statistic; the tests of the monoid law run over this tuple.
STATISTICS = (
    AngleAfterRemoval,
    AngleTo,
    Census,
    CloserRows,
    DistanceTo,
    GroupSums,
    GroupSquares,
    HalfAngles,
    LogPartition,
    Moments,
    Norms,
    OutputNorms,
    PairHistogram,
    PairSample,
    PairedSums,
    Projection2,
    SumWithout,
    RowHashes,
    RowSums,
    StackedQR,
    TopNeighbors,
    NearestDistances,
    TreatedRows,
    UnitProjections,
    WeightedSum,
)

__all__ = [
    "STATISTICS",
    "AngleAfterRemoval",
    "AngleTo",
    "Census",
    "CloserRows",
    "DistanceTo",
    "GroupSquares",
    "GroupSums",
    "HalfAngles",
    "LogPartition",
    "Moments",
    "NearestDistances",
    "Norms",
    "OutputNorms",
    "PairHistogram",
    "PairSample",
    "PairedSums",
    "Projection2",
    "RowHashes",
    "RowSums",
    "StackedQR",
    "SumWithout",
    "TopNeighbors",
    "TreatedRows",
    "UnitProjections",
    "WeightedSum",
]
