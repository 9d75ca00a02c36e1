"""Weights that other tensors change: mappings, adapters and codebooks; others stop the choice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.io.load import open_checkpoint
from tests.support.binary_files import quick
from tests.support.refusals import refusal
from tests.support.sampling import each_value

torch: Any = pytest.importorskip("torch")
N, D = 96, 16
NAME = "model.embed_tokens"


def numbers(*shape: int, seed: int = 0) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)) + 0.7


def write(folder: Path, tensors: dict[str, Any], **files: Any) -> Path:
    from safetensors.torch import save_file

    folder.mkdir(exist_ok=True)
    save_file({k: v.contiguous() for k, v in tensors.items()}, folder / "model.safetensors")
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def check(folder: Path, expected: Any, form: str, name: str = f"{NAME}.weight") -> embgeo.Matrix:
    matrix = embgeo.load(folder)
    assert matrix.origin.tensor == name
    np.testing.assert_allclose(matrix.data, expected.detach().numpy(), rtol=2e-5, atol=1e-6)
    assert form in matrix.origin.form
    return matrix


#: Parts of an embedding whose product, mask or norm is the matrix.
UNKNOWN = {
    "weight norm": {"weight_g": (N, 1), "weight_v": (N, D)},
    "parametrization": {
        "parametrizations.weight.original0": (N, 1),
        "parametrizations.weight.original1": (N, D),
    },
    "spectral norm": {"weight_orig": (N, D), "weight_u": (N,), "weight_v": (D,)},
    "pruning": {"weight_orig": (N, D), "weight_mask": (N, D)},
    "factors": {"cores.0": (N, 4), "cores.1": (D, 4)},
    "tensor train": {"cores.0": (4, D, D), "cores.1": (4, D, D)},
}


@each_value
@pytest.mark.parametrize("outer", [NAME, "wte", "embedding"])
@pytest.mark.parametrize("kind", UNKNOWN)
@pytest.mark.parametrize("head", ["lm_head.weight", "projection.weight", ""])
def test_forms_that_are_not_known_stop_the_choice(
    outer: str, kind: str, head: str, tmp_path: Path
) -> None:
    """Neither a part nor the output takes the place of the embedding."""
    tensors = {f"{outer}.{end}": numbers(*shape) for end, shape in UNKNOWN[kind].items()}
    tensors |= {head: numbers(N, D)} if head else {}
    with refusal():
        embgeo.load(write(tmp_path, tensors))


@pytest.mark.parametrize("parts", ["both", "mapping", "weights"])
def test_model2vec(parts: str, tmp_path: Path) -> None:
    rows = N if parts == "weights" else 20
    vectors, mapping = numbers(rows, D), torch.randint(0, rows, (N,))
    weights = numbers(N, seed=1).abs()
    tensors = {"embeddings": vectors}
    tensors |= {} if parts == "weights" else {"mapping": mapping}
    tensors |= {} if parts == "mapping" else {"weights": weights}
    expected = vectors[mapping] if "mapping" in tensors else vectors
    expected = expected * weights[:, None] if "weights" in tensors else expected
    vocab = {f"w{i}": i for i in range(N)}
    tokenizer = {"version": "1.0", "model": {"type": "WordLevel", "vocab": vocab}}
    config = {"model_type": "model2vec"}
    folder = write(tmp_path, tensors, tokenizer=tokenizer, config=config)
    matrix = check(folder, expected, "vectors", "embeddings")
    assert matrix.tokens is not None
    assert matrix.tokens[-1] == f"w{N - 1}"


def test_weights_beside_vectors_of_other_models_are_not_applied(tmp_path: Path) -> None:
    vectors = numbers(N, D)
    folder = write(tmp_path, {"embeddings": vectors, "weights": numbers(N, seed=1)})
    matrix = embgeo.load(folder)
    np.testing.assert_array_equal(matrix.data, vectors)
    assert "weights beside the vectors are not applied" in matrix.origin.notes[0]


def test_codes_of_model2vec_have_no_scale_and_a_mapping_may_lie_beside_a_layer(
    tmp_path: Path,
) -> None:
    codes = torch.randint(-127, 128, (N, D), dtype=torch.int8)
    config = {"architectures": ["StaticModel"]}
    folder = write(tmp_path / "codes", {"embeddings": codes}, config=config)
    check(folder, codes.float(), "INT8 of model2vec, which stores no scale", "embeddings")
    vectors, mapping = numbers(20, D), torch.randint(0, 20, (N,))
    tensors = {"embedding.weight": vectors, "mapping": mapping}
    check(write(tmp_path / "layer", tensors), vectors[mapping], "[mapping]", "embedding.weight")


def test_a_mapping_beyond_the_vectors_is_refused(tmp_path: Path) -> None:
    mapping = torch.full((N,), 20)
    with refusal():
        embgeo.load(write(tmp_path, {"embeddings": numbers(20, D), "mapping": mapping}))


def test_a_mapping_that_multiplies_the_file_is_refused(tmp_path: Path) -> None:
    mapping = torch.zeros(40_000, dtype=torch.int64)
    with refusal():
        embgeo.load(write(tmp_path, {"embeddings": numbers(2, 40_000), "mapping": mapping}))


@pytest.mark.parametrize(
    "ends",
    [
        ("modules_to_save.default.weight", "original_module.weight"),
        ("token_adapter.trainable_tokens_delta.default",),
        ("weight", "lora_embedding_A", "lora_embedding_B"),
        ("embed_tokens.qweight", "embed_tokens.qzeros"),
    ],
)
def test_very_many_modules_take_no_longer_than_their_number(
    ends: tuple[str, ...], tmp_path: Path
) -> None:
    """Each was compared with all: minutes to hours."""
    tensors = {f"l{k}.{end}": numbers(1, 1) for k in range(8_000) for end in ends}
    patterns = {f"m{k}": 1 for k in range(8_000)}
    adapter_config = {"alpha_pattern": patterns, "trainable_token_indices": [0]}
    folder = write(tmp_path, tensors, adapter_config=adapter_config)
    with quick(8):
        embgeo.inspect(folder)


ADAPTER = {"peft_type": "LORA", "r": 4, "lora_alpha": 8}


@pytest.mark.parametrize("base", ["weight", "base_layer.weight"])
@pytest.mark.parametrize("end", ["", ".default"])
def test_an_adapter_beside_the_embedding_is_merged(base: str, end: str, tmp_path: Path) -> None:
    rows, a, b = numbers(N, D), numbers(4, N, seed=1), numbers(D, 4, seed=2)
    tensors = {f"{NAME}.{base}": rows}
    tensors |= {f"{NAME}.lora_embedding_A{end}": a, f"{NAME}.lora_embedding_B{end}": b}
    folder = write(tmp_path / "a", tensors, adapter_config=ADAPTER)
    check(folder, rows + 2 * (b @ a).T, "LoRA, base + 2 · B A")
    scaled = ADAPTER | {"use_rslora": True}
    folder = write(tmp_path / "b", tensors, adapter_config=scaled)
    check(folder, rows + 4 * (b @ a).T, "LoRA, base + 4 · B A")


@pytest.mark.parametrize(
    ("settings", "factor"),
    [
        ({"alpha_pattern": {"q_proj": 32}, "rank_pattern": {"v_proj": 2}}, 2),
        ({"alpha_pattern": {"embed_tokens": 32}}, 8),
        ({"alpha_pattern": {"embed_.*": 32}}, "does not say their factor"),
        ({"use_dora": True}, "changes lengths, too (DoRA)"),
        ({"lora_alpha": None}, "does not say their factor"),
        ("two adapters", "there are several adapters"),
        ("half", "a part of it is missing"),
    ],
)
def test_factors_of_adapters(settings: Any, factor: Any, tmp_path: Path) -> None:
    rows, a, b = numbers(N, D), numbers(4, N, seed=1), numbers(D, 4, seed=2)
    tensors = {f"{NAME}.base_layer.weight": rows, f"{NAME}.lora_embedding_A.mine": a}
    if settings != "half":
        tensors[f"{NAME}.lora_embedding_B.mine"] = b
    if settings == "two adapters":
        ends = {"lora_embedding_A.other": a.clone(), "lora_embedding_B.other": b.clone()}
        tensors |= {f"{NAME}.{end}": part for end, part in ends.items()}
    config = ADAPTER | (settings if isinstance(settings, dict) else {})
    folder = write(tmp_path, tensors, adapter_config=config)
    if isinstance(factor, int):
        check(folder, rows + factor * (b @ a).T, f"LoRA, base + {factor} · B A")
        return
    matrix = check(folder, rows, "base")
    assert "are not merged into it: " in matrix.origin.notes[0]
    assert factor in matrix.origin.notes[0]


def test_an_adapter_of_codes_is_added_to_the_decoded_rows(tmp_path: Path) -> None:
    codes, scale = numbers(N, D).to(torch.float8_e4m3fn), torch.rand(N, 1) + 0.1
    a, b = numbers(4, N, seed=1), numbers(D, 4, seed=2)
    base = f"{NAME}.base_layer"
    tensors = {f"{base}.weight": codes, f"{base}.weight_scale": scale}
    tensors |= {f"{NAME}.lora_embedding_A": a, f"{NAME}.lora_embedding_B": b}
    folder = write(tmp_path, tensors, adapter_config=ADAPTER)
    check(folder, codes.float() * scale + 2 * (b @ a).T, "weight_scale of the row; LoRA")
    assert [t.name for t in open_checkpoint(folder).tensors] == [f"{NAME}.weight"]


def test_a_trained_copy_goes_before_the_original(tmp_path: Path) -> None:
    trained = numbers(N, D)
    tensors = {f"{NAME}.modules_to_save.default.weight": trained}
    tensors[f"{NAME}.original_module.weight"] = numbers(N, D, seed=1)
    matrix = check(write(tmp_path, tensors), trained, "modules_to_save")
    assert "and not original_module beside it" in matrix.origin.notes[0]


def test_an_adapter_of_unknown_factor_gets_a_note(tmp_path: Path) -> None:
    rows = numbers(N, D)
    tensors = {f"{NAME}.weight": rows, f"{NAME}.lora_embedding_A": numbers(4, N)}
    tensors[f"{NAME}.lora_embedding_B"] = numbers(D, 4)
    matrix = check(write(tmp_path, tensors), rows, "base")
    assert "are not merged into it: adapter_config.json does not say" in matrix.origin.notes[0]


def test_an_adapter_of_a_layer_that_is_saved_alone_gets_the_note(tmp_path: Path) -> None:
    tensors = {"weight": numbers(N, D), "lora_embedding_A": numbers(4, N)}
    tensors["lora_embedding_B"] = numbers(D, 4)
    matrix = embgeo.load(write(tmp_path, tensors))
    assert matrix.origin.tensor == "weight"
    assert "are not merged into it: adapter_config.json does not say" in matrix.origin.notes[0]


def test_an_adapter_of_the_output_is_merged(tmp_path: Path) -> None:
    head, a, b = numbers(N, D), numbers(4, D, seed=1), numbers(N, 4, seed=2)
    tensors = {f"{NAME}.weight": numbers(N, D, seed=3), "lm_head.base_layer.weight": head}
    tensors |= {"lm_head.lora_A.default.weight": a, "lm_head.lora_B.default.weight": b}
    matrix = embgeo.load(write(tmp_path, tensors, adapter_config=ADAPTER))
    assert matrix.output is not None
    assert matrix.output.origin.tensor == "lm_head.weight"
    np.testing.assert_allclose(matrix.output.data, head + 2 * b @ a, rtol=2e-5, atol=1e-5)


def test_trainable_tokens_take_the_place_of_rows(tmp_path: Path) -> None:
    rows, new, ids = numbers(N, D), numbers(3, D, seed=1), [90, 2, 41]
    indices = {"trainable_token_indices": {"embed_tokens": ids}}
    delta = f"{NAME}.token_adapter.trainable_tokens_delta"
    tensors = {f"{NAME}.token_adapter.base_layer.weight": rows, delta: new}
    expected = rows.clone()
    expected[ids] = new
    check(write(tmp_path / "a", tensors, adapter_config=indices), expected, "3 trainable rows")
    tensors[f"{delta}.default"] = tensors.pop(delta)  # as a live model names it
    check(write(tmp_path / "b", tensors, adapter_config=indices), expected, "3 trainable rows")


@pytest.mark.parametrize(
    "config",
    [
        {"trainable_token_indices": {"embed_tokens": [90, 2, 41], "lm_head": [1, 2, 3]}},
        {"trainable_token_indices": [90, 2, 41]},
        {"peft_type": "TRAINABLE_TOKENS", "token_indices": [90, 2, 41]},
    ],
)
def test_trainable_tokens_alone_are_the_rows_of_their_ids(config: Any, tmp_path: Path) -> None:
    new, other = numbers(3, D), numbers(3, D, seed=1)
    end = "token_adapter.trainable_tokens_delta"
    tensors = {f"{NAME}.{end}": new}
    if "lm_head" in str(config):
        tensors[f"lm_head.{end}"] = other  # of other ids: no output over the same tokens
    vocab = {f"w{i}": i for i in range(N)}
    tokenizer = {"version": "1.0", "model": {"type": "WordLevel", "vocab": vocab}}
    folder = write(tmp_path, tensors, tokenizer=tokenizer, adapter_config=config)
    matrix = check(folder, new, "rows of trainable tokens")
    assert matrix.tokens == ("w90", "w2", "w41")
    assert matrix.output is None


def test_codebooks(tmp_path: Path) -> None:
    sums, usage = numbers(N, D), numbers(N, seed=1).abs()
    usage[3] = 0
    layer = "quantizer.layers.0.codebook"
    tensors = {f"{layer}.embed_sum": sums, f"{layer}.cluster_usage": usage}
    expected = sums / usage.clamp(min=1e-5)[:, None]
    check(write(tmp_path, tensors), expected, "codebook", f"{layer}.embed_sum")
