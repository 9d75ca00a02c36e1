"""Token counts from a corpus that is streamed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np

from embgeo.errors import LabelMismatch, UnreadableFile
from embgeo.matrix import Frequency
from embgeo.sources.compressed import BoundedStream, Codec, codec_of
from embgeo.sources.frequencies import examples
from embgeo.sources.readable import SIGN_SHARE, marks_words_by_spaces, word_of
from embgeo.sources.reading import cannot_read, read_head

_CORPUS_BLOCK = 4 * 2**20
_LONGEST_WORD = 2**20


def from_corpus(tokens: Sequence[str], path: Path) -> tuple[Frequency, tuple[str, ...]]:
    """Counts of the tokens among a corpus' words, which white space separates.

    The file is streamed; only tokens of the matrix are remembered. Where the tokens are pieces of
    words, those that begin with a space are matched without it, and the source says so.

    Raises
    ------
    LabelMismatch
        No token of the matrix occurs.
    """
    spaced = marks_words_by_spaces(tokens)
    keys = [word_of(token, spaced).encode("utf-8") for token in tokens]
    wanted = {key for key in keys if key}
    found: Counter[bytes] = Counter()
    total = 0
    for words in _corpus_words(path):
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
    source = f"corpus {path.name}, {total:,} words separated by white space"
    if spaced or _are_pieces(tokens):
        source += "; the tokens are pieces of words, so only whole words among them are counted"
    notes = []
    if missing := int(np.sum(values == 0)):
        notes.append(f"{missing:,} of {len(tokens):,} tokens do not occur in {path.name}")
    if (known := sum(found.values())) < total:
        notes.append(f"{total - known:,} of {total:,} words of {path.name} are not in the matrix")
    return Frequency("counts", values, source), tuple(notes)


def _corpus_words(path: Path) -> Iterator[list[bytes]]:
    """Words of the corpus in blocks, as bytes between ASCII white space."""
    rest = b""
    try:
        with _stream(path) as read:
            while block := read(_CORPUS_BLOCK):
                words = (rest + block).split()
                rest = b""
                if words and not block[-1:].isspace():
                    rest = words.pop()
                if len(rest) > _LONGEST_WORD:
                    raise UnreadableFile(
                        f"more than {_LONGEST_WORD // 2**20} MiB without white space",
                        where=path,
                        way_out="give plain text, words separated by white space",
                    )
                yield words
    except OSError as error:
        raise cannot_read(path, error) from error
    if rest:
        yield [rest]


def _stream(path: Path) -> AbstractContextManager[Callable[[int], bytes]]:
    codec = codec_of(read_head(path))
    return _plain_stream(path) if codec is None else _unfolded_stream(path, codec)


@contextmanager
def _unfolded_stream(path: Path, codec: Codec) -> Iterator[Callable[[int], bytes]]:
    with BoundedStream(path, codec) as stream:
        yield stream.read


@contextmanager
def _plain_stream(path: Path) -> Iterator[Callable[[int], bytes]]:
    with path.open("rb") as file:
        yield file.read


def _are_pieces(tokens: Sequence[str]) -> bool:
    """Whether tokens are WordPiece pieces, whose continuations begin with ``##``."""
    return sum(token.startswith("##") for token in tokens) >= max(1.0, SIGN_SHARE * len(tokens))
