"""All limits of the verdict; docs/verdict.md argues each."""

import math
from dataclasses import dataclass
from typing import Literal

State = Literal["healthy", "mild", "degenerate", "undecided"]


@dataclass(frozen=True, slots=True)
class Threshold:
    """Two limits on one quantity."""

    #: The test and the compared quantity, in words.
    name: str
    quantity: str
    #: The states hold from these limits on.
    mild: float
    degenerate: float
    #: The side of a limit (itself included) on which the worse state lies.
    worse: Literal["above", "below"] = "above"

    def state(self, value: float) -> State:
        beyond = value.__ge__ if self.worse == "above" else value.__le__
        if beyond(self.degenerate):
            return "degenerate"
        return "mild" if beyond(self.mild) else "healthy"


CONE = Threshold("cone", "mean cosine of two different rows", 0.1, 0.3)
TOP_SHARE = Threshold(
    "top share", "share of the variance (uncentered) in the top direction", 0.2, 0.5
)
TOP_ODDS = Threshold(
    "top odds",
    "variance in the top direction relative to all others, as a multiple of what λ_k ∝ 1/k gives",
    2.0,
    4.0,
)
RANK_RATIO = Threshold(
    "rank ratio", "effective rank as a share of what isotropic rows give", 0.5, 0.2, worse="below"
)
LINE = Threshold(
    "line",
    "mean squared cosine of two different rows, where the mean cosine is below the cone's limit",
    0.1,
    0.3,
)
LINE_ODDS = Threshold(
    "line odds",
    "mean squared cosine relative to its rest to 1, as a multiple of what λ_k ∝ 1/k gives",
    2.0,
    4.0,
)
PARTITION = Threshold(
    "partition", "I1 of the rows, each divided by its norm", 0.5, 1 / 3, worse="below"
)
PARTITION_MULTIPLE = Threshold(
    "partition multiple", "log of that I1 as a multiple of what isotropic rows give", 3.0, 4.0
)
NEIGHBOR_GAP = Threshold(
    "neighbor gap",
    "share of rare tokens among the neighbors of rare tokens, less that of frequent ones",
    0.2,
    0.5,
)
ROGUE = Threshold(
    "rogue coordinate",
    "share of the mean cosine that one coordinate makes, no worse than the cone itself",
    0.25,
    0.5,
)
ROGUE_RATIO = Threshold(
    "rogue ratio",
    "that share as a multiple of 2·ln(d)/d, the largest coordinate of a random direction",
    2.0,
    3.0,
)
ROGUE_VARIANCE = Threshold(
    "variance of a coordinate",
    "share of the variance that the wide coordinates hold together",
    0.05,
    0.25,
)
ROGUE_SPREAD = Threshold(
    "spread of a coordinate",
    "variance of that coordinate as a multiple of the median one",
    25.0,
    100.0,
)
CLUSTERS = Threshold("clusters", "mean silhouette of the best clusters of directions", 0.6, 0.7)
ALIKE = Threshold(
    "rows alike",
    "share of rows at the mean, or equal or nearly equal to another, where some row is faulty",
    0.0,
    0.25,
)

ODD_NORMS = Threshold(
    "odd norms",
    "how many times shorter or longer than the others a part of the rows is",
    10.0,
    math.inf,
)

THRESHOLDS: tuple[Threshold, ...] = (
    CONE,
    TOP_SHARE,
    TOP_ODDS,
    RANK_RATIO,
    LINE,
    LINE_ODDS,
    PARTITION,
    PARTITION_MULTIPLE,
    NEIGHBOR_GAP,
    ROGUE,
    ROGUE_RATIO,
    ROGUE_VARIANCE,
    ROGUE_SPREAD,
    CLUSTERS,
    ALIKE,
    ODD_NORMS,
)

#: A sampled number within this many standard errors of chance decides nothing.
STANDARD_ERRORS = 3.0

#: Relative gap between neighboring eigenvalues below which I1 and I2 depend on the basis chosen.
EIGENGAP = 1e-6

#: Root mean square of the norms over their median from which a few long rows hold nearly all
#: energy: ordinary rows then hold 4% of it.
LONG_ROWS = 5.0
#: Long rows are a finding if they carry at least this share of Σ‖w‖² and are at most this share
#: of the rows.
LONG_ROWS_ENERGY = 0.5
FEW_LONG_ROWS = 0.05

#: Share of the rows from which those of odd norms are a part, and not a few.
NOT_FEW = 0.01

#: Mean cosine, as a multiple of the cosine's spread among isotropic rows (1/√d), from which a cone
#: that is not a fault is still mentioned: about 70% of the pairs are positive there.
FAINT_CONE = 0.5

#: Share of entries that are exactly zero from which rows are sparse codes; after a ReLU it is half.
SPARSE = 0.9

#: Mean squared cosine from which a two-sided collapse is along a line: a circle has 1/2.
LINE_ALONE = 0.6

#: Mean cosine between two clusters below which they are the two ends of one line.
OPPOSITE = -0.5

#: With fewer rows, or fewer than one for ten dimensions, only the list of suspects is judged.
LEAST_ROWS = 30
DIMENSIONS_PER_ROW = 10

#: AUC from which a linear probe reads frequency, and rank correlation from which norm correlates
#: with frequency: statements, not faults.
READABLE = 0.7
NORMS_FOLLOW = 0.3

#: Least chance of the largest eigenvalue of rows that cannot be told from an initialization.
INITIAL_P = 0.01
