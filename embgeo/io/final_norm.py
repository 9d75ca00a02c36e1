"""The final LayerNorm of a language model, found by name (for definitions, section 7)."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import EmbgeoError
from embgeo.core.matrix import FinalNorm
from embgeo.io.bounded.guard import short
from embgeo.io.checkpoint import Checkpoint, Tensor

#: What comes last before the output projection, in the architectures that have it.
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
    """The last LayerNorm before the output, of width `d`; by name only, nothing else is read."""
    by_name = {t.name.replace("/", "."): t for t in checkpoint.tensors}
    layers: dict[str, Tensor] = {}
    for name, tensor in by_name.items():
        layer, _, leaf = name.rpartition(".")
        final = _FINAL.search(layer) and not _IN_A_STACK.search(f".{layer}")
        if leaf in _SCALES and tensor.shape == (d,) and final:
            layers[layer] = tensor
    if len(layers) > 1:
        layers = {name: t for name, t in layers.items() if "encoder" not in name} or layers
    if not layers:
        return FinalNorm(absent="no final LayerNorm was found by name in the checkpoint")
    if len(layers) > 1:
        names = ", ".join(map(short, sorted(layers)[:4]))
        return FinalNorm(absent=f"several layers could be the final LayerNorm: {names}")
    layer, scale = next(iter(layers.items()))
    bias = next(
        (by_name[f"{layer}.{leaf}"] for leaf in _BIASES if f"{layer}.{leaf}" in by_name), None
    )
    layer = short(layer)
    if bias is None or bias.shape != (d,):
        return FinalNorm(
            layer, absent=f"{layer} has no bias (an RMSNorm?), the condition is for LayerNorm"
        )
    try:
        return FinalNorm(layer, entries(scale), entries(bias))
    except (EmbgeoError, OSError) as error:
        return FinalNorm(layer, absent=f"{layer} could not be read ({error})")


def entries(tensor: Tensor) -> npt.NDArray[np.float64]:
    return np.asarray(tensor.open(), dtype=np.float64)
