"""Runs the tokenizer of a model over text and over its own tokens, in a limited process.

See `limited`. The module has the name of a package; imports in functions mean the package.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from embgeo.io.formats.limited import limit_time

Encode = Callable[[list[str]], list[list[int]]]

#: Processor seconds, over all threads, for a piece of text.
_ENCODING = 8.0
_TEXT = 2**14
_OF_BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
#: Texts before a token, for tokens that continue a word.
_BEFORE = ("1", "q", "x", "-")


def count_tokens(
    kind: str, files: list[str], lowercase: bool, size: int, output: str, text: Iterable[bytes]
) -> dict[str, int]:
    """Write the counts of the ids below `size` in pieces of UTF-8 to the output file.

    The file stays empty if the tokenizer cannot be loaded. Returns the numbers of all tokens and of
    those with other ids.
    """
    encode = KINDS[kind](files, lowercase)
    counts = np.memmap(output, dtype="<i8", mode="w+", shape=(size,))
    total = beyond = 0
    for piece in text:
        limit_time(_ENCODING)
        for ids in encode(texts(piece.decode("utf-8", "replace"))):
            numbers = np.asarray(ids, dtype=np.int64)
            known = numbers[(numbers >= 0) & (numbers < size)]
            counts += np.bincount(known, minlength=size)
            total += len(numbers)
            beyond += len(numbers) - len(known)
    counts.flush()
    return {"total": total, "beyond": beyond}


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


def from_tokenizer_json(files: list[str], _lowercase: bool) -> Encode:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(files[0])
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return encoding(tokenizer)


def from_byte_level(files: list[str], _lowercase: bool) -> Encode:
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.BPE.from_file(*files))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return encoding(tokenizer)


def from_word_pieces(files: list[str], lowercase: bool) -> Encode:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    tokenizer = Tokenizer(models.WordPiece.from_file(files[0], unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens([t for t in _OF_BERT if tokenizer.token_to_id(t) is not None])
    return encoding(tokenizer)


def encoding(tokenizer: Any) -> Encode:
    encode = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)
    return lambda some: [found.ids for found in encode(some, add_special_tokens=False)]


def from_sentencepiece(files: list[str], _lowercase: bool) -> Encode:
    from sentencepiece import SentencePieceProcessor

    processor = SentencePieceProcessor()
    processor.Load(files[0])
    return lambda some: [processor.EncodeAsIds(text) for text in some]


KINDS: dict[str, Callable[[list[str], bool], Encode]] = {
    "tokenizer.json": from_tokenizer_json,
    "byte-level BPE": from_byte_level,
    "WordPiece": from_word_pieces,
    "SentencePiece": from_sentencepiece,
}


# The texts of tokens


def find_unreachable(file: str, size: int) -> list[int]:
    """Find ids below `size` that encoding their text does not give."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(file)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    encode = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)
    left = [row for row in range(size) if tokenizer.id_to_token(row) is not None]
    fronts = [tokenizer.encode(text, add_special_tokens=False).ids for text in _BEFORE]
    for front in ([], *fronts):
        texts = tokenizer.decode_batch([[*front, row] for row in left], skip_special_tokens=False)
        found = encode(texts, add_special_tokens=False)
        left = [row for row, one in zip(left, found, strict=True) if row not in one.ids]
        if not left:
            break
    return left
