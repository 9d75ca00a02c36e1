"""GloVe's binary format: float64 numbers without a header, next to a ``vocab.txt``.

For each word d numbers and a bias, then the same for each word as a context. ``vectors``, the sum
of ``word`` and ``context``, is taken for the embedding, as the paper recommends and as the text
output of the original program does (``-model 2``, its default). Source: Pennington, Socher and
Manning (2014), "GloVe: Global Vectors for Word Representation", section 4.2.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from embgeo.core.errors import UnreadableFile
from embgeo.io.bounded.companions import COPY_IT, FOREIGN_LINK, is_foreign_link
from embgeo.io.bounded.guard import Damaged
from embgeo.io.bounded.maps import SWAPPED, Array, map_file, view
from embgeo.io.bounded.scratch import fill_rows
from embgeo.io.bounded.small_files import read_bytes
from embgeo.io.checkpoint import Checkpoint, Tensor
from embgeo.io.labels.counts_file import LARGEST_COUNT
from embgeo.io.labels.word_lists import decode_words

NAME = "GloVe binary"
RECOGNIZED = "a vocab.txt of words and counts next to it that fits its size"
READ = "vectors are mapped; their sum is read into memory or a temporary file"
EXTRA = ""

VOCABULARY = "vocab.txt"
_WIDEST = 65_536
_SAMPLE = 4096
_BLOCK_ROWS = 4096

# Range of median magnitudes of trained vectors; other bytes read as float64 are hardly ever in it.
_SMALLEST, _LARGEST = 1e-6, 1e4


def belongs(path: Path) -> bool:
    try:
        words, _ = _vocabulary(path.with_name(VOCABULARY))
        size = path.stat().st_size
    except (UnreadableFile, Damaged, OSError):
        return False
    return _width(size, len(words)) is not None and _are_numbers(path)


def open_checkpoint(path: Path) -> Checkpoint:
    data = map_file(path)
    words, counts = _vocabulary(path.with_name(VOCABULARY))
    width = _width(len(data), len(words))
    if width is None:
        raise Damaged(
            f"its size does not fit the {len(words):,} words of {VOCABULARY}",
            f"put the {VOCABULARY} of the same run next to it",
        )
    n, d = len(words), width - 1
    table = view(data, np.dtype(np.float64), (2, n, width), swapped=SWAPPED)
    if (table[0, :_SAMPLE] >= 1).all():  # GloVe writes them in the same form
        raise Damaged(
            "sums of squared gradients, not vectors",
            "name the file that GloVe's -save-file gave, not that of -gradsq-file",
        )
    tokens, notes = decode_words(words, path)
    parts = {
        "word": table[0, :, :d],
        "context": table[1, :, :d],
        "word_bias": table[0, :, d],
        "context_bias": table[1, :, d],
    }
    total = partial(_sum, parts["word"], parts["context"])
    return Checkpoint(
        path=path,
        format=NAME,
        tensors=(
            Tensor("vectors", (n, d), "float32", total),
            *(
                Tensor(name, p.shape, "float64", partial(np.asarray, p))
                for name, p in parts.items()
            ),
        ),
        files=(path,),
        tokens=tokens,
        tokens_source=f"{VOCABULARY} next to the file",
        notes=("vectors are the sum of word and context vectors, as in GloVe's text", *notes),
        counts=counts,
        counts_source=f"counts in the {VOCABULARY} next to the file",
    )


def _vocabulary(path: Path) -> tuple[list[bytes], np.ndarray[tuple[int], np.dtype[np.float64]]]:
    if is_foreign_link(path):
        raise Damaged(f"the {VOCABULARY} next to it {FOREIGN_LINK}", COPY_IT)
    words: list[bytes] = []
    counts: list[int] = []
    for number, line in enumerate(read_bytes(path).split(b"\n"), 1):
        word, _, count = line.rstrip(b"\r").rpartition(b" ")
        if not line and number > 1:
            continue
        if not word or not count.isdigit() or len(count) > 18 or int(count) > LARGEST_COUNT:
            raise Damaged(f"line {number:,} of {VOCABULARY} is not a word and its count")
        words.append(word)
        counts.append(int(count))
    return words, np.array(counts, dtype=np.float64)


def _width(size: int, words: int) -> int | None:
    """Numbers in a row, with the bias; None if the size is not that of whole rows."""
    width, rest = divmod(size, 2 * 8 * words)
    return width if not rest and 2 <= width <= _WIDEST else None


def _are_numbers(path: Path) -> bool:
    with path.open("rb") as file:
        sample = np.frombuffer(file.read(8 * _SAMPLE), dtype="<f8")
    sizes = np.abs(sample)
    return bool(np.isfinite(sample).all() and _SMALLEST < np.median(sizes) < _LARGEST)


def _sum(word: Array, context: Array) -> Array:
    blocks = (slice(start, start + _BLOCK_ROWS) for start in range(0, len(word), _BLOCK_ROWS))
    with np.errstate(over="ignore", invalid="ignore"):  # such rows are masked later
        return fill_rows((word[rows] + context[rows] for rows in blocks), word.shape)
