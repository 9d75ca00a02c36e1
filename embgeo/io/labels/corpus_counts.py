"""Counts of tokens in a corpus, by the tokenizer of the model or by words.

The packages that run tokenizers are Rust and C++ code, which a hostile file can crash or make use
all memory: they run in a separate process (:mod:`embgeo.io.labels.tokenizer_worker`).
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import LabelMismatch, argument
from embgeo.core.matrix import Frequency
from embgeo.io.bounded.guard import plain, refuse
from embgeo.io.bounded.worker_process import MOST_MEMORY, worker_command
from embgeo.io.labels.corpus_text import CorpusText
from embgeo.io.labels.counts_file import examples
from embgeo.io.labels.vocabulary import TextEncoder, marks_words_by_spaces, uses_sign, word_of

EXTRA = "hf"

_WORKER = Path(__file__).with_name("tokenizer_worker.py")
#: Processor seconds for loading a tokenizer.
_LOADING = 8.0
_MOST_ANSWER = 4096


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
    with _start() as worker:
        try:
            counts, total, beyond = _talk(worker, encoder, size, text)
        finally:
            worker.kill()
            with contextlib.suppress(OSError):  # flushes to a worker that has ended
                worker.stdin.close()  # type: ignore[union-attr]
    notes = list(text.notes())
    if beyond:
        notes.append(f"{beyond:,} of {total:,} tokens of {text.name} have ids beyond the labels")
    source = f"corpus {text.name}, {total:,} tokens by {encoder.name}"
    return Frequency("counts", counts, source), tuple(notes)


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        worker_command(_WORKER),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "true"},
    )


def _talk(
    worker: subprocess.Popen[bytes], encoder: TextEncoder, size: int, text: CorpusText
) -> tuple[npt.NDArray[np.float64], int, int]:
    assert worker.stdin is not None
    assert worker.stdout is not None
    request = {
        "kind": encoder.kind,
        "files": [str(file.resolve()) for file in encoder.files],
        "lowercase": encoder.lowercase,
        "size": size,
        "memory": MOST_MEMORY,
        "seconds": _LOADING,
    }
    _send(worker.stdin, [json.dumps(request).encode() + b"\n"])
    first = _answer(worker.stdout)
    if "error" in first:
        raise NotUsable(f"the package {encoder.package} cannot read it ({first['error']})")
    _send(worker.stdin, _frame(text))
    last = _answer(worker.stdout)
    data = worker.stdout.read(8 * size)
    if "error" in last or len(data) != 8 * size:
        raise refuse(
            encoder.files[0],
            f"the tokenizer fails on the corpus ({last.get('error', 'it ends early')})",
            f"give the counts with {argument('counts', 'FILE')}",
        )
    counts = np.frombuffer(data, dtype="<i8").astype(np.float64)
    return counts, int(last["total"]), int(last["beyond"])


def _frame(text: CorpusText) -> Iterable[bytes]:
    for piece in text.pieces(words=False):
        yield len(piece).to_bytes(8, "little") + piece
    yield (0).to_bytes(8, "little")


def _send(stream: IO[bytes], parts: Iterable[bytes]) -> None:
    try:
        for part in parts:
            stream.write(part)
            stream.flush()
    except OSError:
        return  # the worker ended; its answer says why


def _answer(stream: IO[bytes]) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(stream.readline(_MOST_ANSWER))
    except ValueError:
        return {"error": "it takes too much time or memory"}
    if "error" in found:
        found["error"] = plain(str(found["error"]))
    return found


def count_words(tokens: Sequence[str], text: CorpusText) -> tuple[Frequency, tuple[str, ...]]:
    """Count the tokens among the words of a corpus, which white space separates.

    In a subword vocabulary only tokens that are whole words are counted, and the source says so.
    """
    spaced = marks_words_by_spaces(tokens)
    keys = [word_of(token, spaced).encode("utf-8") for token in tokens]
    vocabulary = {key for key in keys if key}
    found: Counter[bytes] = Counter()
    total = 0
    for piece in text.pieces(words=True):
        words = piece.split()
        total += len(words)
        for word, count in Counter(words).items():
            if word in vocabulary:
                found[word] += count
    if not found:
        raise LabelMismatch(
            f"none of its {total:,} words is a token of the matrix (such as {examples(tokens)})",
            where=text.path,
            way_out="give a corpus in the language and spelling of the vocabulary",
        )
    values = np.array([found.get(key, 0) for key in keys], dtype=np.float64)
    source = f"corpus {text.name}, {total:,} words separated by white space"
    # WordPiece marks tokens that continue a word by "##".
    if spaced or uses_sign(tokens, "##"):
        source += "; the tokens are pieces of words, so only whole words among them are counted"
    notes = [*text.notes(), *missing_note(values, text.name)]
    if (known := sum(found.values())) < total:
        notes.append(f"{total - known:,} of {total:,} words of {text.name} are not in the matrix")
    return Frequency("counts", values, source), tuple(notes)


def missing_note(values: np.ndarray[tuple[int], np.dtype[np.float64]], name: str) -> list[str]:
    """A note on the tokens with count 0, if there are any."""
    missing = int(np.sum(values == 0))
    return [f"{missing:,} of {len(values):,} tokens do not occur in {name}"] if missing else []
