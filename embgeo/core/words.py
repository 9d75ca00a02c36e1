"""Words in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def capital(text: str) -> str:
    """`text` with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def join_words(words: Sequence[str], *, comma: bool = False) -> str:
    """An enumeration; empty without words.

    Parameters
    ----------
    words : sequence of str
    comma : bool
        Whether a comma also stands in front of "and", for long clauses.

    >>> join_words(["a", "b", "c"]), join_words(["a", "b", "c"], comma=True), join_words(["a"])
    ('a, b and c', 'a, b, and c', 'a')
    """
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])}{',' if comma and len(words) > 2 else ''} and {words[-1]}"
