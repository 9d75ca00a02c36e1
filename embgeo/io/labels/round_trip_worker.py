"""Which tokens no text leads to, run by :mod:`embgeo.io.bounded.worker_main`.

The request names a tokenizer.json and the number of ids; the answer is a line of JSON. It imports
nothing of embgeo.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

#: Texts in front of a token, for tokens that only continue a word.
_BEFORE = ("1", "q", "x", "-")


def serve(request: dict[str, Any], _limit_time: Callable[[float], None]) -> None:
    """Decode each id, encode the text, and look for the id."""
    os.environ.setdefault("RAYON_NUM_THREADS", "2")
    try:
        answer: dict[str, Any] = {"unreachable": find_unreachable(request["file"], request["size"])}
    # A panic of code in Rust is not an Exception.
    except BaseException as error:
        answer = {"error": f"{type(error).__name__}: {str(error)[:200]}"}
    sys.stdout.buffer.write(json.dumps(answer).encode())
    sys.stdout.buffer.flush()


def find_unreachable(file: str, size: int) -> list[int]:
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
