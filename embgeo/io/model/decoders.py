"""The stored forms that are decoded, in the order in which they are asked."""

from embgeo.io.model import changed, quantized
from embgeo.io.model.parameter import Decoder

DECODERS: tuple[Decoder, ...] = (
    Decoder(
        "bitsandbytes, 4 bit",
        "`weight` (uint8), `weight.absmax`, `weight.quant_map`",
        "",
        "",
        ("weight",),
        quantized.read_bitsandbytes,
    ),
    Decoder(
        "NVFP4 of ModelOpt, MXFP4 of Quark",
        "`weight` (uint8), `weight_scale`; `weight_scale_2`",
        "E2M1 · scale of the group · second scale",
        "ml_dtypes",
        ("weight",),
        quantized.read_nvfp4,
    ),
    Decoder(
        "FP8, INT8 of the tensor, rows, groups or blocks; INT8 of bitsandbytes",
        "`weight`; `weight_scale`, `weight_scale_inv`, `scale_weight`, `weights_scaling_factor`, "
        "`qscale_weight`, `scale` or `SCB`; perhaps `weight_zero_point`",
        "(code − zero point) · scale; code · SCB / 127",
        "torch, ml_dtypes",
        ("weight",),
        quantized.read_eight_bits,
    ),
    Decoder(
        "MLX affine, 2 to 8 bits; mxfp4, nvfp4, mxfp8",
        "`weight` (uint32), `scales`; `biases` if affine",
        "scale · code + bias of the group; code · scale",
        "mlx.core",
        ("weight",),
        quantized.read_mlx,
    ),
    Decoder(
        "packed INT, NVFP4, MXFP4 of compressed-tensors",
        "`weight_packed`, `weight_scale`; `weight_shape`, `weight_zero_point`, `weight_g_idx`, "
        "`weight_global_scale`",
        "(code − 2^(bits−1)) · scale of the group; E2M1 · scale / global scale",
        "its pack_to_int32, ml_dtypes",
        ("weight_packed",),
        quantized.read_compressed,
    ),
    Decoder(
        "MXFP4 of gpt-oss",
        "`X_blocks`, `X_scales` or `X.blocks`, `X.scales`",
        "E2M1 · 2^(scale − 127)",
        "ml_dtypes",
    ),
    Decoder(
        "model2vec",
        "`embeddings` or `embedding.weight`; `mapping`, `weights`",
        "embeddings[mapping] · weights",
        "numpy",
        ("embeddings", "weight"),
        changed.read_static,
    ),
    Decoder(
        "LoRA, DoRA",
        "`weight` or `base_layer.weight`, `lora_embedding_A`, `lora_embedding_B` (or `lora_A`, "
        "`lora_B`), perhaps `lora_magnitude_vector`, adapter_config.json",
        "base + alpha/r · B A; of DoRA with the lengths of the magnitude vector",
        "torch",
    ),
    Decoder(
        "trained copies of PEFT",
        "`modules_to_save.NAME.weight`, `original_module.weight`",
        "the trained copy",
        "numpy",
        ("weight",),
        changed.read_trained_copy,
    ),
    Decoder(
        "trainable tokens of PEFT",
        "`token_adapter.trainable_tokens_delta`, adapter_config.json",
        "the rows of these ids, in place of those of the base if it is there",
        "torch",
    ),
    Decoder(
        "weight norm",
        "`weight_g`, `weight_v`; `parametrizations.weight.original0`, `…original1`",
        "g · v / ‖v‖",
        "torch",
        ("weight_v", "original1"),
        changed.read_weight_norm,
    ),
    Decoder(
        "spectral norm",
        "`weight_orig`, `weight_u`, `weight_v`; `parametrizations.weight.original`, `…0._u`, "
        "`…0._v`",
        "V / (uᵀ V v)",
        "torch",
        ("weight_orig", "original"),
        changed.read_spectral_norm,
    ),
    Decoder("pruning of torch", "`weight_orig`, `weight_mask`", "V · mask", "torch"),
    Decoder(
        "codebooks of Mimi",
        "`embed_sum`, `cluster_usage`",
        "embed_sum / cluster_usage",
        "torch",
        ("embed_sum",),
        changed.read_codebook,
    ),
    Decoder("draft head of EAGLE-3", "`lm_head.weight`, `d2t`", "row i is token i + d2t[i]",
            "numpy"),
    Decoder("ONNX DequantizeLinear", "codes, scale, zero point", "by its axis or blocks",
            "onnx.reference"),
    Decoder(
        "ONNX GatherBlockQuantized, MatMulNBits",
        "codes of 2, 4 or 8 bits, scales, zero points",
        "(code − zero point) · scale of the block",
        "known numbers",
    ),
    Decoder("block types of ggml", "one tensor of GGUF", "as gguf decodes it", "gguf"),
    Decoder("whole numbers", "`weight` without scales", "", "", ("weight",),
            quantized.read_whole_numbers),
)  # fmt: skip
