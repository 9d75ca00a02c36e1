"""GGUF files: the numbers and tokens that the package gguf writes and reads."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import embgeo
from embgeo.core.errors import UnreadableFile
from embgeo.io.formats import gguf as gguf_reader
from embgeo.io.load import open_checkpoint
from tests.support.binary_files import arrays, is_mapped
from tests.support.framework_files import N, W, gguf_bytes, gguf_tensor, needs, write_gguf
from tests.support.refusals import refusal


@pytest.mark.parametrize("kind", ["F32", "F16", "Q4_0"])
def test_gguf_types(tmp_path: Path, kind: str) -> None:
    gguf = needs("gguf")
    number = gguf.GGMLQuantizationType[kind]
    matrix = np.random.default_rng(1).normal(size=(9, 64)).astype(np.float32)
    stored = gguf.quants.quantize(matrix, number)
    path = write_gguf(tmp_path / "m.gguf", {"token_embd.weight": (stored, number)})
    array = arrays(open_checkpoint(path))["token_embd.weight"]
    read = gguf.GGUFReader(path).tensors[0]
    assert read.tensor_type == number
    expected = gguf.quants.dequantize(read.data, number)
    np.testing.assert_array_equal(array.astype(np.float64), expected.astype(np.float64))
    assert is_mapped(array) == (kind != "Q4_0")


def test_every_quantized_type_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random bytes are sound blocks of any type; the fast path cuts them into many pieces."""
    gguf = needs("gguf")
    monkeypatch.setattr("embgeo.io.formats.gguf._BLOCK_BYTES", 1000)
    rng = np.random.default_rng(2)
    read, unread = [], []
    for number, (name, numbers, length) in gguf_reader.TYPES.items():
        if numbers == 1:
            continue
        raw = rng.integers(0, 256, size=(7, 3 * length), dtype=np.uint8)
        description = gguf_tensor("w", [3 * numbers, 7], number, 0)
        path = tmp_path / name
        path.write_bytes(gguf_bytes({}, [description], raw.tobytes()))
        (tensor,) = open_checkpoint(path).tensors
        assert tensor.shape == (7, 3 * numbers)
        kind = gguf.GGMLQuantizationType(number)
        try:
            with np.errstate(all="ignore"):
                expected = gguf.quants.dequantize(raw, kind)
        except NotImplementedError:
            with refusal(UnreadableFile):
                tensor.open()
            unread.append(name)
        else:
            np.testing.assert_array_equal(tensor.open(), expected)
            read.append(name)
    assert {"Q4_K", "Q6_K", "IQ4_NL", "TQ1_0"} <= set(read)
    assert len(unread) < 5


def test_gguf_block_sizes_are_those_of_the_package() -> None:
    needs("gguf")
    from gguf.constants import GGML_QUANT_SIZES

    own = {number: sizes for number, (_, *sizes) in gguf_reader.TYPES.items()}
    theirs = {int(kind): list(sizes) for kind, sizes in GGML_QUANT_SIZES.items()}
    assert own == {number: theirs[number] for number in own if number in theirs}
    assert len(own) > 30


def test_gguf_model_with_vocabulary(tmp_path: Path) -> None:
    tokens = ["<unk>", "<s>", "▁the", "cat", "<0x0A>", "[PAD]"] + [f"▁{k}" for k in range(N - 6)]
    path = write_gguf(
        tmp_path / "m.gguf",
        {"token_embd.weight": W, "output.weight": 2 * W},
        ("tokenizer_model", "llama"),
        ("token_list", tokens),
        ("token_types", [2, 3, 1, 1, 6, 5] + [1] * (N - 6)),
        ("token_scores", [0.0] * N),
        ("chat_template", "x" * 100_000),
    )
    matrix = embgeo.load(path)
    np.testing.assert_array_equal(matrix.data, W)
    assert matrix.output is not None
    np.testing.assert_array_equal(matrix.output.data, 2 * W)
    assert (matrix.origin.tensor, matrix.output.origin.tensor) == (
        "token_embd.weight",
        "output.weight",
    )
    assert matrix.tokens is not None
    assert matrix.tokens[:7] == ("<unk>", "<s>", " the", "cat", "<0x0A>", "[PAD]", " 0")
    for note in ("unknown tokens: <unk>", "control tokens: <s>", "unused tokens: [PAD]"):
        assert note in matrix.origin.notes
    more = write_gguf(
        tmp_path / "more.gguf",
        {"token_embd.weight": W},
        ("tokenizer_model", "llama"),
        ("token_list", [*tokens, "more"]),
    )
    said = f"the configuration says vocab_size {N + 1}, and the matrix has {N} rows"
    assert said in embgeo.load(more).origin.notes


def test_gguf_without_an_output_matrix_is_tied(tmp_path: Path) -> None:
    embedding = {"token_embd.weight": W}
    tied = write_gguf(tmp_path / "tied.gguf", embedding)
    assert embgeo.load(tied).tied_as_configured is True
    outcome = embgeo.gate(tied, preset="finetune-ready")
    checks = {one.rule.name: one.state for one in outcome.checks}
    assert checks["tokens.tied_as_configured"] == "passed"
    both = write_gguf(tmp_path / "both.gguf", embedding | {"output.weight": 2 * W})
    assert embgeo.load(both).tied_as_configured is None
    named = write_gguf(tmp_path / "other.gguf", embedding | {"blk.0.ffn_up.weight": W})
    assert embgeo.load(named, tensor="blk.0.ffn_up.weight").tied_as_configured is None


def test_gguf_tokens_in_byte_level_spelling(tmp_path: Path) -> None:
    tokens = ["<|end|>", "\u0120the", "cat", "\u00c3\u00a9"]
    path = tmp_path / "m.gguf"
    metadata = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": tokens}
    metadata["tokenizer.ggml.token_type"] = [3, 1, 1, 1]
    content = [gguf_tensor("token_embd.weight", [2, 4], 0, 0)]
    path.write_bytes(gguf_bytes(metadata, content, np.arange(8, dtype="<f4").tobytes()))
    assert embgeo.load(path).tokens == ("<|end|>", " the", "cat", "é")


def test_gguf_of_the_other_byte_order(tmp_path: Path) -> None:
    order = needs("gguf").GGUFEndian.BIG
    held, tokens = {"token_embd.weight": W}, ("token_list", ["▁a", "b"])
    checkpoint = open_checkpoint(write_gguf(tmp_path / "m.gguf", held, tokens, endianess=order))
    np.testing.assert_array_equal(checkpoint.tensors[0].open(), W)
    assert checkpoint.tokens == (" a", "b")


def test_quantized_tensors_without_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(gguf_bytes({}, [gguf_tensor("token_embd.weight", [32, 2], 8, 0)], bytes(68)))
    monkeypatch.setitem(sys.modules, "gguf", None)
    monkeypatch.setitem(sys.modules, "gguf.constants", None)
    checkpoint = open_checkpoint(path)
    assert checkpoint.tensors[0].form.startswith("Q8_0 of ggml")
    with refusal(UnreadableFile):
        checkpoint.tensors[0].open()
