"""Mean cross-entropy, with fewer matrices of the size of the logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

#: Logits of a batch that are made at once: 1 GiB in float32, and their gradient as much.
AT_ONCE = 2**28


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean of −log softmax(logits)[target] over all positions.

    As `torch.nn.functional.cross_entropy`, in float32 at least, in half the time on a CPU and with
    two matrices of the size of the logits less at the peak: softmax − one-hot is made where the
    log-probabilities were, and scaled in place in the backward pass, which so can be had once.

    `logits` have shape (…, N), `targets` shape (…), each from 0 to N − 1.
    """
    flat = logits.flatten(0, -2)
    flat = flat.float() if flat.element_size() < 4 else flat
    found: Tensor = CrossEntropy.apply(flat, targets.flatten())  # type: ignore[no-untyped-call]
    return found


def cross_entropy_in_parts(
    head: Callable[[Tensor], Tensor], hidden: Tensor, targets: Tensor, positions: int
) -> Tensor:
    """Mean cross-entropy of ``head(hidden)``, with the logits of some positions at a time.

    They are made again in the backward pass, which takes a third more time of the output layer.

    `head`: from states of shape (…, d) to logits of shape (…, N). `hidden`: shape (…, d).
    `targets`: shape (…). `positions`: how many at a time.
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
