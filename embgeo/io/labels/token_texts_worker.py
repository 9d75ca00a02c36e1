"""Encodes the texts of tokens, run by :mod:`embgeo.io.bounded.worker_main`.

The request names a tokenizer.json and asks for the ids that no text gives, or for the pieces of
rows without unusable ids. The module imports nothing of embgeo.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"  # in place of cut characters
#: Texts before a token, for tokens that continue a word.
_BEFORE = ("1", "q", "x", "-")


def serve(request: dict[str, Any], _limit_time: Callable[[float], None]) -> dict[str, Any]:
    os.environ.setdefault("RAYON_NUM_THREADS", "2")
    file = request["file"]
    if request["question"] == "unreachable":
        return {"found": find_unreachable(file, request["size"])}
    return {"found": find_pieces(file, request["rows"], request["unusable"])}


def find_unreachable(file: str, size: int) -> list[int]:
    """Ids below `size` that encoding their text does not give."""
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
    """Ids of the pieces of the text of a row; empty if it cannot be cut into usable pieces."""
    text = whole.decode([row], skip_special_tokens=False)
    if not text or _REPLACEMENT in text:
        return []
    ids: list[int] = cut.encode(text, add_special_tokens=False).ids
    return [] if any(one in refused for one in ids) else ids


def unknown_id(model: dict[str, Any], tokenizer: Any) -> int | None:
    """The id that stands for text without a token."""
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
    """Both sides of a merge, and its result."""
    left, right = pair.split(" ") if isinstance(pair, str) else pair
    return left, right, left + right.removeprefix(prefix)


def rename(token: str) -> str:
    """A name with NUL, which no text of a token contains."""
    return f"\0{token}\0"
