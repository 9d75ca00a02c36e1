"""GGUF files of llama.cpp: plain numbers are mapped, quantized ones decoded block by block."""

import struct
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

import numpy as np

from embgeo.core.special import Role, SpecialToken
from embgeo.files import maps
from embgeo.files.guard import Damaged, list_short, plain, short
from embgeo.files.scratch import fill_rows
from embgeo.files.small_files import safe_text
from embgeo.io.formats.format import Beside
from embgeo.io.labels.vocabulary import READERS, Scheme, guess_scheme
from embgeo.io.model.checkpoint import MOST_TENSORS, Checkpoint, Tensor, stored_tensor, unreadable
from embgeo.io.model.facts import ModelFacts

MAGIC = b"GGUF"


#: The largest tokenizers have about a million tokens and merges.
_MOST_ITEMS = 4_000_000
_MOST_TEXT = 128 * 2**20
# ggml writes no lists in lists; without a limit a kilobyte of them would exhaust the stack.
_DEEPEST_ARRAY = 4
#: Bytes of the header that are read at a time at the beginning; then as many as before.
_WINDOW = 2**20
#: The limit of ggml.
_MOST_DIMENSIONS = 4
# llama.cpp writes 32; a huge one would move every tensor beyond the end of the file.
_LARGEST_ALIGNMENT = 2**20

_STRING, _ARRAY, _BOOL = 8, 9, 7
#: Formats of ``struct`` for number types of metadata.
_NUMBERS = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", _BOOL: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip

#: Metadata that is read; other entries are skipped.
TOKENS = "tokenizer.ggml.tokens"
TOKEN_TYPES = "tokenizer.ggml.token_type"
TOKEN_MODEL = "tokenizer.ggml.model"
_ALIGNMENT = "general.alignment"
_PIECES = "split.count"
_TEMPLATE = "tokenizer.chat_template"
#: Rows of tokens by role.
_IDS: dict[str, Role] = {
    "tokenizer.ggml.bos_token_id": "bos",
    "tokenizer.ggml.eos_token_id": "eos",
    "tokenizer.ggml.unknown_token_id": "unk",
    "tokenizer.ggml.padding_token_id": "pad",
}
#: Types of tokens by role: unknown, control, user-defined, unused, byte.
_ROLES: dict[int, Role] = {2: "unk", 3: "special", 4: "added", 5: "unused", 6: "byte"}
_WANTED = frozenset({TOKENS, TOKEN_TYPES, TOKEN_MODEL, _ALIGNMENT, _PIECES, _TEMPLATE, *_IDS})
#: Last parts of the keys of sizes of the model, which begin with its architecture.
_SIZES = frozenset({"vocab_size", "embedding_length", "block_count", "nextn_predict_layers"})

#: Types of ggml: name, numbers in a block, bytes of a block.
TYPES: dict[int, tuple[str, int, int]] = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22), 7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 40),
    10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110), 12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292), 16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136), 24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4),
    27: ("I64", 1, 8), 28: ("F64", 1, 8), 29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2),
    34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66), 39: ("MXFP4", 32, 17), 40: ("NVFP4", 64, 36),
    41: ("Q1_0", 128, 18),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """A tensor in the file: bytes `start` to `end`, rows first in `shape`."""

    name: str
    shape: tuple[int, ...]
    type: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class GGUFHeader:
    """A GGUF file up to its tensors."""

    big_endian: bool
    metadata: dict[str, Any]  # entries of `_WANTED`
    tensors: tuple[TensorInfo, ...]  # of known types, in the order of the file
    unknown: tuple[TensorInfo, ...]  # of unknown types


