"""Export a Transformer as a GPT-2 folder for transformers."""

from __future__ import annotations

import json
from typing import Any

from safetensors.torch import save
from torch import Tensor

from embgeo.core.errors import BadOption
from embgeo.training.data import Vocabulary
from embgeo.training.models import LanguageModel, Transformer
from embgeo.training.models.transformer import TransformerBlock

CONFIG_NAME, WEIGHTS_NAME, TOKENIZER_NAME = "config.json", "model.safetensors", "tokenizer.json"
TOKENIZER_CONFIG_NAME = "tokenizer_config.json"


def gpt2_files(model: LanguageModel, vocabulary: Vocabulary) -> dict[str, bytes]:
    """The files of a Hugging Face folder, by name, whose logits are those of the model.

    GPT-2 (Radford et al. 2019) is the same architecture: learned positions, LayerNorm before each
    part, and a GELU, here the exact one. Its linear layers are stored transposed.
    """
    if not isinstance(model, Transformer):
        raise refuse_export(f"the model is of type {model.NAME}", "train model.name=transformer")
    if model.positions is None:
        raise refuse_export("its positions are rotary", "train model.positions=learned")
    if getattr(model.get_output_embeddings(), "bias", None) is not None:
        raise refuse_export("its output layer has a bias", "train model.bias=false")
    return {
        CONFIG_NAME: as_json(gpt2_config(model, vocabulary)),
        WEIGHTS_NAME: save(gpt2_weights(model), metadata={"format": "pt"}),
    }


def refuse_export(cause: str, way_out: str) -> BadOption:
    """The error for a model that is not a GPT-2."""
    return BadOption(f"cannot be exported as a GPT-2: {cause}", way_out=way_out)


def gpt2_config(model: Transformer, vocabulary: Vocabulary) -> dict[str, Any]:
    """The content of ``config.json``."""
    block = model.blocks[0]
    assert isinstance(block, TransformerBlock)
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": model.n_tokens,
        "n_positions": model.context,
        "n_embd": model.d,
        "n_layer": len(model.blocks),
        "n_head": block.heads,
        "n_inner": block.inner_in.out_features,
        "activation_function": "gelu",
        "layer_norm_epsilon": model.norm.eps,
        "resid_pdrop": model.dropout,
        "embd_pdrop": model.dropout,
        "attn_pdrop": model.dropout,
        "tie_word_embeddings": is_tied(model),
        "bos_token_id": vocabulary.end,
        "eos_token_id": vocabulary.end,
    }


def gpt2_weights(model: Transformer) -> dict[str, Tensor]:
    """The tensors under the names of GPT-2."""
    found = {
        "transformer.wte.weight": model.get_input_embeddings().weight,
        "transformer.wpe.weight": model.positions,
        **name_tensors("transformer.ln_f", model.norm),
    }
    for number, block in enumerate(model.blocks):
        assert isinstance(block, TransformerBlock)
        home = f"transformer.h.{number}"
        found |= name_tensors(f"{home}.ln_1", block.norm_attention)
        found |= name_tensors(f"{home}.ln_2", block.norm_inner)
        found |= name_tensors(f"{home}.attn.c_attn", block.attention_in, transposed=True)
        found |= name_tensors(f"{home}.attn.c_proj", block.attention_out, transposed=True)
        found |= name_tensors(f"{home}.mlp.c_fc", block.inner_in, transposed=True)
        found |= name_tensors(f"{home}.mlp.c_proj", block.inner_out, transposed=True)
    if not is_tied(model):
        found["lm_head.weight"] = model.get_output_embeddings().weight
    return {name: tensor.detach().clone().contiguous() for name, tensor in found.items()}


def name_tensors(name: str, layer: Any, *, transposed: bool = False) -> dict[str, Any]:
    """Weight and bias of a layer."""
    weight = layer.weight.T if transposed else layer.weight
    return {f"{name}.weight": weight, f"{name}.bias": layer.bias}


def is_tied(model: LanguageModel) -> bool:
    """Whether the output matrix is the embedding."""
    return model.get_output_embeddings().weight is model.get_input_embeddings().weight


def tokenizer_files(vocabulary: Vocabulary) -> dict[str, bytes]:
    """A word tokenizer for transformers; it does not add the end of a sentence."""
    unknown = None if vocabulary.unknown is None else vocabulary.tokens[vocabulary.unknown]
    end = None if vocabulary.end is None else vocabulary.tokens[vocabulary.end]
    words = {token: row for row, token in enumerate(vocabulary.tokens)}
    tokenizer: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": words, "unk_token": unknown or ""},
    }
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": unknown, "eos_token": end}
    return {TOKENIZER_NAME: as_json(tokenizer), TOKENIZER_CONFIG_NAME: as_json(config)}


def as_json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()
