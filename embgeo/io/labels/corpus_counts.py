"""Counts of the words of a corpus."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from embgeo.core.errors import LabelMismatch
from embgeo.core.matrix import Frequency
from embgeo.io.labels.corpus_text import CorpusText
from embgeo.io.labels.counts_file import examples
from embgeo.io.labels.vocabulary import has_sign, marks_words_by_spaces, word_of


def count_words(tokens: Sequence[str], text: CorpusText) -> tuple[Frequency, tuple[str, ...]]:
    """Count the tokens among the words of a corpus, which white space separates.

    In a subword vocabulary only tokens that are whole words are counted, and the source says so.
    """
    spaced = marks_words_by_spaces(tokens)
    keys = [word_of(token, spaced).encode("utf-8") for token in tokens]
    vocabulary = {key for key in keys if key}
    found: Counter[bytes] = Counter()
    total = 0
    for piece in text.pieces(words=True):
        words = piece.split()
        total += len(words)
        for word, count in Counter(words).items():
            if word in vocabulary:
                found[word] += count
    if not found:
        raise LabelMismatch(
            f"none of its {total:,} words is a token of the matrix (such as {examples(tokens)})",
            where=text.path,
            way_out="give a corpus in the language and spelling of the vocabulary",
        )
    values = np.array([found.get(key, 0) for key in keys], dtype=np.float64)
    source = f"corpus {text.name}, {total:,} words separated by white space"
    # WordPiece marks tokens that continue a word by "##".
    if spaced or has_sign(tokens, "##"):
        source += "; the tokens are pieces of words, so only whole words among them are counted"
    notes = [*text.notes(), *missing_note(values, text.name)]
    if (known := sum(found.values())) < total:
        notes.append(f"{total - known:,} of {total:,} words of {text.name} are not in the matrix")
    return Frequency("counts", values, source), tuple(notes)


def missing_note(values: np.ndarray[tuple[int], np.dtype[np.float64]], name: str) -> list[str]:
    """Return a note on the tokens with count 0, if there are any."""
    missing = int(np.sum(values == 0))
    return [f"{missing:,} of {len(values):,} tokens do not occur in {name}"] if missing else []
