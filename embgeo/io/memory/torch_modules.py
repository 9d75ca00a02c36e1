"""The embeddings of a torch module: a layer of them, or a whole model."""

from __future__ import annotations

import sys
from typing import Any

from embgeo.core.errors import BadOption
from embgeo.io.memory.held import HeldMatrix
from embgeo.io.memory.torch_tensors import as_array, is_tensor

FORMAT = "torch module"


def find_matrix(W: Any) -> HeldMatrix | None:
    """Of a module; what it is wrapped in (parallel, compiled, Lightning) does not matter.

    Raises
    ------
    BadOption
        A module without an embedding.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(W, torch.nn.Module):
        return None
    layer, reason, model = embedding_layer(W)
    rows = as_array(layer.weight, name_in(W, layer))
    output, output_name, tied_by, notes = output_embedding(W, model, layer)
    return HeldMatrix(
        rows,
        name=name_in(W, layer),
        output=output,
        output_name=output_name,
        format=FORMAT,
        reason=reason,
        tied_by=tied_by,
        notes=notes,
    )


def embedding_layer(W: Any) -> tuple[Any, str, Any]:
    """The layer of the input embedding, why it was taken, and the model that named it, if any."""
    for module in W.modules():
        layer = ask_module(module, "get_input_embeddings")
        if layer is not None:
            return layer, "what get_input_embeddings gives", module
    if has_matrix(W):
        return W, "", None
    layers = [m for m in W.modules() if hasattr(m, "num_embeddings") and has_matrix(m)]
    if not layers:
        raise BadOption(
            f"{type(W).__name__} has no embedding",
            way_out="give the tensor itself, such as model.layer.weight",
        )
    largest = max(layers, key=lambda m: m.weight.numel())
    return largest, "the largest embedding of the module", None


def ask_module(module: Any, method: str) -> Any:
    """The layer that a method of the model names; None where there is none."""
    if not callable(getattr(module, method, None)):
        return None
    try:
        layer = getattr(module, method)()
    except (NotImplementedError, AttributeError):  # models of other things than text
        return None
    return layer if layer is not None and has_matrix(layer) else None


def has_matrix(layer: Any) -> bool:
    weight: Any = getattr(layer, "weight", None)
    return is_tensor(weight) and weight.ndim == 2


def output_embedding(W: Any, model: Any, layer: Any) -> tuple[Any, str, str, tuple[str, ...]]:
    """The output embedding over the same tokens, its name, how it is tied, and notes."""
    head = None if model is None else ask_module(model, "get_output_embeddings")
    if head is None:
        return None, "", "", ()
    name = name_in(W, head)
    if head.weight is layer.weight or head.weight.data_ptr() == layer.weight.data_ptr() != 0:
        return None, "", f"{name} is the same tensor", ()
    if head.weight.shape[0] != layer.weight.shape[0]:
        return None, "", "", (f"{name} has another number of rows and is left out",)
    return as_array(head.weight, name), name, "", ()


def name_in(W: Any, layer: Any) -> str:
    """The name of a layer's weight in the module."""
    names = [prefix for prefix, module in W.named_modules() if module is layer]
    return f"{names[0]}.weight" if names and names[0] else "weight"
