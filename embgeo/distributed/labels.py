"""Labels and counts that are given for the whole matrix, where its parts bring none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from embgeo.core.errors import BadOption
from embgeo.core.matrix import Frequency
from embgeo.distributed.merging import with_labels
from embgeo.distributed.plans import Plan
from embgeo.io.bounded.small_files import safe_text
from embgeo.io.counting import count_by_file
from embgeo.io.labels.counts_file import from_rank
from embgeo.io.labels.label_file import read_labels
from embgeo.io.labels.rows import RowCut, RowLabels, lay_given


def labeled(plan: Plan, tokens: Path | None, counts: Path | None, rank_order: bool) -> Plan:
    """The plan with labels and frequencies from files, one entry for each row of the whole.

    Parameters
    ----------
    plan : Plan
    tokens, counts : Path or None
        As for :func:`embgeo.load`.
    rank_order : bool

    Raises
    ------
    EmbgeoError
        If they do not line up with the rows, or the parts have their own.
    """
    if counts is not None and rank_order:
        raise BadOption("--counts and --rank-order exclude each other", way_out="give one of them")
    n, d = plan.matrix.n, plan.matrix.d
    cut = RowCut(n, 0, n)
    notes: tuple[str, ...] = ()
    labels = None
    if plan.matrix.tokens is not None:
        labels = RowLabels(plan.matrix.tokens, np.zeros(0, dtype=np.int64))
    elif tokens is not None:
        labels = lay_given(read_labels(tokens).tokens, cut, "auto", tokens, d)
    frequency: Frequency | None = None
    if rank_order:
        frequency = from_rank(n)
    elif counts is not None:
        counting = count_by_file(counts, labels, cut, d)
        labels, frequency, notes = counting.labels, counting.frequency, counting.notes
    given = None
    if labels is not None and (tokens is not None or plan.matrix.tokens is None):
        given = tuple(map(safe_text, labels.tokens))
        notes = (*labels.notes, *notes)
    plan = with_labels(plan, given, frequency)
    origin = replace(plan.matrix.origin, notes=(*plan.matrix.origin.notes, *notes))
    return replace(plan, matrix=replace(plan.matrix, origin=origin))
