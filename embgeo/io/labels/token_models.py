"""Tokenizer models in files of their own, without the libraries that run them.

SentencePiece (``tokenizer.model``, ``spiece.model``) is a protocol buffer whose first field holds
the pieces: walking over them takes less than the library would and never hands a hostile file to
code in C++. tiktoken's files hold a token in base64 and its rank on each line, in the order of the
ids; Llama 3 and others call such a file ``tokenizer.model`` too, so it is recognized by its lines.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path

from embgeo.core.errors import UnreadableFile
from embgeo.io.bounded.guard import Damaged, reading
from embgeo.io.bounded.protobuf import BYTES, Message, raw, text
from embgeo.io.bounded.small_files import split_lines
from embgeo.io.labels.readable import from_bytes, from_sentencepiece
from embgeo.io.labels.tokenizer_json import in_order
from embgeo.io.labels.vocabulary import TextEncoder, TokenizerVocabulary

TIKTOKEN_SUFFIX = ".tiktoken"

_LINE = re.compile(r"((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==|[A-Za-z0-9+/]=))?) (\d{1,9})")
_LOOKED_AT = 3


def is_tiktoken(text: str) -> bool:
    """Whether the first lines are base64 with the ranks 0, 1, 2."""
    lines = text[:4096].split("\n")[:_LOOKED_AT]
    found = [_LINE.fullmatch(line.rstrip("\r")) for line in lines]
    return len(found) == _LOOKED_AT and all(
        match is not None and match[1] and int(match[2]) == rank for rank, match in enumerate(found)
    )


def read_tiktoken(text: str, path: Path) -> TokenizerVocabulary:
    """The tokens in the order of their ranks; bytes that are not UTF-8 as ``<0xE2>``.

    Raises
    ------
    UnreadableFile
        A line of another form.
    """
    pairs: list[tuple[str, int]] = []
    for number, line in enumerate(split_lines(text), 1):
        if not line:
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            raise UnreadableFile(
                f"line {number:,} is no token in base64 with its rank",
                where=path,
                way_out="download the tokenizer once more",
            )
        pairs.append((from_bytes(base64.b64decode(found[1])), int(found[2])))
    tokens, notes = in_order(pairs, path)
    return TokenizerVocabulary(tokens, f"{path.name} (tiktoken's tokens, decoded)", notes)


NAME = "SentencePiece model"

#: Numbers of fields: ModelProto.pieces and SentencePiece.piece.
_PIECES = 1
_PIECE = 1
#: The largest vocabularies have about a million.
_MOST_PIECES = 2 * 2**20
_FIELDS_OF_A_PIECE = 4
_TAG_OF_BYTES = b"\n"  # field 1, bytes: both a piece in the model and the text in a piece
_TAGS_AFTER_TEXT = b"\x15\x18"  # score, type


def is_sentencepiece(head: bytes) -> bool:
    """Whether the first field is a piece: a message that begins with a short text."""
    if len(head) < 5 or head[0:1] != _TAG_OF_BYTES or head[2:3] != _TAG_OF_BYTES:
        return False
    whole, part = head[1], head[3]
    if whole >= 0x80 or part + 2 > whole:
        return False
    behind = head[4 + part : 5 + part]
    return behind == _TAG_OF_BYTES if part + 2 == whole else behind in _TAGS_AFTER_TEXT


def read_sentencepiece(data: bytes, path: Path) -> TokenizerVocabulary:
    """The pieces in the order of their ids, made readable.

    Parameters
    ----------
    data : bytes
        Content of the file.
    path : Path
        Named in errors, and what :mod:`embgeo.io.labels.corpus_counts` runs.

    Raises
    ------
    UnreadableFile
        Truncated, with lengths beyond the file, with absurdly many pieces or with none.
    """
    with reading(path, NAME):
        content = memoryview(data)
        # Counted first: a file of nothing but empty pieces is refused before it takes memory.
        count = sum(number == _PIECES for number, _, _ in Message(_MOST_PIECES).fields(content))
        if not count:
            raise Damaged(f"this {NAME} has no pieces")
        message = Message((_FIELDS_OF_A_PIECE + 1) * _MOST_PIECES)
        tokens = tuple(
            from_sentencepiece(_text_of(raw(value), message))
            for number, _, value in message.fields(content)
            if number == _PIECES
        )
    source = f"{path.name} (sentencepiece tokens, decoded)"
    return TokenizerVocabulary(tokens, source, encoder=TextEncoder("SentencePiece", (path,)))


def _text_of(piece: memoryview, message: Message) -> str:
    found = ""
    for number, kind, value in message.fields(piece):
        if number == _PIECE and kind == BYTES:
            found = text(value)
    return found
