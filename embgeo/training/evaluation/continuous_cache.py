"""Perplexity with a continuous cache of the last states and the tokens after them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from embgeo.core.arrays import IntArray
from embgeo.training.data.batches import streams
from embgeo.training.evaluation import perplexity
from embgeo.training.models.language_model import LanguageModel


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """Settings of a cache; the defaults are those published for WikiText-2."""

    window: int = 3785
    #: θ of the scores θ·h_t·h_i.
    theta: float = 0.662
    #: λ, the weight of the cache in the mixture; from 0 to below 1.
    weight: float = 0.1279


#: Settings of AWD-LSTM by corpus.
PUBLISHED_CACHES = {
    "wikitext-2": CacheSettings(),
    "ptb": CacheSettings(window=500, theta=1.0, weight=0.1),
}


def continuous_cache(
    model: LanguageModel,
    rows: IntArray,
    *,
    settings: CacheSettings = CacheSettings(),
    bptt: int = 70,
    device: torch.device | str = "cpu",
) -> perplexity.Perplexity:
    """Get perplexity of (1 − λ)·p + λ·p_cache, with p_cache(w) ∝ Σ_{i: x_{i+1} = w} exp(θ h_t·h_i).

    The sum is over the last `window` states of the last layer, before dropout, in one stream. The
    cache is used from the second token on; the public code of AWD-LSTM waits until it is full,
    which makes no difference for splits of the usual length.

    References
    ----------
    Grave, Joulin and Usunier, "Improving neural language models with a continuous cache",
    ICLR 2017.
    """
    tally = perplexity.LossTally(device, None)
    states: Tensor | None = None
    followers = torch.zeros(0, dtype=torch.int64, device=device)
    with torch.no_grad(), perplexity.evaluating(model):
        for output, targets in perplexity.read_windows(model, streams(rows, 1, bptt, device)):
            own = -perplexity.log_losses(model, output.hidden, targets)[:, 0]
            raw = output.raw[:, 0].to(perplexity.wide(device))
            states = raw if states is None else torch.cat((states, raw))
            followers = torch.cat((followers, targets[:, 0]))
            mixed = mixed_log_probability(own, raw, states, followers, settings)
            tally.add(-mixed, targets[:, 0])
            states, followers = states[-settings.window :], followers[-settings.window :]
    return tally.result()


def mixed_log_probability(
    own: Tensor, raw: Tensor, states: Tensor, followers: Tensor, settings: CacheSettings
) -> Tensor:
    """Return the ln of the mixture at the last T places of a stream.

    `own`: ln p of the targets by the model, shape (T,). `raw`: states at these places, shape
    (T, d). `states`: cached states followed by `raw`, shape (M, d). `followers`: the tokens after
    `states`, shape (M,), of which the last T are the targets.
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
