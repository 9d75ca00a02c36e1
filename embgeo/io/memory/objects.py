"""Embedding matrices in objects of pandas, gensim and torch, as views where possible."""

import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import BadOption
from embgeo.core.matrix import Frequency
from embgeo.files.maps import number_type
from embgeo.files.small_files import safe_text
from embgeo.io.labels.counts_file import from_rank
from embgeo.io.model.checkpoint import Checkpoint, Tensor
from embgeo.io.model.companions import read_parameters
from embgeo.io.model.names import is_other_embedding

#: Rows of a table whose columns are looked at for whole numbers, and the fewest.
LOOKED_AT, FEWEST_WHOLE = 1000, 4


@dataclass(frozen=True, slots=True)
class MatrixOfObject:
    """An embedding matrix and what its object says of it."""

    rows: npt.NDArray[Any]
    name: str = ""
    tokens: tuple[str, ...] | None = None
    frequency: Frequency | None = None
    output: npt.NDArray[Any] | None = None  # of an untied model, with N rows
    output_name: str = ""
    format: str = "array"  # kind of object
    reason: str = ""  # why this one of several matrices was taken
    tied_by: str = ""  # how the output matrix is tied; empty for untied models
    notes: tuple[str, ...] = ()


def find_in_dataframe(W: Any) -> MatrixOfObject | None:
    """Find the numbers of a DataFrame of pandas or polars, and its tokens.

    Tokens are in the one column of texts or, of pandas, in an index other than 0, 1, …
    """
    pandas, polars = (sys.modules.get(name) for name in ("pandas", "polars"))
    if pandas is not None and isinstance(W, pandas.DataFrame):
        kinds = pandas.api.types
        numbers = [kinds.is_numeric_dtype(k) and not kinds.is_bool_dtype(k) for k in W.dtypes]
        odd = [at for at, is_number in enumerate(numbers) if not is_number]
        # By place: names may stand twice. Of objects pandas looks at each: they may be lists.
        columns = [W.iloc[:, at] for at in odd]
        texts = [kinds.is_string_dtype(column) for column in columns]
        vectors = W.iloc[:, [at for at, is_number in enumerate(numbers) if is_number]]
        named = not isinstance(W.index, pandas.RangeIndex)
        missing = {"na_value": float("nan")}
    elif polars is not None and isinstance(W, polars.DataFrame):
        odd = [at for at, kind in enumerate(W.dtypes) if not kind.is_numeric()]
        columns = [W.to_series(at) for at in odd]
        texts = [column.dtype == polars.String for column in columns]
        vectors, named, missing = W.drop([column.name for column in columns]), False, {}
    else:
        return None
    for at, is_text in zip(odd, texts, strict=True):
        if len(odd) > 1 or named or not is_text:
            raise BadOption(
                f"column {W.columns[at]!r} of the DataFrame holds no numbers",
                way_out="give the columns of the vectors, and one of tokens",
            )
    labels = list(columns[0]) if odd else [*W.index] if named else None
    rows = vectors.to_numpy()
    if rows.dtype.kind not in "f":  # integers, or numbers with missing values
        rows = vectors.to_numpy(**missing).astype(np.float64)
    refuse_whole_column(vectors, rows)
    tokens = None if labels is None else tuple(safe_text(str(label)) for label in labels)
    library = type(W).__module__.partition(".")[0]
    return MatrixOfObject(rows, tokens=tokens, format=f"{library} DataFrame")


def refuse_whole_column(vectors: Any, rows: npt.NDArray[Any]) -> None:
    """Refuse columns of whole numbers among decimal ones: ids or counts, no part of vectors."""
    whole = ["int" in str(kind).lower() for kind in vectors.dtypes]
    if not any(whole):  # an id and a count become decimals with a missing value
        head = rows[:LOOKED_AT]
        are_whole = ((head == np.floor(head)) | np.isnan(head)).all(axis=0)
        # Zeros and ones are entries, too.
        whole = (are_whole & (np.abs(head) > 1).any(axis=0)).tolist()
        whole = whole if 2 * sum(whole) < len(whole) and len(head) >= FEWEST_WHOLE else []
    if any(whole) and not all(whole):
        raise BadOption(
            f"column {vectors.columns[whole.index(True)]!r} of the DataFrame holds whole numbers "
            "among columns of decimal ones",
            way_out="leave it out if it is no part of the vectors, else convert it with .astype",
        )


