"""Tokens and counts in memory as labels and frequencies of the rows of a matrix.

Tokenizers of the packages transformers and tokenizers also name special tokens.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import BadOption, LabelMismatch
from embgeo.core.matrix import Frequency, Matrix
from embgeo.core.special import place_special
from embgeo.files.small_files import safe_text
from embgeo.io.labels.counts_file import LARGEST_COUNT, are_ids, from_counts
from embgeo.io.labels.rows import PADDING_REASON, RowLabels, lay_found
from embgeo.io.labels.special_tokens import collect_special
from embgeo.io.labels.vocabulary import READERS, TokenizerVocabulary, guess_scheme
from embgeo.io.model.rows import RowCut


def with_tokens(matrix: Matrix, tokens: Any) -> Matrix:
    cut = RowCut(matrix.n, 0, matrix.n)
    vocabulary = vocabulary_of(tokens)
    notes: tuple[str, ...] = ()
    if vocabulary is None:
        found = sequence_of(tokens)
        if len(found) != matrix.n:
            raise LabelMismatch(f"{len(found):,} tokens for {matrix.n:,} rows")
        laid = RowLabels(tuple(found))
    else:
        found, notes = from_vocabulary(vocabulary, matrix.n)
        laid = lay_found(found, cut, "auto", "the vocabulary")
    masked = dict(matrix.masked)
    if len(laid.masked):
        masked[PADDING_REASON] = laid.masked
    origin = replace(matrix.origin, notes=(*matrix.origin.notes, *notes, *laid.notes))
    labeled = replace(matrix, tokens=laid.tokens, masked=masked, origin=origin)
    if vocabulary is None or vocabulary is tokens:
        return labeled
    return with_special(labeled, tokens, vocabulary)


def vocabulary_of(tokens: Any) -> Mapping[Any, Any] | None:
    """Return the row of each token of a mapping or tokenizer; None for other objects."""
    if callable(getattr(tokens, "get_vocab", None)):
        tokens = tokens.get_vocab()
    return tokens if isinstance(tokens, Mapping) else None


def sequence_of(tokens: Any) -> Sequence[str]:
    if isinstance(tokens, str | bytes | set | frozenset) or not isinstance(tokens, Iterable):
        raise BadOption(
            f"tokens are {type(tokens).__name__}",
            way_out="give a list of str, a dict of token and row, or a tokenizer",
        )
    is_by_name(tokens, "tokens")
    found = list(tokens)
    for token in found:
        if not isinstance(token, str):
            raise BadOption(f"token {token!r} is not a str")
    return [safe_text(token) for token in found]


def is_by_name(values: Any, name: str) -> bool:
    """Tell whether values are a pandas Series with names as its index.

    Refuses a Series whose index is numbers that do not ascend.
    """
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(values, pandas.Series):
        return False
    if not pandas.api.types.is_numeric_dtype(values.index):
        return True
    if not values.index.is_monotonic_increasing:
        raise BadOption(
            f"{name} are a Series whose index numbers them in another order",
            way_out="sort it with .sort_index(), or drop the index with .to_numpy()",
        )
    return False


def from_vocabulary(vocabulary: Mapping[Any, Any], n: int) -> tuple[Sequence[str], tuple[str, ...]]:
    """Return decoded tokens in row order, with notes; rows without a token get ``<row 123>``."""
    rows: dict[int, str] = {}
    for token, row in vocabulary.items():
        if not isinstance(token, str) or isinstance(row, bool) or not hasattr(row, "__index__"):
            raise BadOption(f"{token!r}: {row!r} in the vocabulary is not a token with a row")
        rows[int(row)] = safe_text(token)
    if not rows or min(rows) < 0:
        raise BadOption("the vocabulary has no rows")
    last = min(max(rows), n - 1)
    read = READERS[guess_scheme(list(rows.values()))]
    found = [read(rows[row]) if row in rows else f"<row {row}>" for row in range(last + 1)]
    shared = len(vocabulary) - len(rows)
    notes = (f"tokens not shown, as a later one has the same row: {shared:,}",)
    # Tokens beyond the last row are appended, so that another vocabulary size is noted.
    found += [token for row, token in rows.items() if row > last]
    return found, notes if shared else ()


def with_special(matrix: Matrix, tokenizer: Any, rows: Mapping[str, int]) -> Matrix:
    """Add the special tokens of a tokenizer; tokens beyond the last row have no row.

    `rows` is what its ``get_vocab`` returns.
    """
    labels = {row: safe_text(token) for token, row in rows.items()}
    size = max(labels) + 1
    # A single id may be as large as 2^32.
    listed = range(min(size, matrix.n + len(labels)))
    tokens = tuple(labels.get(row, "") for row in listed)
    added, own = find_added(tokenizer), find_special(tokenizer)
    vocabulary = TokenizerVocabulary(tokens, "tokenizer", added=added, special=own)
    template = "\n".join(list_templates(getattr(tokenizer, "chat_template", None)))
    special = collect_special(vocabulary, [find_roles(tokenizer)], template, {})
    return replace(matrix, special=place_special(special, matrix.n), vocabulary_size=size)


def find_added(tokenizer: Any) -> dict[str, int]:
    if callable(getattr(tokenizer, "get_added_vocab", None)):
        found = tokenizer.get_added_vocab()
    elif callable(getattr(tokenizer, "get_added_tokens_decoder", None)):
        found = {
            str(token.content): row for row, token in tokenizer.get_added_tokens_decoder().items()
        }
    else:
        return {}
    return {safe_text(str(token)): int(row) for token, row in found.items()}


def find_special(tokenizer: Any) -> frozenset[str]:
    """Find the added tokens that are special."""
    found = getattr(tokenizer, "added_tokens_decoder", None)
    if callable(getattr(tokenizer, "get_added_tokens_decoder", None)):
        found = tokenizer.get_added_tokens_decoder()
    listed = found.values() if isinstance(found, Mapping) else ()
    return frozenset(
        safe_text(str(one.content)) for one in listed if getattr(one, "special", False)
    )


def find_roles(tokenizer: Any) -> dict[str, Any]:
    """Find the tokens by role, with the keys of tokenizer_config.json."""
    named = getattr(tokenizer, "special_tokens_map", None)
    if not isinstance(named, Mapping):
        return {}
    return {
        str(key): [str(one) for one in value] if isinstance(value, list | tuple) else str(value)
        for key, value in named.items()
    }


def list_templates(templates: Any) -> Iterator[str]:
    several = templates.values() if isinstance(templates, Mapping) else [templates]
    yield from (text for text in several if isinstance(text, str))


def with_counts(matrix: Matrix, counts: Any) -> Matrix:
    if is_by_name(counts, "counts"):  # as value_counts() returns them
        counts = counts.groupby(level=0, sort=False).sum().to_dict()
    if isinstance(counts, Mapping):
        frequency, notes = match_counts(matrix, counts)
        origin = replace(matrix.origin, notes=(*matrix.origin.notes, *notes))
        return replace(matrix.with_frequency(frequency), origin=origin)
    values = check_counts(counts)
    if len(values) != matrix.n:
        raise LabelMismatch(f"{len(values):,} counts for {matrix.n:,} rows")
    return matrix.with_frequency(Frequency("counts", values, "counts by row"))


def match_counts(matrix: Matrix, counts: Mapping[Any, Any]) -> tuple[Frequency, tuple[str, ...]]:
    if matrix.tokens is None:
        raise LabelMismatch("counts by token, and the rows have no tokens")
    listed = [safe_text(str(token)) for token in counts]
    numbers = tuple(map(int, check_counts([*counts.values()])))
    if are_ids(numbers):
        raise BadOption(
            f"counts are the numbers {min(numbers):,} to {max(numbers):,}, each once",
            way_out="give the number of occurrences of each token, not its id or rank",
        )
    found = TokenizerVocabulary(tuple(listed), "counts", counts=numbers)
    frequency, notes = from_counts(matrix.tokens, found)
    return replace(frequency, source="counts by token"), notes


def check_counts(counts: Any) -> npt.NDArray[np.float64]:
    """Check that counts are whole numbers up to 2^53, and return them as an array."""
    if isinstance(counts, np.ma.MaskedArray):
        counts = np.ma.filled(counts.astype(np.float64), np.nan)
    try:
        values = np.asarray(counts, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise BadOption(f"counts are not numbers ({error})") from error
    right = values.ndim == 1 and bool(np.isfinite(values).all())
    if not right or (values < 0).any() or (values != np.floor(values)).any():
        raise BadOption("counts are not a list of whole numbers from 0")
    if len(values) and values.max() > LARGEST_COUNT:
        raise BadOption("a count is larger than 2^53")
    return values
