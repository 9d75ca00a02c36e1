"""The stored forms that are decoded or named, for the documentation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoredForm:
    """A form, the tensors that make it up, its matrix, and what its test compares with."""

    name: str
    tensors: str
    matrix: str
    oracle: str


DECODED: tuple[StoredForm, ...] = (
    StoredForm(
        "FP8, INT8 of the tensor, rows, groups or blocks",
        "`weight`; `weight_scale`, `weight_scale_inv`, `scale_weight`, `weights_scaling_factor` or "
        "`scale`; perhaps `weight_zero_point`",
        "(code − zero point) · scale",
        "torch, ml_dtypes",
    ),
    StoredForm("INT8 of bitsandbytes", "`weight`, `SCB`", "code · SCB / 127", "torch"),
    StoredForm(
        "packed INT of compressed-tensors",
        "`weight_packed` (int32), `weight_scale`, `weight_shape`; perhaps `weight_zero_point`, "
        "`weight_g_idx`",
        "(code − 2^(bits−1)) · scale of the group",
        "its pack_to_int32",
    ),
    StoredForm(
        "NVFP4 of ModelOpt",
        "`weight` (uint8), `weight_scale`, `weight_scale_2`",
        "E2M1 · scale of 16 · second scale",
        "ml_dtypes",
    ),
    StoredForm(
        "NVFP4, MXFP4 of compressed-tensors",
        "`weight_packed` (uint8), `weight_scale`; `weight_global_scale`",
        "E2M1 · scale / global scale",
        "ml_dtypes",
    ),
    StoredForm(
        "MXFP4 of gpt-oss",
        "`weight_blocks`, `weight_scales`",
        "E2M1 · 2^(scale − 127)",
        "ml_dtypes",
    ),
    StoredForm(
        "MLX affine, 2 to 8 bits",
        "`weight` (uint32), `scales`, `biases`",
        "scale · code + bias of the group",
        "mlx.core",
    ),
    StoredForm(
        "MLX mxfp4, nvfp4, mxfp8", "`weight` (uint32), `scales` (uint8)", "code · scale", "mlx.core"
    ),
    StoredForm(
        "ONNX DequantizeLinear",
        "codes, scale, zero point",
        "by its axis or blocks",
        "onnx.reference",
    ),
    StoredForm(
        "ONNX GatherBlockQuantized, MatMulNBits",
        "codes of 2, 4 or 8 bits, scales, zero points",
        "(code − zero point) · scale of the block",
        "known numbers",
    ),
    StoredForm("block types of ggml", "one tensor of GGUF", "as gguf decodes it", "gguf"),
    StoredForm(
        "weight norm",
        "`weight_g`, `weight_v`; `parametrizations.weight.original0`, `…original1`",
        "g · v / ‖v‖",
        "torch",
    ),
    StoredForm(
        "spectral norm",
        "`weight_orig`, `weight_u`, `weight_v`; `parametrizations.weight.original`, `…0._u`, "
        "`…0._v`",
        "V / (uᵀ V v)",
        "torch",
    ),
    StoredForm(
        "model2vec", "`embeddings`, `mapping`, `weights`", "embeddings[mapping] · weights", "torch"
    ),
    StoredForm(
        "LoRA",
        "`weight` or `base_layer.weight`, `lora_embedding_A`, `lora_embedding_B` (or `lora_A`, "
        "`lora_B`), adapter_config.json",
        "base + alpha/r · B A",
        "torch",
    ),
    StoredForm(
        "trainable tokens of PEFT",
        "`token_adapter.trainable_tokens_delta`, adapter_config.json",
        "the rows of these ids, in place of those of the base if it is there",
        "torch",
    ),
    StoredForm(
        "draft head of EAGLE-3", "`lm_head.weight`, `d2t`", "row i is token i + d2t[i]", "numpy"
    ),
    StoredForm(
        "codebooks of Mimi and EnCodec",
        "`embed_sum`, `cluster_usage`",
        "embed_sum / cluster_usage",
        "torch",
    ),
)

#: Forms that stop the choice by their names.
NAMED = (
    "GPTQ, AWQ, bitsandbytes 4 bit, HQQ, EXL2, EXL3, torchao, AQLM, QuIP#, VPTQ, Marlin, sparse "
    "compressed-tensors, packed types of safetensors (F4, F6), codes without their scales"
)
