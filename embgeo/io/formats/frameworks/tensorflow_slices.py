"""Variables that TensorFlow 1 cut into slices (``tf.fixed_size_partitioner``).

Each slice has an entry of its own in the index, under a name that holds the variable's name and
where the slice begins, written in TensorFlow's order-preserving code.
"""

from __future__ import annotations

from embgeo.io.bounded.guard import Damaged
from embgeo.io.bounded.maps import MOST_DIMENSIONS, whole_numbers

#: How such a name begins; the names of whole tensors begin otherwise.
SIGN = b"\0"

_ESCAPED_ZERO, _ESCAPED_LAST = b"\0\xff", b"\xff\0"
_END = b"\0\1"


def name_and_start(key: bytes) -> tuple[bytes, tuple[int, ...]]:
    """Whose slice it is, and its first element.

    >>> name_and_start(b"\\0part\\0\\1\\1\\2\\xc0\\x65\\xc0\\x64\\x80\\x7f")
    (b'part', (101, 0))

    Raises
    ------
    Damaged
    """
    end = key.find(_END, 1)
    if not key.startswith(SIGN) or end < 0:
        raise Damaged("the name of a slice is damaged")
    name = key[1:end].replace(_ESCAPED_ZERO, b"\0").replace(_ESCAPED_LAST, b"\xff")
    position = end + len(_END)
    length = _byte(key, position)
    dimensions = int.from_bytes(key[position + 1 : position + 1 + length])
    if length > 2 or dimensions > MOST_DIMENSIONS:
        raise Damaged("a slice has absurdly many dimensions")
    position += 1 + length
    first = []
    for _ in range(dimensions):
        start, position = _signed(key, position)
        _, position = _signed(key, position)  # the length, -1 for all there is
        first.append(start)
    return name, whole_numbers(first, "the place of a slice")


def _signed(key: bytes, position: int) -> tuple[int, int]:
    """A number, and what follows it; as many bytes as it begins with ones, all flipped if < 0."""
    flip = 0 if _byte(key, position) & 0x80 else 0xFF
    size = 1
    while size < 9 and (_byte(key, position + size // 8) ^ flip) & 0x80 >> size % 8:
        size += 1
    if position + size > len(key) or size > 8:
        raise Damaged("the name of a slice is damaged")
    number = int.from_bytes(byte ^ flip for byte in key[position : position + size])
    number &= (1 << (7 * size - 1)) - 1
    return (-number - 1 if flip else number), position + size


def _byte(key: bytes, position: int) -> int:
    if position >= len(key):
        raise Damaged("the name of a slice is damaged")
    return key[position]
