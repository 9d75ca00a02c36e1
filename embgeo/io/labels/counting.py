"""Frequencies laid along the rows: from what the user names, else from what the file carries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import LabelMismatch
from embgeo.core.matrix import Frequency
from embgeo.io.labels import counts_file
from embgeo.io.labels.corpus_text import Heard
from embgeo.io.labels.corpus_tokens import NotUsable, count_tokens
from embgeo.io.labels.corpus_words import from_corpus, missing_note
from embgeo.io.labels.rows import Cut, Labeled, mismatch
from embgeo.io.labels.tokenizer_json import Vocabulary

Found = tuple[Frequency, tuple[str, ...]]


def from_counts_file(
    path: Path, labels: Labeled | None, cut: Cut, d: int
) -> tuple[Labeled, Frequency, tuple[str, ...]]:
    """Labels (the file may give them), frequencies and notes.

    Raises
    ------
    LabelMismatch
        Without labels: another number of counts than of rows.
    """
    counts = counts_file.read_counts(path)
    if labels is not None:
        return labels, *_of_labeled(labels, lambda t: counts_file.from_counts(t, counts))
    if cut.fit(len(counts.tokens)) is None:
        counts = counts.as_listed()
    fitting = cut.fit(len(counts.tokens))
    if fitting is None:
        raise mismatch("counts", len(counts.tokens), cut, path, d)
    tokens = counts.tokens[fitting]
    values = np.array(counts.counts[fitting], dtype=np.float64)
    note = f"{counts.name} lists as many tokens as there are rows and labels them in its order"
    found = Labeled(tokens, np.zeros(0, dtype=np.int64), (*counts.notes, note))
    return found, Frequency("counts", values, f"counts file {counts.name}"), ()


def from_corpus_file(
    path: Path,
    labels: Labeled | None,
    vocabulary: Vocabulary | None,
    cut: Cut,
    heard: Heard | None,
) -> Found:
    """Counts by the model's own tokenizer where there is one that can be run, else by words.

    Raises
    ------
    LabelMismatch
        The rows have no labels, or none of them occurs.
    """
    if labels is None:
        raise LabelMismatch(
            "a corpus cannot be counted, because the rows have no labels",
            where=path,
            way_out="name the rows with --tokens FILE",
        )
    if vocabulary is None or vocabulary.encoder is None:
        return _of_labeled(labels, lambda tokens: from_corpus(tokens, path, heard))
    try:
        return _by_tokenizer(path, labels, vocabulary, cut, heard)
    except NotUsable as error:
        why = f"the model's own {vocabulary.encoder.name} is not used: {error}"
    try:
        frequency, notes = _of_labeled(labels, lambda tokens: from_corpus(tokens, path, heard))
    except LabelMismatch as error:
        raise LabelMismatch(error.cause, where=path, way_out=why) from error
    return replace(frequency, source=f"{frequency.source}; {why}"), notes


def _by_tokenizer(
    path: Path, labels: Labeled, vocabulary: Vocabulary, cut: Cut, heard: Heard | None
) -> Found:
    assert vocabulary.encoder is not None
    counted = count_tokens(vocabulary.encoder, len(vocabulary.tokens), path, heard)
    values = along_rows(counted.counts, labels.first, cut)
    if not values.any():
        raise LabelMismatch(
            "none of its tokens belongs to a row of the matrix",
            where=path,
            way_out="give a corpus in the language of the model",
        )
    real = np.delete(values, labels.masked)
    return Frequency("counts", values, counted.source), (
        *counted.notes,
        *missing_note(real, counted.name),
    )


def along_rows(
    values: Sequence[int] | npt.NDArray[np.float64], first: int, cut: Cut
) -> npt.NDArray[np.float64]:
    """The entries of the cut rows, where entry 0 belongs to row `first`; 0 where there is none."""
    given = np.asarray(values, dtype=np.float64)
    places = np.arange(cut.start, cut.stop) - first
    is_given = (places >= 0) & (places < len(given))
    laid = np.zeros(cut.size, dtype=np.float64)
    laid[is_given] = given[places[is_given]]
    return laid


def _of_labeled(labels: Labeled, count: Callable[[Sequence[str]], Found]) -> Found:
    """Frequencies of the rows that stand for tokens; padding gets 0 and is in no note."""
    padding = set(labels.masked.tolist())
    real = [row for row in range(len(labels.tokens)) if row not in padding]
    frequency, notes = count([labels.tokens[row] for row in real])
    values = np.zeros(len(labels.tokens), dtype=np.float64)
    values[real] = frequency.counts
    return Frequency(frequency.kind, values, frequency.source), notes
