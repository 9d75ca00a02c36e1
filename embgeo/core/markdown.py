"""Markdown for comments and summaries: text that is only ever text, and tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from embgeo.core.visible import printable


def escape_markdown(text: str) -> str:
    """Text of which neither Markdown nor HTML nor a table takes anything for its own.

    Character references stand for themselves in all three, and begin neither a mention nor a link.

    >>> escape_markdown("| @team *"), escape_markdown("0.1 ± 0.02 (tokens)")
    ('&#124; &#64;team &#42;', '0.1 ± 0.02 (tokens)')
    >>> escape_markdown("www.example.com, GH-12")
    'www&#46;example.com, GH&#45;12'
    """
    pattern = r"[^\w .;,()−±≥≤×…°-]|_|(?<=[wW]{3})\.|(?<=GH)-"
    return re.sub(pattern, lambda sign: f"&#{ord(sign[0])};", printable(text))


def as_code(text: str) -> str:
    """Text in fixed width."""
    return f"<code>{escape_markdown(text)}</code>" if text else ""


def write_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Lines of a table; the first column flush left, the others flush right."""
    yield f"| {' | '.join(map(escape_markdown, heads))} |"
    yield f"|---|{'--:|' * (len(heads) - 1)}"
    for row in rows:
        yield f"| {' | '.join(map(escape_markdown, row))} |"
