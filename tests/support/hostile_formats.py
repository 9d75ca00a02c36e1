"""Files of numbers whose headers lie: near 2^63, outside of the file, nested, endless."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.io.test_embedding_libraries_hostile import HOSTILE as FASTTEXT
from tests.io.test_hostile_binary import NPY, SAFETENSORS
from tests.io.test_hostile_frameworks import (
    GGUF,
    ONNX,
    RAW,
    list_of,
    nested_messages,
)
from tests.support.embedding_files import fasttext_bytes
from tests.support.framework_files import field, onnx_bytes, onnx_tensor, varint
from tests.support.hostile_cases import Build, Case, from_table, hold_content, number_cases

FIXTURES = Path(__file__).parents[2] / "fixtures" / "hostile"
DEEP = 100_000

#: Of the fixtures, those that are a matrix with something odd next to it.
_SOUND = ("os_system.pt", "hostile_vocab.npy")


def fixture(path: Path) -> Build:
    return lambda folder: hold_content(path.read_bytes(), path.name)(folder)


TEXT: dict[str, Callable[[], bytes]] = {
    "a million columns": lambda: b"the" + b" 0.5" * 1_000_000 + b"\n",
    "two million columns in two rows": lambda: (b"the" + b" 0.5" * 2_000_000 + b"\n") * 2,
    "a header of 2^63 by 2^63": lambda: b"9223372036854775807 9223372036854775807\na 1 2\n",
    "a header of a billion rows": lambda: b"1000000000 300\n" + b"a" + b" 1" * 300 + b"\n",
    "a negative header": lambda: b"-3 -4\na 1 2\n",
    "a header of 4,000 digits": lambda: b"9" * 4000 + b" 3\na 1 2 3\n",
    "rows of other lengths": lambda: b"a 1 2 3\nb 1 2\nc 1 2 3 4\n" * 1000,
    "one endless line": lambda: b"the" + b" 0" * 10_000_000,
    "one endless word": lambda: b"a" * 20_000_000 + b" 1 2\n",
    "twelve million empty lines": lambda: b"a 1 2\n" + b"\n" * 12_000_000,
    "NUL bytes": lambda: b"a 1 2\nb\0c 1\0 2\n" * 1000,
    "no numbers": lambda: b"a x y\nb x y\n" * 1000,
    "numbers of a million digits": lambda: b"a " + b"9" * 1_000_000 + b" 1\nb 1 2\n",
    "numbers beyond floats": lambda: b"a 1e999999999 1\nb -1e999999999 2\n",
    "invalid UTF-8": lambda: b"\xff\xfe\xfd 1 2\n\xc3( 1 2\n",
    "UTF-16 cut in a pair": lambda: b"\xff\xfe" + "a 1 2\n".encode("utf-16-le") + b"\x00",
    "a tab table of a million columns": lambda: b"0.5" + b"\t1" * 1_000_001 + b"\n",
    "a comma table of a million columns": lambda: (b"0.5" + b",1" * 1_000_001 + b"\n") * 10,
    "a comma table of other lengths": lambda: b"w,x,y\na,1,2\nb,1\n" + b"c,1,2\n" * 1000,
    "a comma table with a word at its end": lambda: b"a,1,2\n" * 2_000_000 + b"a,1,x\n",
    "a quoted table with a word at its end": lambda: b'"a",1,2\n' * 1_500_000 + b'"a",1,x\n',
    "numbers with a word at their end": lambda: b".5 2\n" * 2_400_000 + b".5 x\n",
    "quotes that are never closed": lambda: b"w,x,y\na,1,2\n" + b'"b,1,2\n' * 100_001,
    "a quoted word of megabytes": lambda: b'w,x,y\na,1,2\n"' + b"b" * 10_000_000 + b'",1,2\n',
    "headings and nothing else": lambda: b"word,0,1,2,3\n",
    "commas only": lambda: b"," * 5_000_000,
    "tabs only": lambda: b"\t" * 5_000_000,
}

#: Sound in the end: lines may be empty, and words of old vectors are often no UTF-8.
SOUND_TEXT = ("a header of a billion rows", "twelve million empty lines", "invalid UTF-8")

#: Twelve megabytes of the shortest lines, of which only the last one may be wrong.
DENSE_TEXT = (
    "twelve million empty lines",
    "a comma table with a word at its end",
    "a quoted table with a word at its end",
    "numbers with a word at their end",
)

ODD: dict[str, Callable[[], bytes]] = {
    "word2vec binary near 2^63": lambda: b"9223372036854775807 4\nthe " + bytes(64),
    "word2vec binary of many rows": lambda: b"1000000000 1024\nthe " + bytes(64),
    "word2vec binary without a space": lambda: b"2 3\n" + b"a" * 5_000_000 + bytes(100),
    "word2vec binary of 0 columns": lambda: b"5 0\na b c d e ",
    "nothing but zeros": lambda: bytes(1_000_000),
    "one byte": lambda: b"\x80",
}

JSON_DEEP = b"[" * DEEP + b"]" * DEEP
OBJECTS_DEEP = b'{"a":' * DEEP + b"1" + b"}" * DEEP


def safetensors(header: bytes, length: int | None = None) -> bytes:
    return struct.pack("<Q", len(header) if length is None else length) + header + bytes(16)


LENGTHS = (2**31 - 1, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1)

HEADERS: dict[str, dict[str, Callable[[], bytes]]] = {
    "safetensors": {
        **{f"header of {n} bytes": lambda n=n: safetensors(b'{"w":{}}', n) for n in LENGTHS},
        "lists nested 100,000 deep": lambda: safetensors(b'{"w":' + JSON_DEEP + b"}"),
        "objects nested 100,000 deep": lambda: safetensors(OBJECTS_DEEP),
        "a million entries": lambda: safetensors(
            b"{" + b",".join(b'"%d":[]' % k for k in range(1_000_000)) + b"}"
        ),
        "a name that a pattern is slow for": lambda: safetensors(
            b'{"a":{"dtype":"F32","shape":[0,2],"data_offsets":[0,0]},"' + b"_visual" * 100_000
            + b'-.wte":{"dtype":"F32","shape":[0,2],"data_offsets":[0,0]}}'
        ),
        "empty lists": lambda: safetensors(b'{"w":[' + b"[]," * 8_000_000 + b"[]]}"),
        "an integer of a million digits": lambda: safetensors(b'{"w":' + b"9" * 1_000_000 + b"}"),
    },
    "gguf": {
        **{f"{n} tensors": lambda n=n: b"GGUF" + struct.pack("<IQQ", 3, n, 0) for n in LENGTHS},
        **{f"{n} entries": lambda n=n: b"GGUF" + struct.pack("<IQQ", 3, 0, n) for n in LENGTHS},
        **{f"a list of {n}": lambda n=n: list_of(8, n) for n in LENGTHS},
        **{
            f"a text of {n} bytes": lambda n=n: (
                b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", n) + b"k"
            )
            for n in LENGTHS
        },
        "lists nested 100,000 deep": lambda: (
            b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"k" + struct.pack("<I", 9)
            + struct.pack("<IQ", 9, 1) * DEEP
        ),
        "four million empty texts": lambda: list_of(8, 3_900_000, bytes(8 * 3_900_000)),
    },
    "onnx": {
        **{
            f"a message of {n} bytes": lambda n=n: field(1, 8) + field(2, "p") + b"\x3a" + varint(n)
            for n in LENGTHS
        },
        "messages nested 100,000 deep": lambda: onnx_bytes([nested_messages(3000)]),
        "millions of empty tensors": lambda: field(1, 8) + field(2, "p")
        + field(7, b"\x2a\x00" * 6_000_000),
        "a tensor of millions of sizes": lambda: onnx_bytes(
            [b"\x08\x01" * 3_000_000 + onnx_tensor("w", [], RAW)]
        ),
    },
    "fastText": {
        "rows near 2^63": lambda: fasttext_bytes(inputs=struct.pack("<qq", 2**63 - 1, 3)),
        "rows and columns near 2^63": lambda: fasttext_bytes(
            inputs=struct.pack("<qq", 2**63 - 1, 2**63 - 1)
        ),
        "ten million words of a letter": lambda: fasttext_bytes(
            ((b"a", 1, 0), (b"b", 1, 0)), sizes=(10_000_000, 10_000_000, 0)
        )[:92]
        + (b"a\0" + struct.pack("<qb", 1, 0)) * 10_000_000,
        "twelve megabytes of one word": lambda: fasttext_bytes(
            ((b"a" * 12_000_000, 1, 0), (b"b", 1, 0))
        ),
    },
    "numpy": {
        f"header of {n} bytes": lambda n=n: b"\x93NUMPY\x02\x00" + struct.pack("<I", n) + b"{}"
        for n in (2**31 - 1, 2**31, 2**32 - 1)
    },
    "JSON": {
        "lists nested 100,000 deep": lambda: JSON_DEEP,
        "objects nested 100,000 deep": lambda: OBJECTS_DEEP,
        "an index nested 100,000 deep": lambda: b'{"weight_map": ' + OBJECTS_DEEP + b"}",
        "thirty million empty lists": lambda: b'{"weight_map": {"a": [' + b"[]," * 30_000_000,
    },
}  # fmt: skip


def cases() -> list[Case]:
    made = [
        Case(path.name, "fixture", fixture(path), opens=path.name in _SOUND)
        for path in sorted(FIXTURES.iterdir())
        if path.suffix != ".json"
    ]
    made += from_table("numpy", NPY, bytes)
    made += from_table("safetensors", SAFETENSORS, bytes)
    made += from_table("fastText", FASTTEXT, bytes)
    made += number_cases("gguf", GGUF, bytes)
    made += number_cases("onnx", ONNX, bytes)
    for kind, table in (("text", TEXT), ("odd bytes", ODD), *HEADERS.items()):
        made += [
            Case(name, kind, hold_content(make), name in SOUND_TEXT, dense=name in DENSE_TEXT)
            for name, make in table.items()
        ]
    squares = np.zeros(40_000).tobytes()
    made.append(Case("zeros that look like GloVe's", "odd bytes", hold_content(squares)))
    return made
