"""How often tokens occur, from a counts file or from the order of the rows."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from embgeo.core.errors import LabelMismatch, argument
from embgeo.core.matrix import Frequency
from embgeo.files.guard import refuse
from embgeo.files.small_files import parse_json, read_text, safe_text, split_lines
from embgeo.io.labels import side_tables, vocabulary

#: float64 holds every whole number up to here.
LARGEST_COUNT = 2**53

#: This many numbers without a gap, or more, are not counts.
_FEWEST_IDS = 100


_WHOLE = re.compile(r"-?\d{1,30}", re.ASCII)


def read_counts(path: Path, *, inside: bool = False) -> vocabulary.TokenizerVocabulary:
    """Read the tokens and counts of a file, in its order; `source` is the name of the file.

    Formats: ``token<TAB>count`` or ``token count`` on each line, below an optional header row that
    names the counts, with or without the quotation marks of csv; JSON, a dict token → count or a
    list of [token, count] pairs.
    """
    text = read_text(path, "a counts table", inside=inside)
    if path.name.lower().removesuffix(".gz").endswith(".json"):
        return _from_json(parse_json(text, path, _Pairs), path)
    if re.match(r'\s*(\{\s*"|\[\s*\[)', text):
        return _from_json(parse_json(text, path, _Pairs), path)
    return _from_lines(split_lines(text), path)


def from_counts(
    tokens: Sequence[str], counts: vocabulary.TokenizerVocabulary
) -> tuple[Frequency, tuple[str, ...]]:
    """Match counts with rows by token, with notes on what did not match.

    Counts of a token that the file lists twice are summed; a row whose token is not in the file
    gets 0.
    """
    name = counts.source
    listed, keys, how = _comparable(counts.tokens, tokens)
    table: dict[str, int] = {}
    for token, count in zip(listed, counts.counts, strict=True):
        table[token] = table.get(token, 0) + count
    notes = [*counts.notes]
    if repeated := len(counts.tokens) - len(table):
        notes.append(f"{repeated:,} tokens are repeated in {name}; their counts are summed")
    known = sum(key in table for key in keys)
    if known == 0:
        raise LabelMismatch(
            f"none of its {len(table):,} tokens (such as {examples(counts.tokens)}) is a token "
            f"of the matrix (such as {examples(tokens)})",
            where=name,
            way_out=f"count them with {argument('corpus', 'FILE')}",
        )
    if known < len(tokens):
        notes.append(
            f"{len(tokens) - known:,} of {len(tokens):,} tokens are not in {name}; "
            "their count is taken as 0"
        )
    if unknown := len(table.keys() - set(keys)):
        notes.append(f"{unknown:,} of {len(table):,} tokens in {name} are not in the matrix")
    values = np.array([table.get(key, 0) for key in keys], dtype=np.float64)
    if alike := known - sum(key in table for key in set(keys)):
        notes.append(f"{alike:,} rows share their token with an earlier one; each has its count")
    return Frequency("counts", values, f"counts file {name}{how}"), tuple(notes)


def _comparable(
    listed: Sequence[str], tokens: Sequence[str]
) -> tuple[Sequence[str], Sequence[str], str]:
    """Spell the tokens of the file and of the matrix alike, and return a remark for the source.

    Tokens of a subword vocabulary are decoded (``" the"``). A counts file may spell them as the
    tokenizer stores them, or count whole words.
    """
    if not vocabulary.marks_words_by_spaces(tokens) or vocabulary.marks_words_by_spaces(listed):
        return listed, tokens, ""
    scheme = vocabulary.guess_scheme(listed)
    if scheme != "plain":
        return [vocabulary.READERS[scheme](token) for token in listed], tokens, ""
    words = [vocabulary.word_of(token, spaced=True) for token in tokens]
    return listed, words, "; it counts words, so only tokens that are whole words have a count"


def from_rank(n: int) -> Frequency:
    """Return ranks in place of counts: row 0 is the most frequent token."""
    values = np.arange(n, 0, -1, dtype=np.float64)
    return Frequency("rank", values, "row order (rows sorted by frequency, most frequent first)")


def _from_lines(lines: list[str], path: Path) -> vocabulary.TokenizerVocabulary:
    notes: tuple[str, ...] = ()
    token_column: int = 0
    count_column = 1
    raw: list[str] = []
    counts: list[int] = []
    ids: list[int | None] = []
    order_column: int | None = None
    for number, row in enumerate(side_tables.split_cells(lines), 1):
        if row == [""]:
            continue
        cells = row if len(row) > 1 else row[0].rsplit(" ", 1)
        columns = None if raw or notes else side_tables.find_columns(cells)
        if columns is not None and columns.is_named:
            token_column = columns.tokens
            order_column = columns.order
            if columns.counts is None:
                raise refuse(
                    path,
                    "its header names no counts",
                    f"give tokens without counts with {argument('tokens', 'FILE')}",
                )
            count_column = columns.counts
            notes = (side_tables.header_note(path),)
            continue
        if len(cells) > 2 and not notes:
            raise refuse(
                path,
                f"line {number:,} has {len(cells)} cells, and no header names that of counts",
            )
        if len(cells) <= max(token_column, count_column):
            raise refuse(path, f"line {number:,} has no count")
        raw.append(cells[token_column])
        if order_column is not None and order_column < len(cells):
            ids.append(_whole_number(cells[order_column]))
        text = cells[count_column]
        shown = ascii(text.strip(" ")[:40])
        count = _whole_number(text)
        if count is None:
            raise refuse(
                path,
                f"line {number:,}: the count {shown} is not a whole number",
                f"to count the tokens of a text, use {argument('corpus', 'FILE')}",
            )
        counts.append(_check_count(count, shown, f"line {number:,}", path))
    numbers = [one for one in ids if one is not None]
    order = side_tables.order_of(numbers) if len(numbers) == len(raw) > 0 else None
    if order is not None:
        raw, counts = [raw[at] for at in order], [counts[at] for at in order]
        notes = (*notes, side_tables.order_note(path))
    if not notes:
        _check_no_ids(counts, path)
    tokens, escape_notes = side_tables.unescape(raw, path)
    if not tokens:
        raise refuse(path, "it holds no counts")
    return vocabulary.TokenizerVocabulary(
        tuple(tokens), path.name, (*notes, *escape_notes), counts=tuple(counts)
    )


def whole_counts(texts: Iterable[str]) -> list[int] | None:
    """Return a column of counts, or None if it holds anything else, such as shares."""
    counts = []
    for text in texts:
        count = _whole_number(text)
        if count is None or not 0 <= count <= LARGEST_COUNT:
            return None
        counts.append(count)
    return counts


def _whole_number(text: str) -> int | None:
    text = text.strip(" ")
    return int(text) if _WHOLE.fullmatch(text) else None


def _check_count(count: object, shown: str, place: str, path: Path) -> int:
    if isinstance(count, bool) or not isinstance(count, int):
        why = "is not a whole number"
    elif count < 0:
        why = "is negative"
    elif count > LARGEST_COUNT:
        why = "is larger than 2^53"
    else:
        return count
    raise refuse(path, f"{place}: the count {shown} {why}")


def are_ids(counts: Sequence[int]) -> bool:
    """Tell whether numbers are ids or ranks, as in vocab.json: each once and without a gap.

    Numbers that fall by one from row to row may be counts made up for an order.
    """
    in_order = sorted(counts)
    if len(counts) < _FEWEST_IDS or in_order != [*range(in_order[0], in_order[0] + len(counts))]:
        return False
    return in_order[::-1] != list(counts)


def _check_no_ids(counts: list[int], path: Path) -> None:
    if are_ids(counts):
        raise refuse(
            path,
            f"its numbers are {min(counts):,} to {max(counts):,}, each once: ids or ranks, "
            "not counts",
            "if they are counts, write the header token<TAB>count",
        )


class _Pairs(list[tuple[str, Any]]):
    """The pairs of a JSON object, with repeated keys."""


def _from_json(data: Any, path: Path) -> vocabulary.TokenizerVocabulary:
    pairs: list[Any] = []
    if isinstance(data, _Pairs) or (
        isinstance(data, list) and all(isinstance(p, list) and len(p) == 2 for p in data)
    ):
        pairs = data
    if not pairs:
        raise refuse(
            path,
            "its JSON is neither a dict of tokens and counts nor a list of such pairs",
        )
    counts: dict[str, int] = {}
    for token, count in pairs:
        place, shown = f"token {ascii(token)[:40]}", ascii(count)[:40]
        number = _check_count(count if isinstance(token, str) else None, shown, place, path)
        counts[safe_text(token)] = counts.get(safe_text(token), 0) + number
    _check_no_ids(list(counts.values()), path)
    repeated = len(pairs) - len(counts)
    notes = (f"{repeated:,} tokens are repeated in {path.name}; their counts are summed",)
    return vocabulary.TokenizerVocabulary(
        tuple(counts), path.name, notes if repeated else (), tuple(counts.values())
    )


def examples(tokens: Sequence[str]) -> str:
    """Return the first few tokens, for a message."""
    return ", ".join(ascii(token[:20]) for token in tokens[:3])
