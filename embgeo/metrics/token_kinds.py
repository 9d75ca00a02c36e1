"""What kind of token a row belongs to: unused, byte, special, or the script it is written in."""

from __future__ import annotations

import unicodedata
from functools import cache

from embgeo.metrics.facts import Facts
from embgeo.metrics.token_groups import classify_token

#: First words of the Unicode names of letters that are not names of scripts.
FORMS = frozenset({"FULLWIDTH", "HALFWIDTH", "SMALL", "CIRCLED", "SQUARE", "SQUARED"})
#: Blocks of letters whose names begin with what they look like.
NOT_SCRIPTS = frozenset(
    {"MODIFIER", "SUPERSCRIPT", "SUBSCRIPT", "DOUBLE-STRUCK", "SCRIPT", "FEMININE", "MASCULINE"}
)
#: Written with capitals.
ABBREVIATED = {"CJK": "CJK"}
UNLABELED = "unlabeled"


def find_kinds(facts: Facts) -> list[str]:
    """One kind for each kept row."""
    if facts.tokens is None:
        return [UNLABELED] * facts.m
    tokens = facts.tokens
    return [find_kind(tokens[row]) for row in facts.kept.tolist()]


def find_kind(token: str) -> str:
    """The kind of a token.

    >>> [find_kind(token) for token in ("[unused7]", "<0x0A>", " the", "##ы", "海", "1990", "!?")]
    ['unused', 'byte', 'Latin', 'Cyrillic', 'CJK', 'digits', 'symbols']
    """
    return classify_token(token) or find_script(token)


def find_script(token: str) -> str:
    """The script of the first letter; ``"digits"`` or ``"symbols"`` where there is none.

    Python does not know scripts of characters, but their names begin with them.
    """
    digits = False
    for character in token:
        script = name_script(character)
        if script == "digits":
            digits = True
        elif script:
            return script
    return "digits" if digits else "symbols"


@cache
def name_script(character: str) -> str:
    """The script of a letter, ``"digits"`` of a digit, empty for anything else.

    >>> [name_script(character) for character in "ａ二ᴮ-"]
    ['Latin', 'CJK', 'other letters', '']
    """
    category = unicodedata.category(character)
    if category[0] == "N":
        return "digits"
    if category[0] != "L":
        return ""
    words = unicodedata.name(character, "OTHER").split()
    if words[0] in FORMS and len(words) > 1:
        words = words[1:]
    if words[0] in NOT_SCRIPTS or words[0] == "OTHER":
        return "other letters"
    return ABBREVIATED.get(words[0], words[0].capitalize())
