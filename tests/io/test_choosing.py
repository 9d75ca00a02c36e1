"""Which tensor is the embedding: names and shapes of many architectures, and every doubt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from embgeo.core.errors import AmbiguousTensor, BadOption, UnreadableFile
from embgeo.io.model.checkpoint import Checkpoint, Tensor
from embgeo.io.model.choice import Choice, choose
from embgeo.io.model.facts import ModelFacts
from embgeo.io.model.inspection import inspect_checkpoint
from tests.support.refusals import refusal

N, D = 1000, 32
UNITS = {"N": N, "D": D, "2D": 2 * D, "3D": 3 * D, "4D": 4 * D, "8D": 8 * D}
Entry = tuple[int, ...] | str  # a shape, or the name of the tensor whose storage is shared


def checkpoint(
    entries: dict[str, Entry], *, tied: bool | None = None, dtype: str = "float32"
) -> Checkpoint:
    shapes: dict[str, tuple[int, ...]] = {}
    tensors = []
    for name, entry in entries.items():
        alias = entry if isinstance(entry, str) else ""
        shapes[name] = shapes[alias] if isinstance(entry, str) else entry
        shape = shapes[name]
        tensors.append(Tensor(name, shape, dtype, lambda: np.zeros(0), alias))
    facts = ModelFacts(tied=tied)
    return Checkpoint("test", tuple(tensors), path=Path("model.bin"), facts=facts)


#: Below a name the tensors of a model: > is the embedding, < the output matrix, ^ one of d × N.
MODELS = """
GPT-2
 > wte.weight N D
   wpe.weight N D
   h.0.weight D 3D
   h.1.weight D D
   h.2.weight 4D D
   h.3.weight D 4D
   h.4.weight D
GPT-2 with a head in shared storage
   lm_head.weight N D
   transformer.wpe.weight 64 D
 > transformer.wte.weight = lm_head.weight
LLaMA, Mistral, Qwen, Gemma
 > model.embed_tokens.weight N D
   model.layers.0.self_attn.rotary_emb.inv_freq 16
   model.layers.0.self_attn.0.weight D D
   model.layers.0.self_attn.1.weight 4D D
   model.layers.0.self_attn.2.weight D 4D
   model.layers.0.self_attn.3.weight D
 < lm_head.weight N D
tied by configuration, head stored all the same (tied)
 > model.embed_tokens.weight N D
   lm_head.weight N D
original LLaMA
 > tok_embeddings.weight N D
 < output.weight N D
   layers.0.attention.wq.weight D D
Gemma 3n
 > model.language_model.embed_tokens.weight N D
   model.language_model.embed_tokens_per_layer.weight N 8D
BERT
 > bert.embeddings.word_embeddings.weight N D
   bert.embeddings.position_embeddings.weight 512 D
   bert.embeddings.token_type_embeddings.weight 2 D
   bert.encoder.layer.0.attention.self.query.weight D D
   bert.pooler.dense.weight D D
   cls.predictions.transform.dense.weight D D
   cls.predictions.decoder.weight = bert.embeddings.word_embeddings.weight
RoBERTa
 > roberta.embeddings.word_embeddings.weight N D
   lm_head.dense.weight D D
 < lm_head.decoder.weight N D
DistilBERT
 > distilbert.embeddings.word_embeddings.weight N D
   distilbert.embeddings.position_embeddings.weight N D
 < vocab_projector.weight N D
DeBERTa
 > deberta.embeddings.word_embeddings.weight N D
   deberta.encoder.rel_embeddings.weight 512 D
T5, aliases
 > shared.weight N D
   encoder.embed_tokens.weight = shared.weight
   decoder.embed_tokens.weight = shared.weight
   encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight D 8
 < lm_head.weight N D
BART, copies
 > model.shared.weight N D
   model.encoder.embed_tokens.weight N D
   model.decoder.embed_tokens.weight N D
   model.encoder.embed_positions.weight N D
OPT
 > model.decoder.embed_tokens.weight N D
   model.decoder.embed_positions.weight 2050 D
   model.decoder.project_in.weight D D
   lm_head.weight = model.decoder.embed_tokens.weight
BLOOM, Falcon
 > transformer.word_embeddings.weight N D
   transformer.h.0.mlp.weight 4D D
