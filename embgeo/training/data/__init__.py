"""Texts as rows of a vocabulary, and batches of them."""

from embgeo.training.data.batches import Batches, Window, columns
from embgeo.training.data.corpus import Corpus, load_corpus
from embgeo.training.data.vocabulary import (
    Vocabulary,
    log_unigram,
    unigram_perplexity,
    vocabulary_bytes,
)

__all__ = [
    "Batches",
    "Corpus",
    "Vocabulary",
    "Window",
    "columns",
    "load_corpus",
    "log_unigram",
    "unigram_perplexity",
    "vocabulary_bytes",
]
