"""Tokens with a task of their own, and what a row can look like."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

#: What a token is for: by the key that names it in the tokenizer's files, as an added token, or
#: because the chat template writes it.
Role = Literal[
    "bos",
    "eos",
    "pad",
    "unk",
    "cls",
    "sep",
    "mask",
    "additional",
    "added",
    "template",
]

#: What a row looks like, the gravest first. Zero, non-finite and damaged ones are left out, and the
#: zero row of a padding token, which is as intended.
RowState = Literal[
    "zero",
    "non-finite",
    "damaged",
    "constant",
    "mean-initialized",
    "identical",
    "padding",
    "healthy",
]
#: Those of rows that something is wrong with, and that are left out.
DAMAGED_STATES: tuple[RowState, ...] = ("zero", "non-finite", "damaged")


@dataclass(frozen=True, slots=True)
class SpecialToken:
    """A token that a tokenizer or a chat template names.

    Attributes
    ----------
    token : str
    row : int or None
        Its row; None where the matrix has none for it.
    roles : tuple of Role
        In the order of `Role`; at least one.
    """

    token: str
    row: int | None
    roles: tuple[Role, ...]


def cut_special(special: Iterable[SpecialToken], start: int, stop: int) -> tuple[SpecialToken, ...]:
    """Those of the special tokens that belong to these rows, counted from the first of them."""
    return tuple(
        replace(one, row=one.row - start)
        for one in special
        if one.row is not None and start <= one.row < stop
    )