GPT-NeoX, Pythia
 > gpt_neox.embed_in.weight N D
 < embed_out.weight N D
ChatGLM
 > transformer.embedding.word_embeddings.weight N D
 < transformer.output_layer.weight N D
Mamba
 > backbone.embedding.weight N D
   backbone.layers.0.mixer.A_log 64 16
RWKV
 > emb.weight N D
   blocks.0.att.key.weight D D
 < head.weight N D
Phi
 > transformer.embd.wte.weight N D
 < lm_head.linear.weight N D
fairseq decoder only
 > decoder.embed_tokens.weight N D
 < decoder.output_projection.weight N D
   decoder.layers.0.fc1.weight 4D D
fairseq, all embeddings shared
 > encoder.embed_tokens.weight N D
   decoder.embed_tokens.weight = encoder.embed_tokens.weight
   decoder.output_projection.weight = encoder.embed_tokens.weight
AWD-LSTM, word_language_model
 > encoder.weight N D
   rnn.weight_ih_l0 4D D
   rnn.weight_hh_l0 4D D
 < decoder.weight N D
   decoder.bias N
AWD-LSTM of fastai
 > 0.encoder.weight N D
   0.encoder_dp.emb.weight N D
   1.decoder.weight = 0.encoder.weight
OpenNMT language model
 > encoder.embeddings.make_embedding.emb_luts.0.weight N D
 < generator.0.weight N D
classifier over an RNN
 > embedding.weight N D
   lstm.weight_ih_l0 4D D
   fc.weight 2 D
small language model with a linear layer
 > emb.weight N D
   gru.weight_ih_l0 3D D
 < linear.weight N D
output as wide as another layer
 > embed.weight N D
   rnn.weight_hh_l0 256 64
 < fc.weight N 64
Flax, output as (d, N)
 > params/wte/embedding N D
   params/wpe/embedding 64 D
 ^ params/lm_head/kernel D N
TransformerLens
 > embed.W_E N D
   pos_embed.W_pos 64 D
 ^ unembed.W_U D N
TensorFlow lookup_table
 > model/lookup_table N D
 ^ model/softmax_w D N
   model/lstm/kernel 64 4D
pickled word vectors
 > word_vecs N D
   W2 D 40
training checkpoint with optimizer state
 > model.decoder.embed_tokens.weight N D
   model.decoder.layers.0.weight D D
   last_optimizer_state.state.0.exp_avg N D
   optimizer.state.0.embedding.weight N D
   ema.embed_tokens.weight N D
unnamed arrays of an LSTM
 > 0 N D
   1 D 4D
   2 D 4D
   3 4D
 ^ 4 D N
   5 N
only one matrix
 > whatever 10 3
   bias 10
only one matrix, wide
 > 0 3 N
by far the most rows, four times those columns and twice the sides of others
 > 0 4D D
   1 2D D
output matrix alone
 > lm_head.weight N D
   w1 D D
