"""Words as bytes, as vector files hold them, made into tokens."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from embgeo.core.errors import UnreadableFile

#: What the words of a file may take in memory, where that is less than a quarter of the file.
MOST_MEMORY = 400 * 2**20
#: Besides the string: its place in a list and in a tuple, and what an allocator rounds up.
_PLACE = 24
#: More for words that are not UTF-8: each takes the time of several others.
_UNDECODABLE = 200


def room_for_words(size: int) -> int:
    """Bytes that the words of a file of `size` bytes may take.

    Small files can hold very many very short words: without a bound the words of some hundred
    kilobytes, once decompressed, would fill the memory.
    """
    return max(MOST_MEMORY, size // 4)


class WordList:
    """The words of a file, decoded one by one; too many of them are refused.

    Parameters
    ----------
    path : Path
        The file, named in the error.
    """

    def __init__(self, path: Path) -> None:
        self.tokens: list[str] = []
        self._path = path
        self._room = room_for_words(path.stat().st_size)
        self._undecodable = 0

    def __len__(self) -> int:
        return len(self.tokens)

    def add_text(self, text: str) -> None:
        """Take one more word, in which bytes that are not UTF-8 are surrogate escapes."""
        if text.isascii():
            self._keep(text)
        else:
            self.add(text.encode("utf-8", "surrogateescape"))

    def add(self, raw: bytes) -> None:
        r"""Take one more word; bytes that are not UTF-8 become ``\xNN``.

        Raises
        ------
        UnreadableFile
        """
        try:
            token = raw.decode("utf-8")
        except UnicodeDecodeError:
            # Unlike surrogate escapes this can be written to any file, and words stay distinct.
            token = raw.decode("utf-8", "backslashreplace")
            self._undecodable += 1
            self._room -= _UNDECODABLE
        self._keep(token)

    def _keep(self, token: str) -> None:
        self._room -= sys.getsizeof(token) + _PLACE
        if self._room < 0:
            raise UnreadableFile(
                f"its words take absurdly much memory ({len(self.tokens):,} so far)",
                where=self._path,
                way_out="check that it is the right file, or keep its most frequent words only",
            )
        self.tokens.append(token)

    def finish(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Tokens, and notes on what a reader has to know about them."""
        return tuple(self.tokens), _notes(self.tokens, self._undecodable)


def decode_words(raw_words: Iterable[bytes], path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words as tokens, with notes, as :class:`WordList` gives them."""
    words = WordList(path)
    for raw in raw_words:
        words.add(raw)
    return words.finish()


def _notes(tokens: list[str], undecodable: int) -> tuple[str, ...]:
    notes = []
    if undecodable:
        notes.append(f"{undecodable:,} words are not valid UTF-8; their bytes are shown as \\xNN")
    if repeated := _count_repeated(tokens):
        notes.append(f"{repeated:,} rows repeat the word of an earlier row")
    return tuple(notes)


def _count_repeated(tokens: list[str]) -> int:
    # A set takes as much again as the words; 64-bit hashes of distinct words do not meet.
    hashes = np.fromiter(map(hash, tokens), dtype=np.int64, count=len(tokens))
    hashes.sort()
    return int(np.count_nonzero(hashes[1:] == hashes[:-1]))
