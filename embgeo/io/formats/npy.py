"""numpy's .npy files, mapped."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from embgeo.files.guard import Damaged, short
from embgeo.files.maps import Array, Bytes, count, is_numeric, view, whole_numbers
from embgeo.io.formats.format import Beside
from embgeo.io.model.checkpoint import SAVE_FLOATS, Checkpoint, Tensor

NAME = "npy"
RECOGNIZED = "begins with `\\x93NUMPY`"
READ = "mapped; arrays of Python objects are refused"
EXTRA = ""
MAGIC = b"\x93NUMPY"

#: The limit of numpy for files that are not trusted; plain arrays need about a hundred.
_LONGEST_HEADER = 10_000

#: A header ends within this many bytes.
HEADER_BYTES = 12 + _LONGEST_HEADER

# The header is a Python dict literal. It is matched, not evaluated: headers of plain arrays differ
# in order and spacing only.
_DESCR = re.compile(r"""['"]descr['"]\s*:\s*['"]([<>|=]?)([a-zA-Z])(\d*)['"]\s*""")
_CODE = re.compile(r"[biufc]\d{1,2}|[SU][1-9]\d{0,7}")
_ORDER = re.compile(r"""['"]fortran_order['"]\s*:\s*(True|False)\s*""")
_SHAPE = re.compile(r"""['"]shape['"]\s*:\s*\(([-\d,\sL]*)\)\s*""")
_REST = re.compile(r"\s*\{[\s,]*\}\s*")

_OTHER_ORDER = ">" if np.little_endian else "<"


@dataclass(frozen=True, slots=True)
class NpyHeader:
    """A checked .npy header; the data begin at byte `start`."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    swapped: bool
    fortran: bool
    start: int


def sniff(head: bytes) -> bool:
    return head.startswith(MAGIC)


def open_checkpoint(data: Bytes, _beside: Beside) -> Checkpoint:
    """Open the array of the file, with an empty name."""
    header = read_header(data, len(data))
    rest = data[header.start + count(header.shape) * header.dtype.itemsize :]
    if rest[: len(MAGIC)].tobytes() == MAGIC:
        raise Damaged("several arrays were saved into it in turn", "save them with numpy.savez")
    notes = (f"{len(rest):,} bytes after the array were not read",) if len(rest) else ()
    return Checkpoint(NAME, (array_tensor("", data, header),), notes=notes)


def array_tensor(name: str, data: Bytes, header: NpyHeader) -> Tensor:
    """Return the array after `header`; NotNumbers for an array of strings."""
    if not is_numeric(header.dtype):
        raise NotNumbers("an array of strings, not of numbers")
    return Tensor(name, header.shape, header.dtype.name, lambda: read_array(data, header))


class NotNumbers(Damaged):
    """A sound array of objects that are not numbers; `shape` is empty if it is not known."""

    def __init__(self, cause: str, shape: tuple[int, ...] = ()) -> None:
        super().__init__(cause, SAVE_FLOATS)
        self.shape = shape


def read_header(data: Bytes, size: int) -> NpyHeader:
    """Parse the header at the start of `data`; `size` is that of header and array together."""
    start, text = _header_text(data)
    descr, order, shape_text = (p.search(text) for p in (_DESCR, _ORDER, _SHAPE))
    rest = text
    for match in sorted(filter(None, (descr, order, shape_text)), key=lambda m: -m.start()):
        rest = rest[: match.start()] + rest[match.end() :]
    if descr is None or order is None or shape_text is None or not _REST.fullmatch(rest):
        raise NotNumbers(
            f"an array whose header does not describe a plain array: {short(text.strip())}"
        )
    shape = _shape(shape_text[1])
    dtype = _dtype(descr[2] + descr[3], shape)
    promised = count(shape) * dtype.itemsize
    if promised > size - start:
        raise Damaged(f"the header promises {promised:,} bytes, the file holds {size - start:,}")
    return NpyHeader(shape, dtype, descr[1] == _OTHER_ORDER, order[1] == "True", start)


def read_array(data: Bytes, header: NpyHeader) -> Array:
    return view(
        data[header.start :],
        header.dtype,
        header.shape,
        swapped=header.swapped,
        fortran=header.fortran,
    )


def _header_text(data: Bytes) -> tuple[int, str]:
    prefix = data[:12].tobytes()
    if not prefix.startswith(MAGIC) or len(prefix) < 10:
        raise Damaged("not an .npy file, or cut off")
    version = prefix[6]
    if version not in (1, 2, 3):
        raise Damaged(f"version {version} of the .npy format is not known")
    size = 2 if version == 1 else 4
    length = int.from_bytes(prefix[8 : 8 + size], "little")
    start = 8 + size + length
    if length > _LONGEST_HEADER:
        raise Damaged(f"a header of {length:,} bytes does not describe a plain array")
    if start > len(data):
        raise Damaged("the file ends inside its header")
    encoding = "utf-8" if version == 3 else "latin-1"
    return start, data[8 + size : start].tobytes().decode(encoding)


def _dtype(code: str, shape: tuple[int, ...]) -> np.dtype[Any]:
    if code == "O":
        raise NotNumbers("an array of Python objects, which is never unpickled", shape)
    if not _CODE.fullmatch(code):
        raise NotNumbers(f"an array of type {short(code)}, not of numbers", shape)
    try:
        return np.dtype(code)
    except TypeError:
        raise NotNumbers(f"an array of the unknown type {short(code)}", shape) from None


def _shape(text: str) -> tuple[int, ...]:
    # Python 2 wrote long integers with an L.
    parts = [part.strip().removesuffix("L") for part in text.split(",")]
    if parts and not parts[-1]:
        parts.pop()
    return whole_numbers([int(part) for part in parts], "the shape in the header")
