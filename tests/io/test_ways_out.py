"""Every way out that an error names as a step is taken, and ends in a matrix, never in a circle."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import embgeo
from embgeo.core.errors import EmbgeoError
from tests.support.sampling import each_folder

N, D = 96, 16
W = np.random.default_rng(0).standard_normal((N, D)).astype(np.float32)
NAME = "model.embed_tokens.weight"


def weights(folder: Path, tensors: dict[str, np.ndarray] | None = None, **config: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors or {NAME: W}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def pipeline(folder: Path) -> Path:
    for inner in ("text_encoder", "text_encoder_2", "vae"):
        weights(folder / inner)
    (folder / "model_index.json").write_text("{}")
    return folder


def trainer(folder: Path) -> Path:
    weights(folder / "checkpoint-5")
    weights(folder / "checkpoint-40")
    return folder


def sentence_transformer(folder: Path) -> Path:
    weights(folder / "0_StaticEmbedding")
    (folder / "modules.json").write_text("[]")
    return folder


def hub_cache(folder: Path) -> Path:
    weights(folder / "models--org--name/snapshots/abc")
    return folder


def megatron(folder: Path) -> Path:
    torch = pytest.importorskip("torch")
    inner = folder / "iter_0000100/mp_rank_00"
    inner.mkdir(parents=True)
    torch.save({"embedding.word_embeddings.weight": torch.from_numpy(W)}, inner / "mp_rank_00.pt")
    return folder


def deepspeed(folder: Path) -> Path:
    torch = pytest.importorskip("torch")
    inner = folder / "global_step7"
    inner.mkdir()
    (folder / "latest").write_text("global_step7")
    torch.save({"module": {NAME: torch.from_numpy(W)}}, inner / "mp_rank_00_model_states.pt")
    return folder


def several_files(folder: Path) -> Path:
    np.save(folder / "a.npy", W)
    np.save(folder / "b.npy", W)
    return folder


def several_tensors(folder: Path) -> Path:
    return weights(folder, {"a.weight": W, "b.weight": W[:50], "c.weight": W[:, :3]})


def several_kinds(folder: Path) -> Path:
    audio = {"talker.model.embed_tokens.weight": W, "vision.embed_tokens.weight": W[:40]}
    return weights(folder, audio)


def lone_output(folder: Path) -> Path:
    return weights(folder, {"lm_head.weight": W}, vocab_size=N, tie_word_embeddings=False)


def layer_kernel(folder: Path) -> Path:
    return weights(folder, {"layers.lstm.cell.kernel": W})


def few_rows(folder: Path) -> Path:
    return weights(folder, vocab_size=11 * N)


def tokens_as_columns(folder: Path) -> Path:
    tensors = {"model.embed_tokens.weight": np.ascontiguousarray(W.T)}
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"vocab_size": N, "hidden_size": D}))
    return folder


def broken_tokenizer(folder: Path) -> Path:
    weights(folder)
    (folder / "tokenizer.json").write_text("{")
    return folder


CASES: tuple[Callable[[Path], Path], ...] = (
    hub_cache, megatron, deepspeed,
    several_files, several_tensors, several_kinds,
    lone_output,
    layer_kernel, tokens_as_columns, few_rows,
    broken_tokenizer,
)  # fmt: skip


def follow(path: str, arguments: dict[str, Any], taken: tuple[str, ...] = ()) -> None:
    """Load, or take each step of the error; the same again would be a circle."""
    here = f"{path} {arguments}"
    assert here not in taken, "a circle"
    try:
        matrix = embgeo.load(path, **arguments)
    except EmbgeoError as error:
        refusal = error
    else:
        assert taken, "nothing was refused"
        assert matrix.n > 1
        return
    assert refusal.ways_out, str(refusal)
    for step in refusal.ways_out:
        follow(step.path or path, arguments | dict(step.arguments), (*taken, here))


def test_every_step_ends_in_a_matrix(tmp_path: Path) -> None:
    for folder, make in each_folder(tmp_path, CASES):
        follow(str(make(folder)), {})


@pytest.mark.parametrize(
    ("arguments", "labels"),
    [({}, N - 6), ({}, D), ({"rows": "0:50"}, 40)],
    ids=["fewer labels", "as many as columns", "a cut"],
)
def test_steps_for_labels_that_do_not_fit(
    arguments: dict[str, Any], labels: int, tmp_path: Path
) -> None:
    weights(tmp_path)
    tokens = tmp_path / "tokens.txt"
    tokens.write_text("\n".join(f"t{k}" for k in range(labels)))
    follow(str(tmp_path), arguments | {"tokens": str(tokens)})


def test_a_misspelled_name_leads_to_the_tensor(tmp_path: Path) -> None:
    follow(str(weights(tmp_path)), {"tensor": "model.embed_token.weight"})


def test_the_words_name_the_first_step(tmp_path: Path) -> None:
    """A path can be copied from the message."""
    for make in (pipeline, several_files, lone_output, broken_tokenizer):
        folder = tmp_path / make.__name__
        folder.mkdir()
        with pytest.raises(EmbgeoError) as caught:
            embgeo.load(make(folder))
        step = caught.value.ways_out[0]
        said = caught.value.command_line_text
        options = [f"--{key} {value}" for key, value in step.arguments.items()]
        assert all(option in said for option in options)
        assert step.path in said
