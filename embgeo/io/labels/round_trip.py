"""Tokens that no text leads to: a tokenizer's own round trip, in a process of its own."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from embgeo.io.bounded.guard import Damaged
from embgeo.io.bounded.worker_process import ask
from embgeo.io.labels.corpus_counts import EXTRA, NotUsable
from embgeo.io.labels.vocabulary import TokenizerVocabulary

_WORKER = Path(__file__).with_name("round_trip_worker.py")
#: Seconds of computing: a vocabulary of 260,000 tokens takes a third.
_SECONDS = 30.0


def find_unreachable(vocabulary: TokenizerVocabulary | None) -> list[int]:
    """Ids that encoding the decoded id does not give, alone or behind a letter, digit or hyphen.

    Land & Bartolo 2024, §3.1, call such tokens unreachable.

    Raises
    ------
    NotUsable
        There is no tokenizer.json, its package is missing, or does not understand the file.
    """
    if vocabulary is None or vocabulary.encoder is None:
        raise NotUsable("the rows have no tokenizer")
    encoder = vocabulary.encoder
    if encoder.kind != "tokenizer.json":
        raise NotUsable(f"{encoder.name} is not a tokenizer.json")
    if importlib.util.find_spec(encoder.package) is None:
        raise NotUsable(f"that needs pip install 'embgeo[{EXTRA}]'")
    request = {"file": str(encoder.files[0].resolve()), "size": len(vocabulary.tokens)}
    try:
        answer = ask(_WORKER, f"the package {encoder.package}", request, _SECONDS)
    except Damaged as error:
        raise NotUsable(str(error)) from None
    return [int(row) for row in answer["unreachable"]]
