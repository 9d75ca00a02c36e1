"""Files of tokens, one for each row: text, tab-separated table, JSON or tokenizer file."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from embgeo.files import small_files
from embgeo.files.compressed import codec_of
from embgeo.files.guard import reading, refuse, short
from embgeo.io.labels import side_tables, tokenizer_files
from embgeo.io.labels.counts_file import are_ids, whole_counts
from embgeo.io.labels.vocabulary import TokenizerVocabulary

_FAIRSEQ = re.compile(r"dict(\.[\w-]{1,20})?\.txt(\.gz)?", re.IGNORECASE)
_TOKEN_AND_COUNT = re.compile(r"\S+ [0-9]{1,15}(?: #fairseq:overwrite)?\s*")


def read_labels(path: Path) -> TokenizerVocabulary:
    r"""Read the tokens of `path` in row order.

    Text has one token on each line; a line may be empty. Text whose lines have the same number of
    tabs is a table: tokens are in its first column, behind one that numbers the rows, or in the
    one that a header row calls token, word or label, and a column of counts is read. Quotation
    marks of csv, pandas and spreadsheets are removed. JSON is a list of tokens, a dict token → id,
    a dict id → token, or a tokenizer.json. SentencePiece models and files of tiktoken are
    recognized. Newlines and tabs inside tokens are written ``\n`` and ``\t`` in text (see
    :mod:`embgeo.io.labels.side_tables`).
    """
    data = small_files.read_bytes(path)
    if tokenizer_files.is_sentencepiece(data):
        vocabulary = tokenizer_files.read_sentencepiece(data, path)
    else:
        vocabulary = _from_text(small_files.decode_text(data, path, "a list of tokens"), path)
    if vocabulary.encoder is not None and codec_of(small_files.read_head(path)) is not None:
        # The packages that run tokenizers do not read compressed files.
        vocabulary = replace(vocabulary, encoder=None)
    return vocabulary


def _from_text(text: str, path: Path) -> TokenizerVocabulary:
    if text.lstrip().startswith(("[", "{")):
        data = _json_or_none(text, path)
        if data is not None:
            return _from_json(data, path)
    if path.suffix == tokenizer_files.TIKTOKEN_SUFFIX or tokenizer_files.is_tiktoken(text):
        return tokenizer_files.read_tiktoken(text, path)
    lines = small_files.split_lines(text)
    if _FAIRSEQ.fullmatch(path.name) and lines and _TOKEN_AND_COUNT.fullmatch(lines[0]):
        raise refuse(
            path,
            "is a dictionary of fairseq, whose first four symbols are not in the file",
            r"(printf '<s>\n<pad>\n</s>\n<unk>\n'; cut -d' ' -f1 "
            f"{short(path.name)}) > tokens.txt",
        )
    if not lines:
        raise refuse(path, "it holds no tokens")
    return _from_lines(lines, path)


def _json_or_none(text: str, path: Path) -> Any:
    """Return the JSON value, or None for a text file whose first token is ``[`` or ``{``."""
    if path.name.lower().removesuffix(".gz").endswith(".json"):
        return small_files.parse_json(text, path)
    with reading(path, "JSON file"):
        small_files.check_json(text)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _from_json(data: Any, path: Path) -> TokenizerVocabulary:
    if isinstance(data, list):
        wrong = next((place for place, item in enumerate(data) if not isinstance(item, str)), None)
        if wrong is not None:
            raise refuse(
                path,
                f"entry {wrong:,} of its list is {ascii(data[wrong])[:40]}, not a token",
            )
        if not data:
            raise refuse(path, "it holds no tokens")
        return TokenizerVocabulary(
            tuple(small_files.safe_text(token) for token in data), _source(path)
        )
    if tokenizer_files.is_keras_configuration(data):
        raise refuse(path, "is a configuration of Keras and holds no tokens")
    if tokenizer_files.is_tokenizer_json(data):
        return tokenizer_files.from_tokenizer_json(data, path)
    if isinstance(data, dict) and data:
        return tokenizer_files.from_ids(data, path)
    raise refuse(
        path,
        "its JSON is neither a list of tokens nor a dict of tokens and ids",
    )


def _from_lines(lines: list[str], path: Path) -> TokenizerVocabulary:
    rows = list(side_tables.split_cells(lines))
    if len(set(map(len, rows))) != 1:
        rows = [[line] for line in lines]
    notes: tuple[str, ...] = ()
    columns = side_tables.find_columns(rows[0]) or side_tables.TokenColumns(0, None, None)
    # A lone heading such as "index" is a token, unless it stands above numbers.
    ids = _whole_column(rows[1:], columns.order)
    if columns.is_named or ids is not None:
        notes, rows = (side_tables.header_note(path),), rows[1:]
    else:
        columns = _guess_columns(rows)
        ids = _whole_column(rows, columns.order)
    counts = _whole_column(rows, columns.counts) or []
    raw = [row[columns.tokens] for row in rows]
    order = None if ids is None else side_tables.order_of(ids)
    if order is not None:
        raw = [raw[place] for place in order]
        counts = [counts[place] for place in order] if counts else []
        notes = (*notes, side_tables.order_note(path))
    tokens, escape_notes = side_tables.unescape(raw, path)
    if not tokens:
        raise refuse(path, "it holds no tokens")
    return TokenizerVocabulary(tuple(tokens), _source(path), (*notes, *escape_notes), tuple(counts))


def _guess_columns(rows: list[list[str]]) -> side_tables.TokenColumns:
    """Return the columns of a table without headings: tokens, and row numbers beside them."""
    if len(rows[0]) > 1:
        first, second = _whole_column(rows, 0), _whole_column(rows, 1)
        if first is not None and second is None:
            least, stop = min(first), min(first) + len(first)
            if least in (0, 1) and sorted(first) == [*range(least, stop)]:
                return side_tables.TokenColumns(1, None, 0)
        if first is None and second is not None and are_ids(second):
            return side_tables.TokenColumns(0, None, 1)
    return side_tables.TokenColumns(0, None, None)


def _whole_column(rows: list[list[str]], column: int | None) -> list[int] | None:
    return None if column is None else whole_counts(row[column] for row in rows)


def _source(path: Path) -> str:
    return f"tokens file {path.name}"
