"""The weights that methods act on, and arithmetic for them."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from embgeo.core.errors import BadOption

#: Where a weight is found: a module that has it, the weight itself, or a function that returns it.
Source = nn.Module | Tensor | Callable[[], Tensor]


def read_weight(source: Source) -> Tensor:
    """Read the weight of a source, with a row for each token; `BadOption` if it has none."""
    if isinstance(source, nn.Module):
        weight = getattr(source, "weight", None)
    else:
        weight = source if isinstance(source, Tensor) else source()
    if not isinstance(weight, Tensor):
        raise BadOption(
            f"{type(source).__name__} has no weight",
            way_out="give an embedding, an output layer, or a function that gives W",
        )
    if weight.ndim != 2:
        raise BadOption(
            f"a weight of shape {tuple(weight.shape)} has no row for each token",
            way_out="give the embedding or the output layer",
        )
    return weight


def follow(module: nn.Module, weight: Tensor) -> None:
    """Move a regularizer to the device of the model's weight."""
    if any(own.device != weight.device for own in module.buffers()):
        module.to(weight.device)


def find_layer(model: nn.Module, role: str) -> nn.Module:
    """Find the input embedding or the output layer of a model; `BadOption` if it has none."""
    getter = f"get_{role}_embeddings"
    found = getattr(model, getter, lambda: None)()
    if not isinstance(found, nn.Module):
        raise BadOption(
            f"{type(model).__name__}.{getter}() gives no module",
            way_out="give the regularizer the layer itself in place of the model",
        )
    return found


def make_linear(weight: Tensor, bias: Tensor | None = None) -> nn.Linear:
    """Make a linear layer with these parameters, without drawing others first."""
    rows, columns = weight.shape
    layer = nn.Linear(columns, rows, bias=bias is not None, device="meta")
    layer.weight = as_parameter(weight)
    if bias is not None:
        layer.bias = as_parameter(bias)
    return layer


def make_embedding(weight: Tensor, padding_idx: int | None = None) -> nn.Embedding:
    """Make an embedding with this weight.

    Unlike torch's, it keeps the values of the padding row.
    """
    rows, columns = weight.shape
    layer = nn.Embedding(rows, columns, padding_idx=padding_idx, device="meta")
    layer.weight = as_parameter(weight)
    return layer


def as_parameter(tensor: Tensor) -> nn.Parameter:
    """Return the tensor itself if it is a parameter already."""
    return tensor if isinstance(tensor, nn.Parameter) else nn.Parameter(tensor)


def mask_rows(n: int, ignore_rows: Sequence[int]) -> Tensor:
    """Return a mask of the rows that count; negative numbers count from the end."""
    kept = torch.ones(n, dtype=torch.bool)
    for row in ignore_rows:
        if not -n <= row < n:
            raise BadOption(f"ignore_rows: no row {row}", way_out=f"there are {n} rows, from 0")
        kept[row] = False
    return kept


def exact(tensor: Tensor) -> AbstractContextManager[object]:
    """Disable autocast: products have the precision of their operands."""
    return torch.autocast(tensor.device.type, enabled=False)


def to_single(tensor: Tensor) -> Tensor:
    """Return the tensor in float32 if its dtype is narrower, else unchanged."""
    return tensor.float() if tensor.element_size() < 4 else tensor


def check_state(optimizer: Optimizer) -> None:
    """Raise ValueError for a state that would be broadcast over a parameter.

    Entries are numbers, or have the shape of the parameter or of one of its rows.
    """
    for p in (p for group in optimizer.param_groups for p in group["params"]):
        shape = tuple(p.shape)
        for name, value in optimizer.state[p].items() if p in optimizer.state else ():
            if (found := tuple(getattr(value, "shape", ()))) not in ((), shape, shape[1:]):
                raise ValueError(f"{name} {found} of a parameter {shape}")
