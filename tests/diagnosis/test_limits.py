"""Both sides of every limit, by hand-made numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pytest

from embgeo.core.quantities import (
    coordinates,
    cosine,
    frequency,
    isotropy,
    spectrum,
    suspects,
    tokens,
)
from embgeo.core.suspects import Suspects
from embgeo.core.values import Scalar
from embgeo.diagnosis.findings.initialization import vary_by_chance
from embgeo.diagnosis.thresholds import INITIAL_P
from embgeo.diagnosis.verdict import judge
from embgeo.result.analysis import Analysis

#: With that many dimensions no test relative to few of them decides.
MANY = 100_000
STEP = 1e-6


class Limit(NamedTuple):
    """Numbers with a value, a finding, and the two values at which its state changes."""

    name: str
    key: str
    make: Callable[[float], Sequence[Scalar]]
    mild: float
    degenerate: float
    worse: int = 1
    kept: int = 2 * MANY
    d: int = MANY


def share_of_odds(multiple: float, ordinary: float) -> float:
    """The share whose odds are that multiple of those of the ordinary share."""
    odds = multiple * ordinary / (1 - ordinary)
    return odds / (1 + odds)


#: Of four dimensions: 1 + 1/2 + 1/3 + 1/4 = 25/12.
FIRST_OF_FOUR = 12 / 25
#: Of three dimensions, the squared shares 6/11, 3/11 and 2/11.
SQUARES_OF_THREE = (36 + 9 + 4) / 121
#: Of 32 dimensions, the largest coordinate of a random direction.
LARGEST_OF_32 = 2 * math.log(32) / 32

LIMITS = (
    Limit("share", "spectrum", lambda v: by_spectrum(v, 0.9), 0.2, 0.5),
    Limit(
        "odds of the share", "spectrum", lambda v: by_spectrum(v, 0.9),
        share_of_odds(2, FIRST_OF_FOUR), share_of_odds(4, FIRST_OF_FOUR), d=4,
    ),
    Limit("effective rank", "spectrum", lambda v: by_spectrum(0.01, v), 0.5, 0.2, worse=-1),
    Limit("squared cosine", "two-sided", lambda v: by_cosines(0.0, v), 0.1, 0.3),
    Limit(
        "odds of the squared cosine", "two-sided", lambda v: by_cosines(0.0, v),
        share_of_odds(2, SQUARES_OF_THREE), share_of_odds(4, SQUARES_OF_THREE), d=3,
    ),
    Limit("partition", "isotropy", lambda v: [by_partition(v, 0.95)], 0.5, 1 / 3, worse=-1),
    Limit(
        "multiple of the partition", "isotropy", lambda v: [by_partition(v, 0.75)],
        0.75**3, 0.75**4, worse=-1,
    ),
    Limit("coordinate of the cone", "coordinate", lambda v: by_coordinate(v), 0.25, 0.5),
    Limit(
        "coordinate among few", "coordinate", lambda v: by_coordinate(v),
        2 * LARGEST_OF_32, 3 * LARGEST_OF_32, d=32,
    ),
    Limit("variance", "coordinate", lambda v: by_variance(v, 1000.0), 0.05, 0.25),
    Limit("ratio of variances", "coordinate", lambda v: by_variance(0.9, v), 25.0, 100.0),
    Limit("silhouette", "clusters", lambda v: by_silhouette(v), 0.6, 0.7),
)  # fmt: skip


def by_spectrum(share: float, rank: float) -> list[Scalar]:
    return [
        spectrum.TOP_SHARE.measured(share),
        spectrum.EFFECTIVE_RANK.measured(rank, reference=1.0),
    ]


def by_cosines(mean: float, squared: float) -> list[Scalar]:
    return [cosine.MEAN.measured(mean), cosine.STD.measured(math.sqrt(squared - mean**2))]


def by_partition(value: float, reference: float) -> Scalar:
    return isotropy.I1_UNIT_ROWS.measured(value, reference=reference)


def by_coordinate(share: float) -> list[Scalar]:
    return [cosine.MEAN.measured(0.3), cosine.MAX_DIMENSION_SHARE.measured(share)]


def by_variance(share: float, ratio: float) -> list[Scalar]:
    return [
        *by_spectrum(0.9, 0.9),  # without it no coordinate is a fault
        coordinates.ROGUE_COORDINATES.measured(1),
        coordinates.ROGUE_SHARE.measured(share),
        coordinates.VARIANCE_RATIO.measured(ratio),
    ]


def by_silhouette(value: float) -> list[Scalar]:
    return [
        cosine.CLUSTERS.measured(3),
        cosine.SILHOUETTE.measured(value),
        cosine.MEAN_BETWEEN_CLUSTERS.measured(0.0),
    ]


def find_state(key: str, scalars: Sequence[Scalar], kept: int, d: int) -> str:
    verdict = judge(Analysis(provenance={"kept": kept, "d": d}, scalars=tuple(scalars)))
    finding = verdict.finding(key)
    return "healthy" if finding is None else finding.state


def test_both_sides_of_a_limit() -> None:
    for limit in LIMITS:
        states = ("healthy", "mild", "degenerate")
        for at, better, worse in (
            (limit.mild, *states[:2]),
            (limit.degenerate, *states[1:]),
        ):
            for side, state in ((-1, better), (1, worse)):
                value = at * (1 + side * limit.worse * STEP)
                assert find_state(limit.key, limit.make(value), limit.kept, limit.d) == state, value


def test_rows_that_are_alike() -> None:
    for rows, state in (
        (0, "healthy"),
        (1, "mild"),
        (249, "mild"),
        (250, "degenerate"),
    ):
        equal = Suspects("duplicate", "input", np.arange(rows), np.ones(rows, bool))
        known = (suspects.ZERO.measured(0),)
        verdict = judge(
            Analysis(provenance={"kept": 1000, "d": 32}, scalars=known, suspects=(equal,))
        )
        finding = verdict.finding("suspects")
        assert finding is not None
        assert finding.state == state


def test_a_cone_needs_three_standard_errors_of_isotropic_rows() -> None:
    """Of 30 rows in two dimensions, √(2/(2·30·29)): three of them are 0.1017."""
    for value, state in ((0.1016, "healthy"), (0.1018, "mild")):
        assert find_state("cone", [cosine.MEAN.measured(value)], 30, 2) == state


def test_too_few_rows_decide_nothing() -> None:
    for kept, d, is_judged in (
        (29, 8, False),
        (30, 8, True),
        (99, 1000, False),
        (100, 1000, True),
    ):
        verdict = judge(
            Analysis(provenance={"kept": kept, "d": d}, scalars=(cosine.MEAN.measured(0.9),))
        )
        assert (verdict.state == "degenerate") is is_judged


def test_the_ends_of_one_line() -> None:
    for between, said in ((-0.5, False), (-0.5 - STEP, True)):
        scalars = [*by_silhouette(0.9)[1:2], cosine.CLUSTERS.measured(2)]
        scalars.append(cosine.MEAN_BETWEEN_CLUSTERS.measured(between))
        verdict = judge(Analysis(provenance={"kept": 1000, "d": 32}, scalars=tuple(scalars)))
        finding = verdict.finding("clusters")
        assert finding is not None
        assert ("one line" in finding.sentence) is said


def test_a_cone_is_as_bad_as_the_narrower_of_all_rows_and_those_without_suspects() -> None:
    for mean, others, state in (
        (0.31, 0.2, "degenerate"),
        (0.2, 0.31, "degenerate"),
        (0.2, 0.25, "mild"),
        (0.05, 0.09, "healthy"),
    ):
        scalars = [cosine.MEAN.measured(mean), suspects.MEAN_COSINE_OTHERS.measured(others)]
        assert find_state("cone", scalars, 1000, 32) == state


def test_long_rows_are_named_where_they_make_the_share() -> None:
    for share, squared, energy, said in (
        (0.3, 0.01, 0.6, True),  # directions are spread
        (0.8, 0.12, 0.6, True),  # the share is far larger than unit rows would have
        (0.8, 0.2, 0.6, False),  # unit rows have it, too
        (0.3, 0.01, 0.4, False),
    ):
        scalars = [
            *by_spectrum(share, 0.9),
            *by_cosines(0.0, squared),
            tokens.LONG_ROWS.measured(3),
            tokens.LONG_ROWS_ENERGY.measured(energy),
        ]
        verdict = judge(Analysis(provenance={"kept": 1000, "d": 1000}, scalars=tuple(scalars)))
        finding = verdict.finding("spectrum")
        assert finding is not None
        assert ("3 long rows carry" in finding.sentence) is said


@pytest.mark.parametrize(("count", "lead"), [
    (1, "The widest coordinate carries 40%"),
    (2, "2 coordinates carry 40%"),
])  # fmt: skip
def test_wide_coordinates_are_named_by_their_joint_share(count: int, lead: str) -> None:
    scalars = by_variance(0.4, 200.0)
    scalars[0] = coordinates.ROGUE_COORDINATES.measured(count)
    verdict = judge(Analysis(provenance={"kept": 1000, "d": 1000}, scalars=tuple(scalars)))
    finding = verdict.finding("coordinate")
    assert finding is not None
    assert finding.sentence.startswith(lead)
    assert ", the widest of them" in finding.sentence or count == 1


#: Of 1,000 rows in 32 dimensions: three errors of the mean cosine, of the norms' variation and of a
#: rank correlation.
CHANCE_OF_MEAN = 3 * math.sqrt(2 / (32 * 1000 * 999))
CHANCE_OF_NORMS = vary_by_chance(32) * (1 + 3 * 2000**-0.5)
CHANCE_OF_RANKS = 3 / math.sqrt(999)


@pytest.mark.parametrize("name", ["mean", "p", "variation", "auc", "rho", "equal rows"])
@pytest.mark.parametrize("beyond", [False, True])
def test_rows_like_an_initialization_are_within_chance_in_every_number(
    name: str, beyond: bool
) -> None:
    at = dict.fromkeys(("mean", "variation", "auc", "rho"), 1 - STEP)
    at[name] = 1 + STEP if beyond else 1 - STEP
    # A small chance of the top direction is the one that tells.
    least = INITIAL_P * (1 - STEP if name == "p" and beyond else 1 + STEP)
    scalars = [
        *by_cosines(at["mean"] * CHANCE_OF_MEAN, 1 / 32),
        spectrum.LARGEST_P.measured(least),
        tokens.NORM_VARIATION.measured(at["variation"] * CHANCE_OF_NORMS),
        suspects.DUPLICATE.measured(int(name == "equal rows" and beyond)),
        frequency.PROBE_AUC.measured(0.5 + at["auc"] * 3 * 0.01, standard_error=0.01),
        frequency.NORM_SPEARMAN.measured(at["rho"] * CHANCE_OF_RANKS),
    ]
    verdict = judge(Analysis(provenance={"kept": 1000, "d": 32}, scalars=tuple(scalars)))
    assert (verdict.finding("initialization") is None) is beyond
