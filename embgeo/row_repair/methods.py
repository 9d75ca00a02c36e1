"""New rows by a method, with the norm of the healthy rows, rounded to the type of the file."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.arguments import refuse_if, refuse_name
from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.errors import BadOption, argument
from embgeo.io.labels.tokenizer_runs import NotUsable, find_pieces
from embgeo.io.labels.vocabulary import TextEncoder
from embgeo.row_repair.places import RowSurvey
from embgeo.row_repair.record import ReplacedRow

#: Most rows in an error message.
NAMED = 4


@dataclass(frozen=True, slots=True)
class RowSource:
    """The sources of new rows."""

    #: The matrix whose rows are replaced.
    input: RowSurvey
    #: The output matrix of an untied model.
    output: RowSurvey | None
    #: Whether the model is known to be tied.
    tied: bool
    #: The model's own tokenizer.
    encoder: TextEncoder | None
    #: Number of tokens in the vocabulary.
    tokens: int


def output(source: RowSource, rows: IntArray) -> FloatArray:
    """Return the rows of the output matrix, for untied models whose output was trained there.

    The repair of NVIDIA NeMo Automodel (pull request 3136) and Megatron Bridge (pull request 5005).
    """
    other, cause = source.output, ""
    if other is None:
        reason = "is tied: both sides are one matrix" if source.tied else "has no output matrix"
        cause = f"the model {reason}"
    elif other.matrix.d != source.input.matrix.d:
        columns = f"{other.matrix.d:,} columns and the embedding {source.input.matrix.d:,}"
        cause = f"the output matrix has {columns}"
    if other is None or cause:
        cause = f"output does not apply, {cause}"
        raise BadOption(cause, where=argument("method"), way_out="choose subwords or mean")
    damaged = rows[~other.healthy[rows]]
    if len(damaged):
        raise refuse_rows(source, damaged, "the output matrix is damaged there, too")
    return np.asarray(other.matrix.take(rows))


def subwords(source: RowSource, rows: IntArray) -> FloatArray:
    """Return the mean of the healthy tokens' rows into which the tokenizer cuts each text."""
    survey = source.input
    unusable = np.union1d(np.flatnonzero(~survey.healthy), rows)
    try:
        pieces = find_pieces(source.encoder, rows.tolist(), unusable[unusable < source.tokens])
    except NotUsable as error:
        cause, way_out = f"subwords does not apply: {error}", "choose another method, such as mean"
        raise BadOption(cause, where=argument("method"), way_out=way_out) from error
    known = [ids for ids in pieces if ids and max(ids) < survey.matrix.n]
    if len(known) < len(rows):
        without = np.array([not ids or max(ids) >= survey.matrix.n for ids in pieces])
        raise refuse_rows(source, rows[without], "the text has no pieces with healthy rows")
    return np.stack([survey.matrix.take(np.array(ids)).mean(axis=0) for ids in known])


def mean(source: RowSource, rows: IntArray) -> FloatArray:
    """Return the mean of all healthy rows, once for each row.

    Hewitt 2021, "Initializing New Word Embeddings for Pretrained Language Models": with the average
    of the rows, the softmax of the model changes little. The bound holds for the mean itself; here
    it is scaled to the norm of the other rows, like every new row.
    """
    survey = source.input
    total = np.zeros(survey.matrix.d)
    for index, block in survey.matrix.blocks():
        total += block[survey.healthy[index]].astype(np.float64).sum(axis=0)
    return np.tile(total / survey.healthy.sum(), (len(rows), 1))


#: Functions that make directions of shape (len(rows), d), of any norm but 0, by name. BadOption
#: if a method has no source for a row.
METHODS: dict[str, Callable[[RowSource, IntArray], FloatArray]] = {
    "output": output,
    "subwords": subwords,
    "mean": mean,
}


def choose_method(name: str | None, source: RowSource) -> str:
    """Choose the name of a method; by default "output" for an untied model, else "mean"."""
    return name or ("mean" if source.output is None else "output")


def check_method(name: str | None) -> None:
    if name is not None and name not in METHODS:
        raise refuse_name("method", name, METHODS, argument("method"))


