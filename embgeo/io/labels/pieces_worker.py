"""Cuts the texts of tokens into other tokens, run by :mod:`embgeo.io.bounded.worker_main`.

The request names a tokenizer.json, rows, and ids that must not be used; the answer is a line of
JSON. It imports nothing of embgeo.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

#: What a text has where it is not whole characters.
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def serve(request: dict[str, Any], _limit_time: Callable[[float], None]) -> None:
    """Decode each row, and encode its text without the tokens that must not be used."""
    os.environ.setdefault("RAYON_NUM_THREADS", "2")
    try:
        answer: dict[str, Any] = {"pieces": find_pieces(**request_of(request))}
    # A panic of code in Rust is not an Exception.
    except BaseException as error:
        answer = {"error": f"{type(error).__name__}: {str(error)[:200]}"}
    sys.stdout.buffer.write(json.dumps(answer).encode())
    sys.stdout.buffer.flush()


def request_of(request: dict[str, Any]) -> dict[str, Any]:
    return {name: request[name] for name in ("file", "rows", "unusable")}


def find_pieces(file: str, rows: list[int], unusable: list[int]) -> list[list[int]]:
    from tokenizers import Tokenizer

    whole = Tokenizer.from_file(file)
    hidden = {token for row in unusable if (token := whole.id_to_token(row)) is not None}
    content = json.loads(Path(file).read_text(encoding="utf-8"))
    # Without added tokens each text is cut into those that the tokenizer itself learned.
    content |= {"added_tokens": [], "post_processor": None, "truncation": None, "padding": None}
    hide(content["model"], hidden)
    cut = Tokenizer.from_str(json.dumps(content))
    refused = {*unusable, unknown_id(content["model"], whole)}
    return [pieces_of(row, whole, cut, refused) for row in rows]


def pieces_of(row: int, whole: Any, cut: Any, refused: Collection[int | None]) -> list[int]:
    """Ids of the pieces of a row's text; empty where not all of it can be cut."""
    text = whole.decode([row], skip_special_tokens=False)
    if not text or _REPLACEMENT in text:
        return []
    ids: list[int] = cut.encode(text, add_special_tokens=False).ids
    return [] if any(one in refused for one in ids) else ids


def unknown_id(model: dict[str, Any], tokenizer: Any) -> int | None:
    """The id of what stands for text without a token."""
    if "unk_id" in model:
        found: int | None = model["unk_id"]
        return found
    token = model.get("unk_token")
    return None if token is None else tokenizer.token_to_id(token)


def hide(model: dict[str, Any], tokens: Collection[str]) -> None:
    """Rename these tokens of a model so that no text has them, and drop merges that use them."""
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
    """Both sides of a merge, and what they become."""
    left, right = pair.split(" ") if isinstance(pair, str) else pair
    return left, right, left + right.removeprefix(prefix)


def rename(token: str) -> str:
    """A name that no text has: NUL is not text that a tokenizer is given here."""
    return f"\0{token}\0"
