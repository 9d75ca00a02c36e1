"""The final LayerNorm of a checkpoint is found by name, in the layouts of real models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import embgeo
from embgeo.core.matrix import FinalNorm
from tests.support.sampling import each_folder

D = 4
SCALE = np.array([1.0, 2.0, 0.5, 4.0], dtype=np.float32)
BIAS = np.array([0.1, -0.2, 0.3, 0.4], dtype=np.float32)


def found(folder: Path, *names: str, **others: np.ndarray) -> FinalNorm:
    """What is found in a checkpoint that has these norms, each with a bias."""
    tensors = {"wte.weight": np.random.default_rng(0).standard_normal((50, D), dtype=np.float32)}
    for name in names:
        tensors |= {f"{name}.weight": SCALE, f"{name}.bias": BIAS}
    save_file(tensors | others, folder / "model.safetensors")
    norm = embgeo.load(folder / "model.safetensors", tensor="wte.weight").final_norm
    assert norm is not None
    return norm


def test_names_of_real_models(tmp_path: Path) -> None:
    for folder, name in each_folder(
        tmp_path,
        (
            "ln_f",  # nanoGPT
            "transformer.ln_f",  # GPT-2, BLOOM, Falcon
            "gpt_neox.final_layer_norm",
            "model.decoder.final_layer_norm",  # OPT
            "transformer.norm_f",  # MPT
            "rwkv.ln_out",
            "model.final_layernorm",  # Phi
            "model.norm",  # StableLM
            "decoder.layer_norm",  # fairseq
            "lm_head.layer_norm",  # RoBERTa
            "cls.predictions.transform.LayerNorm",  # BERT
            "output_norm",
        ),
    ):
        norm = found(folder, name, "h.0.ln_1", "h.1.ln_2", "embeddings.LayerNorm")
        assert norm.name == name
        np.testing.assert_array_equal(norm.scale, SCALE)
        np.testing.assert_array_equal(norm.bias, BIAS)


def test_norms_inside_a_stack_are_not_the_final_one(tmp_path: Path) -> None:
    inside = [f"model.decoder.layers.{i}.final_layer_norm" for i in range(3)]
    assert found(tmp_path, *inside, "model.decoder.final_layer_norm").scale is not None
    nothing = found(tmp_path, *inside)
    assert nothing.scale is None
    assert "no final LayerNorm was found" in nothing.absent


def test_of_encoder_and_decoder_the_decoder_comes_last(tmp_path: Path) -> None:
    norm = found(tmp_path, "encoder.final_layer_norm", "decoder.final_layer_norm")
    assert norm.name == "decoder.final_layer_norm"


def test_two_candidates_are_named(tmp_path: Path) -> None:
    norm = found(tmp_path, "one.ln_f", "two.ln_f")
    assert norm.scale is None
    assert norm.absent == "several layers could be the final LayerNorm: one.ln_f, two.ln_f"


def test_an_rms_norm_has_no_bias(tmp_path: Path) -> None:
    norm = found(tmp_path, **{"model.norm.weight": SCALE})
    assert "has no bias (an RMSNorm?)" in norm.absent


def test_a_norm_of_another_width_is_none(tmp_path: Path) -> None:
    assert found(tmp_path, **{"ln_f.weight": SCALE[:3], "ln_f.bias": BIAS[:3]}).scale is None


def test_the_condition_is_part_of_every_analysis_that_has_one(tmp_path: Path) -> None:
    found(tmp_path, "transformer.ln_f")
    matrix = embgeo.load(tmp_path / "model.safetensors", tensor="wte.weight")
    condition = embgeo.analyze(matrix, reference=False).find_scalar("hidden.layernorm_condition")
    assert condition is not None
    ratios = [0.1, -0.1, 0.6, 0.1]
    assert condition.value == pytest.approx(sum(ratios) / sum(map(abs, ratios)), rel=1e-6)
    assert condition.convention == "of transformer.ln_f"
