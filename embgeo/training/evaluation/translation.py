"""Translations of a batch of sentences by beam search, and their scores."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from embgeo.core.errors import BadOption
from embgeo.training.data.tokenizer import END_ROW
from embgeo.training.models.encoder_decoder import EncoderDecoder, Places
from embgeo.training.study import translation_outcomes


@dataclass(frozen=True, slots=True)
class BeamSettings:
    """Settings of beam search.

    Attributes
    ----------
    beam : int
        Hypotheses of each translation; 1 for greedy search.
    penalty : float
        α of the length penalty: ln p is divided by ((5 + tokens)/6)^α, with the end as a token.
    more : int
        Limit of the tokens of a translation beyond the length of its source.
    """

    beam: int = 4
    penalty: float = 0.6
    more: int = 50


@dataclass(slots=True)
class Beams:
    """K hypotheses for each of B sentences.

    Attributes
    ----------
    sentence : Tensor of int64
        Index of each sentence in the batch; shape (B,).
    tokens : Tensor of int64
        Tokens so far, starting with `END`; shape (B, K, T).
    scores : Tensor of float64
        ln p, or −∞ for unused places; shape (B, K).
    """

    sentence: Tensor
    tokens: Tensor
    scores: Tensor
    sources: list[Places]
    seen: Tensor
    kept: list[Places] | None = None


@torch.no_grad()
def search_beams(
    model: EncoderDecoder, source: Tensor, seen: Tensor, settings: BeamSettings
) -> list[list[int]]:
    """Return the best translation of each sentence, without `END`.

    The search ends when `beam` hypotheses have ended, or at the limit of tokens, where all end. Of
    equal scores, the first in the order of beam and vocabulary wins.

    `model`: in evaluation mode. `source`: rows, shape (B, S). `seen`: which of them are not
    padding, shape (B, 1, 1, S).

    References
    ----------
    Wu et al., "Google's neural machine translation system", 2016, Eq. 14 (length penalty, without
    coverage).
    """
    n, beam = len(source), settings.beam
    beams = start_beams(model, source, seen, settings)
    limits = seen.sum(dim=-1).view(-1) + settings.more
    ended: list[list[tuple[float, list[int]]]] = [[] for _ in range(n)]
    for length in range(1, int(limits.max()) + 1):
        log_p = predict_next(model, beams)
        last = length >= limits[beams.sentence]
        # At the limit, only the end may follow.
        log_p[last, :, :END_ROW] = -torch.inf
        log_p[last, :, END_ROW + 1 :] = -torch.inf
        size = log_p.shape[-1]
        scores, places = take_best((beams.scores[..., None] + log_p).flatten(1), 2 * beam)
        ends = (places % size == END_ROW) & scores.isfinite()
        scale = ((5.0 + length) / 6.0) ** settings.penalty
        for row, column in ends[:, :beam].nonzero().tolist():
            tokens = beams.tokens[row, int(places[row, column]) // size, 1:].tolist()
            ended[int(beams.sentence[row])].append((float(scores[row, column]) / scale, tokens))
        found, column = take_best(scores.masked_fill(ends, -torch.inf), beam)
        counts = torch.tensor([len(ended[int(i)]) for i in beams.sentence], device=last.device)
        going = ((counts < beam) & ~last & found[:, 0].isfinite()).nonzero().view(-1)
        if not len(going):
            break
        beams = advance_beams(beams, going, places.gather(1, column), found, size)
    # max takes the first of equal scores. Models with non-finite numbers end no hypothesis.
    nothing: tuple[float, list[int]] = (0.0, [])
    return [max(one, key=lambda pair: pair[0], default=nothing)[1] for one in ended]


def start_beams(
    model: EncoderDecoder, source: Tensor, seen: Tensor, settings: BeamSettings
) -> Beams:
    """Return one empty hypothesis for each sentence."""
    n, beam = len(source), settings.beam
    rows = torch.arange(n, device=source.device).repeat_interleave(beam)
    sources = choose_places(model.read(source, seen), rows)
    scores = torch.full((n, beam), -torch.inf, dtype=torch.float64, device=source.device)
    scores[:, 0] = 0.0
    first = torch.full((n, beam, 1), END_ROW, device=source.device)
    return Beams(torch.arange(n, device=source.device), first, scores, sources, seen[rows])


def predict_next(model: EncoderDecoder, beams: Beams) -> Tensor:
    """Return ln p of each next token, shape (B, K, N).

    Stores the model's keys and values in the beams.
    """
    last = beams.tokens[..., -1].flatten()[:, None]
    hidden, beams.kept = model.write(last, beams.sources, beams.seen, beams.kept)
    log_p = model.head(hidden[:, -1]).double().log_softmax(dim=-1)
    return log_p.view(*beams.scores.shape, -1)


def advance_beams(beams: Beams, going: Tensor, places: Tensor, scores: Tensor, size: int) -> Beams:
    """Extend the hypotheses of the sentences in `going` by one token."""
    beam = beams.scores.shape[1]
    parents = (places[going] // size) + going[:, None] * beam
    rows = parents.flatten()
    tokens = torch.cat(
        (beams.tokens.flatten(0, 1)[rows], (places[going] % size).reshape(-1, 1)), dim=1
    )
    assert beams.kept is not None
    return Beams(
        beams.sentence[going],
        tokens.view(*parents.shape, -1),
        scores[going],
        choose_places(beams.sources, rows),
        beams.seen[rows],
        choose_places(beams.kept, rows),
    )


def choose_places(kept: list[Places], rows: Tensor) -> list[Places]:
    """Select keys and values by row."""
    return [(keys[rows], values[rows]) for keys, values in kept]


def take_best(scores: Tensor, number: int) -> tuple[Tensor, Tensor]:
    """Get the `number` largest scores of each row and their places, in a stable order, unlike
    topk.
    """
    number = min(number, scores.shape[1])
    found = scores.topk(min(number + 1, scores.shape[1]), dim=1)
    values: Any = found.values
    if (values[:, 1:] == values[:, :-1]).any():
        values, places = scores.sort(dim=1, descending=True, stable=True)
        return values[:, :number], places[:, :number]
    return values[:, :number], found.indices[:, :number]


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
    for name, metric in (
        ("BLEU", metrics.BLEU()),
        ("tokenized BLEU", make_tokenized_bleu()),
        ("chrF", metrics.CHRF()),
    ):
        metric.corpus_score(["a"], [["a"]])
        found.append(f"{name}|{metric.get_signature()}")
    return f"scores are those of sacreBLEU: {', '.join(found)}"


def make_tokenized_bleu() -> Any:
    """Make BLEU as ``multi-bleu.perl`` computes it: of words between blanks, cased, unsmoothed."""
    return import_sacrebleu().BLEU(tokenize="none", smooth_method="none", force=True)


def is_tokenized(texts: Sequence[str]) -> bool:
    """Tell whether blanks separate the tokens of most texts: sacreBLEU's tokenizer leaves them
    alone.
    """
    import_sacrebleu()
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    tokenizer: Any = Tokenizer13a()  # type: ignore[no-untyped-call]
    alike = sum(bool(tokenizer(text) == " ".join(text.split())) for text in texts)
    return 2 * alike > len(texts)


def compute_corpus_bleu(translations: Sequence[str], references: Sequence[str]) -> float:
    """Compute BLEU of a split with one reference for each sentence."""
    return score_corpus(import_sacrebleu().BLEU(), translations, references)


def score_corpus(metric: Any, translations: Sequence[str], references: Sequence[str]) -> float:
    return float(metric.corpus_score(list(translations), [list(references)]).score)


def score_translations(
    split: str, translations: Sequence[str], references: Sequence[str]
) -> tuple[dict[str, float], translation_outcomes.TranslationOutcomes]:
    """Return the scores of a split, and the counts of each sentence for a bootstrap.

    Tokenized BLEU is among them if the references are tokenized.
    """
    metrics = import_sacrebleu()
    scorers = {translation_outcomes.BLEU: metrics.BLEU(), translation_outcomes.CHRF: metrics.CHRF()}
    if is_tokenized(references):
        scorers[translation_outcomes.TOKENIZED_BLEU] = make_tokenized_bleu()
    scores = {
        name: score_corpus(metric, translations, references) for name, metric in scorers.items()
    }
    # effective_order prevents warnings about single sentences, and does not change counts.
    metric = metrics.BLEU(effective_order=True)
    pairs = zip(translations, references, strict=True)
    found = [metric.sentence_score(one, [reference]) for one, reference in pairs]
    digest = hashlib.sha256("\n".join(references).encode()).hexdigest()
    counts = [(*one.counts, *one.totals, one.sys_len, one.ref_len) for one in found]
    return scores, translation_outcomes.TranslationOutcomes(
        split, digest, tuple(translations), tuple(counts)
    )
