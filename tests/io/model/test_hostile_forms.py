"""Companions of any shape and type: a checkpoint is read, or refused in one line."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.core.errors import EmbgeoError
from tests.support.sampling import each_folder

ENDS = (
    "weight", "weight_scale", "weight_scale_inv", "scale_weight", "weight_scale_2", "SCB",
    "weight_zero_point", "weight_packed", "weight_shape", "weight_g_idx", "weight_global_scale",
    "weight_blocks", "weight_scales", "scales", "biases", "qweight", "qzeros", "codes", "codebooks",
    "weight_g", "weight_v", "weight_orig", "weight_u", "parametrizations.weight.original",
    "parametrizations.weight.original0", "parametrizations.weight.original1",
    "parametrizations.weight.0._u", "parametrizations.weight.0._v", "base_layer.weight",
    "lora_embedding_A", "lora_embedding_B", "lora_A", "lora_B", "embeddings", "mapping", "weights",
    "embed_sum", "cluster_usage", "token_adapter.trainable_tokens_delta", "weight.absmax",
)  # fmt: skip
TYPES = {
    "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "U8": 1, "I8": 1, "I32": 4, "U32": 4, "I64": 8,
}  # fmt: skip
SHAPES = (
    (), (0,), (1,), (8,), (12,), (12, 1), (12, 8), (12, 2), (0, 8), (12, 0), (8, 12), (12, 1, 4),
)  # fmt: skip
CONFIGS: tuple[dict[str, Any], ...] = (
    {},
    {"hidden_size": 8, "vocab_size": 12, "quantization": {"bits": 4, "group_size": 4}},
    {
        "quantization_config": {
            "weight_block_size": [0, -1],
            "config_groups": {"g": {"weights": {}}},
        }
    },
    {"quantization_config": {"weight_block_size": [3, "x"], "bits": [], "quant_method": {}}},
    {"hidden_size": 10**9, "vocab_size": 10**11, "quantization": {"model.embed": {"bits": "4"}}},
)
ADAPTERS: tuple[dict[str, Any], ...] = (
    {},
    {"lora_alpha": 8, "trainable_token_indices": {"embed_tokens": list(range(12))}},
    {"lora_alpha": "x", "trainable_token_indices": [-1, 10**12]},
    {"lora_alpha": 0, "use_rslora": True, "trainable_token_indices": [10**12] * 12},
)


def write(folder: Path, rng: np.random.Generator) -> None:
    header, at, data = {}, 0, bytearray()
    for prefix in ("model.embed_tokens.", "lm_head.", "")[: rng.integers(1, 4)]:
        for end in rng.choice(ENDS, size=rng.integers(1, 7), replace=False):
            kind = rng.choice(list(TYPES))
            shape = SHAPES[rng.integers(len(SHAPES))]
            size = int(np.prod(shape, dtype=int)) * TYPES[kind]
            offsets = [at, at + size]
            header[prefix + end] = {"dtype": kind, "shape": list(shape), "data_offsets": offsets}
            data += rng.bytes(size)
            at += size
    text = json.dumps(header).encode()
    whole = len(text).to_bytes(8, "little") + text + bytes(data)
    (folder / "model.safetensors").write_bytes(whole)
    for name, choices in (("config", CONFIGS), ("adapter_config", ADAPTERS)):
        content = choices[rng.integers(len(choices))]
        (folder / f"{name}.json").write_text(json.dumps(content))


@pytest.mark.slow
def test_any_companions_are_read_or_refused_in_one_line(tmp_path: Path) -> None:
    for folder, seed in each_folder(tmp_path, range(12)):
        rng = np.random.default_rng(seed)
        for _ in range(60):
            write(folder, rng)
            names: list[str] = []
            with contextlib.suppress(EmbgeoError):
                found = embgeo.inspect(folder)
                assert "\n" not in found.problem
                names = [one.name for one in found.tensors if one.is_candidate]
            for name in names:
                with contextlib.suppress(EmbgeoError):
                    embgeo.load(folder, tensor=name)
