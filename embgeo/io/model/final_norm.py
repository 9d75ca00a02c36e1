"""The final LayerNorm of a checkpoint."""

import re

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import EmbgeoError
from embgeo.core.matrix import FinalNorm
from embgeo.files.guard import short
from embgeo.io.model.checkpoint import Checkpoint, Tensor

#: The last layer before the output matrix.
_FINAL = re.compile(
    r"(^|\.)(ln_f|norm_f|ln_out|ln_final|final_layer_?norm|final_norm|output_norm|"
    r"(decoder|lm_head)\.(layer_norm|norm)|(model|transformer)\.norm|"
    r"predictions\.transform\.LayerNorm)$"
)
#: Layers of a stack end with norms of the same names.
_IN_A_STACK = re.compile(r"\.\d+\.")
_SCALES = ("weight", "gamma", "scale", "g")
_BIASES = ("bias", "beta", "b")


def find_final_norm(checkpoint: Checkpoint, d: int) -> FinalNorm:
    """Find the last LayerNorm before the output by its name, and read its `d` entries."""
    by_name = {t.name.replace("/", "."): t for t in checkpoint.tensors}
    layers: dict[str, Tensor] = {}
    for name, tensor in by_name.items():
        layer, _, leaf = name.rpartition(".")
        if leaf in _SCALES and tensor.shape == (d,) and is_final_norm(name):
            layers[layer] = tensor
    if len(layers) > 1:
        layers = {name: t for name, t in layers.items() if "encoder" not in name} or layers
    if not layers:
        return FinalNorm(absent="no final LayerNorm was found by name in the checkpoint")
    if len(layers) > 1:
        names = ", ".join(map(short, sorted(layers)[:4]))
        return FinalNorm(absent=f"several layers could be the final LayerNorm: {names}")
    layer, scale = next(iter(layers.items()))
    biases = (by_name.get(f"{layer}.{leaf}") for leaf in _BIASES)
    bias = next(filter(None, biases), None)
    layer = short(layer)
    if bias is None or bias.shape != (d,):
        return FinalNorm(
            layer, absent=f"{layer} has no bias (an RMSNorm?), the condition is for LayerNorm"
        )
    try:
        return FinalNorm(layer, _read_entries(scale), _read_entries(bias))
    except (EmbgeoError, OSError) as error:
        return FinalNorm(layer, absent=f"{layer} could not be read ({error})")


def is_final_norm(name: str) -> bool:
    """Tell whether a name is that of the scale or bias of the last norm before the output."""
    layer, _, leaf = name.replace("/", ".").rpartition(".")
    is_last = _FINAL.search(layer) is not None and not _IN_A_STACK.search(f".{layer}")
    return is_last and leaf in (*_SCALES, *_BIASES)


def _read_entries(tensor: Tensor) -> npt.NDArray[np.float64]:
    return np.asarray(tensor.open(), dtype=np.float64)
