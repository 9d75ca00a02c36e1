"""Is a single coordinate to blame? By its share of the variance and of the mean cosine."""

from __future__ import annotations

import math

from embgeo.core.quantities import coordinates, cosine
from embgeo.core.values import format_number
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.finding import (
    RANK,
    Numbers,
    Part,
    Quote,
    State,
    Undecided,
    dimensions,
    format_percent,
    is_cone_significant,
    is_faint_cone,
    milder,
    need,
    value_of,
)
from embgeo.diagnosis.findings.spectrum import share_of_long_rows
from embgeo.diagnosis.question import Answer, Question

#: What is left of the mean cosine once coordinates are zeroed.
WITHOUT = (
    coordinates.MEAN_COSINE_WITHOUT_1,
    coordinates.MEAN_COSINE_WITHOUT_3,
    coordinates.MEAN_COSINE_WITHOUT_5,
)


def answer(a: Numbers) -> Answer:
    if dimensions(a) < 2:
        raise Undecided("there is only one coordinate")
    tests = [found for judge in (_by_variance, _by_mean_cosine) if (found := judge(a))]
    if not tests:
        raise Undecided("there is no cone to explain, and no variances of coordinates")
    # The test that decided comes first; the sort keeps the order of equals.
    tests.sort(key=lambda test: -RANK[test[0]])
    state, _, clause = tests[0]
    parts: list[Part] = []
    for at, (_, sentence, _) in enumerate(tests):
        parts += [*([" "] if at else []), *sentence]
    return state, tuple(parts), clause


def _by_variance(a: Numbers) -> Answer | None:
    share, ratio = a.scalar(coordinates.VARIANCE_SHARE), a.scalar(coordinates.VARIANCE_RATIO)
    if share_of_long_rows(a) is not None:
        return None  # what these rows hold in a coordinate is no matter of coordinates
    if share is None or ratio is None or share.value is None or ratio.value is None:
        return None
    state: State = milder(
        limits.ROGUE_VARIANCE.state(share.value), limits.ROGUE_SPREAD.state(ratio.value)
    )
    parts: tuple[Part, ...] = (
        "The widest coordinate holds ",
        Quote(share.name, format_percent(share.value)),
        " of the variance, ",
        Quote(ratio.name, format_number(ratio.value, 3)),
        " times that of an ordinary one.",
    )
    return state, parts, f"one coordinate holds {format_percent(share.value)} of the variance"


def _by_mean_cosine(a: Numbers) -> Answer | None:
    """Only of a cone that is more than chance; of a small one it is at most mild."""
    mean = a.scalar(cosine.MEAN)
    if mean is None or mean.value is None or not is_cone_significant(a):
        return None
    share, d = need(a, cosine.MAX_DIMENSION_SHARE), dimensions(a)
    value, expected = value_of(share), 2.0 * math.log(d) / d
    state: State = milder(limits.ROGUE.state(value), limits.ROGUE_RATIO.state(value / expected))
    if limits.CONE.state(mean.value) == "healthy":
        state = milder(state, "mild" if is_faint_cone(a) else "healthy")
    parts: list[Part] = [
        "A single coordinate makes ",
        Quote(share.name, format_percent(value)),
        " of the mean cosine (a random direction in "
        f"{d:,} dimensions: about {format_percent(expected)})",
    ]
    scalars = [a.scalar(quantity) for quantity in WITHOUT]
    left = [scalar for scalar in scalars if scalar is not None and scalar.value is not None]
    if left:
        parts.append("; without the top 1, 3, 5 coordinates it is ")
        for at, scalar in enumerate(left):
            parts += [*([", "] if at else []), Quote(scalar.name, format_number(float(scalar), 3))]
    clause = f"one coordinate makes {format_percent(value)} of the mean cosine"
    return state, (*parts, "."), clause


QUESTION = Question(
    "coordinate",
    "Is a single coordinate to blame?",
    answer,
    geometry=True,
    is_cause=True,
    shown="fault",
    why="One to three coordinates can decide cosines and distances while hardly anything in "
    "the model depends on them (Timkey and van Schijndel 2021).",
    advice="Before rows are compared, standardize every coordinate: subtract its mean and divide "
    "by its standard deviation (Timkey and van Schijndel 2021). Do not zero such "
    "coordinates in the model itself: removing outlier dimensions degrades it (Kovaleva "
    "et al. 2021).",
)
