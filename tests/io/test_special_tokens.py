"""Special tokens from the files of a model folder, and whether the file is tied as it says."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

import embgeo
from embgeo.core.errors import UnreadableFile
from embgeo.core.special import SpecialToken
from embgeo.io.memory import as_matrix
from tests.io.test_model_folder import N, W, folder, tokenizer
from tests.support.refusals import refusal

WORDS = {"a": 0, "<s>": 1, "b": 2, "c": 3}
ADDED = [
    {"id": 4, "content": "<|im_start|>", "special": True},
    {"id": 5, "content": "<tool>", "special": False},
]
FILES: dict[str, Any] = {
    "tokenizer.json": tokenizer(WORDS, added_tokens=ADDED),
    "special_tokens_map.json": {
        "bos_token": {"content": "<s>", "lstrip": False},
        "eos_token": "<|im_end|>",
        "additional_special_tokens": ["<|im_start|>", {"content": "b"}],
    },
    "tokenizer_config.json": {"chat_template": "{{ bos_token }}<|im_start|>user<i>"},
    "config.json": {"pad_token_id": 0, "eos_token_id": [3, 99]},
}


def special(path: Path, **options: Any) -> tuple[SpecialToken, ...]:
    return embgeo.load(path, **options).special


def test_every_place(tmp_path: Path) -> None:
    assert special(folder(tmp_path, FILES)) == (
        SpecialToken("a", 0, ("pad",)),
        SpecialToken("<s>", 1, ("bos", "template")),
        SpecialToken("b", 2, ("additional",)),
        SpecialToken("c", 3, ("eos",)),
        SpecialToken("<|im_start|>", 4, ("additional", "special", "template")),
        SpecialToken("<tool>", 5, ("added",)),
        SpecialToken("<|im_end|>", None, ("eos",)),
    )


def test_very_many_tokens_are_not_sought_in_a_very_long_template(tmp_path: Path) -> None:
    """200,000 tokens and 10 MB took hours."""
    added = {str(k): {"content": f"<t{k}>"} for k in range(2000)}
    files = {"vocab.json": WORDS, "tokenizer_config.json": {"added_tokens_decoder": added}}
    with refusal(UnreadableFile):
        special(folder(tmp_path, {**files, "chat_template.jinja": " " * 2**20}))


@pytest.mark.parametrize(
    "files",
    [
        {"chat_template.jinja": "<|im_start|>"},
        {"chat_template.json": {"chat_template": "<|im_start|>"}},
    ],
)
def test_each_place_of_a_template(tmp_path: Path, files: dict[str, Any]) -> None:
    plain = {"tokenizer.json": tokenizer({**WORDS, "<|im_start|>": 4, "d": 5})}
    found = special(folder(tmp_path, plain | files))
    assert found == (SpecialToken("<|im_start|>", 4, ("template",)),)


@pytest.mark.parametrize(
    "files",
    [
        {"vocab.json": {**WORDS, "d": 5}, "added_tokens.json": {"<x>": 4}},
        {
            "vocab.txt": "a\n<s>\nb\nc\nd\n",
            "tokenizer_config.json": {"added_tokens_decoder": {"5": {"content": "<x>"}}},
        },
    ],
)
def test_added_tokens_of_older_tokenizers(tmp_path: Path, files: dict[str, Any]) -> None:
    row = 5 if "vocab.txt" in files else 4
    assert special(folder(tmp_path, files)) == (SpecialToken("<x>", row, ("added",)),)


def test_a_range_of_rows_and_rows_beyond_the_matrix(tmp_path: Path) -> None:
    more = [*ADDED, {"id": N, "content": "<beyond>"}]
    path = folder(tmp_path, {"tokenizer.json": tokenizer(WORDS, added_tokens=more)})
    matrix = embgeo.load(path)
    assert matrix.special[-1] == SpecialToken("<beyond>", None, ("added",))
    assert matrix.vocabulary_size == N + 1
    cut = embgeo.load(path, rows="4:6")
    assert [(one.token, one.row) for one in cut.special] == [("<|im_start|>", 0), ("<tool>", 1)]
    assert cut.vocabulary_size is None


@pytest.mark.parametrize(
    "content",
    [
        {"additional_special_tokens": [None, {"content": 5}], "chat_template": [7, None]},
        {"eos_token": "\ud800\u202e"},
    ],
)
def test_odd_values_name_nothing_that_is_not_there(tmp_path: Path, content: Any) -> None:
    files = {"tokenizer.json": tokenizer(WORDS), "special_tokens_map.json": content}
    found = special(folder(tmp_path, files))
    assert all(one.row is None for one in found)
    assert all(one.token.encode() for one in found)


def test_a_damaged_file_is_one_line(tmp_path: Path) -> None:
    files = {"tokenizer.json": tokenizer(WORDS), "special_tokens_map.json": "{"}
    with refusal(UnreadableFile):
        embgeo.load(folder(tmp_path, files))


@pytest.mark.parametrize(
    ("tied", "head", "agrees"),
    [
        (None, W + 1, None),
        (True, None, True),
        (True, W, True),
        (False, W + 1, True),
        (False, W, False),
    ],
)
def test_tied_as_configured(
    tmp_path: Path, tied: bool | None, head: np.ndarray | None, agrees: bool | None
) -> None:
    config = {} if tied is None else {"tie_word_embeddings": tied}
    tensors = {"model.embed_tokens.weight": W}
    if head is not None:
        tensors["lm_head.weight"] = head
    assert embgeo.load(folder(tmp_path, {"config.json": config}, **tensors)).tied_as_configured is (
        agrees
    )


class Tokenizer:
    """What embgeo asks of a tokenizer of the package transformers."""

    special_tokens_map = {"bos_token": "<s>", "additional_special_tokens": ["<|im_start|>", "b"]}  # noqa: RUF012
    chat_template = {"default": "{{ bos_token }}<|im_start|>user<i>", "tool": "<tool>"}  # noqa: RUF012

    def get_vocab(self) -> dict[str, int]:
        return {**WORDS, "<|im_start|>": 4, "<tool>": 5, "<beyond>": 400}

    def get_added_vocab(self) -> dict[str, int]:
        return {"<|im_start|>": 4, "<tool>": 5, "<beyond>": 400}


def test_of_a_tokenizer_in_memory() -> None:
    matrix = as_matrix(W, tokens=Tokenizer())
    assert matrix.special == (
        SpecialToken("<s>", 1, ("bos", "template")),
        SpecialToken("b", 2, ("additional",)),
        SpecialToken("<|im_start|>", 4, ("additional", "added", "template")),
        SpecialToken("<tool>", 5, ("added", "template")),
        SpecialToken("<beyond>", None, ("added",)),
    )
    assert matrix.vocabulary_size == 401


def test_of_a_tokenizer_of_the_package_tokenizers() -> None:
    def list_added() -> dict[int, Any]:
        return {1: SimpleNamespace(content="<s>")}

    fast = SimpleNamespace(get_vocab=lambda: WORDS, get_added_tokens_decoder=list_added)
    assert as_matrix(W, tokens=fast).special == (SpecialToken("<s>", 1, ("added",)),)


def test_a_tokenizer_with_a_huge_id() -> None:
    vocabulary = {**WORDS, "<far>": 2**40}
    far = SimpleNamespace(get_vocab=lambda: vocabulary, get_added_vocab=lambda: {"<far>": 2**40})
    matrix = as_matrix(W, tokens=far)
    assert matrix.special == (SpecialToken("<far>", None, ("added",)),)
    assert matrix.vocabulary_size == 2**40 + 1


def test_a_mapping_names_no_special_tokens() -> None:
    matrix = as_matrix(W, tokens=WORDS)
    assert (matrix.special, matrix.vocabulary_size) == ((), None)


# --- Tokens that no text leads to are found by the model's own tokenizer, or the reason is said ---


VOCABULARY = ("[UNK]", "[unused1]", "the", "##s", "##河", "河", "q", "1", "x", "-")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a word-piece tokenizer, which takes Chinese characters one by one."""
    tokenizers = pytest.importorskip("tokenizers")
    folder = tmp_path_factory.mktemp("model")
    pieces = tokenizers.models.WordPiece(
        {token: row for row, token in enumerate(VOCABULARY)}, unk_token="[UNK]"
    )
    tokenizer = tokenizers.Tokenizer(pieces)
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = tokenizers.decoders.WordPiece()
    tokenizer.add_special_tokens(["[UNK]"])
    tokenizer.save(str(folder / "tokenizer.json"))
    W = np.random.default_rng(0).standard_normal((len(VOCABULARY), 4)).astype(np.float32)
    save_file({"embeddings.word_embeddings.weight": W}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"vocab_size": len(VOCABULARY)}))
    return folder


