"""Translations of the sentences of a split, and a bootstrap over sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.core.values import Quantity
from embgeo.io.bounded.records import RecordFormat
from embgeo.training.study.numbers import of_splits

BLEU, CHRF = "bleu", "chrf"
#: BLEU of the tokens of a tokenized corpus, which papers publish.
TOKENIZED_BLEU = "tokenized_bleu"
#: BLEU of greedy translations, measured during training.
GREEDY_BLEU = "greedy_bleu"
#: Length of the longest n-grams that BLEU counts.
ORDERS = 4


@dataclass(frozen=True, slots=True)
class TranslationOutcomes:
    """Translations of sentences, with the counts of BLEU for each."""

    LEAST_UNITS: ClassVar = 20
    DRAWS: ClassVar = 1_000

    #: ``"valid"`` or ``"test"``.
    split: str
    #: SHA-256 of the reference translations.
    references: str
    translations: tuple[str, ...]
    #: For each sentence: numbers of n-grams, n = 1 to 4, in common with the reference; numbers of
    #: all n-grams; numbers of tokens of the translation and of the reference.
    counts: tuple[tuple[int, ...], ...]

    def units(self, score: str) -> tuple[object, int] | None:
        """Return the reference translations; BLEU is about them."""
        return (self.references, len(self.counts)) if score == BLEU else None

    @staticmethod
    def differences(held: Sequence[TranslationOutcomes], _score: str, draws: int) -> FloatArray:
        """Return the mean difference of BLEU in each draw of sentences."""
        n = len(held[0].counts)
        weights = np.random.default_rng(0).multinomial(n, np.full(n, 1.0 / n), draws)
        scores = [
            compute_bleu(weights.astype(np.float64) @ np.array(one.counts, dtype=np.float64))
            for one in held
        ]
        pairs = zip(scores[::2], scores[1::2], strict=True)
        return np.asarray(np.mean([b - a for a, b in pairs], axis=0))


def _check(record: TranslationOutcomes) -> None:
    if len(record.counts) != len(record.translations):
        raise ValueError("translations and counts differ in number")
    if any(len(one) != 2 * ORDERS + 2 for one in record.counts):
        raise ValueError("a sentence has other counts than BLEU needs")


TRANSLATION_OUTCOMES = RecordFormat(
    "embgeo.translations",
    1,
    TranslationOutcomes,
    "translations.json",
    what="the translations of a run",
    again="train it again with: embgeo train",
    check=_check,
)


QUANTITIES = of_splits(
    Quantity(
        BLEU,
        "BLEU",
        "BLEU of the translations of the {split} split, as sacreBLEU computes it; 0 to 100.",
        "100·BP·exp(1/4 Σ_n ln p_n)",
        better="higher",
    ),
    Quantity(
        TOKENIZED_BLEU,
        "Tokenized BLEU",
        "Cased BLEU of the translations of the {split} split over the tokens of the corpus, as "
        "multi-bleu.perl computes it; 0 to 100. Defined for tokenized corpora alone, and compared "
        "with published numbers, which are of tokens.",
        "100·BP·exp(1/4 Σ_n ln p_n)",
        better="higher",
    ),
    Quantity(
        CHRF,
        "chrF",
        "F-score of character n-grams of the translations of the {split} split, as sacreBLEU "
        "computes it; 0 to 100.",
        better="higher",
    ),
    Quantity(
        "loss",
        "Loss",
        "Mean negative log-probability of a token of the reference translations of the {split} "
        "split, without label smoothing.",
        "−1/n Σ_t ln p(y_t | y_<t, x)",
        unit="nats",
        better="lower",
    ),
)


def compute_bleu(counts: FloatArray) -> FloatArray:
    """Compute BLEU, 0 to 100, of summed counts of `TranslationOutcomes`; shape (…, 10) → (…).

    The k-th order without a common n-gram counts as 2^−k of one, as in sacreBLEU's smoothing
    "exp".

    References
    ----------
    Papineni et al., "BLEU: a method for automatic evaluation of machine translation", ACL 2002,
    §2.3; Post, "A call for clarity in reporting BLEU scores", WMT 2018.
    """
    common, all_of_them = counts[..., :ORDERS], counts[..., ORDERS : 2 * ORDERS]
    written, reference = counts[..., -2], counts[..., -1]
    missing = common == 0.0
    smoothed = np.where(missing, 0.5 ** np.cumsum(missing, axis=-1), common)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(smoothed / all_of_them).mean(axis=-1)
        brevity = np.minimum(0.0, 1.0 - reference / written)
        defined = (all_of_them > 0.0).all(axis=-1) & ~missing.all(axis=-1)
        exponent = np.where(defined, logs + brevity, -np.inf)
    return np.asarray(100.0 * np.exp(exponent))
