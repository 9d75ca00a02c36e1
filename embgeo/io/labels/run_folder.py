"""The vocabulary that ``embgeo train`` writes next to a model: tokens with their counts."""

from __future__ import annotations

from pathlib import Path

from embgeo.core.errors import UnreadableFile
from embgeo.io.bounded.companions import is_foreign_link
from embgeo.io.bounded.guard import short
from embgeo.io.labels.counts_file import read_counts
from embgeo.io.labels.rows import RowCut
from embgeo.io.labels.vocabulary import TokenizerVocabulary

SETTINGS, VOCABULARY = "run.toml", "vocabulary.tsv"
#: Of models with a source language of its own: which of two lists a matrix follows is not said.
SECOND_VOCABULARY = "vocabulary.source.tsv"


def find_beside(path: Path, cut: RowCut) -> tuple[TokenizerVocabulary | None, tuple[str, ...]]:
    """The vocabulary of a run that has exactly one token for each row, and notes.

    Parameters
    ----------
    path : Path
        The model of the run, or the run's folder.
    cut : RowCut
        Of the embedding matrix.
    """
    folder = path if path.is_dir() else path.parent
    file = folder / VOCABULARY
    if (folder / SECOND_VOCABULARY).exists() or not (folder / SETTINGS).is_file():
        return None, ()
    if not file.is_file() or is_foreign_link(file):
        return None, ()
    try:
        found = read_counts(file)
    except UnreadableFile as error:
        return None, (f"{short(file.name)} next to it is not used: {error.cause}",)
    if len(found.tokens) != cut.total:
        return None, ()
    vocabulary = TokenizerVocabulary(found.tokens, file.name, found.notes, counts=found.counts)
    return vocabulary, found.notes
