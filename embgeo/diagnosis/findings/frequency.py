"""Do rare and popular tokens live apart? Three tests, of which the worst answer counts."""

from __future__ import annotations

import math

from embgeo.core.quantities import cosine, frequency
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.finding import (
    RANK,
    Numbers,
    Part,
    State,
    find_scalar,
    format_percent,
    format_short,
    join_parts,
    need,
    quote,
)
from embgeo.diagnosis.question import Answer, Question


def answer(a: Numbers) -> Answer:
    """State, sentence and clause; the sentence begins with the test that decided."""
    auc = need(a, frequency.PROBE_AUC)
    value, error = float(auc), auc.standard_error or 0.0
    above_chance = value - 0.5 > limits.STANDARD_ERRORS * error
    by_probe = limits.PROBE.state(value) if above_chance else "healthy"
    by_neighbors, neighbors_parts, neighbors_clause = _neighbors(a)
    by_norm, norm_parts, norm_clause = _norms(a)
    state = max(by_probe, by_neighbors, by_norm, key=RANK.__getitem__)
    only = "only " if state == "healthy" else ""
    probe_parts: list[Part] = [
        f"a linear probe has an AUC of {only}",
        quote(auc),
        " (chance: 0.5)",
    ]
    tests = [(by_probe, probe_parts), (by_neighbors, neighbors_parts), (by_norm, norm_parts)]
    # The test that decided comes first; the sort keeps the order of the others.
    tests = sorted((test for test in tests if test[1]), key=lambda test: test[0] != state)
    lead = _frequency_lead(state, by_norm_only=state not in (by_probe, by_neighbors))
    parts = [lead, *join_parts("; ", [piece for _, piece in tests]), *_weights(a), "."]
    if state == "healthy":
        clause = f"rare and popular tokens are mixed (AUC {format_short(value)})"
    elif by_probe == state:
        partly = "" if state == "degenerate" else "partly "
        clause = f"rare tokens are {partly}separable from popular ones (AUC {format_short(value)})"
    else:
        clause = neighbors_clause if by_neighbors == state else norm_clause
    return state, parts, clause


def _frequency_lead(state: State, by_norm_only: bool) -> str:
    if state == "healthy":
        return "Rare and popular tokens are mixed: "
    if by_norm_only:
        somewhat = "" if state == "degenerate" else "somewhat "
        return f"Rare and popular tokens differ {somewhat}in length: "
    partly = "" if state == "degenerate" else "partly "
    return f"Rare and popular tokens {partly}live apart: "


def _neighbors(a: Numbers) -> tuple[State, list[Part], str]:
    rare = find_scalar(a, frequency.NEIGHBOR_RARITY_RARE)
    popular = find_scalar(a, frequency.NEIGHBOR_RARITY_POPULAR)
    if rare is None or popular is None:
        return "healthy", [], ""
    gap = float(rare) - float(popular)
    error = math.hypot(rare.standard_error or 0.0, popular.standard_error or 0.0)
    within_error = gap <= limits.STANDARD_ERRORS * error
    base = f" (base rate {format_percent(rare.reference)})" if rare.reference is not None else ""
    shares = format_percent(float(rare)), format_percent(float(popular))
    parts: list[Part] = [
        "of the nearest neighbors of rare tokens ",
        quote(rare, shares[0]),
        " are rare, of those of popular tokens ",
        quote(popular, shares[1]),
        base,
    ]
    clause = f"neighbors of rare tokens are rare ({shares[0]}, of popular tokens {shares[1]})"
    return "healthy" if within_error else limits.NEIGHBOR_GAP.state(gap), parts, clause


def _norms(a: Numbers) -> tuple[State, list[Part], str]:
    rho = find_scalar(a, frequency.NORM_SPEARMAN)
    size = 0.0 if rho is None else abs(float(rho))
    # A rank correlation of M unrelated pairs has standard error 1/√(M−1).
    kept = max(2, int(a.provenance.get("kept") or 2))
    state = limits.NORM_RANK.state(size)
    if rho is None or state == "healthy" or size * math.sqrt(kept - 1) <= limits.STANDARD_ERRORS:
        return "healthy", [], ""
    parts: list[Part] = ["norms follow frequency (rank correlation ", quote(rho), ")"]
    return state, parts, f"norms follow frequency (rank correlation {format_short(float(rho))})"


def _weights(a: Numbers) -> list[Part]:
    """The mean cosine weighted by counts, where its state differs from that of the matrix."""
    plain = find_scalar(a, cosine.MEAN)
    weighted = find_scalar(a, frequency.WEIGHTED_MEAN_COSINE)
    if plain is None or weighted is None:
        return []
    if limits.CONE.state(float(plain)) == limits.CONE.state(float(weighted)):
        return []
    return [
        ". With each token counted as often as it occurs, the mean cosine is ",
        quote(weighted),
        " instead of ",
        quote(plain),
    ]


QUESTION = Question(
    "frequency",
    "Do rare and popular tokens live apart?",
    answer,
    one_dimension=True,
    why="Neighbors of a rare token are then rare tokens, whatever they mean (Gong et al. 2018).",
    advice="In training, an adversary that cannot tell rare from popular rows mixes them (Gong "
    "et al. 2018): embgeo train --data TEXT --compare mle,frage. For "
    "similarity search, center and whiten with weights by frequency (Yokoi et al. 2024).",
)
