r"""Tab-separated tables of tokens and counts: escapes and header rows.

Only ``\n`` and ``\r\n`` end a line. A token may hold a newline or a tab, written ``\n`` and
``\t``. A file is escaped if every backslash in it begins one of ``\n \t \r \\``; other files
with backslashes are read literally.
"""

from __future__ import annotations

import re
from pathlib import Path

_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_MEANING = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}

#: Headings, as in the metadata.tsv of TensorBoard.
TOKEN_HEADINGS = frozenset({"token", "tokens", "word", "words", "label", "labels", "name", "title"})
COUNT_HEADINGS = frozenset(
    {"count", "counts", "freq", "frequency", "frequencies", "n", "occurrences"}
)


def unescape(texts: list[str], path: Path) -> tuple[list[str], tuple[str, ...]]:
    """Resolve escapes if every backslash begins one, and note how many tokens changed."""
    marked = [text for text in texts if "\\" in text]
    if not marked or not all(map(_is_escaped, marked)):
        return texts, ()
    resolved = [_ESCAPE.sub(lambda match: _MEANING[match[1]], text) for text in texts]
    changed = "1 token" if len(marked) == 1 else f"{len(marked):,} tokens"
    return resolved, (f"backslash escapes in {changed} of {path.name} are resolved",)


def _is_escaped(text: str) -> bool:
    rest = _ESCAPE.sub(lambda match: "" if match[1] in _MEANING else match[0], text)
    return "\\" not in rest


def header_note(path: Path) -> str:
    return f"the first line of {path.name} is taken for a header"


def find_columns(cells: list[str]) -> tuple[int, int | None] | None:
    """The columns of tokens and of counts that a header row names; None if it is not a header.

    A row with a number in it is data: ``word<TAB>12`` counts the word "word". Where only counts are
    named, tokens are in the first other column.
    """
    names = [cell.strip().lower() for cell in cells]
    if any(is_float(name) for name in names):
        return None
    token = next((place for place, name in enumerate(names) if name in TOKEN_HEADINGS), None)
    count = next((place for place, name in enumerate(names) if name in COUNT_HEADINGS), None)
    if len(cells) < 2 or (token is None and count is None):
        return None
    return (int(count == 0) if token is None else token), count


def is_float(text: str | bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
