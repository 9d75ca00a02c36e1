"""Word similarity: correlation of cosines with human ratings, and bootstraps over pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.core.values import Quantity
from embgeo.io.bounded.records import RecordFormat
from embgeo.training.study.spread import take_percentiles

#: Titles and publications of the sets by the names of their scores.
SETS = {
    "ws353": ("WordSim-353", "Finkelstein et al. 2002"),
    "rg65": ("RG-65", "Rubenstein and Goodenough 1965"),
    "rw": ("Rare Words", "Luong et al. 2013"),
    "men": ("MEN", "Bruni et al. 2014"),
    "simlex": ("SimLex-999", "Hill et al. 2015"),
    "simverb": ("SimVerb-3500", "Gerz et al. 2016"),
    "ws353_sim": ("WordSim-353, similarity", "Agirre et al. 2009"),
    "ws353_rel": ("WordSim-353, relatedness", "Agirre et al. 2009"),
    "mturk287": ("MTurk-287", "Radinsky et al. 2011"),
    "mturk771": ("MTurk-771", "Halawi et al. 2012"),
    "mc30": ("MC-30", "Miller and Charles 1991"),
    "verb143": ("Verb-143", "Baker et al. 2014"),
    "yp130": ("YP-130", "Yang and Powers 2006"),
}
#: Suffix of scores that count pairs with an unknown word as cosine 0.
ALL = "_all"
#: The set that decides.
DECIDING = "ws353"
#: Minimum number of pairs of a correlation.
LEAST_PAIRS = 10


def _quantities(name: str, title: str, source: str) -> tuple[Quantity, ...]:
    meaning = (
        f"Spearman’s rank correlation of the cosines of the word pairs of {title} and of what "
        "people say of them"
    )
    formula = "ρ(cos(u_a, u_b), gold)"
    return (
        Quantity(
            f"test.{name}",
            title,
            f"{meaning}; pairs with a word that is not in the vocabulary are left out.",
            formula,
            source,
            better="higher",
        ),
        Quantity(
            f"test.{name}{ALL}",
            f"{title}, all pairs",
            f"{meaning}; a pair with a word that is not in the vocabulary has the cosine 0.",
            formula,
            source,
            better="higher",
        ),
    )


QUANTITIES: tuple[Quantity, ...] = (
    *(q for name, (title, source) in SETS.items() for q in _quantities(name, title, source)),
    Quantity(
        "valid.loss",
        "Loss, validation",
        "Mean loss of pairs of words of the validation documents, the same each time.",
        "−ln σ(u·v) − k·mean_s ln σ(−u·v_s)",
        "Mikolov et al. 2013, Eq. 4",
        unit="nats",
        better="lower",
    ),
)


@dataclass(frozen=True, slots=True)
class SetCosines:
    """One set of word pairs: human ratings, and the cosines of a model."""

    name: str
    gold: tuple[float, ...]
    #: Cosine of each pair; None if a word is not in the vocabulary or has a zero row.
    cosines: tuple[float | None, ...]

    @property
    def known(self) -> tuple[FloatArray, FloatArray]:
        """Cosines and gold of the pairs that have a cosine."""
        kept = [pair for pair in zip(self.cosines, self.gold, strict=True) if pair[0] is not None]
        both = np.array(kept, dtype=np.float64).reshape(-1, 2)
        return both[:, 0], both[:, 1]

    @property
    def filled(self) -> tuple[FloatArray, FloatArray]:
        """Cosines and gold of all pairs; a missing cosine is 0."""
        cosines = [0.0 if one is None else one for one in self.cosines]
        return np.array(cosines), np.array(self.gold)


@dataclass(frozen=True, slots=True)
class WordSimilarity:
    """The cosines of a model for all sets."""

    LEAST_UNITS: ClassVar = LEAST_PAIRS
    DRAWS: ClassVar = 1_000

    sets: tuple[SetCosines, ...]
    split: str = "test"

    def pairs(self, score: str) -> tuple[FloatArray, FloatArray] | None:
        """Return the cosines and the gold scores of a score: the name of a set, perhaps with `ALL`.

        None without it.
        """
        name = score.removesuffix(ALL)
        found = next((one for one in self.sets if one.name == name), None)
        if found is None:
            return None
        return found.filled if score.endswith(ALL) else found.known

    def units(self, score: str) -> tuple[object, int] | None:
        """Return the human ratings of the pairs of a set."""
        found = self.pairs(score)
        return None if found is None else (tuple(found[1]), len(found[1]))

    @staticmethod
    def differences(held: Sequence[WordSimilarity], score: str, draws: int) -> FloatArray:
        """Return the mean difference of ρ in each draw of pairs, without undefined draws."""
        pairs = [pair for one in held if (pair := one.pairs(score)) is not None]
        shares = np.resize([-2.0, 2.0], len(pairs)) / len(pairs)
        return draw_correlations([cosines for cosines, _ in pairs], pairs[0][1], draws, shares)


def _check(record: WordSimilarity) -> None:
    if any(len(one.gold) != len(one.cosines) for one in record.sets):
        raise ValueError("cosines and judgments differ in number")


WORD_SIMILARITY = RecordFormat(
    "embgeo.similarity",
    1,
    WordSimilarity,
    "similarity.json",
    what="the word similarities of a run",
    again="train it again with: embgeo train",
    check=_check,
)


def spearman(first: FloatArray, second: FloatArray) -> float | None:
    """Return Spearman's ρ with mean ranks for ties; None for few pairs or a constant side."""
    if len(first) < LEAST_PAIRS:
        return None
    found = float(correlate_ranks(first[None], second[None])[0])
    return None if np.isnan(found) else found


def correlate_ranks(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return Spearman's ρ along the last axis, shape (n, pairs) → (n,).

    NaN where a side is constant.
    """
    from scipy.stats import rankdata

    center = (first.shape[-1] + 1) / 2.0
    a, b = (rankdata(values, axis=-1) - center for values in (first, second))
    lengths = np.sqrt((a * a).sum(axis=-1) * (b * b).sum(axis=-1))
    with np.errstate(invalid="ignore"):
        return np.asarray((a * b).sum(axis=-1) / lengths)


def bootstrap_correlation(
    cosines: FloatArray, gold: FloatArray, draws: int = WordSimilarity.DRAWS
) -> tuple[float, float] | None:
    """Return the 95% interval of ρ over other pairs of words (percentiles of a bootstrap)."""
    if len(gold) < LEAST_PAIRS:
        return None
    drawn = draw_correlations([cosines], gold, draws, [1.0])
    return take_percentiles(drawn) if len(drawn) else None


def draw_correlations(
    sides: Sequence[FloatArray], gold: FloatArray, draws: int, shares: Sequence[float] | FloatArray
) -> FloatArray:
    """Draw a weighted sum of ρ in each draw of pairs, without undefined draws."""
    n = len(gold)
    chosen = np.random.default_rng(0).integers(0, n, (draws, n))
    found = sum(
        share * correlate_ranks(cosines[chosen], gold[chosen])
        for share, cosines in zip(shares, sides, strict=True)
    )
    drawn = np.asarray(found, dtype=np.float64)
    return np.asarray(drawn[np.isfinite(drawn)])