def find_in_keyed_vectors(W: Any) -> MatrixOfObject | None:
    """Find the vectors of gensim's KeyedVectors, or of a model with such a ``wv``."""
    vectors = getattr(W, "wv", W)
    rows = getattr(vectors, "vectors", None)
    words = getattr(vectors, "index_to_key", None) or getattr(vectors, "index2word", None)
    if not isinstance(rows, np.ndarray) or not isinstance(words, list):
        return None
    rows = rows[: len(words)]  # Doc2Vec and FastText may hold more
    return MatrixOfObject(
        rows,
        name="vectors",
        tokens=tuple(safe_text(str(word)) for word in words),
        frequency=find_frequency(vectors, words),
        format="gensim vectors",
    )


def find_frequency(vectors: Any, words: list[Any]) -> Frequency | None:
    """Find the counts of the training corpus, or ranks where gensim has no counts."""
    counts = find_counts(vectors, words)
    if counts is None or not np.isfinite(counts).all() or (counts < 0).any() or not counts.any():
        return None
    # gensim numbers words N, N−1, …, 1 where a file has no counts: only the order has a meaning.
    if np.array_equal(counts, np.arange(len(words), 0, -1)):
        return from_rank(len(words))
    return Frequency("counts", counts, "counts in the gensim vectors")


def find_counts(vectors: Any, words: list[Any]) -> npt.NDArray[np.float64] | None:
    stored = getattr(vectors, "expandos", {}).get("count")
    if stored is None:
        old = getattr(vectors, "__dict__", {}).get("vocab")  # gensim before 4
        if not isinstance(old, dict):
            return None
        stored = [getattr(old.get(word), "count", -1) for word in words]
    counts = np.asarray(stored, dtype=np.float64)
    return counts if counts.shape == (len(words),) else None


#: Types that torch does not convert to numpy; they are viewed as integers of the same width.
VIEWED = ("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")


def find_in_torch(W: Any) -> MatrixOfObject | None:
    """Find the entries of a tensor or parameter, or the embeddings of a module."""
    if is_tensor(W):
        return MatrixOfObject(as_array(W), format="torch tensor")
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(W, torch.nn.Module):
        return None
    layer, reason, model = embedding_layer(W)
    name = name_in(W, layer)
    rows = layer_entries(layer, name, is_in_fsdp(W))
    held = MatrixOfObject(rows, name, format="torch module", reason=reason)
    head = None if model is None else ask_module(model, "get_output_embeddings")
    return held if head is None else add_output(held, W, layer, head)


