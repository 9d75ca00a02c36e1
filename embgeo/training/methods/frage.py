"""FRAGE: rows whose frequency a discriminator cannot recognize."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from embgeo.training import components
from embgeo.training.methods.popular import ClassRegularizer, classes
from embgeo.training.methods.regularizer import Step
from embgeo.training.methods.weights import Source, check_state, exact, make_linear
from embgeo.training.registry import take


class Frage(ClassRegularizer):
    """−λ·L_D on the embedding; the discriminator minimizes its loss L_D in turn.

    The discriminator gives f = P(rare) for a row, and
    L_D = −mean_popular log(1 − f) − mean_rare log f. The model minimizes its loss − λ·L_D, so that
    the discriminator errs. After each step of the model, in `after_step`, the discriminator takes a
    step on the new embedding over the full vocabulary. Both follow the paper's Algorithm 1.

    Do not judge success by this discriminator, which the embedding learned to fool, but by a fresh
    probe (section `probe` of an analysis). In a trial, λ = 1 fooled no fresh probe and ruined the
    perplexity.

    Parameters
    ----------
    source : Module, Tensor or callable
        The embedding, its weight, or a function that returns the weight.
    popular : Tensor of bool
        True for frequent rows; see :func:`popular_rows`.
    lambda_, hidden, lr, sample
        See `embgeo.training.components.Frage`.
    ignore_rows : sequence of int
        Rows that are neither frequent nor rare, such as padding.
    seed : int
        Random seed of the discriminator's weights and the samples, apart from the global generator.

    References
    ----------
    Gong et al., "FRAGE: frequency-agnostic word representation", NeurIPS 2018, Eq. 2–5,
    Algorithm 1.
    """

    NAME: ClassVar[str] = "frage"
    SETTINGS = components.Frage
    SOURCE: ClassVar[str] = "Gong et al. 2018, Eq. 2–5 and Algorithm 1"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "L_D is the bounded cross-entropy; as printed, the discriminator's loss has no bound",
        "the discriminator is trained by Adam at a rate of its own, lr (the paper gives neither "
        "optimizer nor rate)",
        "what the public code changes is left out: λ 0.02, 8,000 frequent tokens, updates of rare "
        "rows only, Gaussian noise on the embeddings",
    )

    def __init__(
        self,
        source: Source,
        popular: Tensor,
        *,
        ignore_rows: Sequence[int] = (),
        seed: int = 0,
        **settings: Any,
    ) -> None:
        super().__init__(source)
        own: components.Frage = take(self, settings)
        self.lambda_, self.sample = own.lambda_, own.sample
        n, d = self.weight().shape
        # Sign of each row (1 rare, −1 popular), and its share in the mean of its class.
        sign, share = torch.zeros(n), torch.zeros(n)
        for value, rows in zip((-1.0, 1.0), classes(n, popular, ignore_rows), strict=True):
            sign[rows], share[rows] = value, 1.0 / len(rows)
        self.sign: Tensor
        self.share: Tensor
        self.register_buffer("sign", sign, persistent=False)
        self.register_buffer("share", share, persistent=False)
        self.generator = torch.Generator().manual_seed(seed)
        self.rows: Tensor | None = None
        self.discriminator = discriminator(d, own.hidden, self.generator)
        self.to(self.weight().device)
        self.optimizer = torch.optim.Adam(self.discriminator.parameters(), lr=own.lr)

    def penalty(self, step: Step) -> Tensor:  # noqa: ARG002
        W, sign, share = self.choose_rows(self.weight())
        fixed = {name: p.detach() for name, p in self.discriminator.named_parameters()}
        with exact(W):
            scores = torch.func.functional_call(self.discriminator, fixed, (W.to(share.dtype),))
            return -self.lambda_ * class_loss(scores, sign, share)

    def after_step(self, lr: float | None = None) -> None:  # noqa: ARG002
        """Step of the discriminator, on the rows of the last penalty."""
        W, sign, share = self.choose_rows(self.weight().detach())
        self.rows = None
        with torch.enable_grad(), exact(W):
            loss = class_loss(self.discriminator(W.to(share.dtype)), sign, share)
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()

    def choose_rows(self, W: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Choose the rows of this step with their signs and shares."""
        if self.sample is None:
            return W, self.sign, self.share
        if self.rows is None:
            self.rows = torch.randint(len(W), (self.sample,), generator=self.generator)
        rows = self.rows.to(W.device)
        # The penalty has a sparse gradient where the loss has one.
        sparse = W.grad is not None and W.grad.is_sparse
        chosen = F.embedding(rows, W, sparse=True) if sparse else W[rows]
        return chosen, self.sign[rows], rebalance(self.share[rows], self.sign[rows])

    def get_extra_state(self) -> dict[str, Any]:
        """State of the discriminator's optimizer and of the sampler."""
        return {"optimizer": self.optimizer.state_dict(), "generator": self.generator.get_state()}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(state["optimizer"])
        check_state(self.optimizer)
        self.generator.set_state(state["generator"].cpu())


def rebalance(share: Tensor, sign: Tensor) -> Tensor:
    """Return the shares of sampled rows; those of each class in the sample sum to 1."""
    for value in (-1.0, 1.0):
        chosen = sign == value
        total = torch.where(chosen, share, 0.0).sum()
        share = torch.where(chosen, share / total.clamp(min=1e-30), share)
    return share


def class_loss(scores: Tensor, sign: Tensor, share: Tensor) -> Tensor:
    """Return cross-entropy of P(rare) = σ(score): the sum of the means over both classes."""
    return share @ F.softplus(-sign * scores.squeeze(-1))


def discriminator(d: int, hidden: int | None, generator: torch.Generator) -> nn.Module:
    """Get a logistic regression, or a network with one hidden layer, drawn from the generator."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise((d, 1) if hidden is None else (d, hidden, 1)):
        bound = inputs**-0.5
        weight = torch.empty(outputs, inputs).uniform_(-bound, bound, generator=generator)
        layers += [make_linear(weight, torch.zeros(outputs)), nn.ReLU()]
    return nn.Sequential(*layers[:-1])
