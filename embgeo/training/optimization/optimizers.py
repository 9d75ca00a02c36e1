"""Optimizers with groups of parameters, and their learning rates."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from msgspec.structs import asdict
from torch import Tensor, nn
from torch.optim import Optimizer

from embgeo.training.methods import CoupledAdam
from embgeo.training.sections import Adam, Sgd


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
    chosen: Adam | Sgd,
    groups: Iterable[dict[str, Any]],
    *,
    coupled: Iterable[Tensor] = (),
    sparse: bool = False,
) -> Optimizer:
    """Make an optimizer with parameter groups, whose settings override its own.

    `coupled`: the embedding matrices among the parameters, for Coupled Adam in place of Adam.
    `sparse`: whether gradients are sparse, which only SGD supports.
    """
    listed, matrices = list(groups), list(coupled)
    # One kernel for all parameters, which not all devices have, and none for sparse gradients.
    fused = not sparse and all(
        p.device.type in ("cpu", "cuda") for group in listed for p in group["params"]
    )
    if isinstance(chosen, Sgd):
        decay = chosen.weight_decay
        made: Optimizer = torch.optim.SGD(listed, chosen.lr, weight_decay=decay, fused=fused)
    elif matrices:
        made = CoupledAdam(listed, matrices, **asdict(chosen))
    else:
        made = torch.optim.AdamW(listed, fused=fused, **asdict(chosen))
    for group in made.param_groups:
        group["initial_lr"] = group["lr"]
    return made


def apply_factor(optimizer: Optimizer, factor: float) -> float:
    """Set each group's learning rate to the initial one times a factor; return the first rate."""
    for group in optimizer.param_groups:
        group["lr"] = group["initial_lr"] * factor
    found: float = optimizer.param_groups[0]["lr"]
    return found
