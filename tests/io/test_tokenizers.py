"""Tokens as tokenizers save them, equal to what the packages that wrote them say."""

from __future__ import annotations

import base64
import importlib.util
import json
import struct
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.core.errors import UnreadableFile
from embgeo.io.labels.label_file import read_labels
from embgeo.io.labels.tokenizer_runs import NotUsable, find_unreachable
from embgeo.io.labels.vocabulary import TextEncoder, TokenizerVocabulary
from tests.support import tokenizer_makers
from tests.support.framework_files import field
from tests.support.refusals import refusal
from tests.support.sampling import each_folder, each_value

tokenizers = pytest.importorskip("tokenizers")


KINDS = ("byte-level", "byte-fallback", "wordpiece", "unigram")
D = 3


def model_folder(path: Path, rows: int, files: dict[str, Any] | None = None) -> Path:
    """A folder with a matrix of so many rows, and files of bytes, text or JSON values."""
    path.mkdir(exist_ok=True)
    np.save(path / "model.npy", np.arange(rows * D, dtype=np.float32).reshape(rows, D))
    for name, content in (files or {}).items():
        if not isinstance(content, bytes):
            text = content if isinstance(content, str) else json.dumps(content)
            content = text.encode()
        (path / name).write_bytes(content)
    return path


def written(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def saved(tmp_path: Path, made: Any) -> Path:
    made.save(str(tmp_path / "tokenizer.json"))
    return tmp_path / "tokenizer.json"


def test_tokenizer_json_as_the_package_decodes_it(tmp_path: Path) -> None:
    for folder, kind in each_folder(tmp_path, KINDS):
        made = tokenizer_makers.train_tokenizer(kind)
        tokens = read_labels(saved(folder, made)).tokens
        assert len(tokens) == made.get_vocab_size()
        some = next(number for number, token in enumerate(tokens) if token.strip().isalpha())
        before = made.decode([some])
        added = {made.token_to_id(token): token for token in ("<|end of text|>", "added one")}
        for number, token in enumerate(tokens):
            stored = made.id_to_token(number)
            # Behind another token, as the first one of a text loses its space.
            decoded = made.decode([some, number], skip_special_tokens=False)[len(before) :]
            if number in added:
                assert token == added[number]
            elif "\ufffd" in decoded or stored.startswith("<0x"):
                assert "<0x" in token, (stored, decoded)
            else:
                assert token == (stored if kind == "wordpiece" else decoded), (stored, decoded)


@pytest.mark.parametrize("kind", KINDS)
def test_tokenizer_json_in_a_folder_with_padded_rows(tmp_path: Path, kind: str) -> None:
    made = tokenizer_makers.train_tokenizer(kind)
    size = made.get_vocab_size()
    path = model_folder(tmp_path / "model", size + 3)
    saved(path, made)
    matrix = embgeo.load(path)
    assert matrix.tokens is not None
    assert matrix.tokens[:size] == read_labels(path / "tokenizer.json").tokens
    assert matrix.masked["padding beyond the vocabulary"].tolist() == [size, size + 1, size + 2]


def test_merges_and_vocab_json_give_the_tokens_of_the_tokenizer(tmp_path: Path) -> None:
    made = tokenizer_makers.train_tokenizer("byte-level")
    path = model_folder(tmp_path / "model", made.get_vocab_size())
    made.model.save(str(path))
    (path / "added_tokens.json").write_text(
        json.dumps({t: made.token_to_id(t) for t in ("<|end of text|>", "added one")})
    )
    assert (path / "merges.txt").exists()
    assert embgeo.load(path).tokens == read_labels(saved(tmp_path, made)).tokens


def test_vocab_txt_with_tokens_that_were_added_later(tmp_path: Path) -> None:
    settings = {"added_tokens_decoder": {"5": {"content": "<new>"}, "1": {"content": "the"}}}
    path = model_folder(
        tmp_path / "model",
        6,
        {"vocab.txt": "[UNK]\nthe\n##s\n", "tokenizer_config.json": settings},
    )
    tokens = ("[UNK]", "the", "##s", "<unused id 3>", "<unused id 4>", "<new>")
    assert embgeo.load(path).tokens == tokens
    # That of another model may lie beside it.
    (path / "vocab.json").write_text(json.dumps({f"w{row}": row for row in range(6)}))
    both = embgeo.load(path)
    assert both.tokens is not None
    assert both.tokens[0] == "w0"
    assert "vocab.json is read as the tokenizer; vocab.txt beside it is not" in both.origin.notes


@each_value
@pytest.mark.parametrize("kind", ["unigram", "bpe", "char", "word"])
@pytest.mark.parametrize("settings", [{}, {"byte_fallback": True, "vocab_size": 400}])
def test_sentencepiece_models_as_the_package_reads_them(
    tmp_path: Path, kind: str, settings: dict[str, Any]
) -> None:
    data = tokenizer_makers.sentencepiece_model(
        kind, user_defined_symbols=["<sep>", "▁the"], **settings
    )
    path = written(tmp_path / "any.name", data)
    processor = tokenizer_makers.sentencepiece_processor(path)
    pieces = [processor.IdToPiece(number) for number in range(processor.GetPieceSize())]
    vocabulary = read_labels(path)
    assert vocabulary.tokens == tuple(piece.replace("▁", " ") for piece in pieces)
    assert " the" in vocabulary.tokens
    folder = model_folder(tmp_path / "model", len(pieces) + 2, {"tokenizer.model": data})
    matrix = embgeo.load(folder)
    assert matrix.tokens is not None
    assert matrix.tokens[:-1] == (*vocabulary.tokens, f"<padding row {len(pieces)}>")


def piece(text: bytes, kind: int = 1) -> bytes:
    return field(1, field(1, text) + b"\x15" + struct.pack("<f", -1.5) + b"\x18" + bytes([kind]))


UNK, S = piece(b"<unk>", 2), piece(b"<s>", 3)


def test_a_sentencepiece_model_by_its_definition(tmp_path: Path) -> None:
    """Other fields before, between and behind, a piece of 200 bytes, bytes that are not UTF-8."""
    long = "é".encode() * 100
    data = UNK + field(2, b"\x18\x01") + S + piece(long) + piece(b"\xe2\x96\x81\xff") + piece(b"")
    tokens = read_labels(written(tmp_path / "m.model", data + field(3, b"\x0a\x02x"))).tokens
    assert tokens == ("<unk>", "<s>", "é" * 100, " \\xff", "")


@pytest.mark.parametrize(
    ("model_type", "rows", "expected"),
    [
        ("llama", 5, ("<unk>", "<s>", "</s>", " a", " b")),
        ("xlm-roberta", 7, None),
    ],
)
def test_pieces_stand_in_the_order_that_the_model_gives_them(
    tmp_path: Path, model_type: str, rows: int, expected: tuple[str, ...] | None
) -> None:
    data = UNK + S + piece(b"</s>", 3) + piece("▁a".encode()) + piece("▁b".encode())
    files = {"spiece.model": data, "config.json": {"model_type": model_type}}
    matrix = embgeo.load(model_folder(tmp_path / "model", rows, files))
    assert matrix.tokens == expected
    said = any("number its pieces in another order" in note for note in matrix.origin.notes)
    assert said == (expected is None)


def test_broken_sentencepiece_models(tmp_path: Path) -> None:
    for folder, data in each_folder(
        tmp_path,
        (
            UNK + field(1, b"\x0a\x7f<s>"),
            UNK + b"\x0a" + b"\xff" * 11,
            UNK + b"\x0a\x80",
            UNK + b"\x0b",
            UNK + b"\x08\x01",
            UNK + piece(b"x" * 5000),
        ),
    ):
        refused(written(folder / "m.model", data))


def refused(path: Path) -> None:
    with refusal(UnreadableFile):
        read_labels(path)


@pytest.mark.slow
def test_ten_million_pieces_are_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As soon as they are more than may be: the others are not read."""
    monkeypatch.setattr("embgeo.io.labels.tokenizer_files._MOST_PIECES", 2**14)
    path = written(tmp_path / "m.model", UNK + 10**7 * b"\x0a\x02\x0a\x00")
    start = time.process_time()
    refused(path)
    assert time.process_time() - start < 1


HUGE = {
    "ids of 5000 digits": '{"model": {"vocab": {"a": ' + "9" * 5000 + "}}}",
    "negative ids": {"model": {"vocab": {"a": -(2**62)}}},
    "added beyond": {"model": {"vocab": {"a": 0}}, "added_tokens": [{"id": 2**62, "content": "x"}]},
    "deep merges": '{"model": {"vocab": {"a": 0}, "merges": '
    + "[" * 100_000
    + "]" * 100_000
    + "}}",
    "empty lists": '{"model": [' + "[]," * 11_000_000 + "[]]}",
}


def test_hostile_tokenizer_json(tmp_path: Path) -> None:
    for folder, case in each_folder(tmp_path, HUGE):
        content = HUGE[case]
        text = content if isinstance(content, str) else json.dumps(content)
        refused(written(folder / "tokenizer.json", text))


def test_ids_given_twice_are_noted(tmp_path: Path) -> None:
    text = '{"model": {"vocab": {"a": 0, "b": 0, "c": 1, "c": 2}}}'
    vocabulary = read_labels(written(tmp_path / "tokenizer.json", text))
    assert vocabulary.tokens == ("b", "<unused id 1>", "c")
    assert any("1 ids have two tokens" in note for note in vocabulary.notes)


def test_pipelines_nested_beyond_reason_are_not_followed(tmp_path: Path) -> None:
    decoder: dict[str, Any] = {"type": "ByteLevel"}
    for _ in range(300):
        decoder = {"type": "Sequence", "decoders": [decoder]}
    data = {"model": {"vocab": {"x": 0, "y": 1}}, "decoder": decoder}
    assert read_labels(written(tmp_path / "tokenizer.json", json.dumps(data))).tokens == ("x", "y")


RANKS = [b"!", b'"', b" the", "é".encode(), b"\xe2\x80", b"\n"]


def ranks(tokens: list[bytes]) -> str:
    return "".join(f"{base64.b64encode(t).decode()} {rank}\n" for rank, t in enumerate(tokens))


@pytest.mark.parametrize("name", ["qwen.tiktoken", "tokenizer.model"])
def test_tiktoken_files(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / name, ranks(RANKS))
    assert read_labels(path).tokens == ("!", '"', " the", "é", "<0xE2><0x80>", "\n")
    if name == "tokenizer.model":
        folder = model_folder(tmp_path / "model", 8, {name: ranks(RANKS)})
        tokens = embgeo.load(folder).tokens
        assert tokens is not None
        assert tokens[2:7] == (" the", "é", "<0xE2><0x80>", "\n", "<padding row 6>")


def test_broken_tiktoken_files(tmp_path: Path) -> None:
    refused(written(tmp_path / "x.tiktoken", ranks(RANKS) + "!!! 9\n"))
    refused(written(tmp_path / "x.tiktoken", "the 5\nof 3\n"))
    far = ranks(RANKS) + "IQ== 999999999\n"
    refused(written(tmp_path / "x.tiktoken", far))
    # Words with numbers that happen to be of base64's letters stay what they are.
    assert read_labels(written(tmp_path / "x.txt", "that 0\nthis 2\n")).tokens[0] == "that 0"


def test_a_fairseq_dictionary_is_refused_with_the_conversion_that_works(tmp_path: Path) -> None:
    path = model_folder(tmp_path / "model", 6) / "model.npy"
    dictionary = written(tmp_path / "dict.en.txt", "the 120\n, 80\n")
    with refusal(UnreadableFile) as caught:
        embgeo.load(path, tokens=dictionary)
    command = str(caught.value).partition("; ")[2]
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True)
    tokens = ("<s>", "<pad>", "</s>", "<unk>", "the", ",")
    assert embgeo.load(path, tokens=tmp_path / "tokens.txt").tokens == tokens
    counted = embgeo.load(path, tokens=tmp_path / "tokens.txt", counts=dictionary)
    assert counted.frequency.counts.tolist() == [0, 0, 0, 0, 120, 80]


RUN = {"run.toml": "", "vocabulary.tsv": "a\t9\nb\t5\nc\t1\n"}


def test_the_vocabulary_of_a_run_labels_and_counts_its_rows(tmp_path: Path) -> None:
    path = model_folder(tmp_path / "run", 3, RUN)
    for given in (path, path / "model.npy"):
        matrix = embgeo.load(given)
        assert matrix.tokens == ("a", "b", "c")
        assert matrix.frequency is not None
        assert matrix.frequency.counts.tolist() == [9, 5, 1]
        assert "tokens from vocabulary.tsv" in matrix.origin.notes
    assert embgeo.load(path, rows="1:3").tokens == ("b", "c")


@pytest.mark.parametrize(
    ("rows", "changed", "note"),
    [
        (4, {}, ""),
        (3, {"vocabulary.source.tsv": "a\t1\n"}, ""),
        (3, {"vocabulary.tsv": "a\nb\nc\n"}, "vocabulary.tsv next to it is not used: line 1 has"),
    ],
)
def test_a_vocabulary_of_a_run_that_does_not_fit_is_not_used(
    tmp_path: Path, rows: int, changed: dict[str, Any], note: str
) -> None:
    matrix = embgeo.load(model_folder(tmp_path / "run", rows, RUN | changed))
    assert matrix.tokens is None
    assert any(note in found for found in (*matrix.origin.notes, ""))


TABLE = "id\tWord\tFrequency\n0\tthe\t3\n1\tof\t2\n2\tcat\t0\n"


def test_a_table_of_tokens_with_a_column_of_counts(tmp_path: Path) -> None:
    path = model_folder(tmp_path / "model", 3) / "model.npy"
    table = written(tmp_path / "metadata.tsv", TABLE)
    for matrix in (embgeo.load(path, tokens=table), embgeo.load(path, counts=table)):
        assert matrix.tokens == ("the", "of", "cat")
        assert matrix.frequency is not None
        assert matrix.frequency.counts.tolist() == [3, 2, 0]
    shares = written(tmp_path / "shares.tsv", TABLE.replace("3", "0.3"))
    assert embgeo.load(path, tokens=shares).frequency is None
    swapped = "count\tclass\n3\tthe\n2\tof\n0\tcat\n"
    matrix = embgeo.load(path, counts=written(tmp_path / "swapped.tsv", swapped))
    assert matrix.tokens == ("the", "of", "cat")


def test_row_numbers_beside_counts_order_the_rows_and_are_no_counts(tmp_path: Path) -> None:
    path = model_folder(tmp_path / "model", 3) / "model.npy"
    table = "id\ttoken\tcount\n2\tc\t30\n0\ta\t10\n1\tb\t20\n"
    matrix = embgeo.load(path, counts=written(tmp_path / "a.tsv", table))
    assert matrix.tokens == ("a", "b", "c")
    assert matrix.frequency is not None
    assert matrix.frequency.counts.tolist() == [10, 20, 30]
    numbers = written(tmp_path / "b.tsv", "token\tid\nc\t2\na\t0\nb\t1\n")
    with refusal(UnreadableFile):
        embgeo.load(path, counts=numbers)
    assert embgeo.load(path, tokens=numbers).tokens == ("a", "b", "c")


def test_why_a_tokenizer_is_not_run_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of(encoder: TextEncoder | None) -> TokenizerVocabulary:
        return TokenizerVocabulary(("a",), "a", encoder=encoder)

    with refusal(NotUsable):
        find_unreachable(of(None))
    with refusal(NotUsable):
        find_unreachable(of(TextEncoder("SentencePiece", (Path("spiece.model"),))))
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"type": "x"}}))
    own = of(TextEncoder("tokenizer.json", (tmp_path / "tokenizer.json",)))
    with pytest.raises(NotUsable):
        find_unreachable(own)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with refusal(NotUsable):
        find_unreachable(own)
