"""Can a linear probe tell rare from popular tokens? (definitions, section 5)

The discriminator of FRAGE as a measurement: a new probe for each matrix, scored out of fold.

Examples
--------
>>> import embgeo
>>> W = np.random.default_rng(0).standard_normal((500, 8))
>>> W[:100] += 1.0  # the most frequent fifth
>>> counts = np.arange(500, 0, -1)
>>> found = embgeo.analyze(W, counts=counts, sections=["frequency"], reference=False)
>>> probe = found["frequency.probe_auc"]
>>> f"{probe.value:.2f} ± {probe.standard_error:.2f}, by chance {probe.reference}"
'0.97 ± 0.02, by chance 0.5'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, Mask
from embgeo.core.quantities import frequency as q
from embgeo.core.values import Caveat, Influence, Value
from embgeo.metrics.facts import Facts
from embgeo.metrics.popularity import Popularity, explain_absence, rank_by_frequency
from embgeo.numerics.logistic import log_odds
from embgeo.numerics.ridge import ridge_prediction
from embgeo.numerics.sampling import FOLDS, Fold, deal_folds
from embgeo.numerics.scores import (
    Judged,
    auc,
    balanced_accuracy,
    balanced_loss,
    error_of,
    learned_noise,
    r_squared,
    share_of_noise,
    widen,
)
from embgeo.stats.reader import RowReader

FAMILY = "frequency"
absent = explain_absence
MAX_ROWS = 6_000
MAX_ENTRIES = 2_500_000
MIN_ROWS = 1_000

#: Candidate ridge penalties, on standardized columns.
PENALTIES = np.logspace(-2, 5, 15)


def rows_read(facts: Facts) -> IntArray:
    at, _ = choose_probe_rows(facts, rank_by_frequency(facts))
    return np.asarray(facts.kept[at])


def compute(facts: Facts, reader: RowReader) -> list[Value]:
    known = rank_by_frequency(facts)
    at, sample = choose_probe_rows(facts, known)
    popular, log_count = known.popular[at], known.log_count[at]
    rows = reader.take(facts.kept[at])
    classes, lines = (
        deal_class_folds(facts, popular),
        deal_line_folds(facts, len(rows)),
    )

    def fit(number: int) -> Any:
        """One fold of the probe or of the regression; all folds share the threads."""
        if number < len(classes):
            train, test = classes[number]
            return log_odds(rows[train], ~popular[train], rows[test])
        train, test = lines[number - len(classes)]
        return ridge_prediction(rows[train], log_count[train], rows[test], PENALTIES)

    found = list(reader.spread(fit, len(classes) + len(lines)))
    scores, predicted = found[: len(classes)], found[len(classes) :]
    return [
        *measure_probe(facts, known, at, classes, scores, sample),
        *measure_ridge(facts, log_count, at, lines, predicted, known.convention, sample),
    ]


def deal_class_folds(facts: Facts, popular: Mask) -> list[Fold]:
    """Folds with the same share of popular rows; none if a class is too small."""
    if min(popular.sum(), (~popular).sum()) < FOLDS:
        return []
    return list(deal_folds(facts.generator("folds"), ~popular))


def deal_line_folds(facts: Facts, rows: int) -> list[Fold]:
    """Folds of the regression; none if there are too few rows."""
    if rows < 2 * FOLDS:
        return []
    return list(deal_folds(facts.generator("ridge folds"), np.zeros(rows, dtype=bool)))


def join_folds(dealt: Sequence[Fold], found: Sequence[FloatArray]) -> FloatArray:
    """The prediction for each row by the fit that did not include it."""
    whole = np.empty(sum(len(test) for _, test in dealt))
    for (_, test), part in zip(dealt, found, strict=True):
        whole[test] = part
    return whole


def choose_probe_rows(facts: Facts, known: Popularity) -> tuple[IntArray, str]:
    """Positions among the kept rows (all, or a sample with the same class shares), and a note."""
    m = len(known.order)
    most = max(MIN_ROWS, min(MAX_ROWS, MAX_ENTRIES // facts.d))
    if m <= most:
        return np.arange(m), f"all {m:,} tokens, {FOLDS} folds"
    rng = facts.generator("probe rows")
    parts = []
    for group in (known.popular, ~known.popular):
        positions = np.flatnonzero(group)
        size = min(len(positions), max(FOLDS, round(most * len(positions) / m)))
        parts.append(rng.choice(positions, size=size, replace=False))
    at = np.sort(np.concatenate(parts))
    return at, f"{len(at):,} of {m:,} tokens, {FOLDS} folds"


def measure_probe(
    facts: Facts,
    known: Popularity,
    at: IntArray,
    dealt: Sequence[Fold],
    found: Sequence[tuple[FloatArray, bool]],
    sample: str,
) -> list[Value]:
    quantities = (q.PROBE_AUC, q.PROBE_ACCURACY, q.PROBE_LOSS)
    convention, rare = known.convention, ~known.popular[at]
    if not dealt:
        reason = f"{FOLDS} folds need at least {FOLDS} tokens of each class"
        return [quantity.undefined(reason, convention=convention) for quantity in quantities]
    score = join_folds(dealt, [scores for scores, _ in found])
    settled = all(done for _, done in found)
    how = "standardized columns, L2 with C = 1, balanced classes"
    convention = f"{convention}; {how}" + ("" if settled else "; did not settle in 100 steps")
    chance = (0.5, 0.5, 2.0 * np.log(2.0))
    judged = [judge(score, rare) for judge in (auc, balanced_accuracy, balanced_loss)]
    fitted = (FOLDS - 1) / FOLDS
    sizes = round(fitted * rare.sum()), round(fitted * (~rare).sum())
    noise = learned_noise(judged[0][0], *sizes, facts.d)
    for place, judge in enumerate((auc, balanced_accuracy)):
        value, parts = judged[place]
        edge = influence_of_edge(judge, score, known, at)
        judged[place] = (value, with_fit(parts, noise) + edge)
    influences: list[Value] = [
        Influence.of(quantity, parts, at)
        for quantity, (_, parts) in zip(quantities, judged, strict=True)
    ]
    unsettled: tuple[Caveat, ...] = () if settled else ("not_converged",)
    caveats: dict[str, tuple[Caveat, ...]] = {}
    if judged[1][0] - chance[1] <= 2.0 * error_of(judged[1][1]):
        # The noise of a fit changes few predicted classes: `with_fit` is an upper bound.
        caveats[q.PROBE_ACCURACY.name] = (*unsettled, "conservative_error")
    return influences + [
        quantity.measured(
            value,
            standard_error=error_of(parts),
            error_kind="population",
            sample=sample,
            convention=convention,
            caveats=caveats.get(quantity.name, unsettled),
            reference=level,
            reference_note="chance",
        )
        for quantity, (value, parts), level in zip(quantities, judged, chance, strict=True)
    ]


def influence_of_edge(
    judge: Callable[[FloatArray, Mask], Judged],
    score: FloatArray,
    known: Popularity,
    at: IntArray,
) -> FloatArray:
    """Influence of each token through the edge between rare and popular tokens.

    The share of popular tokens is fixed: a popular token makes another one rare. The slope of the
    number over the edge is measured with the same scores and the edge moved to either side.
    """
    m, edge, step = len(known.order), int(known.popular.sum()), known.edge_step
    sides = [known.rank[at] >= moved for moved in (edge - step, edge + step)]
    if not step or any(rare.all() or not rare.any() for rare in sides):
        return np.zeros(len(at))
    low, high = (judge(score, rare)[0] for rare in sides)
    popular = known.popular[at].astype(np.float64)
    slope = (high - low) * m / (2.0 * step)
    return np.asarray(-slope * (popular - popular.mean()) / np.sqrt(m * len(at)))


def with_fit(influence: FloatArray, noise: float) -> FloatArray:
    """Influence of tokens both as observations and through the fits to the others.

    Any two tokens of different folds meet twice, each once in the fit: an out-of-fold number is a
    U-statistic T of pairs of tokens. Let z_i be the contribution of token i to the fit. The squared
    length of the fit is T + b, where b is noise; the variance of T over tokens is (4T + 2b)/n
    (Hoeffding 1948), and the number is proportional to T/√(T + b). By the delta method its variance
    is (1 + u)²·(1 − u/2) times the variance of the tokens as observations, with u = b/(T + b): a
    factor of 1 if nothing of the fit is noise, 2 if all of it is.
    """
    return np.asarray((1.0 + noise) * np.sqrt(1.0 - noise / 2.0) * influence)


def measure_ridge(
    facts: Facts,
    target: FloatArray,
    at: IntArray,
    dealt: Sequence[Fold],
    found: Sequence[FloatArray],
    convention: str,
    sample: str,
) -> list[Value]:
    if not dealt:
        return [q.FREQUENCY_R2.undefined(f"{len(target)} tokens are too few for {FOLDS} folds")]
    if np.ptp(target) == 0:
        return [q.FREQUENCY_R2.undefined("all sampled tokens have the same count")]
    r2, parts = r_squared(target, join_folds(dealt, found))
    noise = (1.0 - max(r2, 0.0)) * facts.d / ((FOLDS - 1) / FOLDS * len(target))
    parts = with_fit(parts, share_of_noise(max(r2, 0.0), noise))
    if r2 <= 0.0 < error_of(parts):
        # The terms show how far the penalty shrinks the fit, not how far R² = 2cT − c²(T + b)
        # varies: T has the variance 2d/n² around 0, b is d/n, and the folds choose the factor
        # c = max(T, 0)/b, so that the variance of 2cT is 4·½·(2d/n²)²/b² = 8/n².
        parts *= np.sqrt(8.0) / len(target) / error_of(parts)
    what = "−ln(rank)" if facts.is_ranked else "ln(1 + count)"
    error = widen(error_of(parts), parts)
    by_chance = r2 <= 2.0 * error
    scalar = q.FREQUENCY_R2.measured(
        r2,
        standard_error=error,
        error_kind="population",
        sample=sample,
        convention=f"{convention}; of {what}; penalty chosen inside each fold",
        caveats=("conservative_error",) if by_chance else (),
        reference=0.0,
        reference_note="chance",
    )
    # Near 0 most of the variance comes from the fit, which these influences do not show.
    return [scalar] if by_chance else [scalar, Influence.of(q.FREQUENCY_R2, parts, at)]
