"""Runs the tokenizer of a model over text and over its own tokens, in a limited process.

See `limited`. The module has the name of a package; imports in functions mean the package.
"""

import json
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from embgeo.io.convert.limited import limit_time

Encode = Callable[[list[str]], list[list[int]]]

#: Processor seconds, over all threads, for a piece of text.
_ENCODING = 8.0
_TEXT = 2**14
_OF_BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"  # in place of cut characters
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


def find_pieces(file: str, rows: list[int], unusable: list[int]) -> list[list[int]]:
    from tokenizers import Tokenizer

    whole = Tokenizer.from_file(file)
    hidden = {token for row in unusable if (token := whole.id_to_token(row)) is not None}
    content = json.loads(Path(file).read_text(encoding="utf-8"))
    # Without added tokens a text is cut into tokens that the tokenizer learned.
    content |= {"added_tokens": [], "post_processor": None, "truncation": None, "padding": None}
    hide(content["model"], hidden)
    cut = Tokenizer.from_str(json.dumps(content))
    refused = {*unusable, unknown_id(content["model"], whole)}
    return [pieces_of(row, whole, cut, refused) for row in rows]


def pieces_of(row: int, whole: Any, cut: Any, refused: Collection[int | None]) -> list[int]:
    """Get ids of the pieces of the text of a row; empty if it cannot be cut into usable pieces."""
    text = whole.decode([row], skip_special_tokens=False)
    if not text or _REPLACEMENT in text:
        return []
    ids: list[int] = cut.encode(text, add_special_tokens=False).ids
    return [] if any(one in refused for one in ids) else ids


def unknown_id(model: dict[str, Any], tokenizer: Any) -> int | None:
    """Return the id that stands for text without a token."""
    if "unk_id" in model:
        found: int | None = model["unk_id"]
        return found
    token = model.get("unk_token")
    return None if token is None else tokenizer.token_to_id(token)


def hide(model: dict[str, Any], tokens: Collection[str]) -> None:
    """Rename tokens so that no text contains them, and drop the merges that use them."""
    vocabulary = model["vocab"]
    if isinstance(vocabulary, list):  # Unigram: pairs of a token and its score
        keep = model.get("unk_id")
        for place, (token, score) in enumerate(vocabulary):
            if token in tokens and place != keep:
                vocabulary[place] = [rename(token), score]
        return
    keep = model.get("unk_token")
    names = {t: rename(t) if t in tokens and t != keep else t for t in vocabulary}
    model["vocab"] = {names[token]: row for token, row in vocabulary.items()}
    if "merges" in model:
        prefix = model.get("continuing_subword_prefix") or ""
        model["merges"] = [
            pair for pair in model["merges"] if not any(t in tokens for t in parts(pair, prefix))
        ]


def parts(pair: str | list[str], prefix: str) -> tuple[str, str, str]:
    """Return both sides of a merge, and its result."""
    left, right = pair.split(" ") if isinstance(pair, str) else pair
    return left, right, left + right.removeprefix(prefix)


def rename(token: str) -> str:
    """Return a name with NUL, which no text of a token contains."""
    return f"\0{token}\0"
