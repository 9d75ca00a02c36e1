"""Samples of an evaluation, kept for bootstraps: one kind of record per kind of task.

A record has a ``split`` and

- ``units(score)``: what has to be the same in all runs (texts, documents, sentences, pairs of
  words), and how many units there are; None for a score that is not about them;
- ``differences(held, score, draws)``: the mean difference of the score over records that alternate
  between both methods, in each draw of a bootstrap over units;
- ``LEAST_UNITS``, without which no interval is given, and ``DRAWS``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.io.bounded.records import RecordFormat
from embgeo.training.study.document_outcomes import DOCUMENT_OUTCOMES, DocumentOutcomes
from embgeo.training.study.spread import take_percentiles
from embgeo.training.study.translation_outcomes import TRANSLATION_OUTCOMES, TranslationOutcomes
from embgeo.training.study.word_similarity import WORD_SIMILARITY, WordSimilarity

#: Maximum number of blocks of a split; a split of fewer windows has a block for each window.
MOST_BLOCKS = 200


@dataclass(frozen=True, slots=True)
class TextLosses:
    """Losses of a model on the tokens of a split, in blocks in the order of the text."""

    LEAST_UNITS: ClassVar = 20
    DRAWS: ClassVar = 2_000

    #: ``"valid"`` or ``"test"``.
    split: str
    #: Sum of −ln p over the tokens of each block.
    losses: tuple[float, ...]
    tokens: tuple[int, ...]

    def units(self, score: str) -> tuple[object, int] | None:
        """Return the numbers of tokens of the blocks; perplexity is about them."""
        return (self.tokens, len(self.tokens)) if score == "perplexity" else None

    @staticmethod
    def differences(held: Sequence[TextLosses], _score: str, draws: int) -> FloatArray:
        """Return the mean of ln(perplexity after / perplexity before) in each draw of blocks."""
        tokens = np.array(held[0].tokens, dtype=np.float64)
        n = len(tokens)
        steps = np.mean(
            [np.subtract(b.losses, a.losses) for a, b in zip(held[::2], held[1::2], strict=True)],
            axis=0,
        )
        drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1.0 / n), size=draws)
        return np.asarray(drawn @ steps / (drawn @ tokens))


TEXT_LOSSES = RecordFormat(
    "embgeo.losses",
    1,
    TextLosses,
    "losses.json",
    what="the losses of a run",
    again="train it again with: embgeo train",
)


def merge_blocks(split: str, windows: Sequence[tuple[float, int]]) -> TextLosses:
    """Join adjacent windows to at most `MOST_BLOCKS` blocks of summed losses and tokens."""
    kept = np.array([window for window in windows if window[1]], dtype=np.float64).reshape(-1, 2)
    blocks = np.array_split(kept, min(MOST_BLOCKS, max(len(kept), 1)))
    sums = [block.sum(axis=0) for block in blocks]
    return TextLosses(split, tuple(float(s[0]) for s in sums), tuple(int(s[1]) for s in sums))


Samples = TextLosses | DocumentOutcomes | TranslationOutcomes | WordSimilarity
#: By method, then by seed.
SamplesByMethod = Mapping[str, Mapping[int, Samples]]

FORMATS: tuple[RecordFormat[Any], ...] = (
    TEXT_LOSSES,
    DOCUMENT_OUTCOMES,
    TRANSLATION_OUTCOMES,
    WORD_SIMILARITY,
)


def find_format(samples: Samples) -> RecordFormat[Any]:
    return next(one for one in FORMATS if isinstance(samples, one.kind))


def load_samples(folder: Path) -> Samples | None:
    """Read the samples of a run; None if it kept none."""
    for one in FORMATS:
        if (folder / one.file).is_file():
            found: Samples = one.load(folder)
            return found
    return None


def bootstrap_samples(
    before: Mapping[int, Samples],
    after: Mapping[int, Samples],
    number: str,
    draws: int | None = None,
) -> tuple[float, float] | None:
    """95% interval of the difference of a score over other texts, documents, sentences or pairs.

    All runs have the same units in a draw, while the seeds, and so the models, stay as they are
    (Koehn, "Statistical significance tests for machine translation evaluation", EMNLP 2004, §3).
    None without a common seed, for another number or split, and with too few or different units.
    """
    split, _, score = number.partition(".")
    held: list[Any] = [
        side[seed]
        for seed in sorted(before.keys() & after.keys())
        for side in (before, after)
        if before[seed].split == after[seed].split == split
    ]
    known = {(type(one), one.units(score)) for one in held}
    if len(known) != 1:
        return None
    ((kind, units),) = known
    if units is None or units[1] < kind.LEAST_UNITS:
        return None
    differences = kind.differences(held, score, draws or kind.DRAWS)
    return take_percentiles(differences) if len(differences) else None
