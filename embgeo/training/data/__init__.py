"""Texts as rows of a vocabulary, and the batches of a training run."""

from embgeo.training.data.batches import Batches, Window, columns
from embgeo.training.data.corpus import Corpus, load_corpus
from embgeo.training.data.unigram import log_unigram, unigram_perplexity
from embgeo.training.data.vocabulary import Vocabulary, read_vocabulary, write_vocabulary

__all__ = [
    "Batches",
    "Corpus",
    "Vocabulary",
    "Window",
    "columns",
    "load_corpus",
    "log_unigram",
    "read_vocabulary",
    "unigram_perplexity",
    "write_vocabulary",
]
