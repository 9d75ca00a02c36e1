"""Do the rows point the same way? By the mean cosine of two different rows."""

from embgeo.core.quantities import cosine, suspects
from embgeo.core.values import Scalar
from embgeo.diagnosis import finding
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.findings.clusters import TWO_GROUPS, is_inside_cone
from embgeo.diagnosis.findings.coordinate import count_makers
from embgeo.diagnosis.origin import USUAL, advise, find_sign, is_sparse, share_of_zeros
from embgeo.diagnosis.question import Answer, Question

_LEADS = {
    "degenerate": "Narrow cone",
    "mild": "Wide cone",
    "faint": "Faint cone",
    "healthy": "No cone",
}


def answer(a: finding.Numbers) -> Answer:
    mean = finding.need(a, cosine.MEAN)
    value = float(mean)
    # Suspects may scatter; the state is that of the other rows.
    without = finding.find_scalar(a, suspects.MEAN_COSINE_OTHERS)
    others = value if without is None else float(without)
    state = limits.CONE.state(max(value, others))
    spread = finding.isotropic_cosine_spread(a)
    if spread is not None and value <= limits.STANDARD_ERRORS * spread:
        state = "healthy"
    shape = "faint" if state == "healthy" and finding.is_faint_cone(a) else state
    cause = [] if state == "healthy" else _quote_cause(a)
    lead = "Large mean cosine without a cone" if cause else _LEADS[shape]
    parts: list[finding.Part] = [
        f"{lead}: the mean cosine of two rows is ",
        finding.quote(mean),
        " (isotropic rows: 0",
        f"; {value / spread:,.0f} standard errors)." if shape == "faint" and spread else ").",
    ]
    positive = finding.find_scalar(a, cosine.POSITIVE_SHARE)
    if positive is not None:
        parts += [" ", finding.quote_percent(positive), " of the pairs have a positive cosine."]
    angle = finding.find_scalar(a, cosine.CONE_HALF_ANGLE_MEDIAN)
    if angle is not None:
        parts += [" Half of the rows lie within ", finding.quote_short(angle, "°")]
        parts.append(" of the mean direction")
        if angle.reference is not None:
            parts.append(f" (isotropic rows: {finding.format_short(angle.reference)}°)")
        parts.append(".")
    if without is not None and state != limits.CONE.state(value):
        parts += [" Without suspects it is ", finding.quote_short(without), "."]
    if not cause and (shape != "healthy" or is_sparse(a)):
        cause = _describe_cone(a, shape)
    return state, [*parts, *cause]


def _describe_cone(a: finding.Numbers, shape: str) -> list[finding.Part]:
    """Describe what makes the cone: signs, clusters in it, coordinates."""
    sign, sparse = find_sign(a), is_sparse(a)
    zeros = finding.format_percent(share_of_zeros(a))
    if sparse and not sign:
        return [f" {zeros} of the entries are zero. {USUAL['sparse']}"]
    if sign:
        zeros = f", and {zeros} are zero" if sparse else ""
        entries = f" No entry is {sign}{zeros}, which alone makes every cosine positive."
        return [f"{entries} {USUAL['sparse' if sparse else sign]}"]
    makers = count_makers(a) if shape == "faint" else 0
    if makers:
        who = "One coordinate contributes" if makers == 1 else f"{makers:,} coordinates contribute"
        return [f" {who} most of it."]
    clusters = finding.find_scalar(a, cosine.CLUSTERS)
    if clusters is None or clusters < 2 or not is_inside_cone(a):
        return []
    count = f"{int(clusters):,}"
    between = finding.need(a, cosine.MEAN_BETWEEN_CLUSTERS)
    said: list[finding.Part] = [
        " ",
        finding.quote(clusters, count),
        " clusters lie in it (mean cosine between clusters ",
    ]
    said += [finding.quote(between), ")."]
    silhouette = finding.find_scalar(a, cosine.SILHOUETTE)
    has_own = silhouette is not None and limits.CLUSTERS.state(float(silhouette)) != "healthy"
    if int(clusters) == 2 and not has_own:
        said.append(TWO_GROUPS)
    return said


def find_cause(a: finding.Numbers) -> Scalar | None:
    """Find the number without what raises the mean cosine; None if that is a cone."""
    for quantity in _CAUSES:
        scalar = finding.find_scalar(a, quantity)
        if scalar is not None and limits.CONE.state(float(scalar)) == "healthy":
            return scalar
    return None


def _quote_cause(a: finding.Numbers) -> list[finding.Part]:
    """Say what raises the mean cosine without a cone, and the number without it; may be empty."""
    scalar = find_cause(a)
    if scalar is None:
        return []
    return [f" {_CAUSES[scalar.quantity]} ", finding.quote_short(scalar, digits=2), "."]


_CAUSES = {
    suspects.MEAN_COSINE_OTHERS: "Suspects are the cause: without them the mean cosine is",
    cosine.MEAN_BETWEEN_CLUSTERS: "Clusters are the cause: the mean cosine between clusters is",
}


def advise_on_cone(a: finding.Numbers) -> str:
    if count_makers(a) and not find_sign(a):
        return (
            "A few coordinates make it, which training that keeps all rows apart is not about. For "
            "similarity search, subtract the mean row (Mu and Viswanath 2018) or standardize every "
            "coordinate (Timkey and van Schijndel 2021)."
        )
    return advise(
        a,
        usual="In training, cosine regularization (Gao et al. 2019) and Coupled Adam (Stollenwerk "
        "and Stollenwerk 2025) keep rows apart: embgeo train --data TEXT --compare "
        "mle,cosreg,coupled-adam, or CosReg in a training loop of your own "
        "(docs/regularizers.md). For similarity search, subtract the mean row (Mu and "
        "Viswanath 2018). Do not subtract it in a language model: its other layers expect it.",
    )


def name_fault(a: finding.Numbers, state: finding.State) -> str:
    if find_cause(a) is not None:
        return "large mean cosine without a cone"
    return "narrow cone" if state == "degenerate" else "wide cone"


QUESTION = Question(
    "cone",
    "Do the rows point the same way?",
    answer,
    geometry=True,
    essential=True,
    fault=name_fault,
    why="Unrelated tokens then have a large cosine too. Those closest to the mean direction, in "
    "language models often rare ones, are hard to distinguish (Gao et al. 2019).",
    advice=advise_on_cone,
)
