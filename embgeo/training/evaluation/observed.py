"""Hidden states and predictions at some positions of a text, which a run keeps on request."""

import json
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
import torch

from embgeo.core.arrays import IntArray
from embgeo.training.data.batches import streams
from embgeo.training.data.vocabulary import Vocabulary
from embgeo.training.evaluation.perplexity import evaluating, read_windows, wide
from embgeo.training.models.language_model import LanguageModel

HIDDEN_NAME = "hidden.npy"
PREDICTIONS_NAME = "predictions.json"
#: Tokens of the split that are read.
MOST_TOKENS = 20_000
#: Positions with predictions, tokens before each, and predicted tokens.
EXAMPLES, CONTEXT, TOP = 20, 12, 10


@dataclass(frozen=True, slots=True)
class Observed:
    """What a model does at some positions of a split.

    Attributes
    ----------
    hidden : Tensor of float32
        Inputs of the output layer; shape (M, d).
    unknown : float or None
        Mean probability of the unknown word; None for a vocabulary without it.
    examples : list of dict
        For some of the positions: ``context``, ``target``, and ``predicted``, pairs of a token and
        its probability.
    """

    hidden: torch.Tensor
    unknown: float | None
    examples: list[dict[str, Any]]

    def files(self) -> dict[str, bytes]:
        """Return the contents of the files of a run by name."""
        content = BytesIO()
        np.save(content, self.hidden.numpy())
        record = {"unknown": self.unknown, "examples": self.examples}
        text = json.dumps(record, ensure_ascii=False, indent=1) + "\n"
        return {HIDDEN_NAME: content.getvalue(), PREDICTIONS_NAME: text.encode()}


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
    examples = [
        {
            "context": [tokens[i] for i in rows[max(0, place - CONTEXT) : place]],
            "target": tokens[rows[place]],
            "predicted": [[tokens[i], p] for i, p in zip(best, values, strict=True)],
        }
        for place, best, values in zip(
            places[shown].tolist(), top.indices.tolist(), top.values.tolist(), strict=True
        )
    ]
    return Observed(hidden.float().cpu(), unknown, examples)
