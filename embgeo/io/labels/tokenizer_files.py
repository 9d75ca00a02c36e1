"""Vocabularies in tokenizer files, read without the packages that run tokenizers.

SentencePiece models (``tokenizer.model``, ``spiece.model``) are protocol buffers whose first field
holds the pieces. Parsing them here is faster than the library and keeps hostile files away from
C++ code. Files of tiktoken have a token in base64 and its rank on each line, in the order of the
ids; Llama 3 and others name such a file ``tokenizer.model``, so it is recognized by its lines.
"""

import base64
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from embgeo.core.errors import UnreadableFile, argument
from embgeo.files.guard import Damaged, reading, refuse
from embgeo.files.protobuf import BYTES, Message, raw, text
from embgeo.files.small_files import safe_text, split_lines
from embgeo.io.labels import vocabulary

#: Limits of ids without a token, which grow with the number of tokens.
_HOLES_PER_TOKEN = 4
_HOLES_FREE = 100_000
# Pipelines nest sequences in sequences two or three levels deep.
_DEPTH = 6

_SCHEMES: dict[str, vocabulary.Scheme] = {
    "ByteLevel": "byte-level",
    "Metaspace": "sentencepiece",
    "ByteFallback": "sentencepiece",
    "WordPiece": "plain",
}


def is_tokenizer_json(data: Any) -> bool:
    return isinstance(data, dict) and isinstance(data.get("model"), dict)


def is_keras_configuration(data: Any) -> bool:
    """Tell whether a tokenizer.json is KerasHub's, which names a class and holds no tokens."""
    return (
        isinstance(data, dict) and isinstance(data.get("class_name"), str) and "model" not in data
    )


def from_tokenizer_json(data: Any, path: Path) -> vocabulary.TokenizerVocabulary:
    """Return the decoded vocabulary of a tokenizer.json, with added tokens."""
    pieces = _pieces(data, path)
    added = _added_tokens(data, path)
    special = {entry["content"] for entry in data.get("added_tokens") or [] if entry.get("special")}
    scheme = _scheme(data) or vocabulary.guess_scheme([token for token, _ in pieces])
    read = vocabulary.READERS[scheme]
    # Added tokens are not encoded; they come last to replace pieces of the same id.
    pairs = [(read(token), number) for token, number in pieces] + added
    tokens, notes = in_order(pairs, path)
    encoder = vocabulary.TextEncoder("tokenizer.json", (path,))
    rows = {safe_text(token): row for token, row in added}
    return vocabulary.TokenizerVocabulary(
        tokens,
        _source(path, scheme),
        notes,
        encoder=encoder,
        added=rows,
        special=frozenset(map(safe_text, special)),
    )


def from_ids(data: dict[Any, Any], path: Path) -> vocabulary.TokenizerVocabulary:
    """Return the decoded vocabulary of a dict token → id (vocab.json) or id → token."""
    if all(isinstance(value, str) for value in data.values()):
        if not all(isinstance(key, str) and key.isdecimal() and len(key) < 16 for key in data):
            raise _malformed_error(path, "a dict of strings whose keys are not row numbers")
        pairs = [(token, int(key)) for key, token in data.items()]
    else:
        pairs = list(data.items())
    scheme = vocabulary.guess_scheme([token for token, _ in pairs])
    read = vocabulary.READERS[scheme]
    tokens, notes = in_order([(read(token), number) for token, number in pairs], path)
    return vocabulary.TokenizerVocabulary(tokens, _source(path, scheme), notes)


