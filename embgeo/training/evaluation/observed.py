"""Hidden states and predictions at some positions of a text, which a run keeps on request."""

from dataclasses import dataclass
from io import BytesIO

import numpy as np
import torch

from embgeo.core.arrays import IntArray
from embgeo.training.data.batches import streams
from embgeo.training.data.vocabulary import Vocabulary
from embgeo.training.evaluation.perplexity import evaluating, read_windows, wide
from embgeo.training.models.language_model import LanguageModel
from embgeo.training.study.record import Prediction

HIDDEN_NAME = "hidden.npy"
#: Tokens of the split that are read.
MOST_TOKENS = 20_000
#: Positions with predictions, tokens before each, and predicted tokens.
EXAMPLES, CONTEXT, TOP = 20, 12, 10


@dataclass(frozen=True, slots=True)
class Observed:
    """What a model does at some positions of a split."""

    #: Inputs of the output layer in float32, shape (M, d), as a NumPy file.
    hidden: bytes
    #: Mean probability of the unknown word; None for a vocabulary without it.
    unknown: float | None
    #: For some of the positions.
    predictions: tuple[Prediction, ...]


@torch.no_grad()
def observe(
    model: LanguageModel,
    rows: IntArray,
    vocabulary: Vocabulary,
    number: int,
    *,
    bptt: int,
    device: torch.device | str,
) -> Observed:
    """Observe a model at `number` evenly spaced positions of the first `MOST_TOKENS` tokens.

    The text is one stream, read in windows of `bptt` tokens.
    """
    rows = rows[:MOST_TOKENS]
    places = np.unique(np.linspace(1, len(rows) - 1, number).round().astype(np.int64))
    found = []
    with evaluating(model):
        for window, (output, _) in enumerate(read_windows(model, streams(rows, 1, bptt, device))):
            first = 1 + window * bptt
            own = places[(places >= first) & (places < first + len(output.hidden))] - first
            found.append(output.hidden[torch.from_numpy(own).to(device), 0])
        hidden = torch.cat(found)
        log_p = model.head(hidden).to(wide(device)).log_softmax(dim=-1)
    row = vocabulary.unknown
    unknown = None if row is None else float(log_p[:, row].exp().mean())
    shown = np.unique(np.linspace(0, len(places) - 1, EXAMPLES).round().astype(np.int64))
    top = log_p[torch.from_numpy(shown).to(device)].exp().topk(min(TOP, log_p.shape[1]))
    tokens = vocabulary.tokens
    predictions = tuple(
        Prediction(
            tuple(tokens[i] for i in rows[max(0, place - CONTEXT) : place]),
            tokens[rows[place]],
            tuple((tokens[i], p) for i, p in zip(best, values, strict=True)),
        )
        for place, best, values in zip(
            places[shown].tolist(), top.indices.tolist(), top.values.tolist(), strict=True
        )
    )
    content = BytesIO()
    np.save(content, hidden.float().cpu().numpy())
    return Observed(content.getvalue(), unknown, predictions)