"""
NOTED = {
    "training checkpoint with optimizer state": "ema.embed_tokens.weight is a running average",
    "output matrix alone": "lm_head.weight is an output matrix; the file holds no input embedding",
}


def read_models() -> Iterator[tuple[str, dict[str, Entry], dict[str, str]]]:
    """Name, tensors, and which of them has which mark."""
    for block in re.split(r"\n(?! )", MODELS.strip()):
        name, *lines = block.split("\n")
        entries: dict[str, Entry] = {}
        marks = {}
        for line in lines:
            tensor, *sizes = line[3:].split()
            marks[line[1]] = tensor
            shape = tuple(UNITS.get(size) or int(size) for size in sizes if sizes[0] != "=")
            entries[tensor] = shape or sizes[1]
        yield name, entries, marks


def test_architectures() -> None:
    for name, entries, marks in read_models():
        choice = choose(checkpoint(entries, tied=True if name.endswith("(tied)") else None))
        assert choice.input.name == marks[">"]
        output = choice.output.name if choice.output else None
        assert output == marks.get("^" if choice.output_transposed else "<"), name
        assert choice.reason
        assert len(choice.notes) == (name in NOTED)
        assert "".join(choice.notes).startswith(NOTED.get(name, ""))


def test_an_unnamed_matrix_on_its_side_has_no_output() -> None:
    """Tokens are the columns of an output matrix: the tall matrix is the input, no output."""
    entries: dict[str, Entry] = {"0": (N, D), "1": (D, D), "2": (D, N)}
    assert chosen(entries).output is not None
    assert chosen(entries, tensor="2", transpose=True).output is None


def test_doubts_are_put_to_the_user() -> None:
    for entries in (
        {"encoder.embed_tokens.weight": (N, D), "decoder.embed_tokens.weight": (800, D)},
        {"encoder.embed_tokens.weight": (N, D), "decoder.embed_tokens.weight": (N, D)},
        {"src_embed.0.lut.weight": (N, D), "tgt_embed.0.lut.weight": (900, D)},
        {"a.embedding.weight": (N, D), "b.embedding.weight": (N, D)},
        {"fc1.weight": (4096, 784), "fc2.weight": (1024, 4096)},
        {"0": (N, D), "1": (N, D)},
        {"0": (4 * D, D), "1": (2 * D + 1, D)},
        {"0": (4 * D - 1, D), "1": (D, D)},
        {"wpe.weight": (N, D), "position_embeddings.weight": (N, D)},
    ):
        with refusal(AmbiguousTensor):
            choose(checkpoint(entries))


def test_a_long_list_of_candidates_ends_in_a_count() -> None:
    entries: dict[str, Entry] = {f"x{k}.embedding.weight": (N + k, D) for k in range(20)}
    with refusal(AmbiguousTensor):
        choose(checkpoint(entries))


def test_nothing_to_choose_from() -> None:
    for entries, dtype in (
        ({"a": (N,), "b": (N, 2, 2)}, "float32"),
        ({"a": (N, D)}, "int64"),
        ({"a": (N, D)}, "complex64"),
        ({}, "float32"),
    ):
        with refusal(AmbiguousTensor):
            choose(checkpoint(entries, dtype=dtype))


def test_every_real_type_is_a_candidate() -> None:
    for dtype in ("float16", "bfloat16", "float8_e4m3fn", "float64", ">f4"):
        assert choose(checkpoint({"a": (N, D)}, dtype=dtype)).input.name == "a"


@pytest.mark.parametrize("shape", [(0, D), (N, 0)])
def test_an_empty_matrix_is_refused(shape: tuple[int, int]) -> None:
    with refusal(UnreadableFile):
        choose(checkpoint({"embedding.weight": shape}))


def test_a_long_name_is_cut_in_the_message() -> None:
    with refusal(UnreadableFile):
        choose(checkpoint({f"{'x' * 10**6}.embedding": (0, D)}))


@pytest.mark.parametrize("name", ["_visual" * 200_000 + "-.wte", "wte." + "_visual" * 200_000])
@pytest.mark.slow
def test_a_long_name_takes_no_time(name: str) -> None:
    """A pattern would take minutes for it."""
    assert choose(checkpoint({name: (N, D), "bias": (D,)})).input.name == name


@pytest.mark.slow
def test_very_many_averaged_copies_take_no_time() -> None:
    """Comparing each with each would take minutes."""
    copies: dict[str, Entry] = {f"ema.{k}": (2, 2) for k in range(20_000)}
    layers: dict[str, Entry] = {f"w{k}": (2, 2) for k in range(20_000)}
    choice = choose(checkpoint({**copies, **layers}), tensor="w1")
    assert "ema.0 is a running average" in choice.notes[0]


def test_an_adapter_that_is_named_is_taken() -> None:
    entries: dict[str, Entry] = {"q.lora_A.weight": (N, D), "wte.weight": (N, D)}
    assert choose(checkpoint(entries), tensor="lora_A.weight").input.name == "q.lora_A.weight"
    assert choose(checkpoint(entries)).input.name == "wte.weight"


def test_small_matrices_are_fine() -> None:
    for shape in ((10, 4), (1, 4), (10, 1), (1, 1)):
        assert choose(checkpoint({"embedding.weight": shape})).input.shape == shape


SEQ2SEQ: dict[str, Entry] = {
    "encoder.embed_tokens.weight": (N, D),
    "decoder.embed_tokens.weight": (N, D),
    "decoder.output_projection.weight": (N, D),
    "ids": (5,),
}


def test_the_output_projection_belongs_to_the_decoder() -> None:
    of_encoder = choose(checkpoint(SEQ2SEQ), tensor="encoder.embed_tokens.weight")
    assert of_encoder.output is None
    of_decoder = choose(checkpoint(SEQ2SEQ), tensor="decoder.embed_tokens.weight")
    assert of_decoder.output is not None
    assert of_decoder.output.name == "decoder.output_projection.weight"


def chosen(entries: dict[str, Entry], **options: str | bool) -> Choice:
    return choose(checkpoint(entries), **options)  # type: ignore[arg-type]


def test_a_unique_ending_names_a_tensor() -> None:
    entries: dict[str, Entry] = {"model.wte.weight": (N, D), "model.wpe.weight": (N, D)}
    assert chosen(entries, tensor="wpe.weight").input.name == "model.wpe.weight"


def test_output_by_option() -> None:
    entries: dict[str, Entry] = {"wte.weight": (N, D), "x": (64, N), "lm_head.weight": (N, D)}
    by_name = chosen(entries, output="x")
    assert by_name.output is not None
    assert (by_name.output.name, by_name.output_transposed) == ("x", True)
    assert chosen(entries, output="none").output is None


def test_a_square_output_is_taken_as_it_stands() -> None:
    choice = chosen({"wte.weight": (D, D), "lm_head.weight": (D, D)})
    assert choice.output is not None
    assert not choice.output_transposed


def test_words_as_columns() -> None:
    entries: dict[str, Entry] = {"embedding.weight": (D, N), "fc.weight": (N, 64)}
    choice = chosen(entries, transpose=True)
    assert choice.input_transposed
    assert choice.output is not None
    assert not choice.output_transposed


def test_bad_names() -> None:
    for options in (
        {"tensor": "wte.wait"},
        {"tensor": "weight"},
        {"tensor": "bias"},
        {"output": "small.weight"},
        {"output": "tied.weight"},
        {"output": "missing"},
    ):
        entries: dict[str, Entry] = {
            "wte.weight": (N, D),
            "small.weight": (D, D),
            "tied.weight": "wte.weight",
            "bias": (N,),
        }
        with refusal(BadOption):
            chosen(entries, **options)


def test_several_outputs_are_left_to_the_user() -> None:
    entries: dict[str, Entry] = {
        "wte.weight": (N, D),
        "a.head.weight": (N, D),
        "b.fc.weight": (N, D),
    }
    choice = chosen(entries)
    assert choice.output is None
    assert "a.head.weight" in choice.notes[0]
    assert "--output" in choice.notes[0]


def test_it_is_said_how_the_model_is_tied() -> None:
    assert (
        "shares the storage"
        in chosen({"encoder.weight": (N, D), "decoder.weight": "encoder.weight"}).tied_by
    )
    stored = checkpoint({"wte.weight": (N, D), "lm_head.weight": (N, D)}, tied=True)
    assert "lm_head.weight is left out" in choose(stored).tied_by


def test_hostile_names_stay_on_one_line() -> None:
    entries: dict[str, Entry] = {
        "a\n\x1b[31m.embedding.weight": (N, D),
        "b.embedding.weight": (N, D),
    }
    with refusal():
        chosen(entries)


def test_inspection_marks_the_choice_and_reads_nothing() -> None:
    entries: dict[str, Entry] = {
        "wte.weight": (N, D),
        "lm_head.weight": (N, D),
        "again": "wte.weight",
        "bias": (N,),
    }
    inspection = inspect_checkpoint(checkpoint(entries))
    roles = {t.name: t.role for t in inspection.tensors}
    assert roles == {
        "wte.weight": "embedding",
        "lm_head.weight": "output matrix",
        "again": "same storage as wte.weight",
        "bias": "",
    }
    assert [t.nbytes for t in inspection.tensors] == [4 * N * D, 4 * N * D, 0, 4 * N]
    assert inspection.problem == ""


def test_inspection_survives_a_doubt() -> None:
    inspection = inspect_checkpoint(checkpoint({"0": (N, D), "1": (N, D)}))
    assert inspection.problem.startswith("several tensors")
    assert inspection.problem.endswith("; choose one with --tensor NAME")
    assert [t.role for t in inspection.tensors] == ["", ""]
