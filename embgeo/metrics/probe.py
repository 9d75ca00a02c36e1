"""Can a linear probe tell rare from frequent tokens? (definitions, section 5)

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

from collections.abc import Sequence

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, Mask
from embgeo.core.quantities import frequency as q
from embgeo.core.values import FREEDOM, Halves, Value
from embgeo.metrics.facts import NO_ROWS, Facts
from embgeo.metrics.family import Family, Measurement
from embgeo.metrics.frequency import (
    Popularity,
    absent,
    explain_no_classes,
    rank_by_frequency,
)
from embgeo.numerics.halves import GROUPS, measure_spread, sum_halves
from embgeo.numerics.logistic import log_odds
from embgeo.numerics.sampling import FOLDS, Fold, deal_folds
from embgeo.numerics.scores import auc, error_of, learned_noise, share_error

MAX_ROWS = 6_000
MAX_ENTRIES = 2_500_000
MIN_ROWS = 1_000


def rows_read(m: Measurement) -> IntArray:
    if explain_no_classes(m.facts):
        return NO_ROWS
    at, _ = choose_probe_rows(m.facts, rank_by_frequency(m.facts))
    return np.asarray(m.facts.kept[at])


def compute(m: Measurement) -> list[Value]:
    facts, known = m.facts, rank_by_frequency(m.facts)
    if reason := explain_no_classes(facts):
        return [q.PROBE_AUC.undefined(reason, convention=known.convention)]
    at, sample = choose_probe_rows(facts, known)
    rare, rows = ~known.popular[at], m.reader.take(facts.kept[at])
    folds = deal_class_folds(facts, known.popular[at])

    def fit(number: int) -> tuple[FloatArray, bool]:
        """Return one fold of the probe; all folds share the threads."""
        train, test = folds[number]
        return log_odds(rows[train], rare[train], rows[test])

    found = list(m.reader.spread(fit, len(folds)))
    return measure_probe(facts, known, at, folds, found, sample)


def deal_class_folds(facts: Facts, popular: Mask) -> list[Fold]:
    """Return folds with the same share of frequent rows; none if a class is too small."""
    if min(popular.sum(), (~popular).sum()) < FOLDS:
        return []
    return list(deal_folds(facts.generator("folds"), ~popular))


def join_folds(dealt: Sequence[Fold], found: Sequence[FloatArray]) -> FloatArray:
    """Return the prediction for each row by the fit that did not include it."""
    whole = np.empty(sum(len(test) for _, test in dealt))
    for (_, test), part in zip(dealt, found, strict=True):
        whole[test] = part
    return whole


def choose_probe_rows(facts: Facts, known: Popularity) -> tuple[IntArray, str]:
    """Choose positions among the kept rows (all, or a sample with the same class shares), and a
    note.
    """
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
    convention, rare = known.convention, ~known.popular[at]
    if not dealt:
        reason = f"{FOLDS} folds need at least {FOLDS} tokens of each class"
        return [q.PROBE_AUC.undefined(reason, convention=convention)]
    score = join_folds(dealt, [scores for scores, _ in found])
    settled = all(done for _, done in found)
    how = "standardized columns, L2 with C = 1, balanced classes"
    area, parts = auc(score, rare)
    fitted = (FOLDS - 1) / FOLDS
    sizes = round(fitted * rare.sum()), round(fitted * (~rare).sum())
    noise = learned_noise(area, *sizes, facts.d)
    scored = with_fit(parts, noise)
    parts = scored + influence_of_edge(score, known, at)
    error = widen_near_one(error_of(parts), error_of(scored), area, len(at))
    halves: list[Value] = []
    if facts.kept_groups is not None:
        # What the tokens of a half do to the area; tokens of one family do it together.
        by_group = np.asarray(np.bincount(facts.kept_groups[at], parts, GROUPS), dtype=np.float64)
        found_by_half = area + 2.0 * sum_halves(by_group) - by_group.sum()
        error = max(error, float(measure_spread(found_by_half)))
        halves.append(Halves(q.PROBE_AUC, found_by_half))
    return [
        q.PROBE_AUC.measured(
            area,
            standard_error=error,
            error_kind="population",
            freedom=FREEDOM if halves else None,
            sample=sample,
            convention=f"{convention}; {how}"
            + ("" if settled else "; did not settle in 100 steps"),
            caveats=() if settled else ("not_converged",),
            reference=0.5,
            reference_note="chance",
        ),
        *halves,
    ]


def influence_of_edge(score: FloatArray, known: Popularity, at: IntArray) -> FloatArray:
    """Return the influence of each token through the edge between rare and frequent tokens.

    The share of frequent tokens is fixed: a frequent token makes another one rare. The slope of the
    number over the edge is measured with the same scores and the edge moved to either side.
    """
    m, edge, step = len(known.order), int(known.popular.sum()), known.edge_step
    sides = [known.rank[at] >= moved for moved in (edge - step, edge + step)]
    if not step or any(rare.all() or not rare.any() for rare in sides):
        return np.zeros(len(at))
    low, high = (auc(score, rare)[0] for rare in sides)
    popular = known.popular[at].astype(np.float64)
    slope = (high - low) * m / (2.0 * step)
    return np.asarray(-slope * (popular - popular.mean()) / np.sqrt(m * len(at)))


def with_fit(influence: FloatArray, noise: float) -> FloatArray:
    """Return the influence of tokens both as observations and through the fits to the others.

    Any two tokens of different folds meet twice, each once in the fit: an out-of-fold number is a
    U-statistic T of pairs of tokens. Let z_i be the contribution of token i to the fit. The squared
    length of the fit is T + b, where b is noise; the variance of T over tokens is (4T + 2b)/n
    (Hoeffding 1948), and the number is proportional to T/√(T + b). By the delta method its variance
    is (1 + u)²·(1 − u/2) times the variance of the tokens as observations, with u = b/(T + b): a
    factor of 1 if nothing of the fit is noise, 2 if all of it is.
    """
    return np.asarray((1.0 + noise) * np.sqrt(1.0 - noise / 2.0) * influence)


def widen_near_one(error: float, scored: float, area: float, n: int) -> float:
    """Return the error of an AUC, wider near 0 or 1.

    Near 1 the larger of two draws has the smaller error. The area is taken for a share of
    A(1 − A)/error² tokens, or of all n if no pair is out of order, with two more on either side
    (Agresti & Coull 1998; for areas Newcombe 2006).

    Parameters
    ----------
    error, scored : float
        With the edge between the classes, and without.

    Examples
    --------
    >>> for error, area in ((0.03, 0.75), (0.01, 0.98), (0.0, 1.0)):
    ...     print(f"{widen_near_one(error, error, area, 200):.4f}")
    0.0300
    0.0120
    0.0069
    """
    if not scored:
        return float(np.hypot(error, share_error(area, n)))
    return error * max(1.0, share_error(area, area * (1.0 - area) / scored**2) / scored)


FAMILY = Family("frequency", compute, absent=absent, rows_read=rows_read)
