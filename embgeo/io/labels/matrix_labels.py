"""Labels and frequencies of rows: from named files, the checkpoint, or a file beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import LabelMismatch, UnreadableFile, argument
from embgeo.core.matrix import Frequency
from embgeo.core.source import NO_TOKENS, Source
from embgeo.files.guard import short
from embgeo.files.links import is_foreign_link
from embgeo.files.maps import number_type
from embgeo.io.labels.corpus_text import ByteProgress, CorpusText, count_words, missing_note
from embgeo.io.labels.counts_file import from_counts, from_rank, read_counts
from embgeo.io.labels.label_file import read_labels
from embgeo.io.labels.rows import RowLabels, lay_found, lay_given, mismatch
from embgeo.io.labels.tokenizer_runs import NotUsable, count_tokens
from embgeo.io.labels.vocabulary import TokenizerVocabulary
from embgeo.io.model import names
from embgeo.io.model.candidates import is_padded
from embgeo.io.model.checkpoint import Checkpoint
from embgeo.io.model.choice import Choice
from embgeo.io.model.rows import RowCut

#: What ``embgeo train`` writes next to a model: tokens with counts.
SETTINGS, VOCABULARY = "run.toml", "vocabulary.tsv"
#: Models with a second vocabulary for the source language do not say which matrix uses it.
SECOND_VOCABULARY = "vocabulary.source.tsv"


@dataclass(frozen=True, slots=True)
class Selection:
    """The tensors and rows of a matrix with `d` columns."""

    source: Source
    checkpoint: Checkpoint
    choice: Choice
    cut: RowCut
    d: int

    def is_of_other_rows(self, length: int) -> bool:
        """Tell whether a list of this length belongs to another matrix, or to the columns."""
        if length == self.cut.total or self.checkpoint.path.is_dir():
            return False
        others = (t for t in self.choice.candidates if t != self.choice.input)
        return length == self.d or any(length in t.shape for t in others)


@dataclass(frozen=True, slots=True)
class Labeling:
    """Labels of the rows, the vocabulary that they come from, frequencies, and notes on files."""

    labels: RowLabels | None = None
    vocabulary: TokenizerVocabulary | None = None
    notes: tuple[str, ...] = ()
    frequency: Frequency | None = None

    def with_frequency(self, frequency: Frequency | None, notes: Sequence[str] = ()) -> Labeling:
        """Return the same labels with frequencies."""
        return replace(self, frequency=frequency, notes=(*self.notes, *notes))


def label_rows(selection: Selection) -> Labeling:
    """Take labels from the named file, a word list, the checkpoint, or a file next to it."""
    if str(selection.source.tokens) == NO_TOKENS:
        return Labeling()
    if selection.choice.input.row_ids is not None and not selection.source.transpose:
        return _from_ids(selection)
    return (
        _from_named_file(selection)
        or _from_word_list(selection)
        or _from_checkpoint(selection)
        or _from_run_folder(selection)
    )


def _from_named_file(selection: Selection) -> Labeling | None:
    path, cut = selection.source.tokens, selection.cut
    if path is None:
        return None
    vocabulary = read_labels(path)
    labels = lay_given(vocabulary.tokens, cut, selection.source.padding, path, selection.d)
    return Labeling(labels, vocabulary, (*vocabulary.notes, *labels.notes))


def _from_word_list(selection: Selection) -> Labeling | None:
    """Take the word list in the file that has an entry for each row.

    Of several the one of the same side (encoder or decoder) as the matrix is taken.
    """
    cut, side = selection.cut, names.side(selection.choice.input.name)
    known = selection.checkpoint.vocabularies
    fitting = [(name, words) for name, words in known if len(words) == cut.total]
    same_side = [(name, words) for name, words in fitting if names.side(name) == side]
    if not fitting:
        return None
    name, words = (same_side or fitting)[0]
    for other, again in same_side or fitting:
        if again != words and sorted(again) == sorted(words):
            which = f"{name} and {other} in the file hold the same words in other orders"
            return Labeling(notes=(f"{which}, and label no rows; --tokens FILE",))
    labels = lay_found(words, cut, selection.source.padding, f"{name} in the file")
    return Labeling(labels, notes=labels.notes)


def _from_ids(selection: Selection) -> Labeling:
    """Label the rows of a draft head or of trained tokens by their ids."""
    assert selection.choice.input.row_ids is not None
    ids, cut = selection.choice.input.row_ids(), selection.cut
    named = selection.source.tokens
    vocabulary = None if named is None else read_labels(named)
    tokens = selection.checkpoint.tokens if vocabulary is None else vocabulary.tokens
    source = selection.checkpoint.tokens_source if named is None else named.name
    if tokens is None or len(ids) != cut.total or ids.min() < 0 or ids.max() >= len(tokens):
        return Labeling(notes=("the ids of its rows are not those of a tokenizer beside it",))
    labels = RowLabels(tuple(tokens[row] for row in ids[cut.start : cut.stop].tolist()))
    return Labeling(labels, notes=(f"{source} labels the rows by the ids that the file maps",))


def _from_checkpoint(selection: Selection) -> Labeling | None:
    checkpoint = selection.checkpoint
    tokens = checkpoint.tokens
    if checkpoint.label_error is not None:
        raise checkpoint.label_error
    if tokens is None or selection.is_of_other_rows(len(tokens)):
        return None
    if why := find_doubt(selection):
        return Labeling(notes=(f"{checkpoint.tokens_source} labels no rows: {why}",))
    vocabulary = TokenizerVocabulary(tokens, checkpoint.tokens_source, encoder=checkpoint.encoder)
    labels = lay_found(tokens, selection.cut, selection.source.padding, vocabulary.source)
    return Labeling(labels, vocabulary, labels.notes)


def find_doubt(selection: Selection) -> str:
    """Explain why the ids of the checkpoint's tokenizer are not known to be the rows, else empty.

    Added tokens may lie beyond the last row, where a model was not resized for them.
    """
    name, facts = selection.choice.input.name, selection.checkpoint.facts
    tokens = selection.checkpoint.tokens or ()
    if selection.choice.input.row_ids is not None:
        return "the rows are of ids that the file maps"
    if kind := names.kind_of(name):
        return f"the rows are {kind}"
    in_layer = names.layer_of(name) is not None
    if names.is_other_embedding(name) or (in_layer and names.input_rank(name) is None):
        return "by its name, the rows of the matrix are not tokens"
    added = {row for row in selection.checkpoint.added if row >= selection.cut.total}
    own = len(tokens) - len(added)
    if own > selection.cut.total:
        return f"it has {own:,} ids, and the matrix has {selection.cut.total:,} rows"
    if own + 1 == selection.cut.total:
        return "the matrix has one row more, and nothing says which row is of no token"
    is_known = bool(facts.model_type or facts.architecture)
    if not is_padded(selection.cut.total, own) and not is_known:
        return f"it has {own:,} ids, and the matrix has {selection.cut.total:,} rows"
    draft = selection.cut.total in facts.others.values() and selection.cut.total != facts.vocabulary
    return "the rows are those of another vocabulary of the model" if draft else ""


def _from_run_folder(selection: Selection) -> Labeling:
    path, cut = selection.checkpoint.path, selection.cut
    vocabulary, notes = _find_beside(path, cut)
    if vocabulary is None:
        return Labeling(notes=notes)
    source = vocabulary.source
    labels = lay_found(vocabulary.tokens, cut, selection.source.padding, source)
    return Labeling(labels, vocabulary, (*notes, f"tokens from {source}", *labels.notes))


def _find_beside(path: Path, cut: RowCut) -> tuple[TokenizerVocabulary | None, tuple[str, ...]]:
    """Find the vocabulary of the run of a model, if it has one token for each row, and notes."""
    folder = path if path.is_dir() else path.parent
    file = folder / VOCABULARY
    if (folder / SECOND_VOCABULARY).exists() or not (folder / SETTINGS).is_file():
        return None, ()
    if not file.is_file() or is_foreign_link(file):
        return None, ()
    try:
        found = read_counts(file, inside=True)
    except UnreadableFile as error:
        return None, (f"{short(file.name)} next to it is not used: {error.cause}",)
    if len(found.tokens) != cut.total:
        return None, ()
    return found, found.notes


_Counted = tuple[Frequency, tuple[str, ...]]


def count_rows(
    selection: Selection, labeling: Labeling, progress: ByteProgress | None = None
) -> Labeling:
    """Take frequencies from the files of the source, else from the checkpoint."""
    source, cut = selection.source, selection.cut
    named = count_named(source, labeling, cut, selection.d)
    if named is not None:
        return named
    if source.corpus is None:
        return labeling.with_frequency(_own_frequency(selection, labeling))
    frequency, notes = _count_corpus(source.corpus, labeling, cut, progress)
    size_note = _size_note(selection, labeling.labels, frequency)
    return labeling.with_frequency(frequency, (*notes, *size_note))


def _size_note(
    selection: Selection, labels: RowLabels | None, frequency: Frequency
) -> tuple[str, ...]:
    """Return a note on the size of rows of tokens that never occur."""
    real = frequency.counts if labels is None else np.delete(frequency.counts, labels.masked)
    unseen = int(np.sum(real == 0))
    size = unseen * selection.d * number_type(selection.choice.input.dtype).itemsize
    note = f"rows of tokens that never occur in the corpus take {size / 1e6:,.3f} MB"
    return (note,) if size else ()


def count_named(source: Source, labeling: Labeling, cut: RowCut, d: int) -> Labeling | None:
    """Take frequencies from the order of the rows or from a counts file, if either is requested.

    Counts are matched by token; without labels, the tokens of the file label the rows in order.
    """
    if source.rank_order:
        return labeling.with_frequency(from_rank(cut.size))
    if source.counts is None:
        return None
    path = source.counts
    counts = read_counts(path)
    if labeling.labels is not None:
        return labeling.with_frequency(
            *_of_labeled(labeling.labels, lambda t: from_counts(t, counts))
        )
    fitting = cut.fit(len(counts.tokens))
    if fitting is None:
        raise mismatch("counts", len(counts.tokens), cut, path, d)
    values = np.array(counts.counts[fitting], dtype=np.float64)
    note = f"labels taken from {path.name}, in row order"
    labeled = replace(labeling, labels=RowLabels(counts.tokens[fitting]))
    frequency = Frequency("counts", values, f"counts file {path.name}")
    return labeled.with_frequency(frequency, (*counts.notes, note))


def _own_frequency(selection: Selection, labeling: Labeling) -> Frequency | None:
    """Return the counts in the file of tokens or in the checkpoint; 0 beyond the last one."""
    cut, vocabulary, checkpoint = selection.cut, labeling.vocabulary, selection.checkpoint
    if vocabulary is not None and vocabulary.counts and labeling.labels is not None:
        values = lay_counts(vocabulary.counts, labeling.labels.first, cut)
        return Frequency("counts", values, f"counts in {vocabulary.source}")
    counts = checkpoint.counts
    if counts is None or selection.is_of_other_rows(len(counts)):
        return None
    return Frequency("counts", lay_counts(counts, 0, cut), checkpoint.counts_source)


def _count_corpus(
    path: Path, labeling: Labeling, cut: RowCut, progress: ByteProgress | None
) -> _Counted:
    """Count tokens with the model's own tokenizer if it can be run, else words."""
    labels, vocabulary = labeling.labels, labeling.vocabulary
    if labels is None:
        raise LabelMismatch(
            "a corpus cannot be counted, because the rows have no labels",
            where=path,
            way_out=f"name the rows with {argument('tokens', 'FILE')}",
        )
    text = CorpusText(path, progress)
    if vocabulary is None or vocabulary.encoder is None:
        return _of_labeled(labels, lambda tokens: count_words(tokens, text))
    try:
        return _by_tokenizer(text, labels, vocabulary, cut)
    except NotUsable as error:
        why = f"the model's own {vocabulary.encoder.name} is not used: {error}"
    text = CorpusText(path, progress)  # read again, with new notes and progress
    try:
        frequency, notes = _of_labeled(labels, lambda tokens: count_words(tokens, text))
    except LabelMismatch as error:
        raise LabelMismatch(error.cause, where=path, way_out=why) from error
    return replace(frequency, source=f"{frequency.source}; {why}"), notes


