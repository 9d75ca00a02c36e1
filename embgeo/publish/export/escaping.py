r"""Untrusted text in the formats of the projector and of YAML."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

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


def yaml_text(text: str) -> str:
    r"""Return a double-quoted YAML scalar on one line.

    >>> print(yaml_text("a: b # \n"))
    "a: b # \n"
    """
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(c if _is_plain(c) else _code(ord(c)) for c in quoted)


def yaml_lines(content: Mapping[str, Any], indent: int = 0) -> Iterator[str]:
    r"""Yield a YAML mapping of scalars, mappings and lists of mappings, line by line.

    >>> print(*yaml_lines({"a": [{"b": 1, "c": {"d": "x"}}]}), sep="\n")
    a:
    - b: 1
      c:
        d: "x"
    """
    pad = " " * indent
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield f"{pad}{key}:"
            yield from yaml_lines(value, indent + 2)
        elif isinstance(value, list):
            yield f"{pad}{key}:"
            for entry in value:
                first, *others = yaml_lines(entry, indent + 2)
                yield f"{pad}- {first.lstrip()}"
                yield from others
        else:
            yield f"{pad}{key}: {_yaml_scalar(value)}"


def _yaml_scalar(value: Any) -> str:
    if isinstance(value, str):
        return yaml_text(value)
    text = json.dumps(value)
    # YAML 1.1 takes 1e-05 for text: its numbers have a point.
    return text.replace("e", ".0e") if isinstance(value, float) and "." not in text else text


def _is_plain(c: str) -> bool:
    return c.isprintable() or c in "\u00a0\u3000"


def _code(point: int) -> str:
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"
