"""Adversarial softmax: the smallest logit of the target for a row near its own."""

from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from embgeo.core.errors import BadOption
from embgeo.training import components
from embgeo.training.methods.regularizer import Setup, Step, WeightRegularizer
from embgeo.training.methods.weights import Source, exact
from embgeo.training.registry import take


class AdversarialSoftmax(WeightRegularizer):
    """The logit of the target w becomes w·h − ε‖w‖‖h‖, wherever w·h > 0.

    That is the smallest logit of a row within ε‖w‖ of w. The radius ‖w‖ has no gradient. The method
    changes `logits` in training mode; its penalty is 0.

    Parameters
    ----------
    source : Module, Tensor or callable
        The output layer, its weight, or a function that returns the weight.
    epsilon
        See `embgeo.training.components.AdversarialSoftmax`.

    References
    ----------
    Wang, Gong and Liu, "Improving neural language modeling via adversarial training", ICML 2019.
    """

    NAME: ClassVar[str] = "adversarial-softmax"
    SETTINGS = components.AdversarialSoftmax
    SOURCE: ClassVar[str] = "Wang, Gong and Liu 2019"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "each position has its own perturbation; the public code scatters them by target, so that "
        "of several positions with one target the last one counts",
        "only the target's logit is perturbed, and only where it is positive, as in the public "
        "code",
    )
    NEEDS: ClassVar[tuple[str, ...]] = ("hidden", "logits", "targets")
    IN_PARTS: ClassVar[bool] = True

    @classmethod
    def attach(cls, model: nn.Module, setup: Setup = Setup(), **settings: Any) -> Self:
        """See `Regularizer.attach`; `BadOption` for a mixture of softmaxes."""
        refuse_mixture(model)
        return super().attach(model, setup, **settings)

    def __init__(self, source: Source, **settings: Any) -> None:
        super().__init__(source)
        self.epsilon: float = take(self, settings).epsilon

    def logits(self, step: Step) -> Tensor:
        """Subtract the margin from the logit of each target in training mode."""
        found = super().logits(step)
        if not self.training:
            return found
        self.require(step)
        assert step.hidden is not None
        assert step.targets is not None
        margin = self.margin(step.hidden, step.targets).to(found.dtype)
        place = step.targets.clamp(min=0).unsqueeze(-1)
        return found.scatter_add(-1, place, -margin.unsqueeze(-1))

    def margin(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Return ε‖w‖‖h‖ where w·h > 0, else 0; shape of the targets."""
        w = F.embedding(targets.clamp(min=0), self.weight().detach())
        with exact(hidden):
            towards = (w.to(hidden.dtype) * hidden.detach()).sum(dim=-1) > 0.0
            lengths = torch.linalg.vector_norm(w, dim=-1) * torch.linalg.vector_norm(hidden, dim=-1)
        return torch.where(towards & (targets >= 0), self.epsilon * lengths, 0.0)


def refuse_mixture(model: nn.Module) -> None:
    """Raise `BadOption` for a model that mixes several softmaxes."""
    if getattr(model, "mixture", None) is not None:
        raise BadOption(
            "adversarial softmax moves the logit of one softmax; the model mixes several",
            way_out="leave the method out, or set model.experts to 1",
        )
