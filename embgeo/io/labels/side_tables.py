r"""Tab-separated tables of tokens and counts: quotation marks, escapes and header rows.

Only ``\n`` and ``\r\n`` end a line. A token may hold a newline or a tab, written ``\n`` and
``\t``. A file is escaped if every backslash in it begins one of ``\n \t \r \\``; other files
with backslashes are read literally.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from embgeo.core.arrays import IntArray

#: A cell with or without quotation marks, which are doubled inside of them.
_CELL = r'("(?:[^"\n]++|"")*+"|[^"\t\n]*+)'
_NEXT_CELL = re.compile(rf"(?:^|\t){_CELL}")
_TABLE = re.compile(rf"{_CELL}(?:[\t\n]{_CELL})*+")
#: A cell in quotation marks, and one that csv, pandas and spreadsheets would write without.
_MARKED = re.compile(r'(?:^|\t)"(?!"(?:\t|$))', re.MULTILINE)
_NEEDLESSLY_MARKED = re.compile(r'(?:^|\t)"[^",\t\n]++"(?:\t|$)', re.MULTILINE)

_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_MEANING = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}

#: Headings, as in the metadata.tsv of TensorBoard.
TOKEN_HEADINGS = frozenset({"token", "tokens", "word", "words", "label", "labels", "name", "title"})
COUNT_HEADINGS = frozenset(
    {"count", "counts", "freq", "frequency", "frequencies", "n", "occurrences"}
)
#: Headings of columns that number the rows, which may come in another order.
ID_HEADINGS = frozenset({"index", "id", "ids", "idx", "row", "row_id", "token_id"})


def split_cells(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield the cells of each line, without the quotation marks of csv, pandas and spreadsheets.

    These enclose cells of every line, or those that hold a quotation mark, comma or tab. If any
    mark of the file is not one of theirs, such as the token ``"``, all marks belong to tokens.
    """
    are_quoted = _are_quoted(lines)
    for line in lines:
        if not are_quoted or '"' not in line:
            yield line.split("\t")
            continue
        cells = _NEXT_CELL.findall(line)
        for place, cell in enumerate(cells):
            if cell.startswith('"'):
                cells[place] = cell[1:-1].replace('""', '"')
        yield cells


def _are_quoted(lines: Sequence[str]) -> bool:
    text = "\n".join(lines)
    if '"' not in text or not _TABLE.fullmatch(text):
        return False
    if _MARKED.search(text) and not _NEEDLESSLY_MARKED.search(text):
        return True
    return all('"' in line for line in lines if line)


def unescape(texts: list[str], path: Path) -> tuple[list[str], tuple[str, ...]]:
    """Resolve escapes if every backslash begins one, and note how many tokens changed."""
    marked = [text for text in texts if "\\" in text]
    if not marked or not all(map(_is_escaped, marked)):
        return texts, ()
    resolved = [_ESCAPE.sub(lambda match: _MEANING[match[1]], text) for text in texts]
    changed = "1 token" if len(marked) == 1 else f"{len(marked):,} tokens"
    return resolved, (f"backslash escapes in {changed} of {path.name} are resolved",)


def _is_escaped(text: str) -> bool:
    rest = _ESCAPE.sub(lambda match: "" if match[1] in _MEANING else match[0], text)
    return "\\" not in rest


def header_note(path: Path) -> str:
    return f"the first line of {path.name} is taken for a header"


def order_note(path: Path) -> str:
    return f"the tokens are in the order of the row numbers in {path.name}"


@dataclass(frozen=True, slots=True)
class TokenColumns:
    """Columns of a table of tokens that a header row names."""

    tokens: int
    counts: int | None
    order: int | None  # row numbers
    is_named: bool = False  # whether a heading names tokens or counts


def find_columns(cells: list[str]) -> TokenColumns | None:
    """Find the columns that a header row names; None if it is not a header.

    A row with a number in it is data: ``word<TAB>12`` counts the word "word". Where only counts or
    row numbers are named, tokens are in the first other column.
    """
    names = [cell.strip().lower() for cell in cells]
    if len(cells) < 2 or any(is_float(name) for name in names):
        return None
    token = next((place for place, name in enumerate(names) if name in TOKEN_HEADINGS), None)
    count = next((place for place, name in enumerate(names) if name in COUNT_HEADINGS), None)
    order = next((place for place, name in enumerate(names) if name in ID_HEADINGS), None)
    if token is None:
        named = {count, order} - {None}
        token = next((place for place in range(len(cells)) if place not in named), None)
        if not named or token is None:
            return None
    is_named = count is not None or names[token] in TOKEN_HEADINGS
    return TokenColumns(token, count, order, is_named)


def order_of(numbers: Sequence[int]) -> IntArray | None:
    """Return the places of the rows 0 to N−1, or 1 to N; None if they are in order, or others."""
    given = np.asarray(numbers, dtype=np.int64)
    order = np.argsort(given, kind="stable")
    steps = np.diff(given[order])
    if not len(order) or given[order[0]] not in (0, 1) or (steps != 1).any():
        return None
    return None if np.array_equal(order, np.arange(len(order))) else order


def is_float(text: str | bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
