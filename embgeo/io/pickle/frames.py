"""Frames and series of pandas, which keep their columns in blocks with a row per column."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from embgeo.io.bounded.guard import Damaged
from embgeo.io.bounded.maps import Array, count
from embgeo.io.checkpoint import Tensor
from embgeo.io.labels.word_lists import MOST_WORDS, word_list
from embgeo.io.pickle.numpy_arrays import PickledArray
from embgeo.io.pickle.objects import Stub

_FRAMES = ("pandas.DataFrame", "pandas.core.frame.DataFrame")
_SERIES = ("pandas.Series", "pandas.core.series.Series")
#: Attribute with the manager of the blocks, since pandas 1.1 and before.
_MANAGERS = ("_mgr", "_data")
#: Bytes of the numbers that end the texts of pyarrow's types.
_ARROW_WIDTHS = {"string": "<i4", "utf8": "<i4", "large_string": "<i8", "large_utf8": "<i8"}
#: What a block counts for besides its entries, of which no frame may have more than `MOST_WORDS`.
_BLOCK_COST = 1000
_MOST_LAYERS = 8
SAVE_FRAME = "save the matrix with numpy.save(…, frame.to_numpy())"


@dataclass(frozen=True, slots=True)
class Frame:
    """The content of a frame."""

    #: The columns of floating-point numbers, with the rows of the frame.
    matrix: Tensor | None
    #: The entries of a column of objects, if there is no such matrix.
    vectors: list[object] | None
    #: The first column of texts, else the index.
    words: tuple[str, ...] | None


def read_frame(root: object) -> Frame | None:
    """Read a pickled frame or series; None for other objects."""
    if not isinstance(root, Stub) or root.name not in (*_FRAMES, *_SERIES):
        return None
    state = next((s for s in root.states if isinstance(s, dict)), {})
    manager = next((state[name] for name in _MANAGERS if name in state), None)
    blocks, axes = _parts(manager)
    if not blocks or not axes:
        raise Damaged("it is a pandas frame of an unknown version", SAVE_FRAME)
    numbers = [b for b in blocks if isinstance(b, PickledArray) and b.dtype.startswith("float")]
    columns = list(_list_columns(blocks))
    texts = (word_list(column) for column in columns)
    words = next((found for found in texts if found), None) or _index_words(axes[-1])
    if len(numbers) == 1 and len(numbers[0].shape) == 2:
        return Frame(_matrix(numbers[0]), None, words)
    if numbers:
        raise Damaged("its columns of numbers are of several types", SAVE_FRAME)
    vectors = next((column for column in columns if not word_list(column)), None)
    return Frame(None, vectors, words)


def _parts(manager: object) -> tuple[list[object], list[object]]:
    """Return the values of the blocks, and the axes: columns (frames only) and index."""
    match manager:
        case Stub(args=(list() | tuple() as blocks, list() | tuple() as axes)):
            made = [block for block in blocks if isinstance(block, Stub) and block.args]
            return [block.args[0] for block in made], list(axes)
        case Stub(states=states):
            for state in states:
                match state:
                    case (*_, {"0.14.1": {"blocks": list(blocks), "axes": axes}}):
                        values = [b.get("values") for b in blocks if isinstance(b, dict)]
                        return values, list(axes) if isinstance(axes, (list, tuple)) else []
    return [], []


def _matrix(block: PickledArray) -> Tensor:
    block.check()
    columns, rows = block.shape

    def transpose() -> Array:
        return block.open().T

    return Tensor("values", (rows, columns), block.dtype, transpose)


def _list_columns(blocks: Iterable[object]) -> Iterator[list[object]]:
    """Yield the columns of objects or texts, bounded: blocks may share an array or a buffer."""
    left = MOST_WORDS
    for block in blocks:
        array = block if isinstance(block, PickledArray) else _find_arrow(block)
        if array is None:
            continue
        if isinstance(array, _ArrowTexts):
            entries = array.length
        else:
            entries = count(array.shape) if array.unread else 0
        left -= _BLOCK_COST + entries
        if left < 0:
            raise Damaged("its columns have implausibly many entries", SAVE_FRAME)
        yield from array.columns()


def _index_words(index: object) -> tuple[str, ...] | None:
    """Return the words of an index of texts; None for one of numbers."""
    match index:
        case Stub(args=(_, {"data": data}, *_)):
            return word_list(next(_list_columns([data]), None))
    return None


@dataclass(frozen=True, slots=True)
class _ArrowTexts:
    """A string array of pyarrow in one chunk: its texts lie in `text`, between the `ends`."""

    length: int
    offset: int
    ends: memoryview | bytes
    width: np.dtype[Any]
    text: memoryview | bytes

    def columns(self) -> list[list[object]]:
        """Return the texts as one column; none where the numbers or bytes contradict each other."""
        last = self.offset + self.length
        if (last + 1) * self.width.itemsize > len(self.ends):
            return []
        start = self.offset * self.width.itemsize
        bounds = np.frombuffer(self.ends, self.width, self.length + 1, start).tolist()
        if sorted(bounds) != bounds or bounds[0] < 0 or bounds[-1] > len(self.text):
            return []
        try:
            return [[str(self.text[a:b], "utf-8") for a, b in pairwise(bounds)]]
        except UnicodeDecodeError:
            return []


def _find_arrow(array: object) -> _ArrowTexts | None:
    """Find the texts of a string array of pandas 3: one chunk of pyarrow, none missing."""
    match array:
        case Stub(states=({"_pa_array": stored}, *_)):
            pass
        case _:
            return None
    # A chunked array of one array; an object of a hostile file may hold itself.
    for _ in range(_MOST_LAYERS):
        match stored:
            case Stub(args=([inner], *_)) | Stub(args=(inner, *_)):
                stored = inner
    match stored:
        case (
            Stub(args=(str(kind), *_)),
            int(length),
            _,
            int(offset),
            [
                None,
                Stub(args=((bytes() | memoryview()) as ends,)),
                Stub(args=((bytes() | memoryview()) as text,)),
            ],
            _,
            _,
        ) if length >= 0 and offset >= 0 and kind in _ARROW_WIDTHS:
            return _ArrowTexts(length, offset, ends, np.dtype(_ARROW_WIDTHS[kind]), text)
    return None