def make_rows(source: RowSource, rows: IntArray, method: str) -> npt.NDArray[np.generic]:
    """Make new rows for one or more rows in ascending order, as the file stores them.

    Their norm is the root mean square of the healthy norms.
    """
    survey = source.input
    cause, way_out = "every row is damaged: there is no norm to take", "take another checkpoint"
    refuse_if(not survey.healthy.any(), survey.matrix.name, cause, way_out)
    directions = METHODS[method](source, rows)
    # Divided by the largest entry first: squares of entries near 1e-200 would vanish.
    largest = np.abs(directions).max(axis=1, keepdims=True)
    without = ~(np.isfinite(largest) & (largest > 0))[:, 0]
    if without.any():
        raise refuse_rows(source, rows[without], "their sources have no direction")
    units = directions / largest
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    dtype = survey.matrix.data.dtype
    stored: npt.NDArray[np.generic] = round_to(survey.root_mean_square * units, dtype)
    wide = stored.astype(np.float64)
    lost = ~np.isfinite(wide).all(axis=1) | ~wide.any(axis=1)
    if lost.any():
        raise refuse_rows(source, rows[lost], f"{dtype} does not hold the new row")
    return stored


def list_replaced(
    survey: RowSurvey, rows: IntArray, stored: npt.NDArray[np.generic]
) -> tuple[ReplacedRow, ...]:
    """List rows before and after; `stored` are the new ones."""
    tokens = survey.matrix.tokens
    roles = {one.row: one.roles for one in survey.matrix.special}
    norms = np.linalg.norm(stored.astype(np.float64), axis=1)
    return tuple(
        ReplacedRow(
            row=row,
            token=None if tokens is None else tokens[row],
            roles=roles.get(row, ()),
            state=survey.state(row),
            norm_before=float(before) if np.isfinite(before) else None,
            norm_after=float(after),
        )
        for row, before, after in zip(rows.tolist(), survey.norms[rows], norms, strict=True)
    )


def refuse_rows(source: RowSource, rows: IntArray, cause: str) -> BadOption:
    """Return the error for rows that a method cannot make."""
    tokens = source.input.matrix.tokens
    named = [f"{row:,}" if tokens is None else f"{row:,} {tokens[row]!r}" for row in rows[:NAMED]]
    more = f" and {len(rows) - NAMED:,} more" if len(rows) > NAMED else ""
    cause = f"{cause}: row{'' if len(rows) == 1 else 's'} {', '.join(named)}{more}"
    way_out = "choose another method, such as mean"
    return BadOption(cause, where=argument("method"), way_out=way_out)


#: numpy rounds once. Types of ml_dtypes may have the kind "f", too.
_OF_NUMPY = (np.float16, np.float32, np.float64)


def round_to(values: FloatArray, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the nearest numbers of `dtype`; numbers that are too large become infinite or NaN.

    Ties go to even. Conversions of ml_dtypes go through float32 or float16 and round twice.

    `values`: finite. `dtype`: a floating-point type of numpy, or one of ml_dtypes with at most 16
    bits.
    """
    if dtype in _OF_NUMPY:
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(values.astype(dtype))
    numbers, patterns = _list_numbers(dtype)
    above = np.clip(np.searchsorted(numbers, values), 1, len(numbers) - 1)
    middle = (numbers[above - 1] + numbers[above]) / 2
    is_odd = (patterns[above - 1] & 1).astype(bool)
    up = (values > middle) | ((values == middle) & is_odd)
    rounded = patterns[above - 1 + up].view(dtype)
    step = numbers[-1] - numbers[-2]
    rounded[np.abs(values) >= numbers[-1] + step / 2] = np.nan
    return np.asarray(rounded)


@cache
def _list_numbers(dtype: np.dtype[Any]) -> tuple[FloatArray, npt.NDArray[Any]]:
    """List all finite numbers of a type, ascending, and their bits."""
    unsigned = np.dtype(f"u{dtype.itemsize}")
    patterns = np.arange(2 ** (8 * dtype.itemsize), dtype=np.int64).astype(unsigned)
    with np.errstate(invalid="ignore"):
        values = patterns.view(dtype).astype(np.float64)
    finite = np.isfinite(values)
    numbers, first = np.unique(values[finite], return_index=True)
    return numbers, patterns[finite][first]
