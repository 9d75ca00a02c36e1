"""What a run scored unit by unit (``outcomes.json``), and bootstraps over the units.

A unit is a block of text, a document, a sentence or a pair of words. All runs of a study have the
same ones, so that a bootstrap draws them for all runs at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.files.records import RecordFormat
from embgeo.numerics.scores import spearman
from embgeo.training.study.numbers import ACCURACY, ALL, BLEU, MACRO_F1
from embgeo.training.study.spread import take_percentiles

#: Maximum number of blocks of a text; a split of fewer windows has a block for each window.
MOST_BLOCKS = 200
#: Minimum number of pairs of words of a correlation.
LEAST_PAIRS = 10
#: Length of the longest n-grams that BLEU counts.
ORDERS = 4

#: Fewest units of an interval, but for pairs.
LEAST_UNITS = 20

UnitKind = Literal["text", "documents", "sentences", "pairs"]
#: Scores by kind; those of pairs are named after their sets.
SCORES: dict[UnitKind, tuple[str, ...]] = {
    "text": ("perplexity",),
    "documents": (ACCURACY, MACRO_F1),
    "sentences": (BLEU,),
    "pairs": (),
}


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The outcome of each unit of an evaluation."""

    kind: UnitKind
    #: ``"valid"`` or ``"test"``.
    split: str
    #: Of a block of text the sum of −ln p and the tokens; of a document its class and the predicted
    #: one; of a sentence the counts of BLEU (n-grams in common with the reference for n = 1 to 4,
    #: all n-grams, tokens of the translation and of the reference); of a pair of words the number
    #: of its set, the human rating and the cosine (None without one).
    units: tuple[tuple[float | None, ...], ...]
    #: SHA-256 of reference translations.
    references: str = ""
    #: The translations, or the names of the sets of pairs.
    names: tuple[str, ...] = ()

    def table(self) -> FloatArray:
        """Return the units as rows; NaN for None."""
        return np.array(self.units, dtype=np.float64).reshape(len(self.units), -1)

    def select(self, score: str) -> FloatArray | None:
        """Return the units that a score is about; None for one that is about others.

        Of a set of pairs the cosines and the ratings; the score with `ALL` is of all pairs, where a
        missing cosine counts as 0.
        """
        table = self.table()
        if self.kind != "pairs":
            return table if score in SCORES[self.kind] else None
        name = score.removesuffix(ALL)
        if name not in self.names:
            return None
        own = table[table[:, 0] == self.names.index(name)]
        if not score.endswith(ALL):
            own = own[~np.isnan(own[:, 2])]
        return np.asarray(np.nan_to_num(own[:, [2, 1]]))

    def shared(self, score: str) -> tuple[bytes, int] | None:
        """Return a digest of what has to be the same in all runs, and the number of units.

        None for a score that is not about the units.
        """
        units = self.select(score)
        if units is None:
            return None
        column = {"text": 1, "documents": 0, "pairs": 1}.get(self.kind)
        same = np.array([]) if column is None else units[:, column]
        return hashlib.sha256(same.tobytes() + self.references.encode()).digest(), len(units)


def check(found: Outcomes) -> None:
    """Raise ValueError unless each unit has the numbers of its kind."""
    width = {"text": 2, "documents": 2, "sentences": 2 * ORDERS + 2, "pairs": 3}[found.kind]
    if any(len(unit) != width for unit in found.units):
        raise ValueError(f"a unit has other numbers than the {width} of {found.kind}")
    if found.kind != "pairs" and any(value is None for unit in found.units for value in unit):
        raise ValueError("a unit lacks a number")
    if found.kind == "pairs" and not all(
        unit[0] in range(len(found.names)) and unit[1] is not None for unit in found.units
    ):
        raise ValueError("a pair of words is of no set, or has no rating")


OUTCOMES = RecordFormat(
    "embgeo.outcomes",
    1,
    Outcomes,
    "outcomes.json",
    what="the outcomes of a run",
    again="train it again with: embgeo train",
    check=check,
)

#: By seed.
OutcomesBySeed = Mapping[int, Outcomes]


