"""Words as bytes, as vector files hold them, made into tokens."""

from __future__ import annotations

from collections.abc import Iterable


def decode_words(raw_words: Iterable[bytes]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    r"""Tokens, and notes on what a reader has to know about them.

    Bytes that are not UTF-8 become ``\xNN``: unlike surrogate escapes this can be written to any
    file, and words stay distinct.
    """
    tokens: list[str] = []
    undecodable = 0
    for raw in raw_words:
        try:
            tokens.append(raw.decode("utf-8"))
        except UnicodeDecodeError:
            tokens.append(raw.decode("utf-8", "backslashreplace"))
            undecodable += 1
    notes = []
    if undecodable:
        notes.append(f"{undecodable:,} words are not valid UTF-8; their bytes are shown as \\xNN")
    if repeated := len(tokens) - len(set(tokens)):
        notes.append(f"{repeated:,} rows repeat the word of an earlier row")
    return tuple(tokens), tuple(notes)
