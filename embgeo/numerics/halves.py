"""Errors over tokens: the spread of a number over 30 balanced halves of the tokens.

The tokens count as a sample of a population. They are put into 16 groups of equal size by a hash of
their stems, so that inflections and other variants of a word, which are no independent draws, stay
together. The 15 contrasts of a Hadamard matrix halve the groups in 30 ways, in which any two groups
are together equally often. A half and the rest differ by twice as much as the number of all tokens
deviates from that of the population, and either from their mean by half of that:

    SE² = Σ_h (θ_h − θ̄)² / 28

with Student's t of 15 degrees of freedom, that of 15 independent contrasts (balanced repeated
replication, McCarthy 1969). What two matrices of the same tokens have in common is in the same
halves of both: the error of a difference is that of the differences θ_h of the two.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import FloatArray, IntArray, Mask
from embgeo.core.numbers import Z_95, student_z
from embgeo.core.values import FREEDOM

Keys = npt.NDArray[np.uint64]

GROUPS = 16
# Rows of Sylvester's Hadamard matrix but for the first: the parity of common bits.
_CONTRASTS = np.array(
    [[(row & column).bit_count() % 2 == 0 for column in range(GROUPS)] for row in range(1, GROUPS)]
)
#: Which groups are in which half; shape (30, 16).
HALVES: Mask = np.concatenate([_CONTRASTS, ~_CONTRASTS])
#: The sum of 30 squares is divided by this, two degrees of freedom less.
_DIVISOR = len(HALVES) - 2
#: With fewer rows for each dimension, or fewer stems, there is no error.
ROWS_PER_DIMENSION, LEAST_STEMS = 6, 160
#: Where the halves show a number that differs by more than this share of it, the number depends on
#: how many tokens there are.
LARGEST_SHIFT = 0.25
#: Letters of a stem, and what may stand before them: spaces of SentencePiece and byte-level BPE,
#: and the mark of WordPiece.
STEM_LETTERS = 5
MARKS = " ▁Ġ#"
DIGIT = re.compile(r"\d")
#: Smaller errors are rounding: the halves show the same number.
ROUNDING = 1e-12


def hash_stems(tokens: Sequence[str]) -> Keys:
    """Return a hash of the stem of each token: its first five letters, without regard to case.

    Of a token with a digit it is all of it: names such as ``item_17`` are no variants of a word.

    Examples
    --------
    >>> a, b, c = hash_stems(["Ġtokens", "TOKENIZER", "toke"])
    >>> bool(a == b), bool(a == c)
    (True, False)
    """
    stems = [
        token if DIGIT.search(token) else token.lstrip(MARKS).casefold()[:STEM_LETTERS] or token
        for token in tokens
    ]
    known = {stem: _hash(stem) for stem in set(stems)}
    return np.array([known[stem] for stem in stems], dtype=np.uint64)


def _hash(stem: str) -> int:
    content = stem.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def hash_numbers(numbers: IntArray) -> Keys:
    """Return a hash of each row number, where rows have no tokens (the finalizer of SplitMix64)."""
    key = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        key = (key ^ (key >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(key ^ (key >> np.uint64(31)))


def deal_groups(keys: Keys) -> IntArray | None:
    """Deal rows into 16 groups of equal size by their keys, of which none is cut.

    None if there are too few different keys. Groups of unlike size would make halves of unlike
    size, which some numbers depend on.
    """
    different, first = np.unique(np.sort(keys), return_index=True)
    if len(different) < LEAST_STEMS:
        return None
    return np.asarray(first[np.searchsorted(different, keys)] * GROUPS // len(keys))


def sum_halves(by_group: FloatArray) -> FloatArray:
    """Return sums over each half from sums over each group, the first axis."""
    return np.asarray(np.tensordot(HALVES.astype(np.float64), by_group, axes=1))


def measure_spread(halves: FloatArray) -> FloatArray:
    """Return the standard error from numbers of 30 halves, the first axis."""
    squares = np.square(halves - halves.mean(axis=0)).sum(axis=0)
    return np.asarray(np.sqrt(squares / _DIVISOR))


def find_error(value: float, halves: FloatArray) -> float | Literal["size_dependent"] | None:
    """Return the standard error of a number, or why it has none.

    None where all halves show the same number, as of counts, or one shows none.
    """
    error, middle = float(measure_spread(halves)), float(halves.mean())
    if not np.isfinite(error) or error <= ROUNDING * abs(middle):
        return None
    shift = abs(middle - value)
    if shift > LARGEST_SHIFT * abs(value) and shift > student_z(Z_95, FREEDOM) * error:
        return "size_dependent"
    return error
