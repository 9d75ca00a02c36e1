"""The vocabulary of a corpus: tokens in the order of their rows, with their counts."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.errors import BadOption, argument
from embgeo.training.data.layouts import SPLITS

UNKNOWN = "<unk>"
END = "<eos>"

_ESCAPED = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})
_HEADER = "token\tcount\n"
#: Beginnings of a file that readers of counts take for a byte order mark or JSON.
_MISLEADING = ("\ufeff", "{", "[")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The tokens of the rows of the embedding matrix."""

    #: In the order of the rows: words by falling count, equal counts in alphabetical order; tokens
    #: of a tokenizer by id.
    tokens: tuple[str, ...]
    #: Occurrences in the training split; shape (N,).
    counts: IntArray
    #: Row of the token for all words without a row.
    unknown: int | None = None
    #: Row of the token that ends a sentence.
    end: int | None = None

    def __post_init__(self) -> None:
        if self.counts.shape != (len(self.tokens),) or self.counts.dtype.kind not in "iu":
            raise ValueError(
                f"counts are not a whole number for each of {len(self.tokens):,} tokens"
            )

    def __len__(self) -> int:
        return len(self.tokens)

    def map_rows(self) -> dict[str, int]:
        """Return the row of each token."""
        return {token: row for row, token in enumerate(self.tokens)}


@dataclass(frozen=True, slots=True)
class Dataset:
    """The data of a task: splits as rows of a vocabulary."""

    #: ``wikitext-2`` or another published corpus; else the name of the file or folder.
    name: str
    #: The tokens of the rows of the matrices, with the counts of the training split.
    vocabulary: Vocabulary
    train: Any
    valid: Any
    test: Any
    #: What `sizes` counts, such as "documents"; of a text "sentences", each line ending in
    #: `Vocabulary.end`, or "stream".
    unit: str
    #: What was decided about the data.
    notes: tuple[str, ...]
    #: SHA-256 of each file that was read, by its path below the given folder, and of a learned
    #: tokenizer; a run can only be resumed with the same.
    files: dict[str, str]

    @property
    def sizes(self) -> dict[str, int]:
        """The size of each split."""
        splits = {split: getattr(self, split) for split in SPLITS}
        return {split: len(rows) for split, rows in splits.items() if rows is not None}


#: The vocabulary of a text, the rows of its splits, and notes.
PlacedText = tuple[Vocabulary, dict[str, IntArray], list[str]]
#: The tokens of a split, as places in a list of different words.
Places = npt.NDArray[np.integer[Any]]


def choose_rows(
    words: Sequence[str],
    splits: Mapping[str, Places],
    *,
    min_count: int,
    size: int | None,
    end: bool = False,
    unknown: bool = True,
) -> PlacedText:
    """Choose rows for words by their counts in the training split.

    Words with at least `min_count` occurrences are kept, the most frequent ones up to `size` rows.
    `UNKNOWN` stands for the others and is ranked by its own count; it has a row if it is a word of
    the text, or if some word is left out.

    `words`: different words; those that the training split lacks are never kept. `size`: rows at
    most, `UNKNOWN` and `END` included. `end`: whether `END` ends sentences; it is then kept,
    however rare. `unknown`: whether there is an `UNKNOWN`; without it, words that are left out have
    the row −1.
    """
    counts = np.bincount(splits["train"], minlength=len(words))
    specials = {name for name, used in ((UNKNOWN, unknown), (END, end)) if used}
    if size is not None and size <= len(specials):
        way_out = f"raise data.size with {argument('settings', 'data.size=5000')}"
        raise BadOption(f"{size:,} rows leave no room for words", where="size", way_out=way_out)
    kept = [i for i, word in enumerate(words) if counts[i] >= min_count and word not in specials]
    kept.sort(key=lambda i: (-counts[i], words[i]))
    own = {word: int(counts[i]) for i, word in enumerate(words) if word in specials}
    needs_unknown = unknown and (UNKNOWN in own or len(kept) + len(own) < len(words))
    if size is not None and len(kept) > size - end - needs_unknown:
        needs_unknown = unknown
        kept = kept[: size - len(specials)]
    if not kept:
        raise BadOption(
            f"no word of the training text occurs {min_count:,} times",
            where="min_count",
            way_out=f"lower data.min_count with {argument('settings', 'data.min_count=1')}",
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
    row_of = np.array([row.get(word, elsewhere) for word in words], dtype=np.int64)
    rows = {split: row_of[found] for split, found in splits.items()}
    left = f"{UNKNOWN} stands for" if unknown else "words without a row are"
    notes = describe_shares(left, elsewhere, rows)
    if min_count > 1 and notes:
        notes = [f"words that occur less than {min_count:,} times in train have no row", *notes]
    return vocabulary, rows, notes


def describe_shares(what: str, row: int, rows: Mapping[str, IntArray]) -> list[str]:
    """Describe the share of a row in each split, if there are such tokens."""
    shares = {split: float(np.mean(found == row)) for split, found in rows.items()}
    listed = ", ".join(f"{share:.1%} of {split}" for split, share in shares.items())
    return [f"{what} {listed}"] if any(shares.values()) else []


def vocabulary_bytes(vocabulary: Vocabulary) -> bytes:
    r"""Return ``token<TAB>count`` lines in row order, as ``embgeo analyze --counts`` reads them.

    A backslash, tab, newline or carriage return in a token becomes ``\\``, ``\t``, ``\n`` or
    ``\r``. A header comes first only if the first token looks like another kind of file.
    """
    lines = [
        f"{token.translate(_ESCAPED)}\t{count}\n"
        for token, count in zip(vocabulary.tokens, vocabulary.counts.tolist(), strict=True)
    ]
    if vocabulary.tokens[0].startswith(_MISLEADING):
        lines.insert(0, _HEADER)
    return "".join(lines).encode("utf-8")


def log_unigram(counts: IntArray) -> FloatArray:
    """Return ln p(token) of the unigram model: each token as often as in the training split.

    p(w) = max(c_w, 1) / Σ_v max(c_v, 1), so that a token that does not occur in the training split
    (some rows of a tokenizer) is possible, too.

    `counts`: shape (N,), like the result.
    """
    raised = np.maximum(np.asarray(counts, dtype=np.float64), 1.0)
    return np.asarray(np.log(raised) - np.log(raised.sum()))


def unigram_perplexity(counts: IntArray, rows: IntArray) -> float:
    """Return the perplexity of the unigram model over all tokens of a split but the first.

    A language model that is not below it has learned less than the frequencies of the tokens.
    """
    if len(rows) < 2:
        raise BadOption(f"too few tokens to predict one of them: {len(rows)}")
    return math.exp(-log_unigram(counts)[rows[1:]].mean())
