"""Samples of an evaluation, kept for bootstraps: one kind of record per kind of task.

A record has a ``split`` and

- ``units(score)``: what has to be the same in all runs (texts, documents, sentences, pairs of
  words), and how many units there are; None for a score that is not about them;
- ``differences(held, score, draws)``: the mean difference of the score over records that alternate
  between both methods, in each draw of a bootstrap over units;
- ``LEAST_UNITS``, without which no interval is given, and ``DRAWS``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from embgeo.io.bounded.records import RecordFormat
from embgeo.training.study.document_outcomes import DOCUMENT_OUTCOMES, DocumentOutcomes
from embgeo.training.study.spread import take_percentiles
from embgeo.training.study.text_losses import TEXT_LOSSES, TextLosses
from embgeo.training.study.translation_outcomes import TRANSLATION_OUTCOMES, TranslationOutcomes
from embgeo.training.study.word_similarity import WORD_SIMILARITY, WordSimilarity

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
    """How samples are saved."""
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
    """95 % interval of the difference of a score over other texts, documents, sentences or pairs.

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