def in_order(
    pairs: Iterable[tuple[str, Any]], path: Path
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return tokens sorted by id, with notes; ids without a token get ``<unused id 123>``."""
    pairs = list(pairs)
    for token, number in pairs:
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise _malformed_error(path, f"{ascii(number)[:40]} as the id of {ascii(token)[:40]}")
    if not pairs:
        raise _malformed_error(path, "an empty vocabulary")
    size = max(number for _, number in pairs) + 1
    # Checked before ids become keys: large integers can be chosen to collide in a dict.
    if size > _HOLES_FREE + (_HOLES_PER_TOKEN + 1) * len(pairs):
        raise _malformed_error(
            path, f"ids up to {size - 1:,} for {len(pairs):,} tokens; are these counts, not ids?"
        )
    by_id: dict[int, str] = {}
    clashes = 0
    for token, number in pairs:
        clashes += by_id.get(number, token) != token
        by_id[number] = token
    tokens = tuple(
        safe_text(by_id[number]) if number in by_id else f"<unused id {number}>"
        for number in range(size)
    )
    notes = []
    if size > len(by_id):
        notes.append(f"{size - len(by_id):,} ids below {size:,} have no token in {path.name}")
    if clashes:
        notes.append(f"{clashes:,} ids have two tokens in {path.name}; the last one is shown")
    return tokens, tuple(notes)


def _pieces(data: Any, path: Path) -> list[tuple[str, Any]]:
    vocab = data["model"].get("vocab") if is_tokenizer_json(data) else None
    if isinstance(vocab, dict):
        return list(vocab.items())
    if isinstance(vocab, list):  # Unigram: [piece, score] in the order of the ids
        if not all(isinstance(p, list) and p and isinstance(p[0], str) for p in vocab):
            raise _malformed_error(
                path, "a Unigram vocabulary whose entries are not [piece, score]"
            )
        return [(piece[0], number) for number, piece in enumerate(vocab)]
    raise _malformed_error(path, "no vocabulary under model.vocab")


def _added_tokens(data: Any, path: Path) -> list[tuple[str, Any]]:
    added = data.get("added_tokens") or []
    if not isinstance(added, list):
        raise _malformed_error(path, "added_tokens that are not a list")
    pairs = []
    for entry in added:
        if not isinstance(entry, dict) or not isinstance(entry.get("content"), str):
            raise _malformed_error(path, "an added token without content")
        pairs.append((entry["content"], entry.get("id")))
    return pairs


def _scheme(data: dict[str, Any]) -> vocabulary.Scheme | None:
    for part in ("decoder", "pre_tokenizer"):
        for kind in _kinds(data.get(part), _DEPTH):
            if kind in _SCHEMES:
                return _SCHEMES[kind]
    return None


def _kinds(part: Any, depth: int) -> Iterable[str]:
    """Yield every ``type`` inside a pipeline description."""
    if depth == 0:
        return
    if isinstance(part, dict):
        if isinstance(part.get("type"), str):
            yield part["type"]
        part = list(part.values())
    if isinstance(part, list):
        for inner in part:
            yield from _kinds(inner, depth - 1)


def _source(path: Path, scheme: vocabulary.Scheme) -> str:
    return path.name if scheme == "plain" else f"{path.name} ({scheme} tokens, decoded)"


def _malformed_error(path: Path, what: str) -> UnreadableFile:
    return refuse(
        path,
        f"its vocabulary cannot be used: it holds {what}",
        f"give the tokens as a text file, one per line, with {argument('tokens')}",
    )


TIKTOKEN_SUFFIX = ".tiktoken"

_LINE = re.compile(r"((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==|[A-Za-z0-9+/]=))?) (\d{1,9})")
_LOOKED_AT = 3


def is_tiktoken(text: str) -> bool:
    """Tell whether the first lines are base64 with the ranks 0, 1, 2."""
    lines = text[:4096].split("\n")[:_LOOKED_AT]
    found = [_LINE.fullmatch(line.rstrip("\r")) for line in lines]
    return len(found) == _LOOKED_AT and all(
        match is not None and match[1] and int(match[2]) == rank for rank, match in enumerate(found)
    )


def read_tiktoken(text: str, path: Path) -> vocabulary.TokenizerVocabulary:
    """Read the tokens in the order of their ranks; invalid UTF-8 becomes ``<0xE2>``."""
    pairs: list[tuple[str, int]] = []
    for number, line in enumerate(split_lines(text), 1):
        if not line:
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            raise refuse(
                path,
                f"line {number:,} is not a token in base64 with its rank",
            )
        pairs.append((vocabulary.from_bytes(base64.b64decode(found[1])), int(found[2])))
    tokens, notes = in_order(pairs, path)
    return vocabulary.TokenizerVocabulary(
        tokens, f"{path.name} (tiktoken's tokens, decoded)", notes
    )


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
    """Tell whether the first field is a message that begins with a short text."""
    if len(head) < 5 or head[0:1] != _TAG_OF_BYTES or head[2:3] != _TAG_OF_BYTES:
        return False
    whole, part = head[1], head[3]
    if whole >= 0x80 or part + 2 > whole:
        return False
    next_tag = head[4 + part : 5 + part]
    return next_tag == _TAG_OF_BYTES if part + 2 == whole else next_tag in _TAGS_AFTER_TEXT


def read_sentencepiece(data: bytes, path: Path) -> vocabulary.TokenizerVocabulary:
    """Read the decoded pieces in the order of their ids."""
    with reading(path, NAME):
        content = memoryview(data)
        # Counted first, so that a file of empty pieces is refused before it takes memory.
        count = sum(number == _PIECES for number, _, _ in Message(_MOST_PIECES).fields(content))
        if not count:
            raise Damaged(f"this {NAME} has no pieces")
        message = Message((_FIELDS_OF_A_PIECE + 1) * _MOST_PIECES)
        tokens = tuple(
            vocabulary.from_sentencepiece(_text_of(raw(value), message))
            for number, _, value in message.fields(content)
            if number == _PIECES
        )
    source = f"{path.name} (sentencepiece tokens, decoded)"
    return vocabulary.TokenizerVocabulary(
        tokens, source, encoder=vocabulary.TextEncoder("SentencePiece", (path,))
    )


def _text_of(piece: memoryview, message: Message) -> str:
    found = ""
    for number, kind, value in message.fields(piece):
        if number == _PIECE and kind == BYTES:
            found = text(value)
    return found
