"""Do rare and popular tokens live apart? Three tests, of which the worst answer counts."""

from __future__ import annotations

import math

from embgeo.core.quantities import cosine, frequency
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.finding import (
    RANK,
    Numbers,
    Part,
    Quote,
    State,
    format_percent,
    format_short,
    need,
    value_of,
)
from embgeo.diagnosis.question import Answer, Question


def answer(a: Numbers) -> Answer:
    """State, sentence and clause; the sentence begins with the test that decided."""
    auc = need(a, frequency.PROBE_AUC)
    value, error = value_of(auc), auc.standard_error or 0.0
    above_chance = value - 0.5 > limits.STANDARD_ERRORS * error
    by_probe: State = limits.PROBE.state(value) if above_chance else "healthy"
    by_neighbors, neighbors_parts, neighbors_clause = _neighbors(a)
    by_norm, norm_parts, norm_clause = _norms(a)
    state: State = max(by_probe, by_neighbors, by_norm, key=RANK.__getitem__)
    only = "only " if state == "healthy" else ""
    probe_parts: tuple[Part, ...] = (
        f"a linear probe has an AUC of {only}",
        Quote(auc.name, auc.text),
        " (chance: 0.5)",
    )
    said = [(by_probe, probe_parts), (by_neighbors, neighbors_parts), (by_norm, norm_parts)]
    # The test that decided comes first; the sort keeps the order of the others.
    said = sorted((s for s in said if s[1]), key=lambda s: s[0] != state)
    parts: list[Part] = [_frequency_lead(state, by_norm_only=state not in (by_probe, by_neighbors))]
    for i, (_, piece) in enumerate(said):
        parts += [*(["; "] if i else []), *piece]
    parts += _weights(a)
    if state == "healthy":
        clause = f"rare and popular tokens are mixed (AUC {format_short(value)})"
    elif by_probe == state:
        partly = "" if state == "degenerate" else "partly "
        clause = f"rare tokens are {partly}separable from popular ones (AUC {format_short(value)})"
    else:
        clause = neighbors_clause if by_neighbors == state else norm_clause
    return state, (*parts, "."), clause


def _frequency_lead(state: State, by_norm_only: bool) -> str:
    if state == "healthy":
        return "Rare and popular tokens are mixed: "
    if by_norm_only:
        somewhat = "" if state == "degenerate" else "somewhat "
        return f"Rare and popular tokens differ {somewhat}in length: "
    partly = "" if state == "degenerate" else "partly "
    return f"Rare and popular tokens {partly}live apart: "


def _neighbors(a: Numbers) -> Answer:
    rare = a.scalar(frequency.NEIGHBOR_RARITY_RARE)
    popular = a.scalar(frequency.NEIGHBOR_RARITY_POPULAR)
    if rare is None or popular is None or rare.value is None or popular.value is None:
        return "healthy", (), ""
    gap = rare.value - popular.value
    error = math.hypot(rare.standard_error or 0.0, popular.standard_error or 0.0)
    within_error = gap <= limits.STANDARD_ERRORS * error
    state: State = "healthy" if within_error else limits.NEIGHBOR_GAP.state(gap)
    base = f" (base rate {format_percent(rare.reference)})" if rare.reference is not None else ""
    shares = format_percent(rare.value), format_percent(popular.value)
    parts: tuple[Part, ...] = (
        "of the nearest neighbors of rare tokens ",
        Quote(rare.name, shares[0]),
        " are rare, of those of popular tokens ",
        Quote(popular.name, shares[1]),
        base,
    )
    clause = f"neighbors of rare tokens are rare ({shares[0]}, of popular tokens {shares[1]})"
    return state, parts, clause


def _norms(a: Numbers) -> Answer:
    rho = a.scalar(frequency.NORM_SPEARMAN)
    if rho is None or rho.value is None:
        return "healthy", (), ""
    # A rank correlation of M unrelated pairs has standard error 1/√(M−1).
    kept = max(2, int(a.provenance.get("kept") or 2))
    size = abs(rho.value)
    state: State = (
        limits.NORM_RANK.state(size)
        if size * math.sqrt(kept - 1) > limits.STANDARD_ERRORS
        else "healthy"
    )
    if state == "healthy":
        return state, (), ""
    parts: tuple[Part, ...] = (
        "norms follow frequency (rank correlation ",
        Quote(rho.name, rho.text),
        ")",
    )
    return state, parts, f"norms follow frequency (rank correlation {format_short(rho.value)})"


def _weights(a: Numbers) -> tuple[Part, ...]:
    """Where a text, in which tokens occur as often as counted, has another cone than the matrix."""
    plain, weighted = a.scalar(cosine.MEAN), a.scalar(frequency.WEIGHTED_MEAN_COSINE)
    if plain is None or weighted is None or plain.value is None or weighted.value is None:
        return ()
    if limits.CONE.state(plain.value) == limits.CONE.state(weighted.value):
        return ()
    return (
        ". With each token counted as often as it occurs, the mean cosine is ",
        Quote(weighted.name, weighted.text),
        " instead of ",
        Quote(plain.name, plain.text),
    )


QUESTION = Question(
    "frequency",
    "Do rare and popular tokens live apart?",
    answer,
    one_dimension=True,
    why="Neighbors of a rare token are then rare tokens, whatever they mean (Gong et al. 2018).",
    advice="In training, an adversary that cannot tell rare from popular rows mixes them (Gong "
    "et al. 2018): embgeo train --data TEXT --compare mle,frage,moment-match. For "
    "similarity search, center and whiten with weights by frequency (Yokoi et al. 2024).",
)
