"""Markdown for comments and summaries: escaped text and tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from embgeo.core.visible import printable


def escape_markdown(text: str) -> str:
    """Text in which neither Markdown nor HTML nor a table finds markup, mentions or links.

    All three show character references literally.

    >>> escape_markdown("| @team *"), escape_markdown("0.1 ± 0.02 (tokens)")
    ('&#124; &#64;team &#42;', '0.1 ± 0.02 (tokens)')
    >>> escape_markdown("www.example.com, GH-12")
    'www&#46;example.com, GH&#45;12'
    """
    pattern = r"[^\w .;,()−±≥≤×…°-]|_|(?<=[wW]{3})\.|(?<=GH)-"
    return re.sub(pattern, lambda sign: f"&#{ord(sign[0])};", printable(text))


def as_code(text: str) -> str:
    """Text in a fixed-width font."""
    return f"<code>{escape_markdown(text)}</code>" if text else ""


def write_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Lines of a table with the first column aligned left and the others right."""
    yield f"| {' | '.join(map(escape_markdown, heads))} |"
    yield f"|---|{'--:|' * (len(heads) - 1)}"
    for row in rows:
        yield f"| {' | '.join(map(escape_markdown, row))} |"
