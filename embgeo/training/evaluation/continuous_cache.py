"""A cache of the last states and the tokens that followed them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from embgeo.training.checks import share, whole
from embgeo.training.data.batches import streams
from embgeo.training.evaluation.perplexity import (
    LossTally,
    Perplexity,
    evaluating,
    log_losses,
    wide,
)
from embgeo.training.models.language_model import LanguageModel, detach


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """Settings; the defaults are those published for WikiText-2.

    Attributes
    ----------
    window : int
        States that are remembered.
    theta : float
        Flatness: scores are θ·h_t·h_i.
    weight : float
        λ, the share of the cache in the mixture; from 0 to below 1.
    """

    window: int = 3785
    theta: float = 0.662
    weight: float = 0.1279

    def __post_init__(self) -> None:
        whole("window", self.window)
        share("weight", self.weight)


#: Of AWD-LSTM, by the name of the corpus.
PUBLISHED_CACHES = {
    "wikitext-2": CacheSettings(),
    "ptb": CacheSettings(window=500, theta=1.0, weight=0.1),
}


def continuous_cache(
    model: LanguageModel,
    rows: npt.NDArray[np.int64],
    *,
    settings: CacheSettings = CacheSettings(),
    bptt: int = 70,
    device: torch.device | str = "cpu",
    popular: Tensor | None = None,
) -> Perplexity:
    """Perplexity of (1 − λ)·p + λ·p_cache, with p_cache(w) ∝ Σ_{i: x_{i+1} = w} exp(θ h_t·h_i).

    States are those of the last layer before dropout; the sum is over the last `window` of them,
    of one stream. The cache is used from the second token on, however few states it holds; the
    public code of AWD-LSTM waits until it is full, which makes no difference on splits as long as
    the published ones. The first token has nothing but the model.

    `model`, `rows`, `device`, `popular`: as in `perplexity`. `bptt`: tokens of a window; changes
    nothing for an LSTM.

    Raises
    ------
    BadOption
        Less than two tokens, or no window.

    References
    ----------
    Grave, Joulin and Usunier, "Improving neural language models with a continuous cache",
    ICLR 2017.
    """
    tally = LossTally(device, popular)
    states: Tensor | None = None
    followers = torch.zeros(0, dtype=torch.int64, device=device)
    with torch.no_grad(), evaluating(model):
        state = None
        for inputs, targets in streams(rows, 1, bptt, device):
            output = model(inputs, state)
            state = detach(output.state)
            own = -log_losses(model, output.hidden, targets)[:, 0]
            raw = output.raw[:, 0].to(wide(device))
            states = raw if states is None else torch.cat((states, raw))
            followers = torch.cat((followers, targets[:, 0]))
            mixed = mixed_log_probability(own, raw, states, followers, settings)
            tally.add(-mixed, targets[:, 0])
            states, followers = states[-settings.window :], followers[-settings.window :]
    return tally.result()


def mixed_log_probability(
    own: Tensor, raw: Tensor, states: Tensor, followers: Tensor, settings: CacheSettings
) -> Tensor:
    """log of the mixture at the last T places of a stream.

    Parameters
    ----------
    own : Tensor
        Log probability of the targets by the model, shape (T,).
    raw : Tensor
        States at these places, shape (T, d).
    states : Tensor
        Remembered states with those of `raw` behind them, shape (M, d).
    followers : Tensor of int64
        The tokens that followed `states`, shape (M,); the last T are the targets.
    """
    here = torch.arange(len(states) - len(raw), len(states), device=raw.device)[:, None]
    there = torch.arange(len(states), device=raw.device)
    remembered = (there < here) & (there >= here - settings.window)
    matches = remembered & (followers == followers[here])
    scores = settings.theta * (raw @ states.T)
    nothing = scores.new_tensor(-torch.inf)
    all_mass = torch.logsumexp(torch.where(remembered, scores, nothing), 1)
    matching = torch.logsumexp(torch.where(matches, scores, nothing), 1)
    weight = own.new_tensor(settings.weight)
    mixed = torch.logaddexp(own + torch.log1p(-weight), matching - all_mass + weight.log())
    return torch.where(remembered.any(1), mixed, own)
