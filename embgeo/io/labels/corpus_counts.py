"""Counts of tokens in a corpus, by the tokenizer of the model or by words.

The packages that run tokenizers are Rust and C++ code, which a hostile file can crash or make use
all memory: they run in a limited process (:mod:`embgeo.io.convert.tokenizers`).
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Sequence

import numpy as np

from embgeo.core.errors import LabelMismatch, argument
from embgeo.core.matrix import Frequency
from embgeo.io.bounded.guard import Damaged, refuse
from embgeo.io.bounded.scratch import ScratchFile
from embgeo.io.convert.limited import run_limited
from embgeo.io.labels.corpus_text import CorpusText
from embgeo.io.labels.counts_file import examples
from embgeo.io.labels.vocabulary import TextEncoder, marks_words_by_spaces, uses_sign, word_of

EXTRA = "hf"

#: Processor seconds for loading a tokenizer.
_LOADING = 8.0


class NotUsable(Exception):
    """Why a tokenizer cannot be run."""


def count_tokens(
    encoder: TextEncoder, size: int, text: CorpusText
) -> tuple[Frequency, tuple[str, ...]]:
    """Encode a corpus and count the ids 0 to `size` − 1, with notes.

    Text is encoded unchanged, with its line ends, in pieces of some thousand characters and without
    the special tokens that a model adds around its input. Raises `NotUsable` if the package of the
    tokenizer is not installed or does not read its file.
    """
    if importlib.util.find_spec(encoder.package) is None:
        raise NotUsable(f"that needs pip install 'embgeo[{EXTRA}]'")
    output = ScratchFile()
    try:
        answer = run_limited(
            "tokenizers:count_tokens",
            f"the package {encoder.package}",
            _LOADING,
            text=text.pieces(words=False),
            kind=encoder.kind,
            files=[str(file.resolve()) for file in encoder.files],
            lowercase=encoder.lowercase,
            size=size,
            output=str(output.path),
        )
        counts = np.fromfile(output.path, dtype="<i8").astype(np.float64)
    except Damaged as error:
        if not output.path.stat().st_size:
            raise NotUsable(f"the package {encoder.package} cannot read it ({error})") from None
        raise refuse(
            encoder.files[0],
            f"the tokenizer fails on the corpus ({error})",
            f"give the counts with {argument('counts', 'FILE')}",
        ) from None
    finally:
        output.remove()
    total, beyond = answer["total"], answer["beyond"]
    notes = list(text.notes())
    if beyond:
        notes.append(f"{beyond:,} of {total:,} tokens of {text.name} have ids beyond the labels")
    source = f"corpus {text.name}, {total:,} tokens by {encoder.name}"
    return Frequency("counts", counts, source), tuple(notes)


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
    if spaced or uses_sign(tokens, "##"):
        source += "; the tokens are pieces of words, so only whole words among them are counted"
    notes = [*text.notes(), *missing_note(values, text.name)]
    if (known := sum(found.values())) < total:
        notes.append(f"{total - known:,} of {total:,} words of {text.name} are not in the matrix")
    return Frequency("counts", values, source), tuple(notes)


def missing_note(values: np.ndarray[tuple[int], np.dtype[np.float64]], name: str) -> list[str]:
    """A note on the tokens with count 0, if there are any."""
    missing = int(np.sum(values == 0))
    return [f"{missing:,} of {len(values):,} tokens do not occur in {name}"] if missing else []
