"""fastText's character n-grams: their hashes, and words as the mean of their rows.

The bytes, the order of the n-grams and the order of the additions (float32, the row of the word
first) are those of fastText 0.9.2, so that the means equal the numbers of its ``get_word_vector``.
Source: Bojanowski, Grave, Joulin and Mikolov (2017), "Enriching Word Vectors with Subword
Information", section 3.2; hash: FNV-1a over signed bytes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embgeo.files import scratch
from embgeo.files.guard import Damaged

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]

#: Limit of n-grams that are read.
LONGEST_NGRAM = 100
END_OF_SENTENCE = b"</s>"

# The constants of FNV-1a with 32 bits.
_FNV_START = np.uint32(2166136261)
_FNV_PRIME = np.uint32(16777619)

# Memory for the n-grams or vectors of a block of words.
_BLOCK_BYTES = 8 * 2**20
_BYTES_PER_NGRAM = 64
#: N-grams of all words, or of each on average: the larger limit counts.
_MOST_NGRAMS, _MOST_OF_A_WORD = 2**28, 100


@dataclass(frozen=True, slots=True)
class Subwords:
    """How a model cuts words into n-grams."""

    #: Lengths of n-grams in characters, with the marks ``<`` and ``>`` around the word.
    shortest: int
    longest: int
    buckets: int  # number of hash values
    whole: bytes | None = None  # the word that is not cut

    @property
    def is_none(self) -> bool:
        """Whether words have no n-grams."""
        return self.buckets <= 0 or self.longest < max(self.shortest, 1)


def ngram_rows(words: Sequence[bytes], subwords: Subwords) -> tuple[Integers, Integers]:
    """Return the number of n-grams of each word, and the rows of all n-grams in word order."""
    flat = np.frombuffer(b"".join(b"<%b>" % word for word in words), dtype=np.uint8)
    lengths = np.array([len(word) + 2 for word in words], dtype=np.int64)
    starts = np.flatnonzero((flat & 0xC0) != 0x80)  # first bytes of UTF-8 characters
    word_of = np.repeat(np.arange(len(words)), lengths)[starts]
    if subwords.whole is not None:
        whole = np.array([word == subwords.whole for word in words], dtype=bool)
        cut = ~whole[word_of]
    else:
        cut = np.ones(len(starts), dtype=bool)
    begins, hashes = _hashes(flat, starts, word_of, cut, subwords)
    order = np.argsort(begins, kind="stable")
    owners, rows = word_of[begins[order]], hashes[order] % subwords.buckets
    return np.bincount(owners, minlength=len(words)).astype(np.int64), rows


def _hashes(
    flat: npt.NDArray[np.uint8],
    starts: Integers,
    word_of: Integers,
    cut: npt.NDArray[np.bool_],
    subwords: Subwords,
) -> tuple[Integers, Integers]:
    """Return the first character and the hash of every n-gram, in the order of lengths."""
    signed = flat.view(np.int8).astype(np.int32).view(np.uint32)
    widths = np.diff(starts, append=len(flat))
    ends = np.searchsorted(word_of, word_of, side="right")  # after the last character of each word
    is_first = np.diff(word_of, prepend=-1) != 0
    state = np.full(len(starts), _FNV_START, dtype=np.uint32)
    live = np.flatnonzero(cut)
    begins, hashes = [live[:0]], [live[:0]]
    for n in range(1, subwords.longest + 1):
        live = live[live + n <= ends[live]]
        if not len(live):
            break
        last = live + n - 1
        part = np.arange(len(live))
        offset = 0
        while len(part := part[widths[last[part]] > offset]):
            at = live[part]
            state[at] = (state[at] ^ signed[starts[last[part]] + offset]) * _FNV_PRIME
            offset += 1
        if n >= subwords.shortest:
            # A mark alone is not an n-gram.
            taken = live if n > 1 else live[~is_first[live] & (live + 1 < ends[live])]
            begins.append(taken)
            hashes.append(state[taken].astype(np.int64))
    return np.concatenate(begins), np.concatenate(hashes)


def mean_vectors(
    words: Sequence[bytes],
    subwords: Subwords,
    word_rows: Callable[[Integers], Floats],
    ngram_vectors: Callable[[Integers], Floats],
    d: int,
) -> Floats:
    """Return the vector of each word, the mean of its row and those of its n-grams, read-only.

    `word_rows` and `ngram_vectors` return the float32 rows with the given numbers.
    """
    ngrams = sum(_count_ngrams(word, subwords) for word in words)
    if ngrams > max(_MOST_NGRAMS, _MOST_OF_A_WORD * len(words)):
        raise Damaged(f"its words have implausibly many n-grams ({ngrams:,})")
    out = scratch.empty((len(words), d))
    for start, stop in _blocks(words, subwords, d):
        counts, rows = ngram_rows(words[start:stop], subwords)
        first = np.cumsum(counts) - counts
        order = np.argsort(-counts, kind="stable")
        total = word_rows(start + order)
        with np.errstate(over="ignore", invalid="ignore"):  # such rows are masked later
            for place in range(int(counts.max(initial=0))):
                having = order[: np.searchsorted(-counts[order], -place)]
                total[: len(having)] += ngram_vectors(rows[first[having] + place])
            total *= (1.0 / (counts[order] + 1)).astype(np.float32)[:, None]
        out[start + order] = total
    out.flags.writeable = False
    return out


def _blocks(words: Sequence[bytes], subwords: Subwords, d: int) -> Iterator[tuple[int, int]]:
    start, size = 0, 0
    for stop, word in enumerate(words):
        size += 4 * d + _count_ngrams(word, subwords) * _BYTES_PER_NGRAM
        if size > _BLOCK_BYTES:
            yield start, stop + 1
            start, size = stop + 1, 0
    if start < len(words):
        yield start, len(words)


def _count_ngrams(word: bytes, subwords: Subwords) -> int:
    """Return the largest number of n-grams that a word of this length can have."""
    lengths = max(subwords.longest - max(subwords.shortest, 1) + 1, 1)
    return (len(word) + 2) * min(lengths, len(word) + 2)
