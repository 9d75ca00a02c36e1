"""Sums over many rows, kept out of mixed precision."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch
from torch import Tensor


def exact(tensor: Tensor) -> AbstractContextManager[object]:
    """Products inside are taken in the precision of their operands, under autocast too."""
    return torch.autocast(tensor.device.type, enabled=False)


def to_single(tensor: Tensor) -> Tensor:
    """The tensor itself, or in float32 if it has fewer digits than that."""
    return tensor.float() if tensor.element_size() < 4 else tensor
