"""Embedding matrices in objects of pandas, gensim and torch, without copies where possible."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from embgeo.core.errors import BadOption
from embgeo.core.matrix import Frequency
from embgeo.io.bounded.small_files import safe_text
from embgeo.io.labels.counts_file import from_rank


@dataclass(frozen=True, slots=True)
class HeldMatrix:
    """An embedding matrix and what its object knows about it.

    Attributes
    ----------
    rows : array, shape (N, d)
    name : str
        What the object calls it.
    tokens : tuple of str or None
    frequency : Frequency or None
    output : array or None
        The output embedding of an untied model, with N rows.
    output_name : str
    format : str
        Which kind of object it was.
    reason : str
        Why this matrix was taken, where there were several.
    tied_by : str
        How the output embedding is the input embedding; empty where it is not.
    notes : tuple of str
    """

    rows: npt.NDArray[Any]
    name: str = ""
    tokens: tuple[str, ...] | None = None
    frequency: Frequency | None = None
    output: npt.NDArray[Any] | None = None
    output_name: str = ""
    format: str = "array"
    reason: str = ""
    tied_by: str = ""
    notes: tuple[str, ...] = ()


def find_in_dataframe(W: Any) -> HeldMatrix | None:
    """Of a DataFrame of numbers; an index other than 0, 1, … names the tokens."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(W, pandas.DataFrame):
        return None
    for column, kind in zip(W.columns, W.dtypes, strict=True):
        if not pandas.api.types.is_numeric_dtype(kind) or pandas.api.types.is_bool_dtype(kind):
            raise BadOption(
                f"column {column!r} of the DataFrame holds no numbers",
                way_out="give the columns of the vectors alone; set_index names the tokens",
            )
    rows = W.to_numpy()
    if rows.dtype.kind not in "f":  # whole numbers, or numbers with missing ones
        rows = W.to_numpy(dtype="float64", na_value=float("nan"))
    named = not isinstance(W.index, pandas.RangeIndex)
    tokens = tuple(safe_text(str(label)) for label in W.index) if named else None
    return HeldMatrix(rows, tokens=tokens, format="pandas DataFrame")


def find_in_keyed_vectors(W: Any) -> HeldMatrix | None:
    """Of KeyedVectors, or of a model that holds them as ``wv``."""
    vectors = getattr(W, "wv", W)
    rows = getattr(vectors, "vectors", None)
    words = getattr(vectors, "index_to_key", None) or getattr(vectors, "index2word", None)
    if not isinstance(rows, np.ndarray) or not isinstance(words, list):
        return None
    rows = rows[: len(words)]  # Doc2Vec and FastText may hold more
    return HeldMatrix(
        rows,
        name="vectors",
        tokens=tuple(safe_text(str(word)) for word in words),
        frequency=frequency(vectors, words),
        format="gensim vectors",
    )


def frequency(vectors: Any, words: list[Any]) -> Frequency | None:
    """Counts of the training corpus, or what gensim puts in their place."""
    counts = counts_of(vectors, words)
    if counts is None or not np.isfinite(counts).all() or (counts < 0).any() or not counts.any():
        return None
    # Files without counts are given N, N−1, …, 1: only the order means something.
    if np.array_equal(counts, np.arange(len(words), 0, -1)):
        return from_rank(len(words))
    return Frequency("counts", counts, "counts in the gensim vectors")


def counts_of(vectors: Any, words: list[Any]) -> npt.NDArray[np.float64] | None:
    stored = getattr(vectors, "expandos", {}).get("count")
    if stored is None:
        old = getattr(vectors, "__dict__", {}).get("vocab")  # gensim before 4
        if not isinstance(old, dict):
            return None
        stored = [getattr(old.get(word), "count", -1) for word in words]
    counts = np.asarray(stored, dtype=np.float64)
    return counts if counts.shape == (len(words),) else None


#: dtypes that torch does not hand over to numpy, and as what of the same width it does.
VIEWS = {
    "bfloat16": ("int16", ml_dtypes.bfloat16),
    "float8_e4m3fn": ("uint8", ml_dtypes.float8_e4m3fn),
    "float8_e4m3fnuz": ("uint8", ml_dtypes.float8_e4m3fnuz),
    "float8_e5m2": ("uint8", ml_dtypes.float8_e5m2),
    "float8_e5m2fnuz": ("uint8", ml_dtypes.float8_e5m2fnuz),
}


