"""Words of a file as tokens: word lists in checkpoints, and words of text formats."""

import re
import sys
from collections.abc import Iterable, Sequence

import numpy as np

from embgeo.files.guard import Damaged
from embgeo.files.small_files import safe_text
from embgeo.io.formats.pickle.numpy_arrays import PickledArray
from embgeo.io.formats.pickle.objects import KeyBox
from embgeo.io.labels.side_tables import TOKEN_HEADINGS
from embgeo.io.model.checkpoint import Tensor

#: Limits over all word lists of a file.
MOST_WORDS = 10_000_000
MOST_WORD_BYTES = 256 * 2**20
#: The source of tokens in formats of words and vectors.
WORDS_OF_FILE = "the words of the file itself"

#: The start of a vector that is written as text.
_VECTOR = re.compile(r"\s*(?:[\[({]\s*|(?=[-+]?\d*\.))[-+]?[\d.]+(?:[eE][-+]?\d+)?[\s,;]+[-+.\d]")
#: Texts that are looked at.
LOOKED_AT = 8

#: A note on a column of classes.
CLASSES = "repeats its texts and does not name the rows (use --tokens)"
#: The column of the index in files of pandas.
PANDAS_INDEX = "__index_level_0__"
_NO_WORD = object()
#: Shorter dicts may be settings.
_FEWEST_NUMBERED = 8
_INDEX = "(?:id|idx|ix|index)"
_WORD = "(?:word|token|key)"
_NAME = re.compile(
    f"{_INDEX}(?:to|2){_WORD}|{_WORD}(?:to|2){_INDEX}"
    "|i2w|w2i|itos|stoi|words|tokens|vocab|vocabulary"
)


def is_vocabulary_name(key: str) -> bool:
    """Tell whether vocabularies are usually stored under this key."""
    return len(key) < 24 and _NAME.fullmatch(key.replace("_", "").lower()) is not None


def are_words(texts: Sequence[str] | None) -> bool:
    """Tell whether the first texts of a vector are words: neither vectors as text nor bytes."""
    if texts is None:
        return False
    return not any(_VECTOR.match(text[:100]) or "\0" in text for text in texts[:LOOKED_AT])


def are_classes(heading: str, texts: Sequence[str]) -> bool:
    """Tell whether a column holds classes, languages or splits, which name no rows.

    Words of running text come again, too: a usual heading says so.
    """
    is_usual = heading.strip().lower() in ("", PANDAS_INDEX, *TOKEN_HEADINGS)
    return not is_usual and 2 * len({*texts}) < len(texts)


def is_numbering(value: object) -> bool:
    """Tell whether a dict gives its words the numbers 0 to N−1, whatever its name."""
    if not isinstance(value, dict) or len(value) < _FEWEST_NUMBERED:
        return False
    if not all(type(number) is int and isinstance(word, str) for word, number in value.items()):
        return False
    numbers = np.fromiter((min(abs(n), len(value)) for n in value.values()), np.int64, len(value))
    return bool((np.bincount(numbers, minlength=len(value))[: len(value)] == 1).all())


def tokens_for(
    tensors: Sequence[Tensor], vocabularies: Iterable[tuple[str, object]]
) -> tuple[tuple[str, ...] | None, str]:
    """Return the first vocabulary with one entry for each row of a matrix, and where it is.

    Larger matrices are tried first: a small one may have as many rows as a short word list by
    chance.
    """
    decoded = word_lists(vocabularies)
    matrices = sorted((t for t in tensors if len(t.shape) == 2), key=lambda t: -t.nbytes)
    for matrix in matrices:
        for name, words in decoded:
            if len(words) == matrix.shape[0]:
                return words, f"{name} in the file"
    return None, ""


