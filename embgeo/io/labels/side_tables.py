r"""Lines and tab-separated columns of files that stand next to a matrix.

Only ``\n`` and ``\r\n`` end a line. A token may hold a newline or a tab, written ``\n`` and
``\t``: a file counts as escaped if every backslash in it begins one of ``\n \t \r \\``, so that
files which simply contain backslashes are read as they stand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_MEANING = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}

#: First cells by which a header row is known (as in TensorBoard's metadata.tsv).
TOKEN_HEADINGS = frozenset({"token", "tokens", "word", "words", "label", "labels", "name", "title"})
COUNT_HEADINGS = frozenset(
    {"count", "counts", "freq", "frequency", "frequencies", "n", "occurrences"}
)


@dataclass(frozen=True, slots=True)
class HeaderRow:
    """Which columns a header row names; None for those it does not."""

    token: int | None
    count: int | None

    @property
    def token_column(self) -> int:
        """The named column of tokens, else the first one that does not hold counts."""
        if self.token is not None:
            return self.token
        return 1 if self.count == 0 else 0


def unescape(texts: list[str]) -> tuple[list[str], int]:
    """`texts` with their escapes resolved if all are escapes, and how many texts changed."""
    marked = [text for text in texts if "\\" in text]
    if not marked or not all(_is_escaped(text) for text in marked):
        return texts, 0
    resolved = [_ESCAPE.sub(lambda match: _MEANING[match[1]], text) for text in texts]
    return resolved, len(marked)


def note_escapes(changed: int, name: str) -> str:
    """The note on tokens whose escapes were resolved."""
    texts = "1 token" if changed == 1 else f"{changed:,} tokens"
    return f"backslash escapes in {texts} of {name} are resolved"


def _is_escaped(text: str) -> bool:
    rest = _ESCAPE.sub(lambda match: "" if match[1] in _MEANING else match[0], text)
    return "\\" not in rest


def header(cells: list[str]) -> HeaderRow | None:
    """The columns that a header row names, None if the row is not a header.

    A row with a number in it is data: ``word<TAB>12`` counts the word "word".
    """
    names = [cell.strip().lower() for cell in cells]
    if any(is_float(name) for name in names):
        return None
    token = next((place for place, name in enumerate(names) if name in TOKEN_HEADINGS), None)
    count = next((place for place, name in enumerate(names) if name in COUNT_HEADINGS), None)
    if len(cells) < 2 or (token is None and count is None):
        return None
    return HeaderRow(token, count)


def is_float(text: str | bytes) -> bool:
    """Whether Python reads the text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
