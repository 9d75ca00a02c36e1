"""Runs the tokenizer of a model: tokens of a corpus, and of the texts of tokens.

The packages that run tokenizers are Rust and C++ code, which a hostile file can crash or make use
all memory: they run in a limited process (:mod:`embgeo.io.formats.tokenizers`).
"""

import importlib.util
from typing import Any

import numpy as np

from embgeo.core.errors import argument
from embgeo.core.matrix import Frequency
from embgeo.files.guard import Damaged, refuse
from embgeo.files.scratch import ScratchFile
from embgeo.io.formats.limited import run_limited
from embgeo.io.labels.corpus_text import CorpusText
from embgeo.io.labels.vocabulary import TextEncoder, TokenizerVocabulary

EXTRA = "hf"

#: Processor seconds for loading a tokenizer.
_LOADING = 8.0


class NotUsable(Exception):
    """Why a tokenizer cannot be run."""


def count_tokens(
    encoder: TextEncoder, size: int, text: CorpusText
) -> tuple[Frequency, tuple[str, ...]]:
    """Encode a corpus and count the ids 0 to `size` − 1, with notes.

    Text is encoded unchanged, with its line ends, in pieces of some thousand characters and without
    the special tokens that a model adds around its input. Raises `NotUsable` if the package of the
    tokenizer is not installed or does not read its file.
    """
    if importlib.util.find_spec(encoder.package) is None:
        raise NotUsable(f"that needs pip install 'embgeo[{EXTRA}]'")
    output = ScratchFile()
    try:
        answer = run_limited(
            "tokenizers:count_tokens",
            f"the package {encoder.package}",
            _LOADING,
            text=text.pieces(words=False),
            kind=encoder.kind,
            files=[str(file.resolve()) for file in encoder.files],
            lowercase=encoder.lowercase,
            size=size,
            output=str(output.path),
        )
        counts = np.fromfile(output.path, dtype="<i8").astype(np.float64)
    except Damaged as error:
        if not output.path.stat().st_size:
            raise NotUsable(f"the package {encoder.package} cannot read it ({error})") from None
        raise refuse(
            encoder.files[0],
            f"the tokenizer fails on the corpus ({error})",
            f"give the counts with {argument('counts', 'FILE')}",
        ) from None
    finally:
        output.remove()
    total, beyond = answer["total"], answer["beyond"]
    notes = list(text.notes())
    if beyond:
        notes.append(f"{beyond:,} of {total:,} tokens of {text.name} have ids beyond the labels")
    source = f"corpus {text.name}, {total:,} tokens by {encoder.name}"
    return Frequency("counts", counts, source), tuple(notes)


#: Processor seconds; a vocabulary of 260,000 tokens takes a third of them.
_SECONDS = 30.0


def find_unreachable(vocabulary: TokenizerVocabulary | None) -> list[int]:
    """Find ids that encoding their text does not give, alone or after a letter, digit or hyphen.

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
