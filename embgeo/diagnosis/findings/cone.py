"""Do the rows point the same way? By the mean cosine of two different rows."""

from __future__ import annotations

from embgeo.core.quantities import clump, cosine, tokens
from embgeo.core.values import format_number
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.finding import (
    Numbers,
    Part,
    Quote,
    State,
    format_percent,
    format_short,
    is_faint_cone,
    isotropic_cosine_spread,
    need,
    value_of,
)
from embgeo.diagnosis.question import Answer, Question


def answer(a: Numbers) -> Answer:
    mean = need(a, cosine.MEAN)
    value = value_of(mean)
    # Scattered rows widen the cone of the others, which is the one that is judged.
    gathered = a.scalar(clump.MEAN_COSINE_GATHERED)
    others = gathered.value if gathered is not None and gathered.value is not None else value
    state: State = limits.CONE.state(max(value, others))
    spread = isotropic_cosine_spread(a)
    if spread is not None and value <= limits.STANDARD_ERRORS * spread:
        state = "healthy"
    is_diluted = state not in ("healthy", limits.CONE.state(value))
    shape = "faint" if state == "healthy" and is_faint_cone(a) else state
    error = f" ± {format_number(spread, 2)}" if spread else ""
    parts: list[Part] = [
        {
            "degenerate": "The rows form a narrow cone: two random rows have a mean cosine of ",
            "mild": "The rows lean to one side: two random rows have a mean cosine of ",
            "faint": "There is a faint cone: two random rows have a mean cosine of ",
            "healthy": "There is no cone: two random rows have a mean cosine of ",
        }[shape],
        Quote(mean.name, mean.text),
        f" (isotropic rows: 0{error}",
        f"; {value / spread:,.0f} standard errors)" if shape == "faint" and spread else ")",
    ]
    positive, angle = a.scalar(cosine.POSITIVE_SHARE), a.scalar(cosine.CONE_HALF_ANGLE_MEDIAN)
    if positive is not None and positive.value is not None:
        parts += [
            ", ",
            Quote(positive.name, format_percent(positive.value)),
            " of all pairs are positive",
        ]
    if angle is not None and angle.value is not None:
        parts += [
            ", and half of the rows lie within ",
            Quote(angle.name, f"{format_number(angle.value, 3)}°"),
            " of the mean direction",
        ]
        if angle.reference is not None:
            parts.append(f" (isotropic rows: {format_number(angle.reference, 3)}°)")
    parts.append(".")
    if state != "healthy" and others > value:
        parts += _quote_scattered(a)
    cause = _find_cause(a, state)
    parts += cause
    clause = {
        "degenerate": f"a narrow cone (mean cosine {format_short(value)})",
        "mild": f"a wide cone (mean cosine {format_short(value)})",
        "faint": f"a faint cone (mean cosine {format_short(value)})",
        "healthy": f"no cone (mean cosine {format_short(value)})",
    }[shape]
    if is_diluted:
        scattered = f"{value_of(need(a, clump.SCATTERED_ROWS)):,.0f} scattered rows"
        clause = f"{clause[:-1]}, at least {format_short(others)} without {scattered})"
    if cause:
        clause = f"a mean cosine of {format_short(value)} without a cone"
    return state, tuple(parts), clause


def _quote_scattered(a: Numbers) -> list[Part]:
    """How many rows hide how narrow the cone of the others is."""
    rows, others = need(a, clump.SCATTERED_ROWS), need(a, clump.MEAN_COSINE_GATHERED)
    return [
        " Without ",
        Quote(rows.name, f"{value_of(rows):,.0f} rows"),
        " that lie scattered with norms of their own, as untrained rows do, it is at least ",
        Quote(others.name, format_number(value_of(others), 3)),
        ".",
    ]


def _find_cause(a: Numbers, state: State) -> list[Part]:
    """What makes a mean cosine without a cone, and the number without it; empty if nothing does."""
    if state == "healthy":
        return []
    for quantity, cause in _CAUSES:
        scalar = a.scalar(quantity)
        if scalar is None or scalar.value is None:
            continue
        if limits.CONE.state(scalar.value) == "healthy":
            text = format_number(scalar.value, 2)
            return [f" {cause} ", Quote(scalar.name, text), "."]
    return []


_CAUSES = (
    (
        tokens.MEAN_COSINE_DISTINCT,
        "Duplicate rows make it: with every row counted once, the mean cosine is",
    ),
    (
        cosine.MEAN_WITHIN_CLUSTERS,
        "Clusters make it: once each cluster's mean is subtracted, the mean cosine is",
    ),
)


QUESTION = Question(
    "cone",
    "Do the rows point the same way?",
    answer,
    geometry=True,
    essential=True,
    why="Unrelated tokens then have a large cosine too, and rare tokens, which lie deepest in "
    "the cone, are hard to tell apart (Gao et al. 2019).",
    advice="In training, cosine regularization (Gao et al. 2019) and Coupled Adam (Stollenwerk "
    "and Stollenwerk 2025) keep rows apart: embgeo train --data TEXT --compare "
    "mle,cosreg,coupled-adam, or CosReg in a training loop of your own "
    "(docs/regularizers.md). For similarity search, subtract the mean row (Mu and "
    "Viswanath 2018); not in a language model, whose other layers expect it.",
)
