"""The vocabulary of a corpus: tokens in the order of their rows, with their counts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import BadOption, UnreadableFile
from embgeo.io.bounded.guard import cannot_read

UNKNOWN = "<unk>"
END = "<eos>"

_ESCAPES = {"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"}
_MEANT = {written: character for character, written in _ESCAPES.items()}
_TO_ESCAPE = re.compile(r"[\\\t\n\r]")
_ESCAPE = re.compile(r"\\.")
_LINE = re.compile(r"([^\t]*)\t([0-9]{1,18})")
_HEADER = "token\tcount\n"
#: Beginnings of a file that readers of counts take for a byte order mark, or for JSON.
_MISLEADING = ("\ufeff", "{", "[")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What the rows of the embedding matrix stand for.

    Parameters
    ----------
    tokens : tuple of str
        In the order of the rows: the most frequent first, equal counts in alphabetical order;
        those of a tokenizer in the order of its ids.
    counts : array of int64
        How often each occurs in the training split, and in no other; shape (N,).
    unknown : int, optional
        Row of the token that stands for all words that have no row.
    end : int, optional
        Row of the token that ends a sentence.
    """

    tokens: tuple[str, ...]
    counts: npt.NDArray[np.int64]
    unknown: int | None = None
    end: int | None = None

    def __post_init__(self) -> None:
        if self.counts.shape != (len(self.tokens),) or self.counts.dtype.kind not in "iu":
            raise ValueError(
                f"counts are not a whole number for each of {len(self.tokens):,} tokens"
            )

    def __len__(self) -> int:
        return len(self.tokens)


def ranked(
    words: Sequence[str],
    counts: npt.NDArray[np.int64],
    *,
    min_count: int = 1,
    size: int | None = None,
    end: bool = False,
) -> tuple[Vocabulary, npt.NDArray[np.int64]]:
    """Choose rows for words, and say which row each word goes to.

    Words are kept from `min_count` occurrences on, the most frequent first up to `size` rows in
    all. `UNKNOWN` stands for those left out and takes its place by its own count; it has a row if
    it is a word of the text, or if some word is left out.

    Parameters
    ----------
    words : sequence of str
        Each once; also those that occur in other splits alone.
    counts : array of int64
        In the training split; a word that does not occur there is never kept. Shape (len(words),).
    size : int, optional
        Rows, those of `UNKNOWN` and `END` among them.
    end : bool
        Whether `END` ends sentences: it is kept, however rare.

    Returns
    -------
    Vocabulary
    array of int64
        Row of each word; shape (len(words),).
    """
    specials = {UNKNOWN, END} if end else {UNKNOWN}
    _check(min_count, size, len(specials))
    kept = [i for i, word in enumerate(words) if counts[i] >= min_count and word not in specials]
    kept.sort(key=lambda i: (-counts[i], words[i]))
    own = {word: int(counts[i]) for i, word in enumerate(words) if word in specials}
    needs_unknown = UNKNOWN in own or len(kept) + len(own) < len(words)
    if size is not None and len(kept) > size - end - needs_unknown:
        needs_unknown = True
        kept = kept[: size - len(specials)]
    if not kept:
        raise BadOption(
            f"no word of the training text occurs {min_count:,} times",
            where="min_count",
            way_out="lower it, or give more text",
        )
    listed = [(words[i], int(counts[i])) for i in kept]
    if end:
        listed.append((END, own.get(END, 0)))
    if needs_unknown:
        listed.append((UNKNOWN, int(counts.sum()) - sum(count for _, count in listed)))
    listed.sort(key=lambda pair: (-pair[1], pair[0]))
    row = {token: place for place, (token, _) in enumerate(listed)}
    vocabulary = Vocabulary(
        tuple(row),
        np.array([count for _, count in listed], dtype=np.int64),
        row.get(UNKNOWN),
        row[END] if end else None,
    )
    elsewhere = row.get(UNKNOWN, -1)
    return vocabulary, np.array([row.get(word, elsewhere) for word in words], dtype=np.int64)


def place_words(
    words: Sequence[str], train: npt.NDArray[np.int32], vocabulary: Vocabulary
) -> tuple[Vocabulary, npt.NDArray[np.int64]]:
    """The rows of a known vocabulary for the words of another text, with the counts of this one.

    Parameters
    ----------
    words : sequence of str
        Each once.
    train : array of int32
        The training split, as places in `words`.

    Returns
    -------
    Vocabulary
    array of int64
        Row of each word; shape (len(words),).
    """
    row = {token: place for place, token in enumerate(vocabulary.tokens)}
    elsewhere = row.get(UNKNOWN)
    strange = next((word for word in words if word not in row), None)
    if strange is not None and elsewhere is None:
        raise BadOption(
            f"the vocabulary of the weights has neither {strange!r} nor {UNKNOWN}",
            where="data",
            way_out="give the text that they were trained on",
        )
    row_of = np.array([row.get(word, elsewhere) for word in words], dtype=np.int64)
    counts = np.bincount(row_of[train], minlength=len(row)).astype(np.int64)
    return Vocabulary(vocabulary.tokens, counts, elsewhere, row.get(END)), row_of


def _check(min_count: int, size: int | None, specials: int) -> None:
    if min_count < 1:
        raise BadOption(
            f"a word cannot be asked to occur {min_count:,} times",
            where="min_count",
            way_out="give 1 or more",
        )
    if size is not None and size <= specials:
        raise BadOption(
            f"{size:,} rows hold no words besides the special tokens",
            where="size",
            way_out=f"give {specials + 1} or more, such as 5000",
        )


def write_vocabulary(vocabulary: Vocabulary, path: Path) -> None:
    r"""Write ``token<TAB>count`` lines in row order, as ``embgeo analyze --counts`` reads them.

    A backslash, tab, newline or carriage return in a token is written as ``\\``, ``\t``,
    ``\n`` or ``\r``. A header line is written only where the first token could be mistaken for
    the beginning of another kind of file.
    """
    lines = [
        f"{_TO_ESCAPE.sub(lambda match: _ESCAPES[match[0]], token)}\t{count}\n"
        for token, count in zip(vocabulary.tokens, vocabulary.counts.tolist(), strict=True)
    ]
    if vocabulary.tokens[0].startswith(_MISLEADING):
        lines.insert(0, _HEADER)
    path.write_bytes("".join(lines).encode("utf-8"))


def read_vocabulary(path: Path) -> Vocabulary:
    """What `write_vocabulary` wrote; the special tokens are known by their names."""
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise cannot_read(path, error) from error
    except UnicodeDecodeError as error:
        raise _not_a_vocabulary("it is not UTF-8", path) from error
    lines = text.removeprefix(_HEADER).removesuffix("\n").split("\n")
    tokens, counts = [], []
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line)
        if not match:
            raise _not_a_vocabulary(f"line {number:,} is not a token, a tab and a count", path)
        tokens.append(_ESCAPE.sub(lambda escape: _MEANT.get(escape[0], escape[0]), match[1]))
        counts.append(int(match[2]))
    row = {token: place for place, token in enumerate(tokens)}
    return Vocabulary(
        tuple(tokens), np.array(counts, dtype=np.int64), row.get(UNKNOWN), row.get(END)
    )


def _not_a_vocabulary(cause: str, path: Path) -> UnreadableFile:
    return UnreadableFile(cause, where=path, way_out="give the vocabulary.tsv of a run")
