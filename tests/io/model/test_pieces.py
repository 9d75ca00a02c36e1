"""Models in several files: joined where the axis is proved, refused by name elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import embgeo
from embgeo.core.errors import EmbgeoError
from embgeo.io.model.candidates import collect_evidence
from embgeo.io.opening import open_checkpoint

N, D = 120, 16
W, U = np.random.default_rng(0).standard_normal((2, N, D)).astype(np.float32)
NORM = np.ones(D, np.float32)

SCHEMES = {
    "model{}-mp2.safetensors": "embed.weight",
    "model-rank-{}-part-0.safetensors": "model.embed_tokens.weight",
    "model_weight_pp-rank-0-of-1_tp-rank-{}-of-2.safetensors": "model.token_embedding.weight",
    "rank{}.safetensors": "transformer.vocab_embedding.weight",
    "consolidated.0{}.safetensors": "tok_embeddings.weight",
    "mp_rank_0{}_model_states.safetensors": "word_embeddings.weight",
    "layer_00-model_0{}-model_states.safetensors": "word_embeddings.weight",
    # Of no known scheme: a word before the number says what it counts.
    "model_world_size_2_rank_{}.safetensors": "model.embed_tokens.weight",
    "reshard-model_part-{}.safetensors": "decoder.embed_tokens.weight",
}


def write(
    folder: Path, scheme: str, name: str, axis: int, config: dict[str, Any], norm: Any = NORM
) -> Path:
    folder.mkdir(exist_ok=True)
    for rank, (part, head) in enumerate(
        zip(np.split(W, 2, axis), np.split(U, 2, axis), strict=True)
    ):
        tensors = {name: part, "lm_head.weight": head, "w1.weight": NORM[None]}
        tensors |= {} if norm is None else {"norm.weight": norm}
        tensors = {k: np.ascontiguousarray(v) for k, v in tensors.items()}
        path = folder / scheme.format(rank)
        path.parent.mkdir(exist_ok=True)
        save_file(tensors, path)
    if config:
        (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("axis", [0, 1])
def test_slices_are_joined_where_the_configuration_proves_the_axis(
    scheme: str, axis: int, tmp_path: Path
) -> None:
    config = {"vocab_size": N, "hidden_size": D}
    folder = write(tmp_path / "proved", scheme, SCHEMES[scheme], axis, config)
    for given in (folder, folder / scheme.format(0), folder / scheme.format(1)):
        matrix = embgeo.load(given)
        np.testing.assert_array_equal(matrix.data, W)
        assert matrix.output is not None
        np.testing.assert_array_equal(matrix.output.data, U)
        assert matrix.origin.form == "joined from 2 slices"
        assert any("joined from 2 tensor-parallel slices" in note for note in matrix.origin.notes)


def test_the_embedding_of_llama_is_cut_by_columns_and_its_output_by_rows(tmp_path: Path) -> None:
    """Its params.json says the width and, in the first versions, no size of the vocabulary."""
    for rank in range(2):
        tensors = {
            "tok_embeddings.weight": np.ascontiguousarray(np.split(W, 2, 1)[rank]),
            "output.weight": np.ascontiguousarray(np.split(U, 2, 0)[rank]),
        }
        save_file(tensors, tmp_path / f"consolidated.0{rank}.safetensors")
    (tmp_path / "params.json").write_text(json.dumps({"dim": D, "vocab_size": -1}))
    matrix = embgeo.load(tmp_path)
    np.testing.assert_array_equal(matrix.data, W)
    assert matrix.output is not None
    np.testing.assert_array_equal(matrix.output.data, U)


def test_matrices_that_each_slice_holds_whole(tmp_path: Path) -> None:
    """TensorRT-LLM without a parallel embedding."""
    for rank in range(2):
        tensors = {"transformer.vocab_embedding.weight": W, "lm_head.weight": np.split(U, 2)[rank]}
        save_file(tensors, tmp_path / f"rank{rank}.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": N, "hidden_size": D}))
    matrix = embgeo.load(tmp_path)
    np.testing.assert_array_equal(matrix.data, W)
    assert matrix.output is not None
    np.testing.assert_array_equal(matrix.output.data, U)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_slices_whose_axis_is_not_proved_are_refused(scheme: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "slices", scheme, SCHEMES[scheme], 0, {}, None)
    for given in (folder, folder / scheme.format(0), folder / scheme.format(1)):
        with pytest.raises(EmbgeoError, match="holds one tensor-parallel slice of each matrix"):
            embgeo.load(given)


@pytest.mark.parametrize(
    "scheme", ["model{}-mp2.safetensors", "part-{}.safetensors", "tp_rank_{}/m.safetensors"]
)
@pytest.mark.parametrize("axis", [0, 1])
def test_the_length_of_the_norms_proves_the_axis(scheme: str, axis: int, tmp_path: Path) -> None:
    """Each slice holds the norms whole, over the width of the model."""
    norm = np.linspace(0.5, 1.5, D, dtype=np.float32)
    folder = write(tmp_path / "norms", scheme, "embed.weight", axis, {}, norm)
    matrix = embgeo.load(folder / scheme.format(1))
    np.testing.assert_array_equal(matrix.data, W)
    assert matrix.output is not None
    np.testing.assert_array_equal(matrix.output.data, U)
    of_heads = write(tmp_path / "heads", scheme, "embed.weight", axis, {}, None)
    for path in of_heads.rglob("*.safetensors"):
        save_file(load_file(path) | {"q_norm.weight": norm[: D // 2]}, path)
    with pytest.raises(EmbgeoError, match="holds one tensor-parallel slice of each matrix"):
        embgeo.load(of_heads / scheme.format(1))


@pytest.mark.parametrize("layers", [1, 2])
def test_the_folders_of_megatron(layers: int, tmp_path: Path) -> None:
    """A folder for each slice, and for each part of the layers."""
    torch = pytest.importorskip("torch")
    norm = {"decoder.final_layernorm.weight": torch.linspace(0.5, 1.5, D)}
    for rank, (part, head) in enumerate(zip(np.split(W, 2), np.split(U, 2), strict=True)):
        first = {"embedding.word_embeddings.weight": torch.from_numpy(part)}
        last = {"output_layer.weight": torch.from_numpy(head)}
        for layer, model in enumerate([first | last] if layers == 1 else [first, last]):
            folder = tmp_path / f"mp_rank_0{rank}{'' if layers == 1 else f'_00{layer}'}"
            folder.mkdir()
            torch.save({"model": model | norm, "iteration": 7}, folder / "model_optim_rng.pt")
    for given in (tmp_path, *sorted(tmp_path.iterdir())[:1]):
        matrix = embgeo.load(given)
        np.testing.assert_array_equal(matrix.data, W)
        if given == tmp_path or layers == 1:
            assert matrix.output is not None
            np.testing.assert_array_equal(matrix.output.data, U)
        assert "mp_rank_01" in "".join(matrix.origin.notes)
        found = open_checkpoint(given)
        evidence = collect_evidence(found.tensors[0], found.facts)
        assert [one.kind for one in evidence] == ["name"]  # no configuration says sizes


def test_a_model_that_is_parallel_by_layers(tmp_path: Path) -> None:
    """TensorRT-LLM calls the files as it calls slices, and numbers the layers of each from 0."""
    for rank, name in enumerate(["transformer.vocab_embedding.weight", "lm_head.weight"]):
        tensors = {name: (W, U)[rank], "transformer.layers.0.mlp.fc.weight": W[:D]}
        save_file(tensors, tmp_path / f"rank{rank}.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": N, "hidden_size": D}))
    matrix = embgeo.load(tmp_path)
    np.testing.assert_array_equal(matrix.data, W)
    assert matrix.output is not None
    np.testing.assert_array_equal(matrix.output.data, U)


def test_runs_in_numbered_folders_are_no_slices(tmp_path: Path) -> None:
    norm = np.linspace(0.5, 1.5, D, dtype=np.float32)
    for rank in range(2):
        (tmp_path / f"rank_{rank}").mkdir()
        tensors = {"embed.weight": W + np.float32(rank), "norm.weight": norm + np.float32(rank)}
        save_file(tensors, tmp_path / f"rank_{rank}" / "model.safetensors")
    matrix = embgeo.load(tmp_path / "rank_0")
    np.testing.assert_array_equal(matrix.data, W)
    assert any("rank_1/model.safetensors beside it holds" in note for note in matrix.origin.notes)


@pytest.mark.parametrize("scheme", ["model{}-mp2.safetensors", "x_tp-rank-{}-of-2.safetensors"])
def test_a_slice_whose_sibling_is_missing_is_refused(scheme: str, tmp_path: Path) -> None:
    config = {"vocab_size": N, "hidden_size": D}
    folder = write(tmp_path / "one", scheme, "embed.weight", 0, config)
    (folder / scheme.format(1)).unlink()
    with pytest.raises(EmbgeoError, match="piece 1 of 2 is missing"):
        embgeo.load(folder / scheme.format(0))


def test_half_of_the_vocabulary_under_any_name_is_refused(tmp_path: Path) -> None:
    save_file({"embed_tokens.weight": W[: N // 2], "x": NORM}, tmp_path / "weights-a.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": N, "hidden_size": D}))
    for given in (tmp_path, tmp_path / "weights-a.safetensors"):
        with pytest.raises(
            EmbgeoError, match=r"is one of 2 slices of the 120 × 16 matrix of the config"
        ):
            embgeo.load(given)
    assert embgeo.load(tmp_path, tensor="embed_tokens.weight").n == N // 2


@pytest.mark.parametrize("axis", [0, 1])
def test_offsets_of_torch_distributed_join_pieces(axis: int, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    import torch
    from safetensors.torch import save_file as save_torch

    name, cut = "model.embed_tokens.weight", 70 if axis == 0 else 5
    for rank, part in enumerate(np.split(W, [cut], axis)):
        offsets = [0, 0]
        offsets[axis] = cut * rank
        stated = {"DCP_SHARDING_INFO": json.dumps({name: {"saved_offsets": offsets}})}
        file = tmp_path / f"shard-0000{rank + 1}-model-00001-of-00001.safetensors"
        save_torch({name: torch.from_numpy(part.copy())}, file, metadata=stated)
    for given in (tmp_path, *tmp_path.iterdir()):
        np.testing.assert_array_equal(embgeo.load(given).data, W)


def gguf_file(path: Path, number: int, total: int, tensors: dict[str, Any], **facts: int) -> None:
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(path, "llama")
    if number == 0:
        writer.add_token_list([f"t{i}" for i in range(N)])
    for key, value in facts.items():
        writer.add_uint32(f"llama.{key}", value)
    writer.add_uint16("split.no", number)
    writer.add_uint16("split.count", total)
    for name, rows in tensors.items():
        writer.add_tensor(name, rows)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_a_split_gguf_is_joined_from_any_of_its_files(tmp_path: Path) -> None:
    names = [f"m-0000{k}-of-00002.gguf" for k in (1, 2)]
    gguf_file(tmp_path / names[0], 0, 2, {"token_embd.weight": W})
    gguf_file(tmp_path / names[1], 1, 2, {"output.weight": U})
    for given in (tmp_path, *(tmp_path / name for name in names)):
        matrix = embgeo.load(given)
        np.testing.assert_array_equal(matrix.data, W)
        assert matrix.output is not None
        np.testing.assert_array_equal(matrix.output.data, U)
        assert matrix.tokens is not None
        assert matrix.tokens[:2] == ("t0", "t1")
        assert len(matrix.origin.stamps) == 2
    (tmp_path / names[1]).rename(tmp_path / "other.gguf")
    with pytest.raises(EmbgeoError, match="piece 2 of 2 is missing"):
        embgeo.load(tmp_path / names[0])
    with pytest.raises(EmbgeoError, match="is one of 2 files of a split model"):
        embgeo.load(tmp_path / "other.gguf")


def test_copies_for_multi_token_prediction_in_gguf(tmp_path: Path) -> None:
    tensors = {"token_embd.weight": W, "output.weight": U}
    tensors |= {"blk.3.nextn.embed_tokens.weight": W, "blk.3.nextn.shared_head_head.weight": U}
    gguf_file(tmp_path / "m.gguf", 0, 1, tensors, block_count=4, nextn_predict_layers=1)
    matrix = embgeo.load(tmp_path / "m.gguf")
    assert matrix.origin.tensor == "token_embd.weight"
    assert matrix.output is not None
    assert matrix.output.origin.tensor == "output.weight"


def test_shards_without_an_index_are_joined(tmp_path: Path) -> None:
    save_file({"embed_tokens.weight": W}, tmp_path / "model-00001-of-00002.safetensors")
    save_file({"lm_head.weight": U}, tmp_path / "model-00002-of-00002.safetensors")
    matrix = embgeo.load(tmp_path)
    assert matrix.output is not None
    np.testing.assert_array_equal(matrix.output.data, U)
    for number in (1, 2):  # from any of them: the second holds no embedding
        matrix = embgeo.load(tmp_path / f"model-0000{number}-of-00002.safetensors")
        np.testing.assert_array_equal(matrix.data, W)
    (tmp_path / "model-00001-of-00002.safetensors").unlink()
    with pytest.raises(EmbgeoError, match="may not be the embedding matrix: it lies in a shard"):
        embgeo.load(tmp_path / "model-00002-of-00002.safetensors")
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    save_file({"embed_tokens.weight": W}, tmp_path / "model-00001-of-00002.safetensors")
    matrix = embgeo.load(tmp_path / "model-00001-of-00002.safetensors")
    assert "model-00001-of-00002.safetensors is one of 2 shards" in matrix.origin.notes[0]


@pytest.mark.parametrize("gone", [False, True])
def test_a_single_file_goes_before_an_old_index(gone: bool, tmp_path: Path) -> None:
    save_file({"embed_tokens.weight": W}, tmp_path / "model.safetensors")
    weight_map = {"embed_tokens.weight": "model-00001-of-00002.safetensors"}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    if not gone:
        save_file({"embed_tokens.weight": U}, tmp_path / "model-00001-of-00002.safetensors")
    matrix = embgeo.load(tmp_path)
    np.testing.assert_array_equal(matrix.data, W)
    said = "model.safetensors is read, as transformers does; model.safetensors.index.json beside it"
    assert any(said in note for note in matrix.origin.notes)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ("pytorch_model.bin", "as transformers does; pytorch_model.bin beside it is not"),
        ("consolidated.safetensors", "consolidated.safetensors beside it is not"),
        ("adapter_model.safetensors", "the adapter beside it is not merged into it"),
    ],
)
def test_other_weights_beside_are_noted(other: str, said: str, tmp_path: Path) -> None:
    save_file({"embed_tokens.weight": W}, tmp_path / "model.safetensors")
    save_file({"embed_tokens.weight": U}, tmp_path / other)
    matrix = embgeo.load(tmp_path)
    np.testing.assert_array_equal(matrix.data, W)
    assert any(said in note for note in matrix.origin.notes)


@pytest.mark.parametrize("axis", [0, 1])
def test_codes_are_decoded_in_each_slice_by_its_own_scales(axis: int, tmp_path: Path) -> None:
    codes = np.random.default_rng(1).integers(-127, 128, (N, D)).astype(np.int8)
    scales = np.random.default_rng(2).random((2, N, 1)).astype(np.float32) + 0.1
    parts, expected = np.split(codes, 2, axis), []
    for rank, part in enumerate(parts):
        scale = scales[rank] if axis else np.split(scales[0], 2)[rank]
        expected.append(part * scale)
        tensors = {"embed.weight": np.ascontiguousarray(part), "embed.weight_scale": scale}
        tensors["head.weight"] = np.split(U, 2)[rank]
        save_file(tensors, tmp_path / f"model{rank}-mp2.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": N, "dim": D}))
    matrix = embgeo.load(tmp_path)
    np.testing.assert_allclose(matrix.data, np.concatenate(expected, axis), rtol=1e-6)
    assert matrix.origin.form == "INT8, code · weight_scale of the row; joined from 2 slices"
    for rank in range(2):  # codes that no scales explain stop the choice
        tensors = {"embed.weight": parts[rank].copy(), "head.weight": np.split(U, 2)[rank]}
        save_file(tensors, tmp_path / f"model{rank}-mp2.safetensors")
    with pytest.raises(EmbgeoError, match="embed holds whole numbers"):
        embgeo.load(tmp_path)


def test_codes_of_a_lone_shard_may_have_scales_in_another(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file as save_torch

    codes = torch.from_numpy(W).to(torch.float8_e4m3fn)
    save_torch({"embed_tokens.weight": codes}, tmp_path / "model-00001-of-00002.safetensors")
    with pytest.raises(EmbgeoError, match="its scales are not in the file"):
        embgeo.load(tmp_path / "model-00001-of-00002.safetensors")


def numbered(
    folder: Path, parts: list[np.ndarray], norms: list[np.ndarray], first: int = 0
) -> Path:
    for number, (part, norm) in enumerate(zip(parts, norms, strict=True), first):
        tensors = {"embed_tokens.weight": np.ascontiguousarray(part), "norm.weight": norm}
        save_file(tensors, folder / f"model{number}x.safetensors")
    return folder / f"model{first}x.safetensors"


def test_steps_of_a_run_are_no_slices(tmp_path: Path) -> None:
    norm = np.arange(D, dtype=np.float32)
    later = W.copy()
    later[3:] += 1  # rows of tokens that do not occur stay
    path = numbered(tmp_path, [W, later], [norm, norm])
    matrix = embgeo.load(path)
    np.testing.assert_array_equal(matrix.data, W)
    said = "model1x.safetensors beside it holds tensors of the same names and is not read"
    assert said in matrix.origin.notes
    np.testing.assert_array_equal(embgeo.load(numbered(tmp_path, [W, U], [norm, norm + 1])).data, W)


@pytest.mark.parametrize(("first", "rows"), [(1, N), (2, N // 2)])
def test_slices_are_numbered_from_0_or_1(first: int, rows: int, tmp_path: Path) -> None:
    norm = np.arange(D, dtype=np.float32)
    path = numbered(tmp_path, np.split(W, 2), [norm, norm], first)
    np.testing.assert_array_equal(embgeo.load(path).data, W[:rows])


@pytest.mark.parametrize("axis", [0, 1])
def test_slices_whose_names_differ_in_any_number(axis: int, tmp_path: Path) -> None:
    norm = np.arange(D, dtype=np.float32)
    path = numbered(tmp_path, np.split(W, 2, axis), [norm, norm])
    np.testing.assert_array_equal(embgeo.load(path).data, W)  # by the length of the norms
    heads = np.arange(D // 4, dtype=np.float32)
    path = numbered(tmp_path, np.split(W, 2, axis), [heads, heads])
    with pytest.raises(EmbgeoError, match="holds one tensor-parallel slice of each matrix"):
        embgeo.load(path)
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": N, "hidden_size": D}))
    np.testing.assert_array_equal(embgeo.load(path).data, W)


@pytest.mark.parametrize("cut", [False, True])
def test_a_layer_of_gpt_neox_and_its_configuration(cut: bool, tmp_path: Path) -> None:
    """Of the embedding only the width is stated: slices are of rows, or the same."""
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "model.yml").write_text(f'{{\n  "hidden-size": {D},\n}}')
    for rank in range(2):
        rows, head = (np.split(W, 2)[rank] if cut else W), np.split(U, 2)[rank]
        layers = {0: {"word_embeddings.weight": rows}, 6: {"final_linear.weight": head}}
        for layer, tensors in (layers | {2: {"dense.weight": head}}).items():
            save_file(tensors, tmp_path / f"layer_0{layer}-model_0{rank}-model_states.safetensors")
    matrix = embgeo.load(tmp_path)
    np.testing.assert_array_equal(matrix.data, W)
    if cut:
        assert matrix.output is not None
        np.testing.assert_array_equal(matrix.output.data, U)
    file = tmp_path / "layer_00-model_01-model_states.safetensors"
    np.testing.assert_array_equal(embgeo.load(file).data, W)


def test_nanotron_keeps_each_tensor_in_a_folder_of_its_own(tmp_path: Path) -> None:
    inner = tmp_path / "model/model/token_position_embeddings/pp_block/token_embedding"
    inner.mkdir(parents=True)
    for rank, part in enumerate(np.split(W, 2)):
        name = f"model_weight_pp-rank-0-of-1_tp-rank-{rank}-of-2.safetensors"
        save_file({"data": part}, inner / name)
    sizes = {"vocab_size": N, "hidden_size": D, "is_llama_config": True}
    (tmp_path / "model_config.json").write_text(json.dumps(sizes))
    with pytest.raises(EmbgeoError) as caught:
        embgeo.load(tmp_path)
    assert caught.value.way_out == f"name it: {inner}"
    np.testing.assert_array_equal(embgeo.load(inner).data, W)


def test_offsets_join_files_of_any_name(tmp_path: Path) -> None:
    for name, part in zip("ab", np.split(W, 2), strict=True):
        first = {"w.embed_tokens.weight": {"saved_offsets": [0 if name == "a" else N // 2, 0]}}
        stated = {"DCP_SHARDING_INFO": json.dumps(first)}
        save_file({"w.embed_tokens.weight": part}, tmp_path / f"{name}.safetensors", stated)
    for given in (tmp_path, tmp_path / "a.safetensors", tmp_path / "b.safetensors"):
        np.testing.assert_array_equal(embgeo.load(given).data, W)
    (tmp_path / "a.safetensors").unlink()
    with pytest.raises(EmbgeoError, match="holds one piece of each matrix"):
        embgeo.load(tmp_path / "b.safetensors")


def test_the_first_file_of_a_split_gguf_may_hold_metadata_alone(tmp_path: Path) -> None:
    """``--no-tensor-first-split`` of llama.cpp."""
    names = [f"m-0000{k}-of-00003.gguf" for k in (1, 2, 3)]
    for number, tensors in enumerate(({}, {"token_embd.weight": W}, {"output.weight": U})):
        gguf_file(tmp_path / names[number], number, 3, tensors)
    for given in (tmp_path, *(tmp_path / name for name in names)):
        matrix = embgeo.load(given)
        np.testing.assert_array_equal(matrix.data, W)
        assert matrix.tokens is not None
        assert matrix.output is not None