def bootstrap(
    before: OutcomesBySeed, after: OutcomesBySeed, number: str, draws: int | None = None
) -> tuple[float, float] | None:
    """95% interval of the difference of a score over other texts, documents, sentences or pairs.

    All runs have the same units in a draw, while the seeds, and so the models, stay as they are
    (Koehn, "Statistical significance tests for machine translation evaluation", EMNLP 2004, §3).
    The difference of a perplexity is that of its logarithm. None without a common seed, for another
    number or split, and with too few or different units.
    """
    split, _, score = number.partition(".")
    held = [
        side[seed]
        for seed in sorted(before.keys() & after.keys())
        for side in (before, after)
        if before[seed].split == after[seed].split == split
    ]
    known = {(one.kind, one.shared(score)) for one in held}
    if len(known) != 1:
        return None
    ((kind, units),) = known
    if units is None or units[1] < (LEAST_PAIRS if kind == "pairs" else LEAST_UNITS):
        return None
    scores = [draw_scores(one, score, draws) for one in held]
    pairs = zip(scores[::2], scores[1::2], strict=True)
    drawn = np.mean([b - a for a, b in pairs], axis=0)
    defined = drawn[np.isfinite(drawn)]
    return take_percentiles(defined) if len(defined) else None


def draw_scores(found: Outcomes, score: str, draws: int | None = None) -> FloatArray:
    """Return a score of the outcomes in each draw of their units, the same draws for all runs.

    `score` is one that `Outcomes.select` knows; NaN where it is undefined.
    """
    units = found.select(score)
    assert units is not None
    n = len(units)
    draws = draws or (2_000 if found.kind == "text" else 1_000)
    weights = np.random.default_rng(0).multinomial(n, np.full(n, 1.0 / n), draws)
    if found.kind == "documents":
        truth, given = units.T.astype(np.int64)
        return score_classes(truth, given, weights)[score]
    if found.kind == "pairs":
        chosen = np.repeat(np.tile(np.arange(n), draws), weights.ravel()).reshape(draws, n)
        return spearman(*units.T[:, chosen])
    sums = weights.astype(np.float64) @ units
    return compute_bleu(sums) if found.kind == "sentences" else sums[:, 0] / sums[:, 1]


def merge_blocks(split: str, windows: Sequence[tuple[float, int]]) -> Outcomes:
    """Join adjacent windows to at most `MOST_BLOCKS` blocks of summed losses and tokens."""
    kept = np.array([window for window in windows if window[1]], dtype=np.float64).reshape(-1, 2)
    blocks = np.array_split(kept, min(MOST_BLOCKS, max(len(kept), 1)))
    sums = [block.sum(axis=0) for block in blocks]
    return Outcomes("text", split, tuple((float(s[0]), int(s[1])) for s in sums))


def score_classes(
    truth: IntArray, given: IntArray, weights: IntArray | None = None
) -> dict[str, FloatArray]:
    """Return the accuracy and macro-F1 of documents, at least one.

    As in scikit-learn, macro-F1 is the mean over classes that occur in `truth` or `given`.

    `weights`: how often each document counts, perhaps in several draws; shape (…, n). The scores
    have shape (…).
    """
    n = int(max(truth.max(), given.max())) + 1
    if weights is None:
        weights = np.ones(len(truth), dtype=np.int64)
    order = np.argsort(truth * n + given, kind="stable")
    cells, starts = np.unique((truth * n + given)[order], return_index=True)
    table = np.zeros((*weights.shape[:-1], n * n))
    table[..., cells] = np.add.reduceat(weights[..., order], starts, axis=-1)
    table = table.reshape(*weights.shape[:-1], n, n)
    right = np.diagonal(table, axis1=-2, axis2=-1)
    both = table.sum(axis=-2) + table.sum(axis=-1)
    f1 = np.divide(2.0 * right, both, out=np.zeros_like(both), where=both > 0)
    return {
        ACCURACY: right.sum(axis=-1) / table.sum(axis=(-2, -1)),
        MACRO_F1: f1.sum(axis=-1) / (both > 0).sum(axis=-1),
    }


def compute_bleu(counts: FloatArray) -> FloatArray:
    """Compute BLEU, 0 to 100, of summed counts of sentences; shape (…, 10) → (…).

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
