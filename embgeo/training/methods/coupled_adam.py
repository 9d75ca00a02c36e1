"""Coupled Adam: all rows of an embedding share the second moment."""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.adamw import adamw

from embgeo.core.errors import BadOption


class CoupledAdam(Optimizer):
    """AdamW, in which the second moment of coupled matrices is averaged over the rows.

    Adam divides the gradient of each row by that row's own scale. The gradients of the rows of a
    softmax sum to nearly zero; after the division they no longer do, and all rows drift the same
    way, rare ones most. One scale for each column, common to all rows, removes the drift. Only the
    mean is stored, as it is linear in the squares, which saves the memory of one matrix.

    Parameters
    ----------
    params : iterable
        Parameters or groups, as for `torch.optim.AdamW`.
    coupled : iterable of Tensor
        The embedding matrices (N, d) among them, tied or not; usually
        ``[model.get_output_embeddings().weight]`` and the input's.
    lr, betas, eps, weight_decay
        See `torch.optim.AdamW`.

    References
    ----------
    Stollenwerk and Stollenwerk, "Better embeddings with coupled Adam", ACL 2025 (arXiv 2502.08441).
    """

    NAME: ClassVar[str] = "coupled-adam"
    SOURCE: ClassVar[str] = "Stollenwerk and Stollenwerk 2025"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "the mean of the second moment is kept in its place, which is the same number",
    )

    def __init__(
        self,
        params: Any,
        coupled: Iterable[Tensor],
        *,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        if not (lr >= 0.0 and eps > 0.0 and all(0.0 <= beta < 1.0 for beta in betas)):
            raise BadOption(f"lr {lr}, betas {betas} and eps {eps} make no optimizer")
        super().__init__(
            params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        )
        self.coupled = {id(weight) for weight in coupled}
        known = {id(p): p for group in self.param_groups for p in group["params"]}
        if not self.coupled or not self.coupled <= set(known):
            raise BadOption(
                "a coupled matrix is not among the parameters",
                way_out="give both from the same model, the matrix itself and not a copy",
            )
        for weight in (known[number] for number in self.coupled):
            if weight.ndim != 2:
                raise BadOption(f"a coupled weight of shape {tuple(weight.shape)} has no rows")

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Take one step for all parameters; return the value of `closure`."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            moving = [p for p in group["params"] if p.grad is not None]
            for p in moving:
                if not self.state[p]:
                    self.state[p] = {
                        "step": torch.tensor(0.0),
                        "exp_avg": torch.zeros_like(p),
                        "exp_avg_sq": torch.zeros_like(p[0] if id(p) in self.coupled else p),
                    }
            plain = [p for p in moving if id(p) not in self.coupled]
            states = [self.state[p] for p in plain]
            adamw(
                plain,
                [p.grad for p in plain if p.grad is not None],
                [state["exp_avg"] for state in states],
                [state["exp_avg_sq"] for state in states],
                [],
                [state["step"] for state in states],
                amsgrad=False,
                maximize=False,
                beta1=group["betas"][0],
                beta2=group["betas"][1],
                lr=group["lr"],
                eps=group["eps"],
                weight_decay=group["weight_decay"],
            )
            for p in moving:
                if id(p) in self.coupled:
                    update(p, self.state[p], group)
        return loss


def update(p: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
    """Take one step of a coupled matrix, in place."""
    gradient = p.grad
    assert gradient is not None
    beta1, beta2 = group["betas"]
    state["step"] += 1.0
    step = float(state["step"])
    state["exp_avg"].lerp_(gradient, 1.0 - beta1)
    state["exp_avg_sq"].lerp_(gradient.square().mean(dim=0), 1.0 - beta2)
    deviation = state["exp_avg_sq"].div(1.0 - beta2**step).sqrt_().add_(group["eps"])
    p.mul_(1.0 - group["lr"] * group["weight_decay"])
    p.addcdiv_(state["exp_avg"], deviation, value=-group["lr"] / (1.0 - beta1**step))
