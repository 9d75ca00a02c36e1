"""Optimizers and schedules of the learning rate by name, with their settings."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from embgeo.core.arguments import refuse_name
from embgeo.core.settings import refuse_unknown
from embgeo.training.checks import list_defaults
from embgeo.training.methods import CoupledAdam

#: Settings of each optimizer, and their defaults. Weight decay is decoupled from the gradient: Adam
#: would divide a decay inside of it by the size of the gradient, so that rows that are hardly ever
#: updated would shrink by the learning rate at each step. In ``sgd`` both are the same.
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "adamw": {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01},
    "coupled-adam": {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01},
    # As AWD-LSTM is trained.
    "sgd": {"lr": 30.0, "weight_decay": 1.2e-6},
}


def parameter_groups(
    model: nn.Module, special: Sequence[Mapping[str, Any]] = (), embeddings: Iterable[Tensor] = ()
) -> list[dict[str, Any]]:
    """Return the parameter groups of an optimizer, with each trained parameter of a model once.

    `special`: groups with settings of their own, such as `Regularizer.parameter_groups()`. Vectors
    (biases and the gains of norms) and `embeddings` have no weight decay.
    """
    apart = {id(p) for group in special for p in group["params"]}
    rows = {id(p) for p in embeddings}
    rest = [p for p in model.parameters() if p.requires_grad and id(p) not in apart]
    spared = [p for p in rest if p.ndim < 2 or id(p) in rows]
    decayed = [p for p in rest if p.ndim >= 2 and id(p) not in rows]
    groups: list[dict[str, Any]] = [
        {"params": decayed},
        {"params": spared, "weight_decay": 0.0},
        *(dict(group) for group in special),
    ]
    return [group for group in groups if group["params"]]


def build_optimizer(
    kind: str,
    groups: Iterable[dict[str, Any]],
    settings: Mapping[str, Any] | None = None,
    *,
    coupled: Iterable[Tensor] = (),
    sparse: bool = False,
) -> Optimizer:
    """Make one of `OPTIMIZERS` with parameter groups, whose settings override `settings`.

    `coupled`: the embedding matrices among the parameters, for ``coupled-adam``. `sparse`: whether
    gradients are sparse, which only ``sgd`` supports.
    """
    if kind not in OPTIMIZERS:
        raise refuse_name("optimizer", kind, OPTIMIZERS)
    chosen = complete_optimizer(kind, settings or {})
    listed = list(groups)
    # One kernel for all parameters, which not all devices have, and none for sparse gradients.
    fused = not sparse and all(
        p.device.type in ("cpu", "cuda") for group in listed for p in group["params"]
    )
    if kind == "coupled-adam":
        made: Optimizer = CoupledAdam(listed, coupled, **chosen)
    elif kind == "sgd":
        made = torch.optim.SGD(listed, fused=fused, **chosen)
    else:
        made = torch.optim.AdamW(listed, fused=fused, **chosen)
    for group in made.param_groups:
        group["initial_lr"] = group["lr"]
    return made


def complete_optimizer(kind: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return all settings of a known optimizer; `BadOption` for one that it lacks."""
    refuse_unknown(settings, OPTIMIZERS[kind], kind)
    return {**OPTIMIZERS[kind], **settings}


def apply_factor(optimizer: Optimizer, factor: float) -> float:
    """Set each group's learning rate to the initial one times a factor; return the first rate."""
    for group in optimizer.param_groups:
        group["lr"] = group["initial_lr"] * factor
    found: float = optimizer.param_groups[0]["lr"]
    return found


#: The factor of the learning rate, from the step (from 0), the number of steps, and the epoch
#: (from 0).
Schedule = Callable[[int, int, int], float]


def constant(_step: int, _steps: int, _epoch: int) -> float:
    return 1.0


def one_cycle(
    step: int,
    steps: int,
    _epoch: int,
    *,
    warm_up: float = 0.3,
    start: float = 0.04,
    end: float = 1e-4,
) -> float:
    """Rise by a cosine from `start` to 1 in the first `warm_up` of the steps, then to `end`."""
    last = max(steps - 1, 1)
    top = warm_up * last
    if step < top:
        return follow_cosine(start, 1.0, step / top)
    if last <= top:
        return 1.0
    return follow_cosine(1.0, end, min((step - top) / (last - top), 1.0))


def follow_cosine(before: float, after: float, way: float) -> float:
    """Return the value at a share `way` of a cosine from `before` to `after`."""
    return after + (before - after) * (1.0 + math.cos(math.pi * way)) / 2.0


def epoch_decay(_step: int, _steps: int, epoch: int, *, after: int = 5, rate: float = 0.9) -> float:
    """Stay at 1 for `after` epochs, then multiply by `rate` in each epoch."""
    return rate ** max(0, epoch + 1 - after)


def inverse_sqrt(step: int, _steps: int, _epoch: int, *, warm_up_steps: int = 4000) -> float:
    """Rise linearly to 1 in `warm_up_steps` steps, then fall as 1/√step.

    A warm-up of 0 steps is the same as one of 1 step: the first step has the full rate.

    References
    ----------
    Vaswani et al., "Attention is all you need", NIPS 2017, Eq. 3, divided by its largest value.
    """
    top = max(warm_up_steps, 1)
    return min((step + 1) / top, math.sqrt(top / (step + 1)))


def linear(step: int, steps: int, _epoch: int, *, end: float = 1e-4) -> float:
    """Fall linearly from 1 to 0, but not below `end`.

    References
    ----------
    The code of Mikolov et al., "Efficient estimation of word representations in vector space",
    2013, with the same `end`.
    """
    return max(1.0 - step / max(steps, 1), end)


def cosine(
    step: int, steps: int, _epoch: int, *, warm_up_steps: int = 100, end: float = 0.1
) -> float:
    """Rise linearly to 1 in `warm_up_steps` steps, then follow a cosine to `end` at the last step.

    References
    ----------
    Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR 2017, Eq. 5,
    without restarts; with a linear warm-up and this end as in Touvron et al. 2023, §2.3.
    """
    if step < warm_up_steps:
        return (step + 1) / warm_up_steps
    way = (step - warm_up_steps) / max(steps - 1 - warm_up_steps, 1)
    return follow_cosine(1.0, end, min(way, 1.0))


SCHEDULES: dict[str, Callable[..., float]] = {
    "constant": constant,
    "one-cycle": one_cycle,
    "epoch-decay": epoch_decay,
    "inverse-sqrt": inverse_sqrt,
    "linear": linear,
    "cosine": cosine,
}


def build_schedule(kind: str, settings: Mapping[str, Any] | None = None) -> Schedule:
    """Build a schedule with its settings filled in."""
    if kind not in SCHEDULES:
        raise refuse_name("schedule", kind, SCHEDULES)
    refuse_unknown(settings or {}, list_defaults(SCHEDULES[kind]), f"schedule {kind}")
    return partial(SCHEDULES[kind], **(settings or {}))
