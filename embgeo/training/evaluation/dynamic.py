"""Dynamic evaluation: the model learns from the text that it is evaluated on."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from embgeo.core.arrays import IntArray
from embgeo.training.data.batches import IGNORED, streams
from embgeo.training.evaluation import perplexity
from embgeo.training.models.language_model import LanguageModel


@dataclass(frozen=True, slots=True)
class DynamicSettings:
    """Settings on the published scale; see `dynamic_evaluation`."""

    #: Tokens of a segment, which is predicted and then learned from.
    bptt: int = 5
    #: η.
    lr: float = 0.002
    #: λ, the pull back to the trained weights.
    decay: float = 0.02
    #: ε, which holds weights that had no gradient in training.
    epsilon: float = 0.001
    #: Streams of the training text for the statistics of gradients.
    batch: int = 100


#: Settings by corpus. Krause et al. have λ = 0.02 also on PTB; 0.075 is from later work.
PUBLISHED_DYNAMIC = {"wikitext-2": DynamicSettings(), "ptb": DynamicSettings(decay=0.075)}
#: For mixtures of softmaxes: README of Yang et al. 2018.
PUBLISHED_DYNAMIC_OF_MIXTURES = PUBLISHED_DYNAMIC | {"wikitext-2": DynamicSettings(epsilon=0.002)}


def dynamic_evaluation(
    model: LanguageModel,
    rows: IntArray,
    training: IntArray,
    *,
    settings: DynamicSettings = DynamicSettings(),
    device: torch.device | str = "cpu",
) -> perplexity.Perplexity:
    """Get perplexity while the weights are adapted: each segment is predicted, then learned from.

    G is the root of the mean square of each weight's gradient over windows of the training text,
    and Ḡ its mean over a tensor, averaged over tensors. After a segment with the mean loss L, the
    step is θ ← θ − η′·∂L/(G + ε′) + min(λ′·G/Ḡ, 1)·(θ₀ − θ).

    The published settings are for the first version of the authors' program, which summed the
    squares over the windows and Ḡ over the tensors. The conversion is that of the authors:
    η′ = η/√n and ε′ = ε/√n for n windows, λ′ = λ/m for m tensors. Without it, steps would be some
    forty times too long.

    The weights are restored, also after an error, and ``.grad`` is not changed.

    References
    ----------
    Krause, Kahembwe, Murray and Renals, "Dynamic evaluation of neural sequence models",
    ICML 2018.
    """
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    tally = perplexity.LossTally(device, None)
    with torch.enable_grad(), perplexity.evaluating(model):
        sizes, windows = gradient_sizes(model, weights, training, settings, device)
        lr, epsilon = settings.lr / math.sqrt(windows), settings.epsilon / math.sqrt(windows)
        scales = [size + epsilon for size in sizes]
        mean = torch.stack([size.mean() for size in sizes]).mean()
        decay = settings.decay / len(weights)
        pulls = [(decay * size / mean).nan_to_num(0.0).clamp(max=1.0) for size in sizes]
        trained = [weight.detach().clone() for weight in weights]
        try:
            for output, targets in perplexity.read_windows(
                model, streams(rows, 1, settings.bptt, device)
            ):
                losses = perplexity.log_losses(model, output.hidden, targets)
                tally.add(losses.detach(), targets)
                gradients = torch.autograd.grad(losses.mean(), weights, allow_unused=True)
                for each in zip(weights, trained, scales, pulls, gradients, strict=True):
                    adapt(*each, lr)
        finally:
            with torch.no_grad():
                for weight, start in zip(weights, trained, strict=True):
                    weight.copy_(start)
    return tally.result()


def gradient_sizes(
    model: LanguageModel,
    weights: Sequence[Tensor],
    training: IntArray,
    settings: DynamicSettings,
    device: torch.device | str,
) -> tuple[list[Tensor], int]:
    """Return the root mean square of each weight's gradient over windows, and their number."""
    squares = [torch.zeros_like(weight) for weight in weights]
    windows = 0
    found = streams(training, settings.batch, settings.bptt, device)
    for output, targets in perplexity.read_windows(model, found):
        logits = model.head(output.hidden).flatten(0, 1)
        loss = F.cross_entropy(logits, targets.flatten(), ignore_index=IGNORED)
        for total, gradient in zip(
            squares, torch.autograd.grad(loss, weights, allow_unused=True), strict=True
        ):
            if gradient is not None:
                total += gradient.square()
        windows += 1
    return [(total / windows).sqrt() for total in squares], windows


@torch.no_grad()
def adapt(
    weight: Tensor, trained: Tensor, scale: Tensor, pull: Tensor, gradient: Tensor | None, lr: float
) -> None:
    """Take the step of a weight."""
    change = pull * (trained - weight)
    if gradient is not None:
        change.addcdiv_(gradient, scale, value=-lr)
    weight += change
