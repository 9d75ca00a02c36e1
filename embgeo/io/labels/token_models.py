"""SentencePiece models (``tokenizer.model``, ``spiece.model``): the pieces, without the library.

The file is a protocol buffer, and its pieces are its first field: walking over them takes less
than the library would, works without it, and never hands a hostile file to code in C++.
"""

from __future__ import annotations

from pathlib import Path

from embgeo.io.bounded.guard import Damaged, reading
from embgeo.io.formats.frameworks.protobuf import BYTES, Message, raw, text
from embgeo.io.labels.readable import from_sentencepiece
from embgeo.io.labels.vocabulary import TextEncoder, Vocabulary

NAME = "SentencePiece model"

#: Numbers of fields: ModelProto.pieces and SentencePiece.piece.
_PIECES = 1
_PIECE = 1
#: The largest vocabularies have about a million.
_MOST_PIECES = 2 * 2**20
_FIELDS_OF_A_PIECE = 4
_TAG_OF_BYTES = b"\n"  # field 1, bytes: both a piece in the model and the text in a piece
_TAGS_AFTER_TEXT = b"\x15\x18"  # score, type


def is_model(head: bytes) -> bool:
    """Whether the first field is a piece: a message that begins with a short text."""
    if len(head) < 5 or head[0:1] != _TAG_OF_BYTES or head[2:3] != _TAG_OF_BYTES:
        return False
    whole, part = head[1], head[3]
    if whole >= 0x80 or part + 2 > whole:
        return False
    behind = head[4 + part : 5 + part]
    return behind == _TAG_OF_BYTES if part + 2 == whole else behind in _TAGS_AFTER_TEXT


def from_model(data: bytes, path: Path) -> Vocabulary:
    """The pieces in the order of their ids, made readable.

    Parameters
    ----------
    data : bytes
        Content of the file.
    path : Path
        Named in errors, and what :mod:`embgeo.io.labels.corpus_tokens` runs.

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
    return Vocabulary(tokens, source, encoder=TextEncoder("SentencePiece", (path,)))


def _text_of(piece: memoryview, message: Message) -> str:
    found = ""
    for number, kind, value in message.fields(piece):
        if number == _PIECE and kind == BYTES:
            found = text(value)
    return found
