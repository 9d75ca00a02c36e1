"""A mixture of softmaxes, whose log-probabilities can have full rank."""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from embgeo.training.methods.weights import to_single

#: Bound of −ln π in 1/π, which overflows in float32 where r is 0.
LARGEST_EXPONENT = 80.0


class MixtureOfSoftmaxes(nn.Module):
    """ln p = ln Σ_k π_k·softmax(W·tanh(V_k·h + v_k) + b), with π = softmax(P·h).

    The softmax of log-probabilities returns the distribution, so that they can replace logits.

    Parameters
    ----------
    inputs, d : int
        Features of h, and columns of W.
    experts : int
        K.
    dropout : float
        Dropout of the features that W multiplies.

    References
    ----------
    Yang, Dai, Salakhutdinov and Cohen, "Breaking the softmax bottleneck: a high-rank RNN language
    model", ICLR 2018, §2.4.
    """

    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "the features of each softmax of the mixture are dropped anew for each token; in the "
        "public code, the same ones throughout a window",
        "a temperature (augmented loss) acts on the mixture: p^(1/τ), normalized",
    )

    def __init__(self, inputs: int, d: int, *, experts: int, dropout: float) -> None:
        super().__init__()
        self.experts, self.dropout = experts, dropout
        self.latent = nn.Linear(inputs, experts * d)
        self.prior = nn.Linear(inputs, experts, bias=False)

    def forward(self, hidden: Tensor, decode: Callable[[Tensor], Tensor]) -> Tensor:
        """Get log-probabilities, shape (…, N), in float32 at least, of `hidden`, shape (…, inputs).

        `decode` is the output layer, from (…, d) to logits of shape (…, N).
        """
        latent = self.latent(hidden).tanh().unflatten(-1, (self.experts, -1))
        logits = to_single(decode(F.dropout(latent, self.dropout, self.training)))
        ln_prior = to_single(self.prior(hidden)).log_softmax(dim=-1)
        mixed: Tensor = MixedLogSoftmax.apply(logits, ln_prior)  # type: ignore[no-untyped-call]
        return mixed


class MixedLogSoftmax(torch.autograd.Function):
    """ln Σ_k π_k·p_k of logits of shape (…, K, N) and ln π of shape (…, K).

    The backward pass keeps only the responsibilities r_k = π_k·p_k/p: ∂ln p/∂ln π_k = r_k,
    and the gradient of the logits is r_k·(g − p·Σ(g·r_k)/π_k).
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, ln_prior: Tensor) -> Tensor:
        joint = logits.log_softmax(dim=-1)
        joint += ln_prior.unsqueeze(-1)
        top = joint.amax(dim=-2)
        responsibility = joint.sub_(top.unsqueeze(-2)).exp_()
        total = responsibility.sum(dim=-2)
        responsibility /= total.unsqueeze(-2)
        ln_p = top.add_(total.log_())
        ctx.save_for_backward(responsibility, ln_p, ln_prior)
        return ln_p

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        responsibility, ln_p, ln_prior = ctx.saved_tensors
        of_prior = torch.matmul(responsibility, grads[0].unsqueeze(-1)).squeeze(-1)
        pull = (of_prior * (-ln_prior).clamp(max=LARGEST_EXPONENT).exp()).unsqueeze(-1)
        of_logits = pull.neg() * ln_p.exp().unsqueeze(-2)
        of_logits += grads[0].unsqueeze(-2)
        return of_logits.mul_(responsibility), of_prior
