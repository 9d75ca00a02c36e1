"""Token counts from a corpus that is streamed: by words, or by the model's own tokenizer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from embgeo.core.errors import LabelMismatch
from embgeo.core.matrix import Frequency
from embgeo.io.labels.corpus_text import ByteProgress, CorpusText
from embgeo.io.labels.counts_file import examples
from embgeo.io.labels.readable import SIGN_SHARE, marks_words_by_spaces, word_of


def count_words(
    tokens: Sequence[str], path: Path, progress: ByteProgress | None = None
) -> tuple[Frequency, tuple[str, ...]]:
    """Counts of the tokens among a corpus' words, which white space separates.

    The text is streamed; only tokens of the matrix are remembered. Where the tokens are pieces of
    words, those that begin with a space are matched without it, and the source says so.

    Parameters
    ----------
    tokens : sequence of str
    path : Path
        A file or a folder of them (see :class:`embgeo.io.labels.corpus_text.CorpusText`).
    progress : callable, optional

    Raises
    ------
    UnreadableFile
    LabelMismatch
        No token of the matrix occurs.
    """
    spaced = marks_words_by_spaces(tokens)
    keys = [word_of(token, spaced).encode("utf-8") for token in tokens]
    wanted = {key for key in keys if key}
    found: Counter[bytes] = Counter()
    total = 0
    text = CorpusText(path, progress)
    for piece in text.pieces(words=True):
        words = piece.split()
        total += len(words)
        for word, count in Counter(words).items():
            if word in wanted:
                found[word] += count
    if not found:
        raise LabelMismatch(
            f"none of its {total:,} words is a token of the matrix (such as {examples(tokens)})",
            where=path,
            way_out="give a corpus in the language and spelling of the vocabulary",
        )
    values = np.array([found.get(key, 0) for key in keys], dtype=np.float64)
    source = f"corpus {text.name}, {total:,} words separated by white space"
    if spaced or _are_pieces(tokens):
        source += "; the tokens are pieces of words, so only whole words among them are counted"
    notes = [*text.notes(), *missing_note(values, text.name)]
    if (known := sum(found.values())) < total:
        notes.append(f"{total - known:,} of {total:,} words of {text.name} are not in the matrix")
    return Frequency("counts", values, source), tuple(notes)


def missing_note(values: np.ndarray[tuple[int], np.dtype[np.float64]], name: str) -> list[str]:
    """How many of the tokens have the count 0; empty if none has."""
    missing = int(np.sum(values == 0))
    return [f"{missing:,} of {len(values):,} tokens do not occur in {name}"] if missing else []


def _are_pieces(tokens: Sequence[str]) -> bool:
    """Whether tokens are WordPiece pieces, whose continuations begin with ``##``."""
    return sum(token.startswith("##") for token in tokens) >= max(1.0, SIGN_SHARE * len(tokens))
