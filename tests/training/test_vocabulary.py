"""Vocabularies as files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from embgeo.io.labels.counts_file import read_counts
from embgeo.training.data import Vocabulary, vocabulary_bytes
from tests.support.sampling import each_folder

HOSTILE = (
    "plain", "tab\there", "line\nend", "return\r", "back\\slash", "\\n", "\\", "",
    " ", "\u2028", "\x0b", "\0", "{\"a\": 1}", "[[", "token\tcount", "#", "=SUM(A1)",
    "<script>", "\ufeffmark", "<eos>", "<unk>", "名",
)  # fmt: skip


def vocabulary(tokens: tuple[str, ...]) -> Vocabulary:
    counts = np.arange(len(tokens), 0, -1)
    row = {token: place for place, token in enumerate(tokens)}
    return Vocabulary(tokens, counts, row.get("<unk>"), row.get("<eos>"))


def test_hostile_tokens_survive_whichever_comes_first(tmp_path: Path) -> None:
    for folder, first in each_folder(tmp_path, range(len(HOSTILE))):
        written = vocabulary(HOSTILE[first:] + HOSTILE[:first])
        (folder / "vocabulary.tsv").write_bytes(vocabulary_bytes(written))
        counts = read_counts(folder / "vocabulary.tsv")
        assert counts.tokens == written.tokens
        assert list(counts.counts) == written.counts.tolist()


def test_plain_vocabularies_look_as_the_fixture_does(tmp_path: Path) -> None:
    fixture = Path(__file__).parents[2] / "fixtures" / "vocab_counts.tsv"
    known = read_counts(fixture)
    written = Vocabulary(tuple(known.tokens), np.array(known.counts))
    (tmp_path / "vocabulary.tsv").write_bytes(vocabulary_bytes(written))
    assert read_counts(tmp_path / "vocabulary.tsv").tokens == known.tokens
