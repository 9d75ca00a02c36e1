"""Tensors of torch as arrays of numpy, without copies where they lie in main memory."""

from __future__ import annotations

import sys
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from embgeo.core.errors import BadOption
from embgeo.io.memory.held import HeldMatrix

#: dtypes that torch does not hand over to numpy, and as what of the same width it does.
VIEWS = {
    "bfloat16": ("int16", ml_dtypes.bfloat16),
    "float8_e4m3fn": ("uint8", ml_dtypes.float8_e4m3fn),
    "float8_e4m3fnuz": ("uint8", ml_dtypes.float8_e4m3fnuz),
    "float8_e5m2": ("uint8", ml_dtypes.float8_e5m2),
    "float8_e5m2fnuz": ("uint8", ml_dtypes.float8_e5m2fnuz),
}


def find_matrix(W: Any) -> HeldMatrix | None:
    """Of a tensor or a parameter."""
    if not is_tensor(W):
        return None
    return HeldMatrix(as_array(W), format="torch tensor")


def is_tensor(W: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(W, torch.Tensor)


def as_array(tensor: Any, name: str = "tensor") -> npt.NDArray[Any]:
    """The entries of a tensor; those of a sharded one are gathered from all its processes.

    Raises
    ------
    BadOption
        A tensor whose entries are not in this process.
    """
    torch: Any = sys.modules["torch"]
    if getattr(tensor, "ds_id", None) is not None and not tensor.numel():
        raise BadOption(
            f"{name} is partitioned by DeepSpeed",
            way_out="gather it with deepspeed.zero.GatheredParameters",
        )
    tensor = tensor.detach()
    if hasattr(tensor, "full_tensor"):  # a DTensor, of FSDP for instance
        tensor = tensor.full_tensor()
    if tensor.is_meta:
        raise BadOption(f"{name} is on the meta device and has no entries", way_out="load it first")
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout != torch.strided:
        raise BadOption(f"{name} is sparse", way_out="give .to_dense() of it")
    tensor = tensor.cpu().resolve_conj().resolve_neg()
    view = VIEWS.get(str(tensor.dtype).removeprefix("torch."))
    array: npt.NDArray[Any]
    if view is None:
        array = tensor.numpy()
    else:
        array = np.asarray(tensor.view(getattr(torch, view[0])).numpy()).view(view[1])
    return array
