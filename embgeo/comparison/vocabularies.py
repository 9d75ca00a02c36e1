"""Rows of a model before and after tokens were added to it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, Mask
from embgeo.core.matrix import BLOCK_ROWS, Matrix
from embgeo.core.suspects import Suspects


@dataclass(frozen=True, slots=True)
class RowChange:
    """The rows of one side of a model, the input embedding or the output matrix."""

    #: Its name in the second model.
    tensor: str
    rows: tuple[int, int]
    #: Rows of shared tokens with the same bits, and with others; with the same numbers, if the
    #: types differ.
    same: int
    changed: int
    #: Smallest, median and largest finite norm of the added rows.
    norms: tuple[float, float, float] | None
    #: Median norm of the finite rows of the first matrix that are not zero.
    median_before: float


@dataclass(frozen=True, slots=True)
class VocabularyChange:
    """The vocabularies of two models, and their rows.

    Attributes
    ----------
    added, removed, moved : int
        Tokens of the second model only, of the first only, and of both in different rows.
    missing_rows : tuple of two int
        Tokens without a row, before and after.
    output : RowChange or None
        None unless both models have an output matrix of their own.
    suspects : tuple of Suspects
        Those among the added rows.
    """

    names: tuple[str, str]
    added: int
    removed: int
    moved: int
    removed_examples: tuple[str, ...]
    missing_rows: tuple[int, int]
    input: RowChange
    output: RowChange | None
    suspects: tuple[Suspects, ...]


@dataclass(frozen=True, slots=True)
class _RowPairs:
    """Rows of shared tokens on both sides, and rows of tokens of one side only."""

    before: IntArray
    after: IntArray
    removed: IntArray
    added: IntArray


def compare_rows(
    before: Matrix, after: Matrix, names: tuple[str, str], suspects: Iterable[Suspects]
) -> VocabularyChange:
    """Return rows that were added, removed, moved and changed; `suspects` are those of `after`.

    Tokens are matched by their string if both sides have them, else by their row number. Masked
    rows, which belong to no token, are ignored.
    """
    pairs = _pair_rows(before, after)
    rows = (before.n, after.n)
    changes = [_compare_side(before, after, pairs, rows)]
    if before.output is not None and after.output is not None:
        own = _pair_rows(before.output, after.output)  # without tokens that have no row there
        rows = (_count_own(before, before.output), _count_own(after, after.output))
        changes.append(_compare_side(before.output, after.output, own, rows))
    among = (own.take(np.isin(own.rows, pairs.added)) for own in suspects)
    removed = [_label(before, row) or f"row {row}" for row in pairs.removed[:5].tolist()]
    return VocabularyChange(
        names,
        len(pairs.added),
        len(pairs.removed),
        int(np.sum(pairs.before != pairs.after)),
        tuple(removed),
        (_count_missing(before), _count_missing(after)),
        changes[0],
        changes[1] if len(changes) > 1 else None,
        tuple(own for own in among if len(own)),
    )


def _label(matrix: Matrix, row: int) -> str | None:
    return None if matrix.tokens is None else matrix.tokens[row]


def _count_missing(matrix: Matrix) -> int:
    return max(0, (matrix.vocabulary_size or 0) - matrix.n)


def _real_rows(matrix: Matrix) -> IntArray:
    """Return rows of tokens, without masked ones."""
    real = np.ones(matrix.n, dtype=bool)
    for rows in matrix.masked.values():
        real[rows] = False
    return np.flatnonzero(real)


def _count_own(matrix: Matrix, output: Matrix) -> int:
    """Count the rows of an output matrix without those of tokens that it has no row for."""
    return matrix.n - (len(_real_rows(matrix)) - len(_real_rows(output)))


def _pair_rows(before: Matrix, after: Matrix) -> _RowPairs:
    """Return a token in the same row on both sides is matched there; else its first row counts."""
    by_token = before.tokens is not None and after.tokens is not None
    known: dict[str | int | None, int] = {}
    for row in _real_rows(before).tolist():
        known.setdefault(_label(before, row) if by_token else row, row)
    pairs, added = [], []
    for row in _real_rows(after).tolist():
        key = _label(after, row) if by_token else row
        if by_token and row < before.n and _label(before, row) == key:
            pairs.append((row, row))
        elif key in known:
            pairs.append((known[key], row))
        else:
            added.append(row)
    shared = {row for row, _ in pairs}
    removed = [row for row in known.values() if row not in shared]
    at = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return _RowPairs(at[:, 0], at[:, 1], np.array(removed, np.int64), np.array(added, np.int64))


def _compare_side(
    before: Matrix, after: Matrix, pairs: _RowPairs, rows: tuple[int, int]
) -> RowChange:
    same = sum(int(np.sum(equal)) for equal in _compare_bits(before, after, pairs))
    added, known = _measure_norms(after, pairs.added), _measure_norms(before, _real_rows(before))
    low, middle, high = np.quantile(added, (0, 0.5, 1)).tolist() if len(added) else (0, 0, 0)
    return RowChange(
        after.origin.tensor or after.name,
        rows,
        same,
        len(pairs.before) - same,
        (low, middle, high) if len(added) else None,
        float(np.median(known[known > 0])) if known.any() else 0.0,
    )


def _measure_norms(matrix: Matrix, rows: IntArray) -> FloatArray:
    """Measure the norms of the finite ones among some rows."""
    parts = [np.zeros(0)]
    for _, block in matrix.blocks(rows):
        with np.errstate(over="ignore", invalid="ignore"):
            parts.append(np.linalg.norm(block.astype(np.float64), axis=1))
    norms = np.concatenate(parts)
    return np.asarray(norms[np.isfinite(norms)])


def _compare_bits(before: Matrix, after: Matrix, pairs: _RowPairs) -> Iterator[Mask]:
    """Yield whether shared rows are equal, block by block; bit by bit if the types are the same."""
    for start in range(0, len(pairs.before), BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        one, other = before.data[pairs.before[part]], after.data[pairs.after[part]]
        if one.shape != other.shape:
            yield np.zeros(len(one), dtype=bool)
        elif one.dtype == other.dtype:
            unsigned = f"u{one.dtype.itemsize}"
            bits = [np.ascontiguousarray(rows).view(unsigned) for rows in (one, other)]
            yield (bits[0] == bits[1]).all(axis=1)
        else:
            yield (one.astype(np.float64) == other.astype(np.float64)).all(axis=1)
