"""How often tokens occur, from a counts file or from the order of the rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from embgeo.core.errors import LabelMismatch
from embgeo.core.matrix import Frequency
from embgeo.io.bounded.guard import refuse
from embgeo.io.bounded.small_files import parse_json, read_text, safe_text, split_lines
from embgeo.io.labels import fairseq, side_tables
from embgeo.io.labels.vocabulary import READERS, guess_scheme, marks_words_by_spaces, word_of

#: float64 holds every whole number up to here.
LARGEST_COUNT = 2**53

_WHOLE = re.compile(r"-?\d{1,30}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Counts:
    """A counts file: tokens in the order of the file, each with its count.

    Attributes
    ----------
    tokens : tuple of str
    counts : tuple of int
    name : str
        Base name of the file.
    notes : tuple of str
    implied : int
        Tokens at the beginning that the file does not list; its program puts them there.
    """

    tokens: tuple[str, ...]
    counts: tuple[int, ...]
    name: str
    notes: tuple[str, ...] = ()
    implied: int = 0

    def as_listed(self) -> Counts:
        """Without the tokens that the file does not list."""
        start = self.implied
        return replace(self, tokens=self.tokens[start:], counts=self.counts[start:], implied=0)


def read_counts(path: Path) -> Counts:
    """Tokens and counts of a file: ``token<TAB>count``, ``token count``, or JSON.

    A header row that says ``count`` is skipped. fairseq's ``dict.txt`` is known by its name: its
    program puts four symbols in front of its lines. JSON is a dict token → count or a list of
    [token, count] pairs.

    Raises
    ------
    UnreadableFile
        A count that is negative, no whole number, or above 2^53, with its line.
    """
    text = read_text(path)
    if path.name.lower().removesuffix(".gz").endswith(".json"):
        return _from_json(parse_json(text, path), path)
    if re.match(r'\s*(\{\s*"|\[\s*\[)', text):
        return _from_json(parse_json(text, path), path)
    if fairseq.is_dictionary(path, text):
        found = fairseq.from_text(text, path)
        return Counts(found.tokens, found.counts or (), path.name, implied=found.implied)
    return _from_lines(split_lines(text), path)


def from_counts(tokens: Sequence[str], counts: Counts) -> tuple[Frequency, tuple[str, ...]]:
    """Counts matched with rows by token, and notes on what did not match.

    A token that the file lists twice gets the sum; a row whose token is not in the file gets 0.
    """
    listed, keys, how = _comparable(counts.tokens, tokens)
    table: dict[str, int] = {}
    for token, count in zip(listed, counts.counts, strict=True):
        table[token] = table.get(token, 0) + count
    notes = [*counts.notes]
    if repeated := len(counts.tokens) - len(table):
        notes.append(f"{repeated:,} tokens are repeated in {counts.name}; their counts are summed")
    known = sum(key in table for key in keys)
    if known == 0:
        raise LabelMismatch(
            f"none of its {len(table):,} tokens (such as {examples(counts.tokens)}) is a token "
            f"of the matrix (such as {examples(tokens)})",
            where=counts.name,
            way_out="give the counts of this model's own tokens",
        )
    if known < len(tokens):
        notes.append(
            f"{len(tokens) - known:,} of {len(tokens):,} tokens are not in {counts.name}; "
            "their count is taken as 0"
        )
    unknown = len(table.keys() - set(keys))
    if unknown:
        notes.append(f"{unknown:,} of {len(table):,} tokens in {counts.name} are not in the matrix")
    values = np.array([table.get(key, 0) for key in keys], dtype=np.float64)
    return Frequency("counts", values, f"counts file {counts.name}{how}"), tuple(notes)


def _comparable(
    listed: Sequence[str], tokens: Sequence[str]
) -> tuple[Sequence[str], Sequence[str], str]:
    """Tokens of the file and of the matrix in one spelling, and a remark for the source.

    A subword vocabulary is shown decoded (``" the"``). Its counts may be spelled as the tokenizer
    stores them, or the file may count whole words.
    """
    if not marks_words_by_spaces(tokens) or marks_words_by_spaces(listed):
        return listed, tokens, ""
    scheme = guess_scheme(listed)
    if scheme != "plain":
        return [READERS[scheme](token) for token in listed], tokens, ""
    words = [word_of(token, spaced=True) for token in tokens]
    return listed, words, "; it counts words, so only tokens that are whole words have a count"


def from_rank(n: int) -> Frequency:
    """Only the order is known: row 0 is the most frequent token."""
    values = np.arange(n, 0, -1, dtype=np.float64)
    return Frequency("rank", values, "row order (rows sorted by frequency, most frequent first)")


def _from_lines(lines: list[str], path: Path) -> Counts:
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line]
    notes: tuple[str, ...] = ()
    columns = side_tables.HeaderRow(None, None)
    if numbered and (found := side_tables.header(_cells(numbered[0][1]))):
        columns, numbered = found, numbered[1:]
        notes = (f"the first line of {path.name} is taken for a header",)
    token_column = columns.token_column
    count_column = columns.count if columns.count is not None else 1
    raw, counts = [], []
    for number, line in numbered:
        cells = _cells(line)
        if len(cells) <= max(token_column, count_column):
            raise refuse(
                path, f"line {number:,} has no count", "every line is a token, a tab and a count"
            )
        raw.append(cells[token_column])
        text = cells[count_column]
        shown = ascii(text.strip(" ")[:40])
        counts.append(_check_count(_whole_number(text), shown, f"line {number:,}", path))
    tokens, changed = side_tables.unescape(raw)
    if changed:
        notes += (side_tables.note_escapes(changed, path.name),)
    if not tokens:
        raise refuse(path, "it holds no counts", "token and count a line")
    return Counts(tuple(tokens), tuple(counts), path.name, notes)


def _cells(line: str) -> list[str]:
    return line.split("\t") if "\t" in line else line.rsplit(" ", 1)


def whole_count(text: str) -> int | None:
    """A count, None where `text` is anything else than a whole number up to 2^53."""
    count = _whole_number(text)
    return count if count is not None and 0 <= count <= LARGEST_COUNT else None


def whole_counts(texts: Iterable[str]) -> list[int] | None:
    """A column of counts; None where it holds anything else, such as shares."""
    counts = [whole_count(text) for text in texts]
    return None if None in counts else [count for count in counts if count is not None]


def _whole_number(text: str) -> int | None:
    text = text.strip(" ")
    return int(text) if _WHOLE.fullmatch(text) else None


def _check_count(count: object, shown: str, place: str, path: Path) -> int:
    """`count` itself; the error that shows it as `shown` where it is none."""
    if isinstance(count, bool) or not isinstance(count, int):
        why = "is not a whole number"
    elif count < 0:
        why = "is negative"
    elif count > LARGEST_COUNT:
        why = "is larger than 2^53"
    else:
        return count
    raise refuse(path, f"{place}: the count {shown} {why}", "counts are whole numbers from 0")


def _from_json(data: Any, path: Path) -> Counts:
    if isinstance(data, dict):
        pairs = list(data.items())
    elif isinstance(data, list) and all(isinstance(p, list) and len(p) == 2 for p in data):
        pairs = [(pair[0], pair[1]) for pair in data]
    else:
        pairs = []
    if not pairs:
        raise refuse(
            path,
            "its JSON is neither a dict of tokens and counts nor a list of such pairs",
            'write {"token": count, …}',
        )
    tokens, counts = [], []
    for token, count in pairs:
        place, shown = f"token {ascii(token)[:40]}", ascii(count)[:40]
        counts.append(_check_count(count if isinstance(token, str) else None, shown, place, path))
        tokens.append(safe_text(token))
    return Counts(tuple(tokens), tuple(counts), path.name)


def examples(tokens: Sequence[str]) -> str:
    """The first few tokens, for a message."""
    return ", ".join(ascii(token[:20]) for token in tokens[:3])