def test_unreachable_tokens_are_found(model):
    matrix = embgeo.load(model, check_reachable=True)
    assert matrix.unreachable == (1, 4)
    found = embgeo.analyze(matrix, sections=["tokens"], reference=False)
    assert found["tokens.unreachable_rows"] == 2
    assert {row[1] for row in found["tokens.unreachable"].rows} == {"[unused1]", "##河"}


@pytest.mark.usefixtures("workers_here")
def test_rows_of_a_cut(model):
    assert embgeo.load(model, rows="3:8", check_reachable=True).unreachable == (1,)


def test_nobody_asked(model):
    matrix = embgeo.load(model)
    assert matrix.unreachable is None
    found = embgeo.analyze(matrix, sections=["tokens"], reference=False)
    assert "tokens.unreachable_rows" not in found.keys()  # noqa: SIM118


@pytest.mark.parametrize("damage", ["no tokenizer", "not understood", "no package"])
def test_the_reason_is_said(model, damage, tmp_path, monkeypatch):
    folder = tmp_path / "copy"
    folder.mkdir()
    for file in model.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    reason = "the rows have no tokenizer"
    if damage == "no tokenizer":
        (folder / "tokenizer.json").unlink()
    elif damage == "not understood":
        data = json.loads((folder / "tokenizer.json").read_text("utf-8"))
        data["model"]["type"] = "Unheard"
        (folder / "tokenizer.json").write_text(json.dumps(data), "utf-8")
        reason = "Exception"
    else:
        monkeypatch.setattr("importlib.util.find_spec", lambda *_: None)
        reason = "needs pip install"
    matrix = embgeo.load(folder, check_reachable=True)
    monkeypatch.undo()
    found = embgeo.analyze(matrix, sections=["tokens"], reference=False)
    assert reason in found["tokens.unreachable_rows"].undefined
