"""Labels for a range of rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from embgeo.core.arrays import IntArray
from embgeo.core.errors import LabelMismatch, WayOut, argument
from embgeo.io.model.rows import RowCut

PADDING_REASON = "padding beyond the vocabulary"


@dataclass(frozen=True, slots=True)
class RowLabels:
    """Tokens of the rows that are read, and which rows they mask."""

    tokens: tuple[str, ...]
    masked: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # padding rows
    notes: tuple[str, ...] = ()
    first: int = 0  # row of the whole matrix that the first token of the vocabulary labels


def lay_given(
    tokens: Sequence[str], cut: RowCut, padding: str, where: Path, columns: int
) -> RowLabels:
    """Return labels from a file that the user named.

    Their number is that of the cut or of the whole matrix; with `padding` "mask" or "keep" it may
    be smaller. `columns` recognizes a transposed matrix.
    """
    length = len(tokens)
    fits = cut.fit(length) is not None
    if not fits and (length > cut.total or padding == "auto"):
        raise mismatch("tokens", length, cut, where, columns)
    # No more labels than rows in the cut start at the cut, more of them at row 0.
    labels = _lay(tokens, cut.start if length <= cut.size else 0, cut, padding, where.name)
    if cut.is_whole or not fits:
        return labels
    which = f"all {length:,} rows and was cut along with them"
    if length == cut.size:
        which = f"the {length:,} rows that were cut out"
    return replace(labels, notes=(f"{where.name} labels {which}",))


def lay_found(tokens: Sequence[str], cut: RowCut, padding: str, source: str) -> RowLabels:
    """Lay labels that came with the model: they start at row 0, and models often pad their rows."""
    labels = _lay(tokens, 0, cut, padding, source)
    if len(tokens) <= cut.total:
        return labels
    beyond = len(tokens) - cut.total
    return replace(labels, notes=(f"{beyond:,} tokens of {source} lie beyond the last row",))


def mismatch(what: str, length: int, cut: RowCut, where: Path, columns: int) -> LabelMismatch:
    rows = f"{cut.size:,} rows"
    if not cut.is_whole:
        rows += f" (cut from {cut.total:,})"
    ways_out: list[WayOut] = []
    if length == columns:
        ways_out = [WayOut(arguments={"transpose": True})]
        way_out = f"if tokens are the columns of this matrix, add {argument('transpose')}"
    elif length > cut.total:
        way_out = "give the file that belongs to this matrix"
    elif what == "tokens":
        ways_out = [
            WayOut(arguments={"padding": "mask"}),
            WayOut(arguments={"rows": f"0:{length}"}),
        ]
        way_out = (
            f"if the rows beyond the tokens are padding add {argument('padding', 'mask')}, "
            f"or cut with {argument('rows', f'0:{length}')}"
        )
    else:
        ways_out = [WayOut(arguments={"rows": f"0:{length}"})]
        way_out = (
            f"cut with {argument('rows', f'0:{length}')}, "
            f"or name the rows with {argument('tokens', 'FILE')}"
        )
    cause = f"{length:,} {what} for {rows}"
    return LabelMismatch(cause, where=where, way_out=way_out, ways_out=ways_out)


def _lay(tokens: Sequence[str], first: int, cut: RowCut, padding: str, source: str) -> RowLabels:
    """Label the rows from `first` on; the other rows of the cut are padding."""
    last = first + len(tokens)
    rows = np.arange(cut.start, cut.stop, dtype=np.int64)
    beyond = np.flatnonzero((rows < first) | (rows >= last)).astype(np.int64)
    if not len(beyond):
        return RowLabels(tuple(tokens[cut.start - first : cut.stop - first]), first=first)
    name = "row" if padding == "keep" else "padding row"
    laid = tuple(
        tokens[row - first] if first <= row < last else f"<{name} {row}>"
        for row in range(cut.start, cut.stop)
    )
    many = len(beyond)
    left = "1 row without a token is" if many == 1 else f"{many:,} rows without a token are"
    note = f"{source} labels {len(tokens):,} of {cut.total:,} rows; {left}"
    if padding == "keep":
        return RowLabels(laid, notes=(f"{note} kept",), first=first)
    return RowLabels(laid, beyond, (f"{note} masked as padding",), first)
