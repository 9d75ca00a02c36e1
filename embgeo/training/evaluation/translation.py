"""Translations of a batch of sentences by beam search, and their scores."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from embgeo.core.errors import BadOption
from embgeo.training.data.tokenizer import END_ROW
from embgeo.training.models.encoder_decoder import Places, TranslationModel
from embgeo.training.study.numbers import BLEU, CHRF, TOKENIZED_BLEU
from embgeo.training.study.outcomes import Outcomes


@dataclass(frozen=True, slots=True)
class BeamSettings:
    """Settings of beam search."""

    #: Hypotheses of each translation; 1 for greedy search.
    beam: int = 4
    #: α of the length penalty.
    penalty: float = 0.6
    #: Limit of the tokens of a translation beyond the length of its source.
    more: int = 50
    #: Whether the penalty is that of fairseq.
    power: bool = False

    def scale(self, tokens: int) -> float:
        """Return what ln p is divided by; the end counts as a token."""
        return float((tokens if self.power else (5.0 + tokens) / 6.0) ** self.penalty)


@dataclass(slots=True)
class Beams:
    """K hypotheses for each of B sentences."""

    #: Index of each sentence in the batch; shape (B,).
    sentence: Tensor
    #: Tokens so far, starting with `END`; shape (B, K, T).
    tokens: Tensor
    #: ln p, or −∞ for unused places; shape (B, K).
    scores: Tensor
    sources: list[Places]
    seen: Tensor
    kept: list[Places] | None = None


@dataclass(slots=True)
class Endings:
    """The best ended hypothesis of each of B sentences, on the device of the search."""

    #: Shape (B,); −∞ for none.
    scores: Tensor
    #: Shapes (B, T) and (B,).
    tokens: Tensor
    lengths: Tensor
    #: How many hypotheses have ended; shape (B,).
    number: Tensor

    def take(self, beams: Beams, ends: Tensor, scores: Tensor, parents: Tensor) -> None:
        """Add hypotheses that end now; of equal scores the first is kept."""
        of, length = beams.sentence, beams.tokens.shape[-1] - 1
        held = scores.masked_fill(~ends, -torch.inf)
        top = held.max(dim=1, keepdim=True).values
        places = torch.arange(held.shape[1], device=held.device)
        first = torch.where(held == top, places, held.shape[1] - 1).min(dim=1).values
        rows = torch.arange(len(of), device=of.device)
        tokens = beams.tokens[rows, parents[rows, first], 1:]
        better = top[:, 0] > self.scores[of]
        self.scores[of] = torch.where(better, top[:, 0], self.scores[of])
        self.lengths[of] = torch.where(better, length, self.lengths[of])
        self.tokens[of, :length] = torch.where(better[:, None], tokens, self.tokens[of, :length])
        self.number[of] += ends.sum(dim=1)

    def tolist(self) -> list[list[int]]:
        pairs = zip(self.tokens.tolist(), self.lengths.tolist(), strict=True)
        return [tokens[:length] for tokens, length in pairs]


def search_beams(
    model: TranslationModel, source: Tensor, seen: Tensor, settings: BeamSettings
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
    ended, tied = walk_beams(model, source, seen, settings, stable=False)
    if tied:
        ended, _ = walk_beams(model, source, seen, settings, stable=True)
    return ended.tolist()


@torch.no_grad()
def walk_beams(
    model: TranslationModel, source: Tensor, seen: Tensor, settings: BeamSettings, *, stable: bool
) -> tuple[Endings, bool]:
    """Get the best hypotheses, and whether scores were equal, which only `stable` can order."""
    n, beam, device = len(source), settings.beam, source.device
    beams = start_beams(model, source, seen, settings)
    limits = seen.sum(dim=-1).view(-1) + settings.more
    longest = int(limits.max())
    ended = Endings(
        torch.full((n,), -torch.inf, dtype=torch.float64, device=device),
        torch.zeros((n, longest), dtype=torch.int64, device=device),
        *torch.zeros((2, n), dtype=torch.int64, device=device),
    )
    tied = torch.zeros((), dtype=torch.bool, device=device)
    for length in range(1, longest + 1):
        log_p = predict_next(model, beams)
        last = length >= limits[beams.sentence]
        # At the limit, only the end may follow.
        closed = last[:, None].expand(len(last), beam)
        log_p[..., :END_ROW].masked_fill_(closed[..., None], -torch.inf)
        log_p[..., END_ROW + 1 :].masked_fill_(closed[..., None], -torch.inf)
        size = log_p.shape[-1]
        total = (beams.scores[..., None] + log_p).flatten(1)
        scores, places, equal = take_best(total, 2 * beam, stable=stable)
        tied |= equal
        ends = (places % size == END_ROW) & scores.isfinite()
        scale = settings.scale(length)
        parents = places[:, :beam] // size
        ended.take(beams, ends[:, :beam], scores[:, :beam] / scale, parents)
        found, column, _ = take_best(scores.masked_fill(ends, -torch.inf), beam, stable=True)
        going = (ended.number[beams.sentence] < beam) & ~last & found[:, 0].isfinite()
        found = found.masked_fill(~going[:, None], -torch.inf)
        rows = going.nonzero().view(-1)
        if not len(rows):
            break
        beams = advance_beams(beams, rows, places.gather(1, column), found, size)
    return ended, bool(tied)


def start_beams(
    model: TranslationModel, source: Tensor, seen: Tensor, settings: BeamSettings
) -> Beams:
    """Return one empty hypothesis for each sentence."""
    n, beam = len(source), settings.beam
    rows = torch.arange(n, device=source.device).repeat_interleave(beam)
    sources = choose_places(model.read(source, seen), rows)
    scores = torch.full((n, beam), -torch.inf, dtype=torch.float64, device=source.device)
    scores[:, 0] = 0.0
    first = torch.full((n, beam, 1), END_ROW, device=source.device)
    return Beams(torch.arange(n, device=source.device), first, scores, sources, seen[rows])


def predict_next(model: TranslationModel, beams: Beams) -> Tensor:
    """Return ln p of each next token, shape (B, K, N).

    Stores what the model needs of them in the beams.
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
    """Select sentences by row."""
    return [(one[rows], other[rows]) for one, other in kept]


