"""Models in several files: shards of whole tensors are read, slices are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import embgeo
from tests.support.framework_files import write_gguf
from tests.support.refusals import refusal
from tests.support.sampling import each_folder, each_value

N, D = 120, 16
W, U = np.random.default_rng(0).standard_normal((2, N, D)).astype(np.float32)
NORM = np.ones(D, np.float32)

#: Names of the slices of a scheme, and what joins them.
SCHEMES = {
    "consolidated.0{}.safetensors": "convert_llama_weights_to_hf.py",
    "mp_rank_0{}_model_states.safetensors": "Megatron-LM",
    "layer_00-model_0{}-model_states.safetensors": "convert_neox_to_hf.py",
    "model{}-mp2.safetensors": "convert.py",
    "model-rank-{}-part-0.safetensors": "save_sharded_state.py",
    "model_weight_pp-rank-0-of-1_tp-rank-{}-of-2.safetensors": "convert_nanotron_to_hf.py",
    "model_state.tp0{}.safetensors": "merge_tp_and_pp_params.py",
    "model_world_size_2_rank_{}.safetensors": "verl.model_merger merge",
    "mp_rank_0{}/model_optim_rng.safetensors": "Megatron-LM",
    # Of no known scheme: a word before the number says what it counts.
    "rank{}.safetensors": "the program that wrote them",
    "reshard-model_part-{}.safetensors": "the program that wrote them",
    "part_{}/model.safetensors": "the program that wrote them",
    "part_{}.npz": "the program that wrote them",
    "shard.{}.npy": "the program that wrote them",
    "x-tp{}.pt": "the program that wrote them",
}


def write(path: Path, tensors: dict[str, np.ndarray]) -> None:
    path.parent.mkdir(exist_ok=True)
    if path.suffix == ".npz":
        np.savez(path, **tensors)  # type: ignore[arg-type]
    elif path.suffix == ".npy":
        np.save(path, next(iter(tensors.values())))
    elif path.suffix == ".pt":
        torch = pytest.importorskip("torch")
        torch.save({name: torch.from_numpy(rows.copy()) for name, rows in tensors.items()}, path)
    else:
        save_file({name: rows.copy() for name, rows in tensors.items()}, path)


@each_value
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("given", ["folder", 0, 1])
def test_slices_are_refused_with_what_joins_them(
    scheme: str, axis: int, given: str | int, tmp_path: Path
) -> None:
    for rank, part in enumerate(np.split(W, 2, axis)):
        write(tmp_path / scheme.format(rank), {"embed_tokens.weight": part, "norm.weight": NORM})
    path = tmp_path if given == "folder" else tmp_path / scheme.format(given)
    with refusal() as caught:
        embgeo.load(path)
    # Nobody is told to name a slice, neither for the file nor for its folder.
    assert not caught.value.ways_out
    assert "--tensor" not in caught.value.command_line_text


def test_a_lone_file_is_a_slice_if_its_name_says_that_there_are_others(tmp_path: Path) -> None:
    for folder, (name, is_slice) in each_folder(
        tmp_path,
        (
            ("consolidated.00.safetensors", False),
            ("consolidated.01.safetensors", True),
            ("mp_rank_00_model_states.safetensors", False),
            ("model0-mp1.safetensors", False),
            ("model0-mp2.safetensors", True),
            ("model_world_size_1_rank_0.safetensors", False),
            ("model_world_size_4_rank_0.safetensors", True),
            ("model_state.tp00.safetensors", True),
            ("rank8.safetensors", False),  # of LoRA
            ("zero_pp_rank_0_mp_rank_00_model_states.safetensors", True),
        ),
    ):
        save_file({"embed_tokens.weight": W}, folder / name)
        if is_slice:
            with refusal():
                embgeo.load(folder / name)
        else:
            assert embgeo.load(folder / name).n == N


def test_copies_that_each_rank_saves_are_read(tmp_path: Path) -> None:
    for rank in range(2):
        save_file({"embed_tokens.weight": W}, tmp_path / f"model_rank{rank}.safetensors")
    matrix = embgeo.load(tmp_path / "model_rank0.safetensors")
    np.testing.assert_array_equal(matrix.data, W)
    assert any("beside it holds tensors of the same names" in n for n in matrix.origin.notes)


def test_runs_in_numbered_folders_are_no_slices(tmp_path: Path) -> None:
    norm = np.linspace(0.5, 1.5, D, dtype=np.float32)
    for rank in range(2):
        (tmp_path / f"rank_{rank}").mkdir()
        tensors = {"embed.weight": W + np.float32(rank), "norm.weight": norm + np.float32(rank)}
        save_file(tensors, tmp_path / f"rank_{rank}" / "model.safetensors")
    matrix = embgeo.load(tmp_path / "rank_0")
    np.testing.assert_array_equal(matrix.data, W)
    assert any("rank_1/model.safetensors beside it holds" in note for note in matrix.origin.notes)


@pytest.mark.parametrize("folder", ["mp_rank_00", "x_tp-rank-0-of-2"])
def test_a_folder_of_a_slice_is_not_named_for_the_folder_above(folder: str, tmp_path: Path) -> None:
    for rank in range(2):
        inner = (
            tmp_path
            / "iter_0000010"
            / folder.replace("0", str(rank), 2).replace(f"{rank}{rank}", f"0{rank}")
        )
        inner.mkdir(parents=True, exist_ok=True)
        save_file({"embed_tokens.weight": W}, inner / "model.safetensors")
    with refusal():
        embgeo.load(tmp_path)


def test_half_of_the_vocabulary_under_any_name_is_refused(tmp_path: Path) -> None:
    save_file({"embed_tokens.weight": W[: N // 2], "x": NORM}, tmp_path / "weights-a.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": N, "hidden_size": D}))
    for given in (tmp_path, tmp_path / "weights-a.safetensors"):
        with refusal() as caught:
            embgeo.load(given)
        assert not caught.value.ways_out


@pytest.mark.parametrize("first", [[], [{}]], ids=["", "--no-tensor-first-split of llama.cpp"])
def test_a_split_gguf_is_joined_from_any_of_its_files(first: list[Any], tmp_path: Path) -> None:
    parts = [*first, {"token_embd.weight": W}, {"output.weight": U}]
    paths = [tmp_path / f"m-0000{k + 1}-of-0000{len(parts)}.gguf" for k in range(len(parts))]
    for number, tensors in enumerate(parts):
        tokens = [] if number else [("token_list", [f"t{i}" for i in range(N)])]
        split = [("split.no", number), ("split.count", len(parts))]
        added = [("uint16", key, value) for key, value in split]
        write_gguf(paths[number], tensors, *tokens, *added)
    for given in (tmp_path, *paths):
        matrix = embgeo.load(given)
        np.testing.assert_array_equal(matrix.data, W)
        assert matrix.output is not None
        np.testing.assert_array_equal(matrix.output.data, U)
        assert matrix.tokens is not None
        assert matrix.tokens[:2] == ("t0", "t1")
        assert len(matrix.origin.stamps) == len(parts)
    paths[-1].rename(tmp_path / "other.gguf")
    for given in (paths[0], tmp_path / "other.gguf"):
        with refusal():
            embgeo.load(given)


def test_copies_for_multi_token_prediction_in_gguf(tmp_path: Path) -> None:
    tensors = {"token_embd.weight": W, "output.weight": U}
    tensors |= {"blk.3.nextn.embed_tokens.weight": W, "blk.3.nextn.shared_head_head.weight": U}
    facts = {"block_count": 4, "nextn_predict_layers": 1}
    added = [("uint32", f"llama.{key}", value) for key, value in facts.items()]
    write_gguf(tmp_path / "m.gguf", tensors, *added)
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
    with refusal():
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


def test_other_weights_beside_are_noted(tmp_path: Path) -> None:
    for folder, (other, said) in each_folder(
        tmp_path,
        (
            ("pytorch_model.bin", "as transformers does; pytorch_model.bin beside it is not"),
            ("consolidated.safetensors", "consolidated.safetensors beside it is not"),
            ("adapter_model.safetensors", "the adapter beside it is not merged into it"),
            ("adapters.safetensors", "the adapter beside it is not merged into it"),
        ),
    ):
        save_file({"embed_tokens.weight": W}, folder / "model.safetensors")
        save_file({"embed_tokens.weight": U}, folder / other)
        matrix = embgeo.load(folder)
        np.testing.assert_array_equal(matrix.data, W)
        assert any(said in note for note in matrix.origin.notes)


def test_codes_of_a_lone_shard_may_have_scales_in_another(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file as save_torch

    codes = torch.from_numpy(W).to(torch.float8_e4m3fn)
    save_torch({"embed_tokens.weight": codes}, tmp_path / "model-00001-of-00002.safetensors")
    with refusal():
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


@pytest.mark.parametrize(("first", "is_slice"), [(0, True), (1, True), (2, False)])
@pytest.mark.parametrize("axis", [0, 1])
def test_slices_whose_names_differ_in_any_number(
    first: int, is_slice: bool, axis: int, tmp_path: Path
) -> None:
    """Norms are the same, and no row of the embedding is: numbered from 0 or 1, they are slices."""
    norm = np.arange(D, dtype=np.float32)
    path = numbered(tmp_path, np.split(W, 2, axis), [norm, norm], first)
    if is_slice:
        with refusal():
            embgeo.load(path)
        with refusal():
            embgeo.load(tmp_path)
    else:
        assert embgeo.load(path).n == len(np.split(W, 2, axis)[0])


def test_words_for_steps_and_runs_name_no_slices(tmp_path: Path) -> None:
    """Norms that are not trained are the same, and weight decay changes each row."""
    for folder, word in each_folder(tmp_path, ("epoch_", "step=", "seed", "v")):
        norm = np.arange(D, dtype=np.float32)
        for number in range(2):
            tensors = {"embed_tokens.weight": W * np.float32(1 + number), "norm.weight": norm}
            save_file(tensors, folder / f"{word}{number}.safetensors")
        assert embgeo.load(folder / f"{word}0.safetensors").n == N


@pytest.mark.parametrize("axis", [0, 1])
def test_the_configuration_says_which_files_are_slices(axis: int, tmp_path: Path) -> None:
    path = numbered(tmp_path, np.split(W, 2, axis), [NORM, NORM])
    assert embgeo.load(path).n == N // 2 or axis == 1  # nothing says so
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": N, "hidden_size": D}))
    with refusal():
        embgeo.load(path)


def test_pieces_that_state_their_offsets_are_refused(tmp_path: Path) -> None:
    """As torch.distributed.checkpoint writes them for the Hub."""
    for name, part in zip("ab", np.split(W, 2), strict=True):
        first = {"w.embed_tokens.weight": {"saved_offsets": [0 if name == "a" else N // 2, 0]}}
        stated = {"DCP_SHARDING_INFO": json.dumps(first)}
        save_file({"w.embed_tokens.weight": part}, tmp_path / f"{name}.safetensors", stated)
    for given in (tmp_path, tmp_path / "a.safetensors", tmp_path / "b.safetensors"):
        with refusal() as caught:
            embgeo.load(given)
        assert not caught.value.ways_out


def test_numbered_files_without_names_are_noted(tmp_path: Path) -> None:
    """Of files that take time to open the names say so, where a word is one for slices."""
    lines = ["".join(f"w {' '.join(map(str, row))}\n" for row in part) for part in (W, U)]
    for number, part in enumerate((W, U)):
        np.save(tmp_path / f"emb_{number}.npy", part)
        (tmp_path / f"part{number}.txt").write_text(lines[number])
        (tmp_path / f"glove{number}.txt").write_text(lines[number])
    for name, other in (
        ("emb_0.npy", "emb_1.npy"),
        ("part1.txt", "part0.txt"),
        ("glove0.txt", ""),
    ):
        notes = embgeo.load(tmp_path / name).origin.notes
        assert any(f"{other} beside it" in note for note in notes) == bool(other)
    for number in range(2, 65):
        np.save(tmp_path / f"part{number}.npy", W)
    for number, part in enumerate((W, U)):
        np.save(tmp_path / f"part{number}.npy", part)
    notes = embgeo.load(tmp_path / "part3.npy").origin.notes
    assert "part0.npy beside it is not read" in notes