def word_lists(
    vocabularies: Iterable[tuple[str, object]],
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the named values that are word lists, within `MOST_WORDS` and `MOST_WORD_BYTES`.

    A hostile file may hold many lists of the same few words.
    """
    found = []
    words_left, bytes_left = MOST_WORDS, MOST_WORD_BYTES
    for name, value in vocabularies:
        if isinstance(value, PickledArray):
            words_left -= value.shape[0] if value.shape else 0
            bytes_left -= value.nbytes
        elif isinstance(value, (list, tuple, dict)):
            words_left -= len(value)
        if words_left < 0 or bytes_left < 0:
            break
        words = word_list(value)
        if words:
            found.append((name, words))
    return tuple(found)


def word_list(value: object) -> tuple[str, ...] | None:
    """Read the words of a list, an array of strings, or a dict of words and numbers 0 to N−1."""
    if isinstance(value, PickledArray):
        texts = value.texts()
        return None if texts is None else _all_words(texts)
    if isinstance(value, (list, tuple)):
        return _all_words(value)
    if isinstance(value, dict):
        swapped = ((word, key) for key, word in value.items())
        return _by_number(value.items(), len(value)) or _by_number(swapped, len(value))
    return None


def _by_number(pairs: Iterable[tuple[object, object]], size: int) -> tuple[str, ...] | None:
    words: list[object] = [_NO_WORD] * size
    for key, word in pairs:
        number = key.value if isinstance(key, KeyBox) else key
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < size:
            return None
        if words[number] is not _NO_WORD:
            return None
        words[number] = word
    return _all_words(words)


def _all_words(values: Iterable[object]) -> tuple[str, ...] | None:
    words = []
    characters = 0
    for value in values:
        if isinstance(value, bytes):
            # Strings of Python 2 are bytes, nearly always UTF-8.
            word = value.decode("utf-8", "backslashreplace")
        elif isinstance(value, str):
            word = value
        else:
            return None
        # The same long string may be in the list a million times.
        characters += len(word)
        if characters > MOST_WORD_BYTES // 4:
            return None
        words.append(safe_text(word))
    return tuple(words) or None


#: Bytes that words may take in memory, or a quarter of a larger file.
MOST_MEMORY = 400 * 2**20
#: Per word: its place in a list and in a tuple, and what the allocator rounds up.
_PLACE = 24
#: Per word that is not UTF-8, which takes the time of several others.
_UNDECODABLE = 200


def room_for_words(size: int) -> int:
    """Return the number of bytes that the words of a file of `size` bytes may take.

    Without a limit the very short words of some compressed hundred kilobytes would fill the memory.
    """
    return max(MOST_MEMORY, size // 4)


class WordList:
    """The words of a file of `size` bytes, decoded one by one within a limit of memory."""

    def __init__(self, size: int) -> None:
        self.tokens: list[str] = []
        self._room = room_for_words(size)
        self._undecodable = 0

    def __len__(self) -> int:
        return len(self.tokens)

    def add(self, raw: bytes) -> None:
        r"""Add a word; invalid UTF-8 becomes ``\xNN``."""
        try:
            token = raw.decode("utf-8")
        except UnicodeDecodeError:
            # Unlike surrogate escapes these can be written to any file; words stay distinct.
            token = raw.decode("utf-8", "backslashreplace")
            self._undecodable += 1
            self._room -= _UNDECODABLE
        self._keep(token)

    def _keep(self, token: str) -> None:
        self._room -= sys.getsizeof(token) + _PLACE
        if self._room < 0:
            raise Damaged(f"its words take implausibly much memory ({len(self.tokens):,} so far)")
        self.tokens.append(token)

    def finish(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the tokens, and notes on invalid and repeated words."""
        notes = []
        if bad := self._undecodable:
            words = "1 word is" if bad == 1 else f"{bad:,} words are"
            notes.append(f"{words} not valid UTF-8; such bytes are shown as \\xNN")
        # Hashes take less memory than a set; 64-bit hashes of distinct words do not collide.
        hashes = np.fromiter(map(hash, self.tokens), dtype=np.int64, count=len(self.tokens))
        hashes.sort()
        if repeated := int(np.count_nonzero(hashes[1:] == hashes[:-1])):
            rows = "1 row repeats" if repeated == 1 else f"{repeated:,} rows repeat"
            notes.append(f"{rows} the word of an earlier row")
        return tuple(self.tokens), tuple(notes)
