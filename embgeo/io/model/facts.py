"""What the configuration beside the weights says of the matrices: sizes, ties, quantization."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from embgeo.core.text import visible

#: Keys below which others keep the configuration of their language model: multimodal models,
#: TensorRT-LLM, draft heads of speculators, KerasHub.
_INNER = (
    "text_config", "language_config", "llm_config", "thinker_config", "pretrained_config",
    "transformer_layer_config", "config",
)  # fmt: skip
#: Keys of the number of ids of text.
_TEXT_VOCABULARY = ("text_vocab_size", "text_card")
_VOCABULARY = ("vocab_size", "padded_vocab_size", "vocabulary_size")
#: Further vocabularies of a model, by the kind of their ids.
_OTHER_VOCABULARIES = {
    "draft_vocab_size": "draft",
    "audio_vocab_size": "audio",
    "codec_vocab_size": "audio",
    "codebook_size": "audio",
    "vocab_size_per_layer_input": "per layer",
}
#: Classes of transformers that predict tokens; others, such as BertModel, have no output matrix.
_LANGUAGE_MODEL = re.compile(
    r"LMHead|CausalLM|MaskedLM|ForConditionalGeneration|ForPreTraining|MTModel"
)
#: Columns of the embedding, which some models project to the hidden size (ALBERT, OPT 350M).
_COLUMNS = (
    "embedding_size", "word_embed_proj_dim", "d_embed", "hidden_size", "n_embd", "d_model", "dim",
    "hidden_dim",
)  # fmt: skip
#: Keys of a number by which the model multiplies its input rows (Granite, MiniCPM), and keys
#: that say it is the root of their length (Marian, BART, RecurrentGemma), as in every Gemma.
_FACTORS = ("embedding_multiplier", "scale_emb")
_BY_ROOT = ("scale_embedding", "embeddings_scale_by_sqrt_dim")
#: Keys of modules that are not quantized.
_LEFT_OUT = ("ignore", "modules_to_not_convert", "exclude_modules", "ignored_layers")
#: Sizes beyond any model: a damaged or hostile configuration.
_LARGEST = 2**40


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The matrices as ``config.json`` and its neighbors, or GGUF's metadata, describe them."""

    #: May be empty.
    model_type: str = ""
    architecture: str = ""
    #: Ids of text: ``text_vocab_size``, else that of the language model.
    vocabulary: int | None = None
    #: Further vocabularies by kind (draft, audio).
    others: Mapping[str, int] = field(default_factory=dict)
    columns: int | None = None
    layers: int | None = None
    #: Whether the output matrix is the input embedding; None if nothing says so, or if the outer
    #: and the inner configuration disagree.
    tied: bool | None = None
    #: Whether a model without an output matrix uses the input embedding (GGUF).
    ties_missing_output: bool = False
    dtype: str = ""
    #: ``quantization_config``, or ``quantization`` of MLX; empty if there is none.
    quantization: Mapping[str, Any] = field(default_factory=dict)
    #: Modules that it leaves out.
    unquantized: frozenset[str] = frozenset()
    #: ``adapter_config.json`` of PEFT; empty if there is none.
    adapter: Mapping[str, Any] = field(default_factory=dict)
    #: Files that the model is split into (GGUF).
    pieces: int = 1
    notes: tuple[str, ...] = ()


def facts_of(
    data: Mapping[str, Any], adapter: Mapping[str, Any], modelopt: Mapping[str, Any]
) -> ModelFacts:
    """Collect what the configuration of a model, of its adapter and of ModelOpt say."""
    inner = list(_language_models(data))
    parts = [*inner, data]
    quantization = _first(parts, "quantization_config", dict) or _first(parts, "quantization", dict)
    quantization = quantization or modelopt.get("quantization")
    quantization = quantization if isinstance(quantization, dict) else {}
    left_out = (quantization[key] for key in _LEFT_OUT if isinstance(quantization.get(key), list))
    ties = [part["tie_word_embeddings"] for part in (data, *inner)
            if type(part.get("tie_word_embeddings")) is bool]  # fmt: skip
    agree = len(set(ties)) == 1 and _has_head(data)
    classes = data.get("architectures")
    named = classes[0] if isinstance(classes, list) and classes else data.get("architecture")
    return ModelFacts(
        model_type=_first([data, *inner], "model_type", str) or "",
        architecture=named if isinstance(named, str) else "",
        vocabulary=_first_size([data], *_TEXT_VOCABULARY) or _first_size(parts, *_VOCABULARY),
        others={
            kind: size
            for part in parts
            for key, kind in _OTHER_VOCABULARIES.items()
            if (size := _size(part.get(key)))
        },
        columns=_first_size(parts, *_COLUMNS),
        layers=_first_size(parts, "num_hidden_layers", "n_layer", "n_layers", "num_layers"),
        tied=ties[0] if agree else None,
        dtype=_first(parts, "dtype", str) or _first(parts, "torch_dtype", str) or "",
        quantization=quantization,
        unquantized=frozenset(one.strip(".") for one in chain(*left_out) if isinstance(one, str))
        - {""},
        adapter=adapter,
        notes=(
            *(
                f"config.json says {key} {visible(str(part[key])[:80])}, which is ignored"
                for part in parts
                for key in (*_TEXT_VOCABULARY, *_VOCABULARY)
                if part.get(key) is not None and _size(part[key]) is None
            ),
            *_note_factor(parts),
            *(
                ("config.json contradicts itself on tie_word_embeddings; the tensors decide",)
                if len(set(ties)) > 1
                else ()
            ),
        ),
    )


def _language_models(data: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the configurations of the language model inside a multimodal model, inmost first."""
    for key in _INNER:
        inner = data.get(key)
        if isinstance(inner, dict):
            deeper = inner.get("text_config")
            if isinstance(deeper, dict):
                yield deeper
            yield inner
            return


def _has_head(configuration: Mapping[str, Any]) -> bool:
    """Tell whether the model has an output matrix; true if no class is listed."""
    classes = configuration.get("architectures")
    if not isinstance(classes, list) or not classes:
        return True
    return any(_LANGUAGE_MODEL.search(name) for name in classes if isinstance(name, str))


def _note_factor(parts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a note where the model multiplies its input rows by a constant when it runs."""
    said = [part.get(key) for part in parts for key in _FACTORS]
    given = [one for one in said if isinstance(one, int | float) and 0 < one < _LARGEST]
    by_root = any(
        "gemma" in str(part.get("model_type")) or any(part.get(key) is True for key in _BY_ROOT)
        for part in parts
    )
    columns = _first_size(parts, *_COLUMNS)
    factor = given[0] if given else columns**0.5 if by_root and columns else 1
    if factor != 1:
        yield (
            f"the model multiplies its input rows by {factor:.4g} when it runs; norms are of the "
            "stored rows, and directions and cosines are the same"
        )


def _first_size(parts: Sequence[Mapping[str, Any]], *keys: str) -> int | None:
    return next((found for key in keys if (found := _first(parts, key, int))), None)


def _size(value: object) -> int | None:
    return value if type(value) is int and 0 < value < _LARGEST else None


def _first(parts: Sequence[Mapping[str, Any]], key: str, kind: type) -> Any:
    found = next((part[key] for part in parts if type(part.get(key)) is kind), None)
    return _size(found) if kind is int else found
