r"""Untrusted text in the formats of the projector."""

_NAMED = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def tsv_cell(text: str) -> str:
    r"""Return text between tabs, with the escapes ``\n``, ``\t``, ``\r`` and ``\\``.

    Other controls, line separators and lone surrogates become ``\\uXXXX``, with two backslashes:
    a reader that resolves the four escapes sees the code.

    >>> print(tsv_cell("a\tb\\c"), tsv_cell("\x00"))
    a\tb\\c \\u0000
    """
    return "".join(_NAMED.get(c) or (c if _is_plain(c) else f"\\\\u{ord(c):04x}") for c in text)


def protobuf_text(text: str) -> str:
    r"""Return a string of a protocol buffer in text form; bytes beyond ASCII are octal.

    >>> print(protobuf_text('a"b'), protobuf_text("é"))
    "a\"b" "\303\251"
    """
    body = "".join(
        f"\\{chr(byte)}" if byte in b'"\\' else chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"
        for byte in text.encode("utf-8", "backslashreplace")
    )
    return f'"{body}"'


def _is_plain(c: str) -> bool:
    return c.isprintable() or c in "\u00a0\u3000"
