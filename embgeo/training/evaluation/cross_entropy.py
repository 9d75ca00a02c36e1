"""Mean cross-entropy, with fewer matrices of the size of the logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

#: Maximum number of logits computed at once: 1 GiB in float32, and as much for their gradient.
AT_ONCE = 2**28


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean of −log softmax(logits)[target] over all positions.

    Like `torch.nn.functional.cross_entropy`, in float32 or wider, but on a CPU in half the time and
    with two matrices of the size of the logits less at the peak: softmax − one-hot overwrites the
    log-probabilities, and is scaled in place in a single backward pass.

    `logits` have shape (…, N), `targets` shape (…), each from 0 to N − 1.
    """
    flat = logits.flatten(0, -2)
    flat = flat.float() if flat.element_size() < 4 else flat
    found: Tensor = CrossEntropy.apply(flat, targets.flatten())  # type: ignore[no-untyped-call]
    return found


def cross_entropy_in_parts(
    head: Callable[[Tensor], Tensor], hidden: Tensor, targets: Tensor, positions: int
) -> Tensor:
    """Mean cross-entropy of ``head(hidden)``, with logits of `positions` positions at a time.

    The backward pass computes the logits again, so that the output layer takes a third longer.

    `head` maps states of shape (…, d) to logits of shape (…, N); `hidden` has shape (…, d),
    `targets` (…).
    """

    def add(states: Tensor, expected: Tensor) -> Tensor:
        return cross_entropy(head(states), expected) * len(expected)

    at_once = max(1, positions)
    total = torch.zeros((), device=hidden.device)
    parts = zip(
        torch.split(hidden.flatten(0, -2), at_once),
        torch.split(targets.flatten(), at_once),
        strict=True,
    )
    for states, expected in parts:
        total = total + checkpoint(add, states, expected, use_reentrant=False)
    return total / targets.numel()


class CrossEntropy(torch.autograd.Function):
    """Mean cross-entropy of logits of shape (T, N)."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor) -> Tensor:
        place = targets.unsqueeze(1)
        log_p = F.log_softmax(logits, dim=1)
        loss = -log_p.gather(1, place).mean()
        if ctx.needs_input_grad[0]:
            difference = log_p.exp_()
            one = difference.new_ones(()).expand(place.shape)
            ctx.save_for_backward(difference.scatter_add_(1, place, -one))
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (difference,) = ctx.saved_tensors
        # In place: autograd refuses a second backward pass, as what it saved has changed.
        return difference.mul_(grads[0] / len(difference)), None
