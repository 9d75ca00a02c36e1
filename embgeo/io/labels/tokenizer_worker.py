"""Runs the tokenizer of a model over text; started by :mod:`embgeo.io.bounded.worker_main`.

The request names the tokenizer; the answer is a line of JSON. Standard input then holds pieces of
UTF-8, each after its length in eight bytes, and ends with a length of 0. The last answer is a line
of JSON and the counts, eight bytes for each id. The module imports nothing of embgeo.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

Ids = list[list[int]]
Encode = Callable[[list[str]], Ids]

#: Processor seconds, over all threads, for a piece of text.
_ENCODING = 8.0
_TEXT = 2**14
_OF_BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def serve(request: dict[str, Any], limit_time: Callable[[float], None]) -> None:
    """Count the tokens of the text on standard input."""
    # More threads would use up the processor seconds faster.
    os.environ.setdefault("RAYON_NUM_THREADS", "2")
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    encode = KINDS[request["kind"]](request)
    answer(sink, {"ready": True})
    counts, total, beyond = count(source, limit(encode, limit_time), request["size"])
    answer(sink, {"total": total, "beyond": beyond})
    sink.write(counts.astype("<i8").tobytes())


def limit(encode: Encode, limit_time: Callable[[float], None]) -> Encode:
    """Limit the processor seconds for each piece of text."""

    def encode_in_time(some: list[str]) -> Ids:
        limit_time(_ENCODING)
        return encode(some)

    return encode_in_time


def answer(sink: BinaryIO, value: dict[str, Any]) -> None:
    sink.write(json.dumps(value).encode() + b"\n")
    sink.flush()


def count(source: BinaryIO, encode: Encode, size: int) -> tuple[Any, int, int]:
    """Counts of the ids below `size`, and the numbers of all tokens and of other ids."""
    counts = np.zeros(size, dtype=np.int64)
    total = beyond = 0
    while length := int.from_bytes(source.read(8), "little"):
        for ids in encode(texts(source.read(length).decode("utf-8", "replace"))):
            numbers = np.asarray(ids, dtype=np.int64)
            known = numbers[(numbers >= 0) & (numbers < size)]
            counts += np.bincount(known, minlength=size)
            total += len(numbers)
            beyond += len(numbers) - len(known)
    return counts, total, beyond


def texts(piece: str) -> list[str]:
    """Cut a piece after line ends into texts that tokenizers process fast."""
    found, start = [], 0
    while start < len(piece):
        stop = start + _TEXT
        if stop < len(piece):
            line_end = piece.rfind("\n", start, stop) + 1
            space = piece.rfind(" ", start + 1, stop)
            stop = line_end or (space if space > start else stop)
        found.append(piece[start:stop])
        start = stop
    return found


def from_tokenizer_json(request: dict[str, Any]) -> Encode:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(request["files"][0])
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return encoding(tokenizer)


def from_byte_level(request: dict[str, Any]) -> Encode:
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.BPE.from_file(*request["files"]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return encoding(tokenizer)


def from_word_pieces(request: dict[str, Any]) -> Encode:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    tokenizer = Tokenizer(models.WordPiece.from_file(request["files"][0], unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=request["lowercase"])
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens([t for t in _OF_BERT if tokenizer.token_to_id(t) is not None])
    return encoding(tokenizer)


def encoding(tokenizer: Any) -> Encode:
    encode = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)
    return lambda some: [found.ids for found in encode(some, add_special_tokens=False)]


def from_sentencepiece(request: dict[str, Any]) -> Encode:
    from sentencepiece import SentencePieceProcessor

    processor = SentencePieceProcessor()
    processor.Load(request["files"][0])
    return lambda some: [processor.EncodeAsIds(text) for text in some]


KINDS: dict[str, Callable[[dict[str, Any]], Encode]] = {
    "tokenizer.json": from_tokenizer_json,
    "byte-level BPE": from_byte_level,
    "WordPiece": from_word_pieces,
    "SentencePiece": from_sentencepiece,
}
