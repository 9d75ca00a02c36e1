"""The vocabulary, tokens with counts, that ``embgeo train`` writes next to a model."""

from __future__ import annotations

from pathlib import Path

from embgeo.core.errors import UnreadableFile
from embgeo.io.bounded.companions import is_foreign_link
from embgeo.io.bounded.guard import short
from embgeo.io.labels.counts_file import read_counts
from embgeo.io.labels.rows import RowCut
from embgeo.io.labels.vocabulary import TokenizerVocabulary

SETTINGS, VOCABULARY = "run.toml", "vocabulary.tsv"
#: Models with a second vocabulary for the source language do not say which matrix uses it.
SECOND_VOCABULARY = "vocabulary.source.tsv"


def find_beside(path: Path, cut: RowCut) -> tuple[TokenizerVocabulary | None, tuple[str, ...]]:
    """The vocabulary of the run of a model, if it has one token for each row, and notes."""
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
    return found, found.notes
