"""The table format of LevelDB, uncompressed: sorted names, each with its bytes."""

from __future__ import annotations

from collections.abc import Iterator

from embgeo.io.bounded.guard import Damaged
from embgeo.io.bounded.protobuf import varint

_MAGIC = 0xDB4775248B80FB57.to_bytes(8, "little")
_FOOTER_BYTES = 48
#: Behind every block: how it is compressed, and a checksum.
_TRAILER_BYTES = 5
_MOST_ENTRIES = 1_000_000
_MOST_BLOCKS = 100_000
_MOST_KEY_BYTES = 256 * 2**20
_LONGEST_KEY = 4096


def entries(data: memoryview) -> Iterator[tuple[bytes, memoryview]]:
    """Every name of the table with its bytes, in their order.

    Raises
    ------
    Damaged
        Also for a table with compressed blocks.
    """
    footer = data[-_FOOTER_BYTES:]
    if len(footer) < _FOOTER_BYTES or bytes(footer[-8:]) != _MAGIC:
        raise Damaged("the table's end is missing")
    # The first of two places is that of an index of another kind, which nobody writes.
    _, position = varint(footer, 0)
    _, position = varint(footer, position)
    seen = key_bytes = 0
    for blocks, (_, place) in enumerate(_block(data, footer, position)):
        if blocks > _MOST_BLOCKS:
            raise Damaged("the table has absurdly many blocks")
        for key, value in _block(data, place, 0):
            seen += 1
            key_bytes += len(key)
            if seen > _MOST_ENTRIES or key_bytes > _MOST_KEY_BYTES:
                raise Damaged("the table has absurdly many entries")
            yield key, value


def _block(
    data: memoryview, place: memoryview, position: int
) -> Iterator[tuple[bytes, memoryview]]:
    """The entries of the block whose offset and length stand at `position` of `place`."""
    start, position = varint(place, position)
    length, _ = varint(place, position)
    if start + length + _TRAILER_BYTES > len(data):
        raise Damaged("a block of the table reaches beyond the end of the file")
    compression = data[start + length]
    if compression:
        kind = "snappy" if compression == 1 else f"method {compression}"
        raise Damaged(
            f"the table is compressed ({kind}), which is not read",
            "save the checkpoint with TensorFlow's own writer, which does not compress",
        )
    return _entries_of(data[start : start + length])


def _entries_of(block: memoryview) -> Iterator[tuple[bytes, memoryview]]:
    """Names share their beginnings with the ones before; the block ends with a list of restarts."""
    if len(block) < 4:
        raise Damaged("a block of the table is cut off")
    end = len(block) - 4 - 4 * int.from_bytes(block[-4:], "little")
    if end < 0:
        raise Damaged("a block of the table is damaged")
    key, position = b"", 0
    while position < end:
        shared, position = varint(block, position)
        fresh, position = varint(block, position)
        length, position = varint(block, position)
        if shared > len(key) or fresh > _LONGEST_KEY or position + fresh + length > end:
            raise Damaged("an entry of the table is damaged")
        key = key[:shared] + bytes(block[position : position + fresh])
        if len(key) > _LONGEST_KEY:
            raise Damaged("a name in the table is absurdly long")
        position += fresh
        yield key, block[position : position + length]
        position += length
