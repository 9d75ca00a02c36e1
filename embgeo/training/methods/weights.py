"""The weights that methods act on, and arithmetic for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from embgeo.core.errors import BadOption

#: Where a weight is found: in a module, as the weight itself, or by a function that gives it.
Source = nn.Module | Tensor | Callable[[], Tensor]


def follow(module: nn.Module, weight: Tensor) -> None:
    """Move a regularizer to the device of the model's weight."""
    if any(own.device != weight.device for own in module.buffers()):
        module.to(weight.device)


class Weight:
    """A reference to a weight of the model, resolved at each use.

    What refers to it follows when a model is moved, tied or loaded anew; and since this is no
    module, ``state_dict`` and ``parameters`` do not see the weight twice.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        weight = self()
        if weight.ndim != 2:
            raise BadOption(
                f"a weight of shape {tuple(weight.shape)} has no row for each token",
                way_out="give the embedding or the output layer",
            )

    def __call__(self) -> Tensor:
        if isinstance(self.source, nn.Module):
            weight = getattr(self.source, "weight", None)
        else:
            weight = self.source if isinstance(self.source, Tensor) else self.source()
        if not isinstance(weight, Tensor):
            raise BadOption(
                f"{type(self.source).__name__} has no weight",
                way_out="give an embedding, an output layer, or a function that gives W",
            )
        return weight


def find_layer(model: nn.Module, role: str) -> nn.Module:
    """The input embedding or the output layer of a model; `BadOption` if it has none."""
    getter = f"get_{role}_embeddings"
    found = getattr(model, getter, lambda: None)()
    if not isinstance(found, nn.Module):
        raise BadOption(
            f"{type(model).__name__}.{getter}() gives no module",
            way_out="give the regularizer the layer itself in place of the model",
        )
    return found


def mask_rows(n: int, ignore_rows: Sequence[int]) -> Tensor:
    """True for the rows that count; negative numbers count from the end.

    Raises
    ------
    BadOption
        A row that does not exist.
    """
    kept = torch.ones(n, dtype=torch.bool)
    for row in ignore_rows:
        if not -n <= row < n:
            raise BadOption(f"ignore_rows: no row {row}", way_out=f"there are {n} rows, from 0")
        kept[row] = False
    return kept


def exact(tensor: Tensor) -> AbstractContextManager[object]:
    """Products inside are taken in the precision of their operands, under autocast too."""
    return torch.autocast(tensor.device.type, enabled=False)


def to_single(tensor: Tensor) -> Tensor:
    """The tensor itself, or in float32 if it has fewer digits than that."""
    return tensor.float() if tensor.element_size() < 4 else tensor
