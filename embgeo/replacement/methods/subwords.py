"""The mean of the rows of the pieces of the token's text."""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.errors import BadOption, argument
from embgeo.io.labels.corpus_counts import NotUsable
from embgeo.io.labels.token_texts import find_pieces
from embgeo.replacement.methods.method import RowSource, refuse_rows
from embgeo.replacement.survey import Length

NAME = "subwords"
LENGTH: Length = "rms"
SEEDED = False


def compute(source: RowSource, rows: IntArray) -> FloatArray:
    """Cut each text into healthy tokens, without added ones, with the model's own tokenizer."""
    survey = source.input
    unusable = np.union1d(np.flatnonzero(~survey.healthy), rows)
    try:
        pieces = find_pieces(source.encoder, rows.tolist(), unusable[unusable < source.tokens])
    except NotUsable as error:
        cause, way_out = f"{NAME} does not apply: {error}", "choose another method, such as mean"
        raise BadOption(cause, where=argument("method"), way_out=way_out) from error
    known = [ids for ids in pieces if ids and max(ids) < survey.matrix.n]
    if len(known) < len(rows):
        without = np.array([not ids or max(ids) >= survey.matrix.n for ids in pieces])
        raise refuse_rows(source, rows[without], "the text has no pieces with healthy rows")
    return np.stack([survey.matrix.take(np.array(ids)).mean(axis=0) for ids in known])
