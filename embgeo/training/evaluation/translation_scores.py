"""Scores of translations by sacreBLEU."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from embgeo.core.errors import BadOption
from embgeo.training.study.translation_outcomes import BLEU, CHRF, TranslationOutcomes


def import_sacrebleu() -> Any:
    """Import the metrics of sacreBLEU."""
    try:
        from sacrebleu import metrics
    except ImportError as error:
        raise BadOption(
            "translation needs the package sacrebleu", way_out="pip install 'embgeo[train]'"
        ) from error
    return metrics


def describe_metrics() -> str:
    """Describe the scores by their signatures, which comparisons with other numbers need."""
    metrics = import_sacrebleu()
    found = []
    for name, metric in (("BLEU", metrics.BLEU()), ("chrF", metrics.CHRF())):
        metric.corpus_score(["a"], [["a"]])
        found.append(f"{name}|{metric.get_signature()}")
    return f"scores are those of sacreBLEU: {', '.join(found)}"


def compute_corpus_bleu(translations: Sequence[str], references: Sequence[str]) -> float:
    """BLEU of a split with one reference for each sentence."""
    return score_corpus(import_sacrebleu().BLEU(), translations, references)


def score_corpus(metric: Any, translations: Sequence[str], references: Sequence[str]) -> float:
    return float(metric.corpus_score(list(translations), [list(references)]).score)


def score_translations(
    split: str, translations: Sequence[str], references: Sequence[str]
) -> tuple[dict[str, float], TranslationOutcomes]:
    """BLEU and chrF of a split, and the counts of each sentence for a bootstrap."""
    metrics = import_sacrebleu()
    scores = {
        name: score_corpus(metric, translations, references)
        for name, metric in ((BLEU, metrics.BLEU()), (CHRF, metrics.CHRF()))
    }
    # effective_order prevents warnings about single sentences, and does not change counts.
    metric = metrics.BLEU(effective_order=True)
    pairs = zip(translations, references, strict=True)
    found = [metric.sentence_score(one, [reference]) for one, reference in pairs]
    digest = hashlib.sha256("\n".join(references).encode()).hexdigest()
    counts = [(*one.counts, *one.totals, one.sys_len, one.ref_len) for one in found]
    return scores, TranslationOutcomes(split, digest, tuple(translations), tuple(counts))