def find_in_torch(W: Any) -> HeldMatrix | None:
    """Of a tensor, a parameter or a module.

    Raises
    ------
    BadOption
        A module without an embedding, or entries that are not in this process.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    if isinstance(W, torch.Tensor):
        return HeldMatrix(as_array(W), format="torch tensor")
    return of_module(W) if isinstance(W, torch.nn.Module) else None


def is_tensor(W: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(W, torch.Tensor)


def as_array(tensor: Any, name: str = "tensor") -> npt.NDArray[Any]:
    """The entries of a tensor; those of a sharded one are gathered from all its processes."""
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
    check_storage(tensor, name)
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


def check_storage(tensor: Any, name: str) -> None:
    """Refuse a tensor of which the storage is freed: to read it would end the process."""
    if tensor.is_meta or tensor.layout != sys.modules["torch"].strided:
        return
    if tensor.untyped_storage().nbytes() < stored_bytes(tensor):
        raise BadOption(
            f"the storage of {name} is freed, as FSDP does between steps",
            way_out="read it inside FullyShardedDataParallel.summon_full_params(model)",
        )


def stored_bytes(tensor: Any) -> int:
    """Bytes of a storage from its beginning to the last entry of a tensor in it."""
    if not tensor.numel():
        return 0
    reach = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
    return int((tensor.storage_offset() + reach + 1) * tensor.element_size())


def of_module(W: Any) -> HeldMatrix:
    """The input embedding, and the output embedding where it is another one."""
    layer, reason, model = embedding_layer(W)
    rows = layer_entries(layer, name_in(W, layer), is_in_fsdp(W))
    output, output_name, tied_by, notes = output_embedding(W, model, layer)
    return HeldMatrix(
        rows,
        name=name_in(W, layer),
        output=output,
        output_name=output_name,
        format="torch module",
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
    shared = head.weight is layer.weight or head.weight.data_ptr() == layer.weight.data_ptr() != 0
    if shared and not is_adapted(layer) and not is_adapted(head):
        return None, "", f"{name} is the same tensor", ()
    if head.weight.shape[0] != layer.weight.shape[0]:
        return None, "", "", (f"{name} has another number of rows and is left out",)
    return layer_entries(head, name, is_in_fsdp(W)), name, "", ()


def is_in_fsdp(W: Any) -> bool:
    """Whether a module is sharded by FSDP 1, and its parameters are views of flat ones."""
    fsdp: Any = sys.modules.get("torch.distributed.fsdp")
    return fsdp is not None and bool(fsdp.FullyShardedDataParallel.fsdp_modules(W))


def is_adapted(layer: Any) -> bool:
    """Whether PEFT changes what the layer's weight does, and has not merged the change into it."""
    if not hasattr(layer, "base_layer") or not getattr(layer, "active_adapters", ()):
        return False
    return not getattr(layer, "merged", False) and not getattr(layer, "disable_adapters", False)


def layer_entries(layer: Any, name: str, in_fsdp: bool = False) -> npt.NDArray[Any]:
    """The matrix that a layer uses: its weight, with the low-rank changes of active adapters."""
    weight = layer.weight.detach()
    if in_fsdp:
        check_storage(weight, name)
        # An array of numpy would keep FSDP from freeing the storage again.
        weight = weight.clone()
    if not is_adapted(layer):
        return as_array(weight, name)
    kinds = [
        getattr(layer, kind) for kind in ("lora_embedding_A", "lora_A") if hasattr(layer, kind)
    ]
    adapters = [one for one in layer.active_adapters if any(one in kind for kind in kinds)]
    if not kinds or any(getattr(layer, "use_dora", {}).get(one) for one in adapters):
        raise BadOption(
            f"{name} has an adapter other than plain LoRA",
            way_out="merge it with model.merge_adapter()",
        )
    changes = [layer.get_delta_weight(one) for one in adapters]
    return as_array(sum(changes, weight), name)


def name_in(W: Any, layer: Any) -> str:
    """The name of a layer's weight in the module."""
    names = [prefix for prefix, module in W.named_modules() if module is layer]
    return f"{names[0]}.weight" if names and names[0] else "weight"
