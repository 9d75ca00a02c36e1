"""Which matrix is the embedding and which the output, by evidence, else a question."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import embgeo
from embgeo.core.errors import AmbiguousTensor
from embgeo.io.load import open_checkpoint
from embgeo.io.model.candidates import (
    collect_evidence,
    count_slices,
    embedding_module,
    has_vocabulary,
    is_named_by,
)
from embgeo.io.model.checkpoint import Checkpoint, Tensor
from embgeo.io.model.choice import choose
from embgeo.io.model.companions import read_parameters
from embgeo.io.model.facts import ModelFacts, facts_of
from tests.support.refusals import refusal
from tests.support.sampling import each_folder, each_value

N, D = 120, 16
G = np.random.default_rng(0)


def rows(n: int, d: int = D) -> np.ndarray:
    return G.standard_normal((n, d)).astype(np.float32)


def write(folder: Path, tensors: dict[str, np.ndarray], tokens: int = 0, **config: Any) -> Path:
    folder.mkdir(exist_ok=True)
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    if tokens:
        vocab = {f"w{i}": i for i in range(tokens)}
        tokenizer = {"version": "1.0", "model": {"type": "WordLevel", "vocab": vocab}}
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    return folder


def of_shape(*shape: int) -> Any:
    return SimpleNamespace(name="embed", shape=shape, row_ids=None)


def test_rows_of_a_vocabulary_may_be_padded() -> None:
    for n, known, has in (
        (30_000, 30_000, True),
        (29_999, 30_000, False),
        (31_500, 30_000, True),  # a twentieth more
        (31_501, 30_000, False),
        (6_024, 5_000, True),  # 1,024 more
        (6_025, 5_000, False),
        (200, 100, True),  # of few, as many again
        (201, 100, False),
    ):
        assert has_vocabulary(of_shape(n, 16), ModelFacts(vocabulary=known)) is has


def test_slices_are_counted_by_the_sizes_of_the_configuration() -> None:
    for shape, slices in (
        ((9_000, 16), 1),
        ((4_500, 16), 2),
        ((4_499, 16), 1),
        ((4_627, 16), 2),  # padded by fewer than 128 rows each
        ((4_628, 16), 1),
        ((3_000, 16), 3),
        ((1_125, 16), 8),
        ((9_000, 8), 2),  # of the columns
        ((9_000, 6), 1),
        ((9_000, 5), 1),
    ):
        facts = ModelFacts(vocabulary=9_000, columns=16)
        assert count_slices(of_shape(*shape), (), facts) == slices


@each_value
@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize(
    "place", ["model.layers.1.", "model.mtp.", "mtp.0.", "model.mtp_layers.0."]
)
def test_copies_for_multi_token_prediction_lose(place: str, equal: bool, tmp_path: Path) -> None:
    outer, head = rows(N), rows(N)
    tensors = {
        "model.embed_tokens.weight": outer,
        "lm_head.weight": head,
        f"{place}embed_tokens.weight": outer if equal else rows(N),
        f"{place}shared_head.head.weight": head,
        f"{place}eh_proj.weight": rows(D, 2 * D),
    }
    matrix = embgeo.load(write(tmp_path, tensors, num_hidden_layers=1, vocab_size=N))
    assert matrix.origin.tensor == "model.embed_tokens.weight"
    assert matrix.output is not None
    assert matrix.output.origin.tensor == "lm_head.weight"
    said = "holds the same numbers" if equal else "differs, and is not analyzed"
    assert any(f"for multi-token prediction, {said}" in note for note in matrix.origin.notes)


def test_text_goes_before_codes_of_audio_where_the_sizes_prove_it(tmp_path: Path) -> None:
    """The layout of CSM: the embedding of text has no name of its own kind."""
    tensors = {
        "embed_text_tokens.weight": rows(N),
        "backbone_model.embed_tokens.embed_audio_tokens.weight": rows(64),
        "depth_decoder.model.embed_tokens.weight": rows(64),
        "lm_head.weight": rows(5),
    }
    folder = write(tmp_path, tensors, N, text_vocab_size=N, vocab_size=5)
    matrix = embgeo.load(folder)
    assert (matrix.origin.tensor, matrix.n) == ("embed_text_tokens.weight", N)
    assert matrix.tokens is not None
    assert matrix.output is None
    assert any("over other ids than the embedding" in note for note in matrix.origin.notes)
    audio = embgeo.load(folder, tensor="depth_decoder.model.embed_tokens.weight")
    assert audio.tokens is None
    assert any("the rows are audio codes" in note for note in audio.origin.notes)


def test_kinds_that_nothing_tells_apart_are_a_question_that_names_them(tmp_path: Path) -> None:
    """The layout of MusicGen: a frozen T5 beside the codebooks of the model."""
    tensors = {"text_encoder.shared.weight": rows(N)}
    tensors |= {f"decoder.model.decoder.embed_tokens.{k}.weight": rows(33) for k in range(2)}
    with refusal(AmbiguousTensor):
        embgeo.load(write(tmp_path, tensors))


def test_a_thinker_and_a_talker(tmp_path: Path) -> None:
    tensors = {
        "thinker.model.embed_tokens.weight": rows(N),
        "talker.model.embed_tokens.weight": rows(33),
    }
    config = {"thinker_config": {"text_config": {"vocab_size": N, "hidden_size": D}}}
    assert embgeo.load(write(tmp_path / "a", tensors, **config)).n == N
    with refusal(AmbiguousTensor):
        embgeo.load(write(tmp_path / "b", tensors))


@each_value
@pytest.mark.parametrize(
    ("name", "shape", "dtype"),
    [
        ("model.embed_tokens.weight", (4, N, D), "f4"),
        ("model.embed_tokens.weight", (N * D,), "f4"),
        ("model.embed_tokens.weight", (0,), "f4"),
        ("embeddings", (1, N, D), "f4"),
        ("embeddings", (N, D), "i1"),
        ("vectors", (N, D), "u1"),
        ("embedding.weight", (N, D), "i4"),
    ],
)
@pytest.mark.parametrize("other", ["lm_head.weight", "ranges", "proj.weight"])
def test_an_embedding_that_is_no_matrix_of_real_numbers_stops_the_choice(
    name: str, shape: tuple[int, ...], dtype: str, other: str, tmp_path: Path
) -> None:
    """A stack, a flat vector, what ZeRO stage 3 leaves, codes: nothing takes their place."""
    folder = write(tmp_path, {name: np.ones(shape, dtype), other: rows(N)}, vocab_size=N)
    with refusal(AmbiguousTensor):
        embgeo.load(folder)
    assert embgeo.load(folder, tensor=other).n == N


@pytest.mark.parametrize(
    ("name", "shape", "dtype", "stops"),
    [
        ("audio_embeddings.weight", (4, N, D), "f4", True),
        ("_flat_param", (N * D,), "f4", True),
        ("_flat_param", (N * D - 1,), "f4", False),
        ("q", (N, D), "i1", True),
        ("q", (N - 1, D), "i1", False),
        ("embedder.qweight", (D, D), "i4", True),
        ("edge_index", (2, N * D), "i8", False),
        ("mask", (N, D), "?", False),
        ("conv.weight", (N, D, 3), "f4", False),
        ("position_embeddings", (1, N, D), "f4", False),
        ("layers.0.codebook", (1, N, D), "f4", False),
    ],
)
def test_a_lone_matrix_is_not_taken_beside_what_may_be_the_embedding(
    name: str, shape: tuple[int, ...], dtype: str, stops: bool, tmp_path: Path
) -> None:
    """A matrix without a name is chosen only where nothing else may be meant."""
    folder = write(tmp_path, {name: np.ones(shape, dtype), "linear": rows(N)})
    if stops:
        with refusal(AmbiguousTensor):
            embgeo.load(folder)
    assert embgeo.load(folder, tensor="linear" if stops else None).origin.tensor == "linear"


def test_members_that_a_format_cannot_read_stop_the_choice() -> None:
    """By name, or because nothing else says which is the embedding; their shape may be unknown."""

    def member(
        name: str, problem: str = "", shape: tuple[int, ...] = (N, D), dtype: str = ""
    ) -> Tensor:
        kind = dtype or ("" if problem else "float32")
        return Tensor(name, shape, kind, np.zeros, problem=problem, way_out="convert it")

    def chosen(*members: Tensor) -> str:
        found = Checkpoint("npz", members)
        return choose(read_parameters(found)).input.name

    unread = "is an array of objects"
    for held in (
        [member("word_embeddings", unread, ()), member("linear")],
        [member("word_embeddings", unread), member("embedding")],
        [member("anything", unread, ()), member("linear")],
        [member("anything", unread), member("lm_head.weight")],
    ):
        with refusal(AmbiguousTensor):
            chosen(*held)
    assert chosen(member("anything", unread), member("wte.weight")) == "wte.weight"
    assert chosen(member("embedding", unread), member("wte.weight")) == "wte.weight"
    assert chosen(member("layers.0.x", unread), member("linear")) == "linear"
    assert chosen(member("texts", unread, (N,), "str"), member("linear")) == "linear"
    with refusal(AmbiguousTensor):
        chosen(member("anything", unread), member("left"), member("right"))
    with refusal(AmbiguousTensor):
        chosen(member("emb_objects", unread), member("left"), member("right"))
    assert chosen(member("position_embeddings", unread), member("linear")) == "linear"
    only = Checkpoint("npz", (member("x", unread),))
    with refusal(AmbiguousTensor):
        choose(read_parameters(only))


@pytest.mark.parametrize(
    ("above", "many", "stops"),
    [
        ("embeddings", 8, True),
        ("embeddings", 7, False),
        ("position_embeddings", 8, False),
        ("table", 15, True),
        ("table", 14, False),
    ],
)
def test_vectors_stored_one_by_one_stop_the_choice(above: str, many: int, stops: bool) -> None:
    """Vectors side by side, named like embeddings or as large as the projection beside them."""
    vectors = [Tensor(f"{above}.{k}", (D,), "float32", np.zeros) for k in range(many)]
    found = Checkpoint("pt", (*vectors, Tensor("umap", (N, 2), "float32", np.zeros)))
    with refusal(AmbiguousTensor) if stops else nullcontext():
        assert choose(read_parameters(found)).input.name == "umap"


@each_value
@pytest.mark.parametrize("name", ["layers/lstm/cell/vars/0", "dense/kernel:0", "rnn.weight_ih_l0"])
@pytest.mark.parametrize("others", [0, 2])
def test_kernels_of_layers_are_no_embedding(name: str, others: int, tmp_path: Path) -> None:
    tensors = {name: rows(400)} | {f"layers/dense_{k}/vars/0": rows(D, 3) for k in range(others)}
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(AmbiguousTensor):
        embgeo.load(tmp_path)
    assert embgeo.load(tmp_path, tensor=name).n == 400


def test_the_only_matrix_is_none_where_the_configuration_contradicts(tmp_path: Path) -> None:
    folder = write(tmp_path, {"model.layers.0.mlp.gate.weight": rows(8)}, vocab_size=N)
    with refusal(AmbiguousTensor):
        embgeo.load(folder)


@pytest.mark.parametrize("key", ["embedding_size", "word_embed_proj_dim", "other"])
def test_an_embedding_that_is_projected_to_the_hidden_size(key: str, tmp_path: Path) -> None:
    """ALBERT, ELECTRA and OPT 350M have half as many columns, or fewer."""
    tensors = {"embeddings.word_embeddings.weight": rows(N), "x.weight": rows(3)}
    if key == "other":  # nothing but the matrix that leads to the hidden size says so
        tensors["project_in.weight"] = np.ones((2 * D, D), np.float32)
    matrix = embgeo.load(write(tmp_path, tensors, vocab_size=N, hidden_size=2 * D, **{key: D}))
    assert matrix.d == D


def test_half_of_the_columns_is_a_slice_where_nothing_projects_it(tmp_path: Path) -> None:
    tensors = {"model.embed_tokens.weight": rows(N), "x.weight": rows(3)}
    folder = write(tmp_path, tensors, vocab_size=N, hidden_size=2 * D)
    with refusal():
        embgeo.load(folder)


def test_an_embedding_of_few_rows_of_the_vocabulary_is_a_question(tmp_path: Path) -> None:
    folder = write(tmp_path, {"model.embed_tokens.weight": rows(N)}, vocab_size=N * 11)
    with refusal():
        embgeo.load(folder)
    assert embgeo.load(folder, tensor="model.embed_tokens.weight").n == N


def test_names_of_inputs_and_outputs(tmp_path: Path) -> None:
    for folder, (embedding, output) in each_folder(
        tmp_path,
        (
            ("embedding.weight", "unembedding.weight"),
            ("transformer.vocab_embedding.weight", "lm_head.weight"),
            ("gpt_neox.embed_in.weight", "embed_out.weight"),
            ("embed.weight", "head.weight"),
            ("token_embd.weight", "output.weight"),
        ),
    ):
        matrix = embgeo.load(write(folder, {embedding: rows(N), output: rows(N)}, vocab_size=N))
        assert matrix.origin.tensor == embedding
        assert matrix.output is not None
        assert matrix.output.origin.tensor == output


@pytest.mark.parametrize(("columns", "taken"), [(1, False), (2, True)])
def test_one_number_for_each_row_is_no_output(columns: int, taken: bool, tmp_path: Path) -> None:
    tensors = {"embedding.weight": rows(N), "fc.weight": rows(N)[:, :columns].T.copy()}
    matrix = embgeo.load(write(tmp_path, tensors))
    assert (matrix.output is not None) is taken


def test_an_output_over_fewer_tokens_is_measured_over_those(tmp_path: Path) -> None:
    """The layout of mllama: eight tokens of images have no row in the output."""
    head = rows(N)
    head[5:9] = 0
    tensors = {"language_model.model.embed_tokens.weight": rows(N + 8)}
    tensors["language_model.lm_head.weight"] = head
    config = {"text_config": {"vocab_size": N, "tie_word_embeddings": False}}
    folder = write(tmp_path, tensors, architectures=["MllamaForConditionalGeneration"], **config)
    matrix = embgeo.load(folder)
    assert matrix.n == N + 8
    assert matrix.output is not None
    np.testing.assert_array_equal(matrix.output.data[:N], head)
    (masked,) = matrix.output.masked.values()
    assert masked.tolist() == [*range(N, N + 8)]
    assert any("120 rows for 128 tokens: the last 8 have none" in n for n in matrix.origin.notes)
    named = embgeo.load(folder, output="language_model.lm_head.weight")
    assert named.output is not None
    found = embgeo.analyze(folder, sections="suspects", reference=False).suspects
    assert [(one.name, one.rows.tolist()) for one in found] == [
        ("zero.output", [5, 6, 7, 8]), ("no_token.output", [*range(N, N + 8)]),
    ]  # fmt: skip


def test_an_output_over_fewer_tokens_than_the_configuration_says_is_not_taken(
    tmp_path: Path,
) -> None:
    tensors = {"language_model.model.embed_tokens.weight": rows(N + 8)}
    tensors["language_model.lm_head.weight"] = rows(N)
    config = {"text_config": {"vocab_size": N + 8, "tie_word_embeddings": False}}
    matrix = embgeo.load(
        write(tmp_path, tensors, architectures=["MllamaForConditionalGeneration"], **config)
    )
    assert matrix.output is None


@pytest.mark.parametrize("equal", [False, True])
def test_an_output_with_rows_of_padding_is_measured_without_them(
    equal: bool, tmp_path: Path
) -> None:
    wte = rows(N)
    head = np.vstack([wte if equal else rows(N), np.zeros((8, D), np.float32)])
    matrix = embgeo.load(write(tmp_path, {"wte.weight": wte, "lm_head.weight": head}))
    assert any("has 8 rows more than there are tokens" in note for note in matrix.origin.notes)
    if equal:
        assert matrix.origin.tied_by == "lm_head.weight holds the same numbers"
    else:
        assert matrix.output is not None
        np.testing.assert_array_equal(matrix.output.data, head[:N])
    cut = embgeo.load(tmp_path, rows="5:9")
    assert (cut.output is None) == equal


def test_an_output_with_one_row_more_is_left_out_unless_it_is_named(tmp_path: Path) -> None:
    head = rows(N + 1)
    folder = write(tmp_path, {"wte.weight": rows(N), "lm_head.weight": head})
    matrix = embgeo.load(folder)
    assert matrix.output is None
    assert any("is over other ids than the embedding" in note for note in matrix.origin.notes)
    named = embgeo.load(folder, output="lm_head.weight").output
    assert named is not None
    np.testing.assert_array_equal(named.data, head[:N])


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_an_output_without_a_usable_row_is_left_out(value: float, tmp_path: Path) -> None:
    tensors = {"wte.weight": rows(N), "lm_head.weight": np.full((N, D), value, np.float32)}
    matrix = embgeo.load(write(tmp_path, tensors))
    assert matrix.output is None
    said = "the output matrix lm_head.weight is left out: all of its rows are zero or not finite"
    assert said in matrix.origin.notes
    assert embgeo.analyze(tmp_path, sections="cosine").provenance["kept"] == N


def test_configurations_that_contradict_themselves_on_tying(tmp_path: Path) -> None:
    tensors = {"model.embed_tokens.weight": rows(N), "lm_head.weight": rows(N)}
    inner = {"tie_word_embeddings": False, "vocab_size": N}
    matrix = embgeo.load(write(tmp_path, tensors, tie_word_embeddings=True, text_config=inner))
    assert matrix.output is not None
    assert matrix.tied_as_configured is None
    assert any("contradicts itself on tie_word_embeddings" in n for n in matrix.origin.notes)


@pytest.mark.parametrize("value", [float("nan"), 0, -1, 1e3, "12", True, 2**40, [N]])
def test_an_unusable_vocab_size_is_ignored_with_a_note(value: Any, tmp_path: Path) -> None:
    folder = write(tmp_path, {"model.embed_tokens.weight": rows(N)}, vocab_size=value)
    (note,) = embgeo.load(folder).origin.notes
    assert note == f"config.json says vocab_size {value}, which is ignored"
    assert embgeo.load(write(tmp_path, {"wte.weight": rows(N)}, vocab_size=None)).origin.notes == ()


def test_a_model_that_multiplies_its_rows_when_it_runs_has_a_note(tmp_path: Path) -> None:
    """Granite, MiniCPM; Marian, Gemma inside another model; what says nothing, and nonsense."""
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"embedding_multiplier": 12.0}, "12"),
        ({"scale_emb": 12}, "12"),
        ({"scale_embedding": True, "d_model": 64}, "8"),
        ({"model_type": "shell", "text_config": {"model_type": "gemma3_text", "dim": 10}}, "3.162"),
        ({"scale_embedding": False, "d_model": 64}, ""),
        ({"model_type": "gemma"}, ""),
        ({"embedding_multiplier": 1.0, "model_type": "granite"}, ""),
        *(({"embedding_multiplier": one}, "") for one in (np.nan, np.inf, -1, "2", 10**400)),
    )
    for config, factor in cases:
        notes = facts_of(config, {}, {}).notes
        assert len(notes) == bool(factor), config
        assert all(f"rows by {factor} when it runs" in note for note in notes)
    folder = write(
        tmp_path, {"model.embed_tokens.weight": rows(N)}, model_type="gemma2", hidden_size=D
    )
    assert "by 4 when it runs;" in embgeo.load(folder).origin.notes[0]


def test_the_rows_of_a_draft_head_are_those_of_its_map(tmp_path: Path) -> None:
    kept = np.sort(G.permutation(N)[:30])
    tensors = {"lm_head.weight": rows(30), "d2t": kept - np.arange(30), "fc.weight": rows(D, 3 * D)}
    config = {"architectures": ["LlamaForCausalLMEagle3"], "vocab_size": N, "draft_vocab_size": 30}
    folder = write(tmp_path, tensors, N, **config)
    matrix = embgeo.load(folder)
    assert matrix.tokens == tuple(f"w{row}" for row in kept)
    assert embgeo.load(folder, rows="3:5").tokens == tuple(f"w{row}" for row in kept[3:5])


def test_a_draft_head_beside_an_embedding_is_an_output_over_its_ids(tmp_path: Path) -> None:
    kept = np.sort(G.permutation(N)[:30])
    head, embedding = rows(30), rows(N)
    tensors = {
        "embed_tokens.weight": embedding,
        "lm_head.weight": head,
        "d2t": kept - np.arange(30),
    }
    config = {"architectures": ["Eagle3Speculator"], "draft_vocab_size": 30}
    inner = {"vocab_size": N, "hidden_size": D}
    folder = write(tmp_path, tensors, N, transformer_layer_config=inner, **config)
    matrix = embgeo.load(folder)
    np.testing.assert_array_equal(matrix.data, embedding)
    assert matrix.output is not None
    np.testing.assert_array_equal(matrix.output.data[kept], head)
    (missing,) = matrix.output.masked.values()
    assert missing.tolist() == sorted({*range(N)} - {*kept.tolist()})
    # Pairs are those of the shared ids alone.
    found = embgeo.analyze(folder, sections="subspace").find_scalar("subspace.distance")
    both = {"embed_tokens.weight": embedding[kept], "lm_head.weight": head}
    alone = embgeo.analyze(write(tmp_path / "b", both), sections="subspace")
    assert found.value == pytest.approx(alone.find_scalar("subspace.distance").value, rel=1e-9)
    cut = embgeo.load(folder, rows="10:60")
    assert cut.output is not None
    inside = kept[(kept >= 10) & (kept < 60)]
    np.testing.assert_array_equal(cut.output.data[inside - 10], head[np.isin(kept, inside)])


def test_rows_of_trained_tokens_are_labeled_by_their_ids(tmp_path: Path) -> None:
    name = "base_model.model.model.embed_tokens.token_adapter.trainable_tokens_delta"
    folder = write(tmp_path, {name: rows(4), "x.lora_A.weight": rows(8)}, N)
    (tmp_path / "model.safetensors").rename(tmp_path / "adapter_model.safetensors")
    indices = {"peft_type": "LORA", "trainable_token_indices": {"embed_tokens": [116, 117, 3, 9]}}
    (folder / "adapter_config.json").write_text(json.dumps(indices))
    (folder / "config.json").unlink()
    assert embgeo.load(folder).tokens == ("w116", "w117", "w3", "w9")


def test_a_tokenizer_of_more_ids_than_rows_labels_nothing(tmp_path: Path) -> None:
    matrix = embgeo.load(write(tmp_path, {"embed_tokens.weight": rows(N)}, N + 1))
    assert matrix.tokens is None
    assert any(
        "labels no rows: it has 121 ids, and the matrix has 120" in n for n in matrix.origin.notes
    )
    assert embgeo.load(write(tmp_path, {"embed_tokens.weight": rows(N)}, N - 2)).tokens is not None


@pytest.mark.parametrize("model_type", ["", "gpt2"])
@pytest.mark.parametrize("file", ["tokenizer.json", "vocab.txt"])
@pytest.mark.parametrize("missing", [0, 1, 2])
def test_one_row_more_than_tokens_may_be_any_row(
    model_type: str, file: str, missing: int, tmp_path: Path
) -> None:
    """One may be padding before the first token or behind the last; several are padding behind."""
    config = {"model_type": model_type} if model_type else {}
    folder = write(tmp_path, {"embed_tokens.weight": rows(N)}, N - missing, **config)
    if file == "vocab.txt":
        (folder / "tokenizer.json").unlink()
        (folder / file).write_text("".join(f"w{i}\n" for i in range(N - missing)))
    (folder / "special_tokens_map.json").write_text('{"bos_token": "w3"}')
    matrix = embgeo.load(folder)
    assert (matrix.tokens is None) is (missing == 1)
    assert [one.row for one in matrix.special] == ([] if missing == 1 else [3])
    masked = [row for rows in matrix.masked.values() for row in rows.tolist()]
    assert masked == ([N - 2, N - 1] if missing == 2 else [])
    unsaid = any("nothing says which row" in note for note in matrix.origin.notes)
    assert unsaid is (missing == 1)


@pytest.mark.parametrize(("n", "labeled"), [(2 * N, True), (2 * N + 1, False)])
def test_a_tokenizer_of_far_fewer_ids_than_rows_labels_nothing(
    n: int, labeled: bool, tmp_path: Path
) -> None:
    """More rows than padding would be are those of another vocabulary."""
    matrix = embgeo.load(write(tmp_path, {"embed_tokens.weight": rows(n)}, N))
    assert (matrix.tokens is not None) is labeled


@pytest.mark.parametrize("name", ["embed_positions.weight", "wpe.weight"])
def test_a_lone_table_of_positions_is_a_question(name: str, tmp_path: Path) -> None:
    with refusal(AmbiguousTensor):
        embgeo.load(write(tmp_path, {name: rows(N)}))


def test_what_may_change_a_weight_and_is_not_applied_is_noted(tmp_path: Path) -> None:
    name = "model.embed_tokens"
    more = {f"{name}.scale": rows(N, 1), f"{name}.additional_embedding.weight": rows(2)}
    folder = write(tmp_path, {f"{name}.weight": rows(N), f"{name}.padding": rows(1, 1)} | more)
    note = f"not applied to {name}.weight: {', '.join(sorted(more))}"
    assert embgeo.load(folder).origin.notes == (note,)
    np.savez(tmp_path / "a.npz", emb=np.ones((5, 2)), scale=np.ones((5, 1)))
    assert embgeo.load(tmp_path / "a.npz").origin.notes == ("not applied to emb: scale",)


def test_scales_beside_a_weight_are_no_candidates(tmp_path: Path) -> None:
    """Training with quantization in mind stores the scale of each row."""
    name = "model.embed_tokens.weight"
    tensors = {name: rows(N), f"{name}_fake_quant.scale": rows(N, 1)}
    assert embgeo.load(write(tmp_path, tensors, vocab_size=N)).origin.tensor == name


@pytest.mark.parametrize(
    ("n", "tokens", "is_noted"), [(N, 0, False), (N + 8, 0, True), (N + 8, N, False)]
)
def test_rows_beyond_the_vocabulary_of_the_configuration_are_noted(
    n: int, tokens: int, is_noted: bool, tmp_path: Path
) -> None:
    folder = write(tmp_path, {"embed_tokens.weight": rows(n)}, tokens, vocab_size=N)
    notes = embgeo.load(folder).origin.notes
    said = "the configuration says vocab_size 120, and the matrix has 128 rows, of which"
    assert any(said in note for note in notes) is is_noted


@pytest.mark.parametrize(
    ("parts", "is_noted"),
    [
        ({"weight": (2, N, D)}, True),
        ({"weight_g": (N, 1), "weight_v": (N, D)}, True),  # weight norm
        ({"dense.weight": (D, D), "bias": (N,)}, False),  # RoBERTa, tied
    ],
)
def test_an_output_that_is_stored_and_not_read_is_noted(
    parts: dict[str, tuple[int, ...]], is_noted: bool, tmp_path: Path
) -> None:
    tensors = {f"lm_head.{end}": np.ones(shape, np.float32) for end, shape in parts.items()}
    matrix = embgeo.load(write(tmp_path, {"embed_tokens.weight": rows(N), **tensors}))
    assert matrix.output is None
    notes = matrix.origin.notes
    assert any("the output lm_head is stored in a form that" in n for n in notes) is is_noted


def test_a_matrix_outside_of_the_layers_goes_before_one_of_a_layer(tmp_path: Path) -> None:
    tensors = {"model.layers.1.embed_tokens.weight": rows(N), "model.embed_tokens.weight": rows(N)}
    assert embgeo.load(write(tmp_path, tensors)).origin.tensor == "model.embed_tokens.weight"


def test_the_rows_of_vocab_size_go_before_a_surer_name_of_other_ids(tmp_path: Path) -> None:
    tensors = {"talker.embed_tokens.weight": rows(2 * N), "model.embedding.weight": rows(N)}
    matrix = embgeo.load(write(tmp_path / "said", tensors, vocab_size=N))
    assert matrix.origin.tensor == "model.embedding.weight"
    with pytest.raises(AmbiguousTensor):
        embgeo.load(write(tmp_path / "not said", tensors))


def test_evidence_speaks_for_and_against(tmp_path: Path) -> None:
    tensors = {"model.embed_tokens.weight": rows(N), "lm_head.weight": rows(N, 4)}
    for layer in (1, 3):  # of the stack, and behind it for multi-token prediction
        tensors[f"model.layers.{layer}.embed_tokens.weight"] = rows(N // 2)
    folder = write(tmp_path, tensors, vocab_size=N, hidden_size=D, num_hidden_layers=3)
    found = open_checkpoint(folder)
    texts = {
        tensor.name: [(one.kind, one.speaks_for) for one in collect_evidence(tensor, found.facts)]
        for tensor in found.tensors
    }
    assert texts["model.embed_tokens.weight"] == [("name", True), ("rows", True), ("columns", True)]
    assert texts["lm_head.weight"] == [("name", False), ("rows", True), ("columns", False)]
    assert ("place", False) in texts["model.layers.1.embed_tokens.weight"]
    assert ("place", False) in texts["model.layers.3.embed_tokens.weight"]
    assert ("rows", False) in texts["model.layers.3.embed_tokens.weight"]


def test_the_states_of_deepspeed_are_below_a_trainers_folder(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    step = tmp_path / "checkpoint-5" / "global_step5"
    step.mkdir(parents=True)
    weight = torch.from_numpy(rows(N))
    module = {"module": {"model.embed_tokens.weight": weight}, "ds_version": "0.14"}
    torch.save(module, step / "mp_rank_00_model_states.pt")
    flat = {"optimizer_state_dict": {"fp32_flat_groups": [weight.ravel()]}}
    torch.save(flat, step / "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt")
    with refusal():
        embgeo.load(step.parent)
    np.testing.assert_array_equal(embgeo.load(step).data, weight)


@pytest.mark.parametrize("inner", ["text_encoder", "pytorch_model_fsdp_0", "checkpoint-20"])
def test_a_folder_of_models_names_the_inner_one(inner: str, tmp_path: Path) -> None:
    (tmp_path / "trainer_state.json").write_text("{}")
    for name in {inner, "unet" if inner == "text_encoder" else "checkpoint-9"}:
        (tmp_path / name).mkdir()
        save_file({"embed_tokens.weight": rows(N)}, tmp_path / name / "model.safetensors")
    with refusal() as caught:
        embgeo.load(tmp_path)
    way_out = str(caught.value).rpartition("; ")[2]
    assert way_out == f"name it: {tmp_path / inner}"
    assert embgeo.load(way_out.removeprefix("name it: ")).n == N


def test_an_output_projection_without_an_embedding_is_a_question_or_noted(tmp_path: Path) -> None:
    tensors = {"lm_head.weight": rows(N), "model.layers.0.mlp.up_proj.weight": rows(40)}
    untied = write(tmp_path / "untied", tensors, vocab_size=N, tie_word_embeddings=False)
    with refusal(AmbiguousTensor):
        embgeo.load(untied)
    assert embgeo.load(untied, tensor="lm_head.weight").n == N
    unknown = embgeo.load(write(tmp_path / "unknown", tensors, vocab_size=N))
    assert unknown.origin.tensor == "lm_head.weight"
    assert any("holds no input embedding" in note for note in unknown.origin.notes)
    alone = {"lm_head.weight": rows(N)}
    for config in ({"tie_word_embeddings": False}, {"architectures": ["LlamaForCausalLM"]}):
        one = write(tmp_path / "one", alone, vocab_size=N, **config)
        with refusal(AmbiguousTensor):
            embgeo.load(one)
    tied = write(tmp_path / "one", alone, vocab_size=N, tie_word_embeddings=True)
    assert any("holds no input embedding" in note for note in embgeo.load(tied).origin.notes)


def test_the_architecture_says_the_name_of_its_embedding(tmp_path: Path) -> None:
    tensors = {"transformer.wte.weight": rows(N), "transformer.word_embeddings.weight": rows(N)}
    folder = write(tmp_path, tensors, vocab_size=N)
    with refusal(AmbiguousTensor):
        embgeo.load(folder)
    for name, module in (("GPT2LMHeadModel", "wte"), ("FalconForCausalLM", "word_embeddings")):
        found = embgeo.load(write(tmp_path, tensors, vocab_size=N, architectures=[name]))
        assert found.origin.tensor == f"transformer.{module}.weight"
        assert found.origin.reason == f"name matches the token embedding of {name}"


def test_modules_of_architectures() -> None:
    for architecture, module in (
        ("LlamaForCausalLM", "embed_tokens"),
        ("GPTNeoXForCausalLM", "embed_in"),
        ("T5ForConditionalGeneration", "shared"),
        ("BertForMaskedLM", "word_embeddings"),
        ("RobertaModel", "word_embeddings"),
        ("ModernBertForMaskedLM", "tok_embeddings"),
        ("CsmForConditionalGeneration", "embed_text_tokens"),
        ("gemma3n", "token_embd"),
        ("MusicgenForConditionalGeneration", ""),
        ("", ""),
    ):
        assert embedding_module(architecture) == module
        assert is_named_by(architecture, f"model.{module}.weight") is bool(module)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("wpe.weight", "by its name, the rows of the matrix are not tokens"),
        ("h.0.mlp.c_fc.weight", "by its name, the rows of the matrix are not tokens"),
        ("prompt_embeddings", "the rows are virtual tokens of a prompt"),
        ("talker.model.codec_embedding.weight", "the rows are audio codes"),
    ],
)
def test_a_tokenizer_labels_no_rows_of_other_things(name: str, why: str, tmp_path: Path) -> None:
    """Even if there are as many rows as ids."""
    folder = write(tmp_path, {"wte.weight": rows(N), name: rows(N)}, N)
    matrix = embgeo.load(folder, tensor=name)
    assert matrix.tokens is None
    assert f"tokenizer.json labels no rows: {why}" in matrix.origin.notes


@pytest.mark.parametrize("transposed", [False, True])
def test_a_column_for_each_token_is_turned_on_request(transposed: bool, tmp_path: Path) -> None:
    matrix = rows(N)
    stored = {"model.embed_tokens.weight": np.ascontiguousarray(matrix.T), "norm.weight": rows(1)}
    folder = write(tmp_path, stored, vocab_size=N, hidden_size=D)
    if transposed:
        np.testing.assert_array_equal(embgeo.load(folder, transpose=True).data, matrix)
        return
    with refusal(AmbiguousTensor):
        embgeo.load(folder)
    assert embgeo.load(folder, tensor="model.embed_tokens.weight").n == D


def test_the_weight_of_hierarchical_reasoning_models(tmp_path: Path) -> None:
    inner = "_orig_mod.model.inner."
    tensors = {f"{inner}embed_tokens.embedding_weight": rows(N), f"{inner}lm_head.weight": rows(N)}
    matrix = embgeo.load(write(tmp_path, tensors | {f"{inner}puzzle_emb.weights": rows(900)}))
    assert matrix.origin.tensor == f"{inner}embed_tokens.embedding_weight"
    assert matrix.output is not None


def test_rows_of_other_things_are_said_and_not_labeled(tmp_path: Path) -> None:
    """Even if a tokenizer beside them has as many ids as there are rows."""
    for folder, (name, kind) in each_folder(
        tmp_path,
        (
            ("y_embedder.embedding_table.weight", "class labels"),
            ("quantize.embedding.weight", "codes of a quantizer"),
            ("code_embed.weight", "codes of a quantizer"),
            ("gpt.mel_embedding.weight", "audio codes"),
            ("model.ar_audio_embedding.word_embeddings.weight", "audio codes"),
            ("semantic_embedding.weight", "audio codes"),
            ("spk_emb.weight", "speakers"),
            ("pitch_embedding.weight", "pitches"),
            ("encoder_hash_tok_embedding.weight", "hashes"),
            ("blk.1.engram_embd.weight", "hashes"),
            ("user_embedding.weight", "users"),
            ("item_embedding.weight", "items"),
            ("melody.word_embeddings.weight", ""),
            ("gpt.text_embedding.weight", ""),
            ("lang_model.token_embedding.weight", ""),
        ),
    ):
        matrix = embgeo.load(
            write(folder, {name: rows(N), "norm.weight": np.ones(D, np.float32)}, N)
        )
        assert any(note.endswith(f"are {kind}") for note in matrix.origin.notes) is bool(kind)
        assert (matrix.tokens is None) is bool(kind)


@pytest.mark.parametrize("others", [0, 1])
def test_the_index_of_a_variant_is_read(others: int, tmp_path: Path) -> None:
    embedding = rows(N)
    parts = {"model.fp16-00001-of-00002.safetensors": {"embed_tokens.weight": embedding}}
    parts["model.fp16-00002-of-00002.safetensors"] = {"lm_head.weight": rows(N)}
    for name, tensors in parts.items():
        save_file(tensors, tmp_path / name)
    weight_map = {tensor: name for name, tensors in parts.items() for tensor in tensors}
    index = tmp_path / "model.safetensors.index.fp16.json"
    index.write_text(json.dumps({"weight_map": weight_map}))
    if others:
        save_file({"embed_tokens.weight": rows(N)}, tmp_path / "other.safetensors")
        with refusal():
            embgeo.load(tmp_path)
        return
    matrix = embgeo.load(tmp_path)
    np.testing.assert_array_equal(matrix.data, embedding)
    assert matrix.output is not None


def test_fewer_columns_than_the_configuration_says_are_noted(tmp_path: Path) -> None:
    tensors = {"embed_tokens.weight": rows(N, 6), "lm_head.weight": rows(N)}
    notes = embgeo.load(write(tmp_path, tensors, vocab_size=N, hidden_size=D)).origin.notes
    assert "the configuration says hidden_size 16, and the matrix has 6 columns" in notes


def test_images_and_optimizers_beside_a_model_are_passed_over(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    weight = torch.from_numpy(rows(N))
    torch.save({"transformer.wte.weight": weight}, tmp_path / "model_000100.pt")
    torch.save({"transformer.wte.weight": weight + 1}, tmp_path / "optim_000100_rank0.pt")
    torch.save({"transformer.wte.weight": weight + 2}, tmp_path / "mmproj-model.pt")
    np.testing.assert_array_equal(embgeo.load(tmp_path).data, weight)


def test_a_tied_output_alone_has_the_tokens_of_the_configuration(tmp_path: Path) -> None:
    tensors = {"lm_head.weight": rows(N)}
    folder = write(tmp_path, tensors, vocab_size=N, tie_word_embeddings=True)
    assert embgeo.load(folder).vocabulary_size == N
    write(tmp_path, tensors | {"model.embed_tokens.weight": rows(N)}, vocab_size=N)
    assert embgeo.load(folder).vocabulary_size == N
    assert embgeo.load(folder, tensor="lm_head.weight").vocabulary_size is None


NO_WEIGHTS = (
    "exp_avg.wte.weight", "wte.weight.grad", "grads.wte.weight", "momentum_buffer.0",
    "wte.parametrizations.weight.original",
)  # fmt: skip


@pytest.mark.parametrize("name", NO_WEIGHTS)
def test_what_is_no_weight_is_no_embedding_even_alone(tmp_path: Path, name: str) -> None:
    folder = write(tmp_path, {name: rows(N)})
    with refusal():
        embgeo.load(folder)
    assert embgeo.load(folder, tensor=name).data.shape == (N, D)
