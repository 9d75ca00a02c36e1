"""Special tokens of a tokenizer in memory, of the packages transformers or tokenizers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from embgeo.core.matrix import Matrix
from embgeo.io.bounded.small_files import safe_text
from embgeo.io.labels.special_tokens import collect_special
from embgeo.io.labels.vocabulary import TokenizerVocabulary


def with_special(matrix: Matrix, tokenizer: Any, rows: Mapping[str, int]) -> Matrix:
    """The matrix with what a tokenizer says of its rows; tokens beyond the last row have none.

    Parameters
    ----------
    matrix : Matrix
    tokenizer : object
    rows : mapping of str to int
        What its ``get_vocab`` gave.
    """
    labels = {row: safe_text(token) for token, row in rows.items()}
    size = max(labels) + 1
    vocabulary = TokenizerVocabulary(
        tuple(labels.get(row, "") for row in range(size)), "tokenizer", added=find_added(tokenizer)
    )
    template = "\n".join(list_templates(getattr(tokenizer, "chat_template", None)))
    special = collect_special(vocabulary, [find_roles(tokenizer)], template, {})
    placed = tuple(
        one if one.row is None or one.row < matrix.n else replace(one, row=None) for one in special
    )
    return replace(matrix, special=placed, vocabulary_size=size)


def find_added(tokenizer: Any) -> dict[str, int]:
    """Tokens that were added to the model's own, and their rows."""
    if callable(getattr(tokenizer, "get_added_vocab", None)):
        found = tokenizer.get_added_vocab()
    elif callable(getattr(tokenizer, "get_added_tokens_decoder", None)):
        found = {
            str(token.content): row for row, token in tokenizer.get_added_tokens_decoder().items()
        }
    else:
        return {}
    return {safe_text(str(token)): int(row) for token, row in found.items()}


def find_roles(tokenizer: Any) -> dict[str, Any]:
    """Token by role, as tokenizer_config.json names them."""
    named = getattr(tokenizer, "special_tokens_map", None)
    if not isinstance(named, Mapping):
        return {}
    return {
        str(key): [str(one) for one in value] if isinstance(value, list | tuple) else str(value)
        for key, value in named.items()
    }


def list_templates(templates: Any) -> Iterator[str]:
    """Chat templates of a tokenizer: one, or several by name."""
    several = templates.values() if isinstance(templates, Mapping) else [templates]
    yield from (text for text in several if isinstance(text, str))
