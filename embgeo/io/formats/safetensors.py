"""safetensors files, mapped.

The numpy interface of the safetensors library does not support bfloat16 and the 8-bit floats.
"""

import json
import re
from dataclasses import dataclass

from embgeo.files.guard import Damaged, plain, short
from embgeo.files.maps import Bytes, check_places, count, whole_numbers
from embgeo.files.small_files import check_json
from embgeo.io.formats.format import Beside
from embgeo.io.formats.stacked import stack_vectors
from embgeo.io.model import checkpoint

NAME = "safetensors"
RECOGNIZED = "the length of a header, then JSON"
READ = "mapped; the header is read"
EXTRA = ""

#: The limit of the format.
LONGEST_HEADER = 100_000_000
LENGTH_BYTES = 8
_OBJECT = re.compile(rb'\{\s*["}\s]')
METADATA = "__metadata__"

#: Names of types in the format, and in numpy or ml_dtypes.
DTYPES = {
    "BOOL": "bool",
    "U8": "uint8", "U16": "uint16", "U32": "uint32", "U64": "uint64",
    "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64",
    "F8_E4M3": "float8_e4m3fn", "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2": "float8_e5m2", "F8_E5M2FNUZ": "float8_e5m2fnuz", "F8_E8M0": "float8_e8m0fnu",
    "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64", "C64": "complex64",
}  # fmt: skip

#: Each entry of the header has such a key once; a name may hold it, too.
_PLACE = '"data_offsets"'

#: Bits of types that do not fill bytes; tensors of these types are left out with a note.
_PACKED = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """A tensor in the header; offsets count from the end of the header."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


def sniff(head: bytes) -> bool:
    """Recognize the length of a header, with a zero byte unlike text, and the start of an object.

    A file with an absurd length is recognized, so that the error names the format.
    """
    return b"\0" in head[:LENGTH_BYTES] and _OBJECT.match(head, LENGTH_BYTES) is not None


def open_checkpoint(data: Bytes, _beside: Beside) -> checkpoint.Checkpoint:
    start, entries = read_entries(data)
    body = data[start:]
    tensors = []
    for entry in entries:
        name, raw = plain(entry.name), body[entry.start : entry.end]
        bits = _PACKED.get(entry.dtype)
        if bits is None:
            tensors.append(checkpoint.stored_tensor(name, raw, DTYPES[entry.dtype], entry.shape))
        elif count(entry.shape) * bits == 8 * len(raw):
            packed = f"is of the type {entry.dtype}, which packs several numbers into a byte"
            tensors.append(
                checkpoint.unreadable(name, entry.shape, "", packed, checkpoint.SAVE_FLOATS)
            )
        else:
            raise Damaged(f"{short(name)} has other than the bytes that its shape asks for")
    return stack_vectors(checkpoint.Checkpoint(NAME, tuple(tensors)))


def read_entries(data: Bytes) -> tuple[int, list[TensorEntry]]:
    """Read the end of the header, and its tensors in the order of their bytes.

    Tensors do not overlap and leave no byte over, as the format requires.
    """
    start, header = read_header(data)
    entries = [_entry(name, facts) for name, facts in header.items() if name != METADATA]
    entries.sort(key=lambda entry: (entry.start, entry.end))
    check_places(((e.name, e.start, e.end) for e in entries), len(data) - start)
    unclaimed = len(data) - start - sum(entry.end - entry.start for entry in entries)
    if unclaimed:
        cause = f"{unclaimed:,} bytes after its header belong to no tensor"
        raise Damaged(cause, "save it again with safetensors, or copy it again")
    return start, entries


def read_header(data: Bytes) -> tuple[int, dict[str, object]]:
    """Read the end of the header, and its entries by name."""
    if len(data) < LENGTH_BYTES:
        raise Damaged("the file ends inside its header")
    length = int.from_bytes(data[:LENGTH_BYTES].tobytes(), "little")
    if length > LONGEST_HEADER:
        raise Damaged(f"a header of {length:,} bytes is beyond the format's limit")
    start = LENGTH_BYTES + length
    if start > len(data):
        raise Damaged("the file ends inside its header")
    text = data[LENGTH_BYTES:start].tobytes().decode("utf-8")
    check_json(text)
    if (held := text.count(_PLACE)) > checkpoint.MOST_TENSORS:
        raise checkpoint.too_many_tensors(held)
    header = json.loads(text, object_pairs_hook=without_repeats)
    if not isinstance(header, dict):
        raise Damaged("the header is not a JSON object")
    return start, header


def without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Make a JSON object, none of whose keys stands twice."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise Damaged("two entries have one name")
    return made


def _entry(name: str, facts: object) -> TensorEntry:
    label = short(name)
    if not isinstance(facts, dict):
        raise Damaged(f"{label} has no description")
    dtype = facts.get("dtype")
    if not isinstance(dtype, str) or (dtype not in DTYPES and dtype not in _PACKED):
        raise Damaged(f"{label} has the unknown type {short(str(dtype))}")
    shape = whole_numbers(facts.get("shape"), f"the shape of {label}")
    offsets = whole_numbers(facts.get("data_offsets"), f"the place of {label}")
    if len(offsets) != 2 or offsets[0] > offsets[1]:
        raise Damaged(f"{label} has no place in the file")
    return TensorEntry(name, dtype, shape, offsets[0], offsets[1])