def is_tensor(W: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(W, torch.Tensor)


def as_array(tensor: Any, name: str = "tensor") -> npt.NDArray[Any]:
    """Return the entries of a tensor; a sharded one is gathered from all processes."""
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
    kind = str(tensor.dtype).removeprefix("torch.")
    if kind in VIEWED:
        dtype = number_type(kind)
        integers = tensor.view(torch.int16 if dtype.itemsize == 2 else torch.uint8)
        return np.asarray(integers.numpy()).view(dtype)
    return np.asarray(tensor.numpy())


def check_storage(tensor: Any, name: str) -> None:
    """Refuse a tensor whose storage is freed: reading it would crash the process."""
    if tensor.is_meta or tensor.layout != sys.modules["torch"].strided:
        return
    if tensor.untyped_storage().nbytes() < stored_bytes(tensor):
        raise BadOption(
            f"the storage of {name} is freed, as FSDP does between steps",
            way_out="read it inside FullyShardedDataParallel.summon_full_params(model)",
        )


def stored_bytes(tensor: Any) -> int:
    """Return the number of bytes of a storage up to the last entry of a tensor."""
    if not tensor.numel():
        return 0
    reach = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
    return int((tensor.storage_offset() + reach + 1) * tensor.element_size())


def embedding_layer(W: Any) -> tuple[Any, str, Any]:
    """Return the layer of the input embedding, why it was taken, and the model that names it."""
    for module in W.modules():
        layer = ask_module(module, "get_input_embeddings")
        if layer is not None:
            return layer, "returned by get_input_embeddings", module
    if has_matrix(W):
        return W, "", None
    layers = {
        name: layer
        for name, layer in W.named_modules()
        if hasattr(layer, "num_embeddings") and has_matrix(layer)
    }
    if not layers:
        raise BadOption(
            f"{type(W).__name__} has no embedding",
            way_out="give the tensor itself, such as model.layer.weight",
        )
    of_tokens = {n: layer for n, layer in layers.items() if not is_other_embedding(f"{n}.weight")}
    sizes = {n: stored_weight(layer).numel() for n, layer in (of_tokens or layers).items()}
    largest = [name for name, size in sizes.items() if size == max(sizes.values())]
    if len({id(stored_weight(layers[name])) for name in largest}) > 1:
        raise BadOption(
            f"{type(W).__name__} has several embeddings of one size: {', '.join(largest)}",
            way_out="give the tensor itself, such as model.layer.weight",
        )
    return layers[largest[0]], "the largest embedding of the module", None


def ask_module(module: Any, method: str) -> Any:
    """Return the layer that a method of the model returns, if any."""
    if not callable(getattr(module, method, None)):
        return None
    try:
        layer = getattr(module, method)()
    except (NotImplementedError, AttributeError):  # models without text
        return None
    return layer if layer is not None and has_matrix(layer) else None


def has_matrix(layer: Any) -> bool:
    weight = stored_weight(layer)
    return is_tensor(weight) and weight.ndim == 2


def stored_weight(layer: Any) -> Any:
    """Return the weight of a layer, or its packed codes."""
    weight = getattr(layer, "weight", None)
    return getattr(layer, "weight_packed", None) if weight is None else weight


def add_output(held: MatrixOfObject, W: Any, layer: Any, head: Any) -> MatrixOfObject:
    """Add the output matrix over the same tokens, or how it is tied to the input embedding."""
    name = name_in(W, head)
    own, other = stored_weight(layer), stored_weight(head)
    shared = other is own or other.data_ptr() == own.data_ptr() != 0
    if shared and not is_adapted(layer) and not is_adapted(head):
        return replace(held, tied_by=f"{name} is the same tensor")
    if other.shape[0] != own.shape[0]:
        return replace(held, notes=(f"{name} has another number of rows and is left out",))
    return replace(held, output=layer_entries(head, name, is_in_fsdp(W)), output_name=name)


def is_in_fsdp(W: Any) -> bool:
    """Tell whether FSDP 1 shards the module, so that its parameters are views of flat ones."""
    fsdp: Any = sys.modules.get("torch.distributed.fsdp")
    return fsdp is not None and bool(fsdp.FullyShardedDataParallel.fsdp_modules(W))


def is_adapted(layer: Any) -> bool:
    """Tell whether an active PEFT adapter of the layer is not merged into its weight."""
    if not hasattr(layer, "base_layer") or not getattr(layer, "active_adapters", ()):
        return False
    return not getattr(layer, "merged", False) and not getattr(layer, "disable_adapters", False)


def layer_entries(layer: Any, name: str, in_fsdp: bool = False) -> npt.NDArray[Any]:
    """Return the weight of a layer, with the low-rank changes of active adapters."""
    decoded = decode_layer(layer, name)
    if decoded is not None:
        return decoded
    weight = layer.weight.detach()
    if in_fsdp:
        check_storage(weight, name)
        # A numpy view would keep FSDP from freeing the storage again.
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


def decode_layer(layer: Any, name: str) -> npt.NDArray[Any] | None:
    """Decode the weight of a quantized layer, from its codes and scales; None for other layers."""
    held = dict(layer.named_parameters(recurse=False)) | dict(layer.named_buffers(recurse=False))
    codes = held.get("weight_packed", held.get("weight"))
    if codes is None or (codes.dtype.is_floating_point and codes.element_size() > 1):
        return None
    tensors = tuple(
        Tensor(key, tuple(one.shape), str(one.dtype).removeprefix("torch."), partial(as_array, one))
        for key, one in held.items()
    )
    found = read_parameters(Checkpoint("torch module", tensors, path=Path(name)))
    weight = next(one for one in found.tensors if one.name == "weight")
    if weight.problem:
        raise BadOption(f"{name} {weight.problem}", way_out=weight.way_out)
    return weight.open()


def name_in(W: Any, layer: Any) -> str:
    names = [prefix for prefix, module in W.named_modules() if module is layer]
    return f"{names[0]}.weight" if names and names[0] else "weight"
