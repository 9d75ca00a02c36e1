"""Samples of an evaluation, kept for bootstraps: one kind of record per kind of task."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from embgeo.io.bounded.records import RecordFormat
from embgeo.training.study.document_outcomes import (
    ACCURACY,
    DOCUMENT_OUTCOMES,
    MACRO_F1,
    DocumentOutcomes,
    bootstrap_documents,
)
from embgeo.training.study.text_losses import TEXT_LOSSES, TextLosses, bootstrap_text
from embgeo.training.study.translation_outcomes import (
    BLEU,
    TRANSLATION_OUTCOMES,
    TranslationOutcomes,
    bootstrap_translations,
)
from embgeo.training.study.word_similarity import (
    ALL,
    SETS,
    WORD_SIMILARITY,
    WordSimilarity,
    bootstrap_pairs,
)

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
    before: Mapping[int, Samples], after: Mapping[int, Samples], number: str
) -> tuple[float, float] | None:
    """95 % interval of the difference of a score over other texts, documents, sentences or pairs.

    None of a number that is not about them, or of another split.
    """
    split, _, score = number.partition(".")
    sides = [{s: one for s, one in side.items() if one.split == split} for side in (before, after)]
    kinds = {type(one) for side in sides for one in side.values()}
    first: Any = sides[0]
    second: Any = sides[1]
    if kinds == {TextLosses} and score == "perplexity":
        return bootstrap_text(first, second)
    if kinds == {DocumentOutcomes} and score in (ACCURACY, MACRO_F1):
        return bootstrap_documents(first, second, score)
    if kinds == {TranslationOutcomes} and score == BLEU:
        return bootstrap_translations(first, second)
    if kinds == {WordSimilarity} and score.removesuffix(ALL) in SETS:
        return bootstrap_pairs(first, second, score)
    return None
