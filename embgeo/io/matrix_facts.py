"""What a model says of the selected matrix in its tokenizer's files and its configuration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from embgeo.core.special import SpecialToken, cut_special
from embgeo.io.checkpoint import Tensor
from embgeo.io.choosing import choose
from embgeo.io.labels.corpus_counts import NotUsable
from embgeo.io.labels.token_texts import find_unreachable
from embgeo.io.parameter_names import output_rank
from embgeo.io.rows_on_demand import RowsOnDemand
from embgeo.io.selecting import Labeling, Selection, lay_counts

_COMPARED_ROWS = 4096

Rows = npt.NDArray[Any]


def read_rows(tensor: Tensor, transposed: bool, selection: Selection) -> Rows:
    """The selected rows of a tensor, mapped where its format allows it."""
    cut = selection.cut
    if tensor.ranges is not None and not transposed:
        if not cut.is_whole:
            return tensor.ranges.read(cut.start, cut.stop)
        if selection.on_demand and selection.choice.output is None:
            return cast(Rows, RowsOnDemand(tensor, tensor.ranges))
    array = tensor.open()
    if transposed:
        array = array.T
    return array if cut.is_whole else array[cut.start : cut.stop]


def has_same_values(one: Rows, other: Rows) -> bool:
    """Whether two matrices are equal number by number; stops at the first block that is not."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return all(
        np.array_equal(one[start : start + _COMPARED_ROWS], other[start : start + _COMPARED_ROWS])
        for start in range(0, len(one), _COMPARED_ROWS)
    )


def place_special(selection: Selection) -> tuple[SpecialToken, ...]:
    """Special tokens with the rows that they have in the cut.

    Of the whole matrix, also those without a row.
    """
    cut = selection.cut
    if not cut.is_whole:
        return cut_special(selection.checkpoint.special, cut.start, cut.stop)
    return tuple(
        one if one.row is None or one.row < cut.total else replace(one, row=None)
        for one in selection.checkpoint.special
    )


def count_vocabulary(selection: Selection, labeling: Labeling) -> int | None:
    """Tokens of the tokenizer that labels the rows; None without one, and for a cut of rows."""
    vocabulary = labeling.vocabulary
    if vocabulary is None or vocabulary.encoder is None or not selection.cut.is_whole:
        return None
    return len(vocabulary.tokens)


def find_unreachable_rows(selection: Selection, labeling: Labeling) -> tuple[int, ...] | str | None:
    """Rows of tokens that no text leads to, or why they are not known; None where nobody asked."""
    if not selection.source.round_trip:
        return None
    try:
        ids = find_unreachable(labeling.vocabulary)
    except NotUsable as error:
        return str(error)
    assert labeling.labels is not None
    assert labeling.vocabulary is not None
    marks = np.bincount(ids, minlength=len(labeling.vocabulary.tokens))
    laid = lay_counts(marks.astype(np.float64), labeling.labels.first, selection.cut)
    return tuple(np.flatnonzero(laid).tolist())


def is_tied_as_configured(
    selection: Selection, data: Rows, projection: Rows | None, is_tied: bool
) -> bool | None:
    """Whether the file holds one matrix exactly if the configuration says so; None: not known.

    Parameters
    ----------
    selection : Selection
    data : array
        The embedding matrix.
    projection : array or None
        The output projection, if it is another matrix.
    is_tied : bool
        Whether the tensors themselves show that there is one.
    """
    source, checkpoint, choice = selection.source, selection.checkpoint, selection.choice
    if checkpoint.tied is None or source.output is not None:
        return None
    if not checkpoint.tied:
        unsure = any(output_rank(tensor.name) is not None for tensor in choice.candidates)
        return None if projection is None and unsure and not is_tied else projection is not None
    silent = replace(checkpoint, tied=None)
    stored = choose(silent, tensor=choice.input.name, transpose=source.transpose)
    if stored.output is None:
        return True
    return has_same_values(data, read_rows(stored.output, stored.output_transposed, selection))
