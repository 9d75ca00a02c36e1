"""Labels for the selected rows, from the first place that has them."""

from __future__ import annotations

from dataclasses import dataclass

from embgeo.io.labels import fairseq
from embgeo.io.labels.label_file import read_labels
from embgeo.io.labels.rows import RowLabels, lay_found, lay_given
from embgeo.io.labels.vocabulary import TokenizerVocabulary
from embgeo.io.labels.word_lists import find_fitting
from embgeo.io.selecting import Selection


@dataclass(frozen=True, slots=True)
class Labeling:
    """Labels along the rows, the vocabulary that they come from, and notes on its files."""

    labels: RowLabels | None = None
    vocabulary: TokenizerVocabulary | None = None
    notes: tuple[str, ...] = ()


def label_rows(selection: Selection) -> Labeling:
    """Labels from the named file, a word list in the checkpoint, its tokens, or a file next to it.

    Raises
    ------
    UnreadableFile, LabelMismatch
        About the named file.
    """
    return (
        _from_named_file(selection)
        or _from_word_list(selection)
        or _from_checkpoint(selection)
        or _from_dictionary_beside(selection)
    )


def _from_named_file(selection: Selection) -> Labeling | None:
    path, cut = selection.source.tokens, selection.cut
    if path is None:
        return None
    vocabulary = fairseq.fit_to(read_labels(path), cut)
    labels = lay_given(vocabulary.tokens, cut, selection.source.padding, path, selection.d)
    return Labeling(labels, vocabulary, vocabulary.notes)


def _from_word_list(selection: Selection) -> Labeling | None:
    """From several word lists in the file, that with an entry for each row."""
    cut = selection.cut
    words, origin = find_fitting(
        selection.checkpoint.vocabularies, selection.choice.input.name, cut.total
    )
    if words is None:
        return None
    return Labeling(lay_found(words, cut, selection.source.padding, origin))


def _from_checkpoint(selection: Selection) -> Labeling | None:
    checkpoint = selection.checkpoint
    tokens = checkpoint.tokens
    if tokens is None or selection.is_of_other_rows(len(tokens)):
        return None
    vocabulary = TokenizerVocabulary(tokens, checkpoint.tokens_source, encoder=checkpoint.encoder)
    labels = lay_found(tokens, selection.cut, selection.source.padding, vocabulary.source)
    return Labeling(labels, vocabulary)


def _from_dictionary_beside(selection: Selection) -> Labeling:
    vocabulary, notes = fairseq.find_beside(selection.checkpoint.path, selection.cut)
    if vocabulary is None:
        return Labeling(notes=notes)
    labels = lay_found(
        vocabulary.tokens, selection.cut, selection.source.padding, vocabulary.source
    )
    return Labeling(labels, vocabulary, (*notes, f"tokens from {vocabulary.source}"))
