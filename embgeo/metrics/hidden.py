"""Hidden states: is there a uniformly negative direction? (definitions, section 7)

By Theorem 2 of Gao et al. there is one exactly if the convex hull of the hidden states does not
contain the origin. Training then pushes rows of tokens that never occur along it without limit.

Examples
--------
>>> import embgeo
>>> rng = np.random.default_rng(0)
>>> W, states = rng.standard_normal((50, 4)), rng.standard_normal((200, 4))
>>> for offset in (0.0, 5.0):
...     found = embgeo.analyze(W, hidden=states + offset, sections=["hidden"])
...     print(f"{found['hidden.hull_distance'].value:.2f}")
0.00
6.72
"""

import numpy as np

from embgeo.core.matrix import FinalNorm
from embgeo.core.quantities import hidden as q
from embgeo.core.values import Scalar, Series, Value
from embgeo.metrics.family import Family, Measurement
from embgeo.numerics.convex_hull import Hull, distance_to_hull


def absent(m: Measurement) -> str:
    norm = m.facts.final_norm
    if m.hidden is None and (norm is None or norm.scale is None or norm.bias is None):
        return "no hidden states (embgeo analyze --hidden FILE)"
    return ""


def compute(m: Measurement) -> list[Value]:
    values: list[Value] = []
    hidden = m.hidden
    if hidden is not None:
        hull = distance_to_hull(
            hidden.blocks, hidden.width, hidden.rounding, hidden.find_repeated()
        )
        values += describe_hull(hull, hidden.rounding)
    values.append(compute_layernorm_condition(m.facts.final_norm))
    return values


def describe_hull(hull: Hull, rounding: float) -> list[Value]:
    """Return the position of the origin with its certificate; undecided without one."""
    convention = {
        "outside": "origin outside the hull: a uniformly negative direction exists; certified by "
        "its margin",
        "inside": "origin inside the hull: no uniformly negative direction; certified by convex "
        f"weights, which leave {hull.residual / (hull.longest or 1.0):.2g} of the longest state",
        "undecided": "undecided",
    }[hull.side]
    if hull.origin is not None:
        convention += f"; hidden state {hull.origin:,} is itself the origin"
    if hull.side == "undecided":
        distance = q.HULL_DISTANCE.undefined(
            f"undecided: between {hull.lower:.3g} and {hull.upper:.3g} after {hull.passes} "
            "passes, without a certificate either way"
        )
    else:
        value = hull.upper if hull.side == "outside" else 0.0
        if hull.side == "outside":
            convention += f"; between {hull.lower:.10g} and {hull.upper:.10g}"
        if hull.side == "outside" and hull.lower <= 4.0 * rounding * hull.longest:
            convention += "; nearer than the rounding of the stored states, which could move it in"
        distance = q.HULL_DISTANCE.measured(value, convention=convention)
    margin = q.MARGIN.measured(hull.margin)
    if hull.side == "inside":
        margin = q.MARGIN.undefined("the origin is inside: no direction has one")
    order = np.argsort(hull.rows)
    values: list[Value] = [
        distance,
        margin,
        Series(
            q.WEIGHTS,
            hull.rows[order].astype(np.float64),
            {"weight": hull.weights[order]},
            "hidden state",
            "weight",
        ),
    ]
    if hull.side == "outside":
        k = np.arange(1.0, len(hull.direction) + 1)
        values.append(Series(q.DIRECTION, k, {"v": hull.direction}, "coordinate k", "entry of v"))
    return values


def compute_layernorm_condition(norm: FinalNorm | None) -> Scalar:
    """Return |1ᵀ(b/g)| relative to Σ|b_k/g_k|, from the final LayerNorm's scale g and bias b."""
    if norm is None:
        return q.LAYERNORM_CONDITION.undefined("an array comes without a LayerNorm")
    if norm.scale is None or norm.bias is None:
        return q.LAYERNORM_CONDITION.undefined(norm.absent)
    name, g, b = norm.name, norm.scale, norm.bias
    if not np.all(g) or not np.isfinite(g).all() or not np.isfinite(b).all():
        return q.LAYERNORM_CONDITION.undefined(
            f"{name} has an entry of its scale that is 0 or not finite"
        )
    ratio = b / g
    scale = float(np.abs(ratio).sum())
    if scale == 0:
        return q.LAYERNORM_CONDITION.undefined(
            f"the bias of {name} is zero: the condition says nothing"
        )
    return q.LAYERNORM_CONDITION.measured(float(abs(ratio.sum())) / scale, convention=f"of {name}")


FAMILY = Family("hidden", compute, absent=absent)
