"""word2vec's binary format: a header line, then a word, a space and d float32 for each row.

Vectors lie between words, so they are copied instead of mapped, beyond `scratch.MEMORY_BYTES` into
a temporary file. The original program ends each vector with a newline, gensim does not.
"""

import mmap
import re
from array import array
from functools import partial

import numpy as np
import numpy.typing as npt

from embgeo.core.matrix import FileStamp
from embgeo.files import scratch
from embgeo.files.guard import Damaged
from embgeo.files.maps import Bytes, stamp_of
from embgeo.io.formats import word_vectors
from embgeo.io.formats.format import Beside
from embgeo.io.formats.word_lists import WORDS_OF_FILE, WordList
from embgeo.io.model.checkpoint import Checkpoint, Tensor

NAME = "word2vec binary"
RECOGNIZED = "a first line of two numbers, then a word, a space and binary data"
READ = "vectors are read into memory or a temporary file"
EXTRA = ""

#: The original program cuts words at 50 bytes, gensim does not.
MAX_WORD_BYTES = 65_536
_HEADER = re.compile(rb"(\d{1,18})[ \t]+(\d{1,9})[ \t]*\n")


def sniff(head: bytes) -> bool:
    header = _HEADER.match(head)
    if header is None or word_vectors.sniff(head):
        return False
    word, space, vector = head[header.end() :].partition(b" ")
    return bool(word and space and vector)


def open_checkpoint(data: Bytes, _beside: Beside) -> Checkpoint:
    file = stamp_of(data)
    with file.open() as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        header = _HEADER.match(content[:64])
        if header is None:
            raise Damaged("no word2vec header")
        promised, d = int(header[1]), int(header[2])
        if promised == 0 or d == 0:
            raise Damaged(f"its header says {promised:,} vectors of {d:,} numbers")
        words, starts, end = _scan(content, header.end(), promised, 4 * d)
    tokens, notes = words.finish()
    if (left := len(data) - end) > 1:
        notes += (f"{left:,} bytes after the last promised vector were not read",)
    tensor = Tensor("vectors", (promised, d), "float32", partial(_vectors, file, starts, d))
    return Checkpoint(NAME, (tensor,), tokens, WORDS_OF_FILE, notes=notes)


def _scan(
    data: mmap.mmap, start: int, promised: int, width: int
) -> tuple[WordList, npt.NDArray[np.int64], int]:
    """Return the words, the offset of each vector, and the end of the last one."""
    words = WordList(len(data))
    starts = array("q")
    size = len(data)
    position = start
    # The count of the header only ends the loop; no memory is allocated for it.
    while len(words) < promised:
        space = data.find(b" ", position, position + MAX_WORD_BYTES)
        if space < 0 and size - position > MAX_WORD_BYTES:
            raise Damaged(
                f"no word ends within {MAX_WORD_BYTES:,} bytes after vector {len(words):,}",
            )
        if space < 0 or space + 1 + width > size:
            raise Damaged(
                f"the file holds {len(words):,} vectors, its header promises {promised:,}",
            )
        words.add(data[position:space].lstrip(b"\n"))
        starts.append(space + 1)
        position = space + 1 + width
    return words, np.array(starts, dtype=np.int64), position


def _vectors(file: FileStamp, starts: npt.NDArray[np.int64], d: int) -> npt.NDArray[np.float32]:
    out = scratch.empty((len(starts), d))
    width = 4 * d
    target = out.data.cast("B")
    with file.open() as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for row, start in enumerate(starts.tolist()):
            target[row * width : (row + 1) * width] = data[start : start + width]
    target.release()
    if not np.little_endian:
        out.byteswap(inplace=True)
    return out