def take_best(scores: Tensor, number: int, *, stable: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Get the `number` largest scores of each row, their places, and whether finite ones equal.

    Only `stable` puts the first of equal scores first, as topk does not.
    """
    number = min(number, scores.shape[1])
    if stable:
        values, places = scores.sort(dim=1, descending=True, stable=True)
        return values[:, :number], places[:, :number], values.new_zeros((), dtype=torch.bool)
    values, places = scores.topk(min(number + 1, scores.shape[1]), dim=1)
    equal = (values[:, 1:] == values[:, :-1]) & values[:, 1:].isfinite()
    return values[:, :number], places[:, :number], equal.any()


def make_metrics() -> dict[str, Any]:
    """Make the scorers of sacreBLEU.

    Tokenized BLEU is that of ``multi-bleu.perl``: of words between blanks, cased, unsmoothed.
    """
    try:
        metrics: Any = import_module("sacrebleu.metrics")
    except ImportError as error:
        raise BadOption(
            "translation needs the package sacrebleu", way_out="pip install 'embgeo[train]'"
        ) from error
    tokenized = metrics.BLEU(tokenize="none", smooth_method="none", force=True)
    return {BLEU: metrics.BLEU(), TOKENIZED_BLEU: tokenized, CHRF: metrics.CHRF()}


def describe_metrics() -> str:
    """Describe the scores by their signatures, which comparisons with other numbers need."""
    found = []
    for name, metric in make_metrics().items():
        metric.corpus_score(["a"], [["a"]])
        found.append(f"{name}|{metric.get_signature()}")
    return f"scores are those of sacreBLEU: {', '.join(found)}"


def is_tokenized(texts: Sequence[str]) -> bool:
    """Tell whether blanks separate tokens of most texts, which sacreBLEU's tokenizer keeps."""
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    tokenizer: Any = Tokenizer13a()  # type: ignore[no-untyped-call]
    alike = sum(bool(tokenizer(text) == " ".join(text.split())) for text in texts)
    return 2 * alike > len(texts)


def score_translations(
    split: str, translations: Sequence[str], references: Sequence[str]
) -> tuple[dict[str, float], Outcomes]:
    """Return the scores of a split, and the counts of each sentence for a bootstrap.

    Tokenized BLEU is among them if the references are tokenized.
    """
    scorers = make_metrics()
    # effective_order prevents warnings about single sentences, and does not change counts.
    metric = type(scorers[BLEU])(effective_order=True)
    if not is_tokenized(references):
        del scorers[TOKENIZED_BLEU]
    given = list(translations), [list(references)]
    scores = {name: float(scorer.corpus_score(*given).score) for name, scorer in scorers.items()}
    pairs = zip(translations, references, strict=True)
    found = [metric.sentence_score(one, [reference]) for one, reference in pairs]
    digest = hashlib.sha256("\n".join(references).encode()).hexdigest()
    counts = tuple((*one.counts, *one.totals, one.sys_len, one.ref_len) for one in found)
    return scores, Outcomes("sentences", split, counts, digest, tuple(translations))
