"""Rare and frequent tokens: three statements, of which only separated neighbors are a fault.

Norm usually correlates with frequency, and a linear probe usually reads frequency from the rows.
Rare tokens are separated where their neighbors are rare beyond chance.
"""

import math

from embgeo.core.quantities import cosine, frequency
from embgeo.diagnosis import finding
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.question import Answer, Question


def answer(a: finding.Numbers) -> Answer:
    """State and sentence, which begins with the neighbors, which decide."""
    auc = finding.need(a, frequency.PROBE_AUC)
    value = float(auc)
    above_chance = value - 0.5 > limits.STANDARD_ERRORS * (auc.standard_error or 0.0)
    state, neighbors = _neighbors(a)
    readable = above_chance and value >= limits.READABLE
    lead = {
        "degenerate": "Rare tokens are separated from frequent ones",
        "mild": "Rare tokens are partly separated from frequent ones",
    }.get(state, "Rare tokens are not separated from frequent ones")
    parts: list[finding.Part] = [lead, *([": ", *neighbors] if neighbors else []), ". "]
    parts += [
        f"A linear probe {'reads' if readable else 'hardly reads'} frequency (AUC ",
        finding.quote(auc),
        f", chance: 0.5){', as usual' if readable else ''}.",
        *_norms(a),
        *_weights(a),
    ]
    return state, parts


def _neighbors(a: finding.Numbers) -> Answer:
    """Judge by two tests: more rare neighbors than frequent tokens have, and than by chance."""
    rare = finding.find_scalar(a, frequency.NEIGHBOR_RARITY_RARE)
    popular = finding.find_scalar(a, frequency.NEIGHBOR_RARITY_POPULAR)
    if rare is None or popular is None:
        return "healthy", []
    gap = float(rare) - float(popular)
    error = math.hypot(rare.standard_error or 0.0, popular.standard_error or 0.0)
    state = limits.NEIGHBOR_GAP.state(gap)
    if gap <= limits.STANDARD_ERRORS * error:
        state = "healthy"
    own = rare.population_error or rare.standard_error or 0.0
    chance = rare.reference
    if chance is not None and float(rare) - chance <= limits.STANDARD_ERRORS * own:
        state = finding.milder(state, "healthy")
    by_chance = f"{finding.format_percent(chance)} by chance" if chance is not None else ""
    shares = finding.format_percent(float(rare)), finding.format_percent(float(popular))
    parts: list[finding.Part] = [
        finding.quote(rare, shares[0]),
        " of the nearest neighbors of rare tokens are rare, ",
        finding.quote(popular, shares[1]),
        " of those of frequent tokens",
        f" ({by_chance})" if by_chance else "",
    ]
    return state, parts


def _norms(a: finding.Numbers) -> list[finding.Part]:
    """State that norm correlates with frequency: ordinary, as frequent rows move more often."""
    rho = finding.find_scalar(a, frequency.NORM_SPEARMAN)
    if rho is None or abs(float(rho)) < limits.NORMS_FOLLOW:
        return []
    # A rank correlation of M unrelated pairs has standard error 1/√(M−1).
    if abs(float(rho)) * math.sqrt(max(1, finding.count_kept(a) - 1)) <= limits.STANDARD_ERRORS:
        return []
    return [" Norm correlates with frequency (Spearman ", finding.quote(rho), "), as usual."]


def _weights(a: finding.Numbers) -> list[finding.Part]:
    """Get the mean cosine weighted by counts, where its state differs from that of the matrix."""
    plain = finding.find_scalar(a, cosine.MEAN)
    weighted = finding.find_scalar(a, frequency.WEIGHTED_MEAN_COSINE)
    if plain is None or weighted is None:
        return []
    if limits.CONE.state(float(plain)) == limits.CONE.state(float(weighted)):
        return []
    return [
        " Weighted by counts, so that frequent tokens decide, the mean cosine is ",
        finding.quote(weighted),
        " instead of ",
        finding.quote(plain),
        ".",
    ]


QUESTION = Question(
    "frequency",
    "Are rare tokens separated from frequent ones?",
    answer,
    one_dimension=True,
    why="Neighbors of a rare token are then rare tokens, regardless of their meaning (Gong et al. "
    "2018).",
    advice="In training, FRAGE mixes them: an adversary must not tell rare from frequent rows "
    "(Gong et al. 2018): embgeo train --data TEXT --compare mle,frage. For similarity search, "
    "center and whiten with weights by frequency (Yokoi et al. 2024).",
)
