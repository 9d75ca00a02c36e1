r"""Hostile text in the formats of the projector and of YAML."""

from __future__ import annotations

import json

_NAMED = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def tsv_cell(text: str) -> str:
    r"""Text between tabs: ``\n``, ``\t``, ``\r`` and ``\\`` for what would end it.

    Other controls, separators of lines and lone surrogates become ``\\uXXXX``, spelled with two
    backslashes: a reader that resolves the four escapes sees the code.

    >>> print(tsv_cell("a\tb\\c"), tsv_cell("\x00"))
    a\tb\\c \\u0000
    """
    return "".join(_NAMED.get(c) or (c if _is_plain(c) else f"\\\\u{ord(c):04x}") for c in text)


def protobuf_text(text: str) -> str:
    r"""A string of a protocol buffer in text form; everything beyond ASCII as octal bytes.

    >>> print(protobuf_text('a"b'), protobuf_text("é"))
    "a\"b" "\303\251"
    """
    body = "".join(
        f"\\{chr(byte)}" if byte in b'"\\' else chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"
        for byte in text.encode("utf-8", "backslashreplace")
    )
    return f'"{body}"'


def yaml_text(text: str) -> str:
    r"""A double-quoted YAML scalar on one line.

    >>> print(yaml_text("a: b # \n"))
    "a: b # \n"
    """
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(c if _is_plain(c) else _code(ord(c)) for c in quoted)


def _is_plain(c: str) -> bool:
    return c.isprintable() or c in "\u00a0\u3000"


def _code(point: int) -> str:
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"
