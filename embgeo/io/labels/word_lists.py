"""Labels that a file carries next to its matrix, as word lists and word indices."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from embgeo.io import parameter_names
from embgeo.io.checkpoint import Tensor
from embgeo.io.pickle.numpy_arrays import PickledArray

#: More than any vocabulary has, counted over all lists of a file.
MOST_WORDS = 10_000_000
MOST_WORD_BYTES = 256 * 2**20

_INDEX = "(?:id|idx|ix|index)"
_WORD = "(?:word|token|key)"
_NAME = re.compile(
    f"{_INDEX}(?:to|2){_WORD}|{_WORD}(?:to|2){_INDEX}"
    "|i2w|w2i|itos|stoi|words|tokens|vocab|vocabulary"
)


def is_vocabulary_name(key: str) -> bool:
    """Whether a key is one of those under which vocabularies are usually kept."""
    return len(key) < 24 and _NAME.fullmatch(key.replace("_", "").lower()) is not None


def tokens_for(
    tensors: Sequence[Tensor], vocabularies: Iterable[tuple[str, object]]
) -> tuple[tuple[str, ...] | None, str]:
    """The first vocabulary with one entry for each row of a matrix, and its name.

    A wide matrix may have its words in columns. Larger matrices are tried first, as a file may hold
    a small matrix whose rows number like some short word list by chance.

    Returns
    -------
    tokens : tuple of str or None
    source : str
        In words; empty without tokens.
    """
    decoded = word_lists(vocabularies)
    matrices = sorted((t for t in tensors if len(t.shape) == 2), key=lambda t: -t.nbytes)
    lengths = [t.shape[0] for t in matrices]
    lengths += [t.shape[1] for t in matrices if t.shape[1] > t.shape[0]]
    for length in lengths:
        for name, words in decoded:
            if len(words) == length:
                return words, in_the_file(name)
    return None, ""


def find_fitting(
    vocabularies: Iterable[tuple[str, tuple[str, ...]]], tensor: str, rows: int
) -> tuple[tuple[str, ...] | None, str]:
    """The word list with `rows` entries; of several that of the same side of a translation model.

    Parameters
    ----------
    vocabularies : iterable of (str, tuple of str)
        Names and words, as :func:`word_lists` gives them.
    tensor : str
        Name of the matrix, for the side (encoder or decoder) to which it belongs.
    rows : int

    Returns
    -------
    tokens : tuple of str or None
    source : str
        In words; empty without tokens.
    """
    long_enough = [(name, words) for name, words in vocabularies if len(words) == rows]
    side = parameter_names.side(tensor)
    same_side = [entry for entry in long_enough if parameter_names.side(entry[0]) == side]
    chosen = same_side or long_enough
    return (chosen[0][1], in_the_file(chosen[0][0])) if chosen else (None, "")


def in_the_file(name: str) -> str:
    """Where tokens come from, in words."""
    return f"{name} in the file"


def word_lists(
    vocabularies: Iterable[tuple[str, object]],
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Those of the named values that are word lists, as words.

    No more than `MOST_WORDS` entries are looked at, and `MOST_WORD_BYTES` of arrays: a hostile file
    may hold many lists of the same few words.
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
    """The words of a list, an array of strings, or a dict between words and row numbers.

    None where `value` is nothing of the kind, or where its numbers are not 0, 1, …, N−1.
    """
    if isinstance(value, PickledArray):
        texts = value.texts()
        return None if texts is None else _all_words(texts)
    if isinstance(value, (list, tuple)):
        return _all_words(value)
    if isinstance(value, dict):
        return _by_number(value.items()) or _by_number((v, k) for k, v in value.items())
    return None


def _by_number(pairs: Iterable[tuple[object, object]]) -> tuple[str, ...] | None:
    words: dict[int, object] = {}
    for number, word in pairs:
        if not isinstance(number, int) or isinstance(number, bool) or number in words:
            return None
        words[number] = word
    if not words or min(words) != 0 or max(words) != len(words) - 1:
        return None
    return _all_words([words[number] for number in range(len(words))])


def _all_words(values: Iterable[object]) -> tuple[str, ...] | None:
    words = []
    characters = 0
    for value in values:
        if isinstance(value, bytes):
            # Strings of Python 2 come as bytes, nearly always UTF-8.
            word = value.decode("utf-8", "backslashreplace")
        elif isinstance(value, str):
            word = value
        else:
            return None
        # The same long string may be in the list a million times.
        characters += len(word)
        if characters > MOST_WORD_BYTES // 4:
            return None
        words.append(word if word.isascii() else _encodable(word))
    return tuple(words) or None


def _encodable(word: str) -> str:
    """`word`, or what to write for halves of surrogate pairs, which no file can hold."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return word.encode("utf-8", "backslashreplace").decode()
    return word