def _by_tokenizer(
    text: CorpusText, labels: RowLabels, vocabulary: TokenizerVocabulary, cut: RowCut
) -> _Counted:
    assert vocabulary.encoder is not None
    counted, notes = count_tokens(vocabulary.encoder, len(vocabulary.tokens), text)
    values = lay_counts(counted.counts, labels.first, cut)
    if not values.any():
        raise LabelMismatch(
            "none of its tokens belongs to a row of the matrix",
            where=text.path,
        )
    real = np.delete(values, labels.masked)
    return replace(counted, counts=values), (*notes, *missing_note(real, text.name))


def lay_counts(
    values: Sequence[int] | npt.NDArray[np.float64], first: int, cut: RowCut
) -> npt.NDArray[np.float64]:
    """Return the counts of the cut rows.

    Entry 0 belongs to row `first`, and rows without an entry get 0.
    """
    given = np.asarray(values, dtype=np.float64)
    places = np.arange(cut.start, cut.stop) - first
    is_given = (places >= 0) & (places < len(given))
    laid = np.zeros(cut.size, dtype=np.float64)
    laid[is_given] = given[places[is_given]]
    return laid


def _of_labeled(labels: RowLabels, count: Callable[[Sequence[str]], _Counted]) -> _Counted:
    """Count the tokens of all rows but padding, which gets 0 and no note."""
    padding = set(labels.masked.tolist())
    real = [row for row in range(len(labels.tokens)) if row not in padding]
    frequency, notes = count([labels.tokens[row] for row in real])
    values = np.zeros(len(labels.tokens), dtype=np.float64)
    values[real] = frequency.counts
    return Frequency(frequency.kind, values, frequency.source), notes