def read_header(data: maps.Bytes) -> GGUFHeader:
    """Parse the header of a file with the bytes `data`."""
    cursor = _Cursor(data)
    n_tensors, n_entries = cursor.length(), cursor.length()
    if n_tensors > MOST_TENSORS or n_entries > MOST_TENSORS:
        raise Damaged("the header promises implausibly many tensors or entries")
    metadata: dict[str, Any] = {}
    for _ in range(n_entries):
        key = cursor.text()
        kind = cursor.number("I")
        if key in _WANTED or key.rpartition(".")[2] in _SIZES:
            metadata[key] = cursor.value(kind)
        else:
            cursor.skip(kind)
    alignment = metadata.get(_ALIGNMENT, 32)
    if not isinstance(alignment, int) or not 0 < alignment <= _LARGEST_ALIGNMENT:
        raise Damaged("the header's alignment is damaged")
    described = [cursor.tensor() for _ in range(n_tensors)]
    base = -(-cursor.position // alignment) * alignment
    known = tuple(_place(info, base) for info in described if info.type in TYPES)
    if len({info.name for info in known}) < len(known):
        raise Damaged("the header has two tensors of one name")
    maps.check_places(((info.name, info.start, info.end) for info in known), len(data))
    unknown = tuple(info for info in described if info.type not in TYPES)
    return GGUFHeader(cursor.order == ">", metadata, known, unknown)


def _place(info: TensorInfo, base: int) -> TensorInfo:
    _, numbers, length = TYPES[info.type]
    columns = info.shape[-1] if info.shape else 1
    if columns % numbers:
        raise Damaged(f"the rows of {short(info.name)} do not fill its blocks of {numbers} numbers")
    start = base + info.start
    end = start + maps.count(info.shape) // numbers * length
    return TensorInfo(info.name, info.shape, info.type, start, end)


class _Cursor:
    """Reads the header; every length is compared with the rest of the file.

    The bytes come a window at a time: a remote file is not read beyond its header.
    """

    def __init__(self, data: maps.Bytes) -> None:
        self.data, self.end = data, len(data)
        # Slices of a memoryview cost a tenth of those of an array, and there may be a million.
        self.window, self.window_at = memoryview(b""), 0
        self.order = "<"
        self.position = len(MAGIC)
        self.items = 0
        self.text_bytes = 0
        # Lengths of version 1 have 4 bytes. In big-endian files the version, a small number, is in
        # the upper half.
        version = self.number("I")
        if version & 0xFFFF == 0:
            self.order = ">"
            version = int.from_bytes(version.to_bytes(4, "little"), "big")
        if not 1 <= version <= 3:
            raise Damaged(f"version {version} of the GGUF format is not known")
        self.length_code = "I" if version == 1 else "Q"

    def number(self, code: str) -> Any:
        form = self.order + code
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def length(self) -> int:
        return int(self.number(self.length_code))

    def text(self) -> str:
        length = self.length()
        self.text_bytes += length
        if self.text_bytes > _MOST_TEXT:
            raise Damaged("the header holds implausibly much text")
        return bytes(self._take(length)).decode("utf-8", "backslashreplace")

    def _take(self, size: int) -> memoryview:
        start = self.position - self.window_at
        self._jump(size)
        if start + size > len(self.window):
            self.window_at, start = self.position - size, 0
            stop = max(self.position, self.window_at + max(_WINDOW, self.window_at))
            self.window = self.data[self.window_at : stop].data
        return self.window[start : start + size]

    def _jump(self, size: int) -> None:
        if size > self.end - self.position:
            raise Damaged("the file ends inside its header")
        self.position += size

    def _items(self, length: int) -> int:
        """Count the entries of a list against the limit, and return `length`."""
        self.items += length
        if self.items > _MOST_ITEMS:
            raise Damaged("the header's lists have implausibly many entries")
        return length

    def value(self, kind: int) -> Any:
        """Return a number, a text, or a list of either."""
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            return self.number(_code(kind))
        inner, length = self.number("I"), self.length()
        if inner == _STRING:
            return [self.text() for _ in range(self._items(length))]
        code = _code(inner)
        size = struct.calcsize(code) * self._items(length)
        return list(struct.unpack(f"{self.order}{length}{code}", self._take(size)))

    def skip(self, kind: int, depth: int = 0) -> None:
        if kind == _STRING:
            self._jump(self.length())
        elif kind != _ARRAY:
            self._jump(struct.calcsize(_code(kind)))
        elif depth == _DEEPEST_ARRAY:
            raise Damaged("the header's lists are nested too deeply")
        else:
            inner, length = self.number("I"), self.length()
            if inner in (_STRING, _ARRAY):
                for _ in range(self._items(length)):
                    self.skip(inner, depth + 1)
            else:
                self._jump(struct.calcsize(_code(inner)) * length)

    def tensor(self) -> TensorInfo:
        """Return the description of a tensor; its offset counts from the end of the header."""
        name = self.text()
        dimensions = self.number("I")
        if dimensions > _MOST_DIMENSIONS:
            raise Damaged(f"{short(name)} has {dimensions:,} dimensions")
        # The fastest dimension comes first, rows come last.
        sizes = [self.length() for _ in range(dimensions)]
        shape = maps.whole_numbers(sizes[::-1], f"the shape of {short(name)}")
        kind = self.number("I")
        start = self.number("Q")
        return TensorInfo(name, shape, kind, start, start)


def _code(kind: int) -> str:
    if kind not in _NUMBERS:
        raise Damaged(f"the header holds a value of the unknown type {kind}")
    return _NUMBERS[kind]


NAME = "GGUF"
RECOGNIZED = "begins with `GGUF`"
READ = (
    "F32, F16, BF16, F64 and integers are mapped; quantized tensors are decoded when opened; the "
    "vocabulary and token types are read"
)
EXTRA = "gguf"

#: Types that are mapped; all others are dequantized.
PLAIN = {
    "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F64": "float64",
    "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64",
}  # fmt: skip
#: Quantized bytes that are dequantized at a time.
_BLOCK_BYTES = 2 * 2**20

#: Kinds of tokens in llama.cpp other than normal ones.
_TOKEN_TYPES = {2: "unknown", 3: "control", 4: "user-defined", 5: "unused", 6: "byte"}
#: How tokenizers write spaces; for others it is inferred from the tokens.
_SCHEMES: dict[str, Scheme] = {
    "gpt2": "byte-level",
    "llama": "sentencepiece",
    "t5": "sentencepiece",
    "bert": "sentencepiece",
}
_NORMAL = 1


def sniff(head: bytes) -> bool:
    return head.startswith(MAGIC)


def open_checkpoint(data: maps.Bytes, _beside: Beside) -> Checkpoint:
    return read(data)


def read(data: maps.Bytes) -> Checkpoint:
    """Read the header of a file, which may hold no tensor if it is the first of several."""
    header = read_header(data)
    tensors = [_tensor(data, info, header.big_endian) for info in header.tensors]
    tensors += [
        unreadable(
            plain(i.name),
            i.shape,
            "",
            f"is of type {i.type} of ggml, which is not known",
            "convert it with llama-quantize of llama.cpp",
        )
        for i in header.unknown
    ]
    tokens, special, token_notes = _tokens(header)
    return Checkpoint(
        NAME,
        tuple(tensors),
        tokens,
        f"{TOKENS} in the file",
        special=special,
        notes=tuple(token_notes),
        facts=_read_facts(header),
    )


def _read_facts(header: GGUFHeader) -> ModelFacts:
    """Read the sizes in the metadata; their keys begin with the architecture."""
    found: dict[str, int] = {}
    for key, value in header.metadata.items():
        end = key.rpartition(".")[2]
        if end in _SIZES and type(value) is int and 0 < value < 2**40:
            found[end] = value
    layers = found.get("block_count")
    if layers is not None:
        layers -= found.get("nextn_predict_layers", 0)
    stored, pieces = header.metadata.get(TOKENS), header.metadata.get(_PIECES)
    tokens = len(stored) if isinstance(stored, list) else None
    return ModelFacts(
        vocabulary=tokens or found.get("vocab_size"),
        columns=found.get("embedding_length"),
        layers=layers,
        ties_missing_output=True,
        pieces=pieces if type(pieces) is int else 1,
    )


def _tensor(data: maps.Bytes, info: TensorInfo, big_endian: bool) -> Tensor:
    kind = TYPES[info.type][0]
    raw, name = data[info.start : info.end], plain(info.name)
    if kind in PLAIN:
        return stored_tensor(name, raw, PLAIN[kind], info.shape, swapped=big_endian != maps.SWAPPED)
    opened = partial(_dequantize, raw, info, big_endian)
    form = f"{kind} of ggml, as gguf decodes it"
    return Tensor(
        name, info.shape, "float32", opened, parts=(name,), form=form, stored_bytes=len(raw)
    )


def _dequantize(raw: maps.Bytes, info: TensorInfo, big_endian: bool) -> maps.Array:
    kind, _, length = TYPES[info.type]
    if big_endian:
        raise Damaged(
            f"{short(info.name)} is quantized ({kind}) in a file of big-endian byte order",
            "convert it: gguf-convert-endian FILE little",
        )
    expand = _dequantizer(info)
    step = max(1, _BLOCK_BYTES // length)
    blocks = maps.view(raw, np.dtype(np.uint8), (len(raw) // length, length))
    pieces = (
        expand(np.ascontiguousarray(blocks[start : start + step])).reshape(-1)
        for start in range(0, len(blocks), step)
    )
    # Hostile half-precision scales give infinities, which the analysis masks.
    with np.errstate(all="ignore"):
        return fill_rows(pieces, (maps.count(info.shape),)).reshape(info.shape)


def _dequantizer(info: TensorInfo) -> Callable[[maps.Array], maps.Array]:
    kind = TYPES[info.type][0]
    try:
        from gguf.constants import GGMLQuantizationType
        from gguf.quants import dequantize
    except ImportError as error:
        raise Damaged(
            f"{short(info.name)} is quantized ({kind}), which needs an extra package",
            "pip install 'embgeo[gguf]'",
        ) from error
    no_way = Damaged(
        f"{short(info.name)} is of type {kind}, which this gguf package does not dequantize",
        "pip install --upgrade gguf",
    )
    if not hasattr(GGMLQuantizationType, kind):
        raise no_way

    def expand(blocks: maps.Array) -> maps.Array:
        try:
            return np.asarray(dequantize(blocks, GGMLQuantizationType[kind]))
        except NotImplementedError:
            raise no_way from None

    return expand


def _tokens(
    header: GGUFHeader,
) -> tuple[tuple[str, ...] | None, tuple[SpecialToken, ...], list[str]]:
    """Return the decoded vocabulary, its special tokens, and notes on tokens that are not text."""
    stored = header.metadata.get(TOKENS)
    if not isinstance(stored, list) or not stored or not isinstance(stored[0], str):
        return None, (), []
    types = _token_types(header.metadata.get(TOKEN_TYPES), len(stored))
    scheme = _SCHEMES.get(str(header.metadata.get(TOKEN_MODEL))) or guess_scheme(stored)
    read = READERS[scheme]
    # Control tokens and the like are not encoded.
    tokens = tuple(
        safe_text(read(token) if kind == _NORMAL else token)
        for token, kind in zip(stored, types, strict=True)
    )
    notes = []
    for number, name in _TOKEN_TYPES.items():
        named = [token for token, kind in zip(tokens, types, strict=True) if kind == number]
        if named:
            notes.append(f"{name} tokens: {list_short(named)}")
    return tokens, tuple(_list_special(header, tokens, types)), notes


def _list_special(
    header: GGUFHeader, tokens: tuple[str, ...], types: list[int]
) -> Iterator[SpecialToken]:
    """Yield the tokens that a type, an id of a role or the chat template names, by row."""
    roles: dict[int, set[Role]] = defaultdict(set)
    for row, kind in enumerate(types):
        if kind in _ROLES:
            roles[row].add(_ROLES[kind])
    for key, role in _IDS.items():
        place = header.metadata.get(key)
        if type(place) is int and 0 <= place < len(tokens):
            roles[place].add(role)
    template = header.metadata.get(_TEMPLATE)
    for row in list(roles) if isinstance(template, str) else ():
        if tokens[row].strip() and not tokens[row].isidentifier() and tokens[row] in str(template):
            roles[row].add("template")
    for row in sorted(roles):
        ordered = tuple(role for role in get_args(Role) if role in roles[row])
        yield SpecialToken(tokens[row], row, ordered)


def _token_types(stored: Any, length: int) -> list[int]:
    if isinstance(stored, list) and len(stored) == length and isinstance(stored[0], int):
        return stored
    return [_NORMAL] * length
