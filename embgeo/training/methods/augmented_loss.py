"""The augmented loss, which pulls predictions to tokens with embeddings like the target's."""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from embgeo.training import components
from embgeo.training.methods.regularizer import Step, WeightRegularizer
from embgeo.training.methods.weights import Source, to_single
from embgeo.training.registry import take

#: Logits of a block of positions.
AT_ONCE = 2**22


class AugmentedLoss(WeightRegularizer):
    """α·KL(ỹ‖ŷ), the mean over positions, with ŷ = softmax(logits/τ) and ỹ = softmax(Lᵀu/τ).

    u is the input vector of the target, L holds the input vectors of all tokens, and α = γτ. ỹ is
    computed once for each distinct target of the batch, which is exact and cheap. With tying, it is
    the paper's REAL.

    Parameters
    ----------
    source : Module, Tensor or callable
        L: the input embedding, its weight, or a function that returns the weight.
    gamma, tau
        See `embgeo.training.components.AugmentedLoss`.
    ignore_rows : sequence of int
        Rows without a token, such as padding, whose probability under ỹ is 0. Their probability
        under the model is not changed.

    References
    ----------
    Inan et al., "Tying word vectors and word classifiers: a loss framework for language modeling",
    ICLR 2017, §3.
    """

    NAME: ClassVar[str] = "augmented-loss"
    SETTINGS = components.AugmentedLoss
    SOURCE: ClassVar[str] = "Inan et al. 2017, §3"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "the target ỹ is detached; the paper differentiates by the logits only, and says nothing "
        "of the gradient through ỹ",
        "the mean over positions, like the cross-entropy that it is added to",
    )
    NEEDS: ClassVar[tuple[str, ...]] = ("logits", "targets")
    IN_PARTS: ClassVar[bool] = True
    ROLE = "input"

    def __init__(self, source: Source, *, ignore_rows: Sequence[int] = (), **settings: Any) -> None:
        super().__init__(source)
        own: components.AugmentedLoss = take(self, settings)
        self.gamma, self.tau = own.gamma, own.tau
        self.keep_rows(ignore_rows)

    def penalty(self, step: Step) -> Tensor:
        if step.logits is None:
            return self.penalty_in_parts(step)
        assert step.targets is not None
        targets = step.targets.reshape(-1)
        logits = step.logits.reshape(len(targets), -1)
        with torch.no_grad():
            resembling, which = self.resembling(targets)
        value: Tensor = Divergence.apply(  # type: ignore[no-untyped-call]
            logits, resembling, which, self.tau
        )
        return self.gamma * self.tau * value

    def penalty_in_parts(self, step: Step) -> Tensor:
        """Return the penalty, with the logits of some positions at a time, in both passes."""
        assert step.hidden is not None
        assert step.targets is not None
        logits_of = step.logits_of
        assert logits_of is not None

        def add(hidden: Tensor, targets: Tensor) -> Tensor:
            own = Step(hidden, logits_of(hidden, targets), targets)
            return self.penalty(own) * (targets >= 0).sum()

        targets = step.targets.flatten()
        hidden = torch.split(step.hidden.flatten(0, -2), step.positions)
        parts = zip(hidden, torch.split(targets, step.positions), strict=True)
        sums = [checkpoint(add, *part, use_reentrant=False) for part in parts]
        return torch.stack(sums).sum() / (targets >= 0).sum().clamp(min=1)

    def resembling(self, targets: Tensor) -> tuple[Tensor, Tensor]:
        """log ỹ of each distinct target, shape (m, N), and its index for each position.

        The index is −1 for positions that do not count.
        """
        counted = targets >= 0
        distinct, which = torch.unique(targets.clamp(min=0), return_inverse=True)
        L = self.weight()
        scores = to_single(F.linear(F.embedding(distinct, L) / self.tau, L))
        if self.kept is not None:
            # Not −inf: 0·(−inf) in the divergence is not a number.
            scores = scores.masked_fill(~self.kept, -1e9)
        return F.log_softmax(scores, dim=-1), torch.where(counted, which, -1)


class Divergence(torch.autograd.Function):
    """Mean over positions of KL(ỹ‖softmax(z/τ)) for fixed ỹ.

    Σ_t ỹ·log ŷ_t needs only the sum of log ŷ for each target. ŷ − ỹ, for the gradient, is the only
    tensor of the size of the logits; all else is computed for blocks of positions.
    """

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, log_resembling: Tensor, which: Tensor, tau: float
    ) -> Tensor:
        counted = which >= 0
        number = counted.sum().clamp(min=1)
        resembling = log_resembling.exp()
        m, n = resembling.shape
        difference = torch.empty_like(logits, dtype=resembling.dtype)
        # Positions that do not count are summed in a last row, which is then dropped.
        place = torch.where(counted, which, m)
        summed = resembling.new_zeros(m + 1, n)
        few = max(1, AT_ONCE // n)
        for start in range(0, len(logits), few):
            rows = slice(start, start + few)
            log_predicted = F.log_softmax(to_single(logits[rows]) / tau, dim=-1)
            summed.index_add_(0, place[rows], log_predicted)
            like = resembling[which[rows].clamp(min=0)]
            torch.sub(log_predicted.exp_(), like, out=difference[rows])
        share = counted.to(resembling.dtype) / number
        weight = share.new_zeros(m + 1).index_add_(0, place, share)[:m]
        # ỹ·(log ỹ − log ŷ) as one sum: each term is thousands of times larger than the difference.
        gap = summed[:m].div_(-number).addcmul_(log_resembling, weight.unsqueeze(1))
        ctx.save_for_backward(difference, share)
        ctx.tau, ctx.dtype = tau, logits.dtype
        return gap.mul_(resembling).sum()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        difference, share = ctx.saved_tensors
        gradient = difference * (share * (grads[0] / ctx.tau)).unsqueeze(1)
        return gradient.to(ctx.dtype), None, None, None
