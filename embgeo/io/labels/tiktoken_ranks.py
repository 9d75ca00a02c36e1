"""tiktoken's files: a token in base64 and its rank a line, in the order of the ids.

Llama 3 and others call such a file ``tokenizer.model``, so it is known by its lines.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path

from embgeo.core.errors import UnreadableFile
from embgeo.io.bounded.small_files import split_lines
from embgeo.io.labels.readable import from_bytes
from embgeo.io.labels.tokenizer_json import in_order
from embgeo.io.labels.vocabulary import Vocabulary

SUFFIX = ".tiktoken"

_LINE = re.compile(r"((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==|[A-Za-z0-9+/]=))?) (\d{1,9})")
_LOOKED_AT = 3


def is_ranks(text: str) -> bool:
    """Whether the first lines are base64 with the ranks 0, 1, 2."""
    lines = text[:4096].split("\n")[:_LOOKED_AT]
    found = [_LINE.fullmatch(line.rstrip("\r")) for line in lines]
    return len(found) == _LOOKED_AT and all(
        match is not None and match[1] and int(match[2]) == rank for rank, match in enumerate(found)
    )


def from_ranks(text: str, path: Path) -> Vocabulary:
    """The tokens in the order of their ranks; bytes that are no UTF-8 as ``<0xE2>``.

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
    return Vocabulary(tokens, f"{path.name} (tiktoken's tokens, decoded)", notes)
