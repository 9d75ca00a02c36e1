"""Kinds of tokens: unused, byte, special, or the script."""

from __future__ import annotations

import unicodedata
from functools import cache

from embgeo.core.arrays import IntArray
from embgeo.core.token_spelling import classify_token
from embgeo.metrics.facts import Facts

#: First words of Unicode names that state the form of a letter, in front of its script …
FORMS = frozenset({"FULLWIDTH", "HALFWIDTH", "SMALL", "CIRCLED", "SQUARE", "SQUARED"})
#: … and in place of one.
NOT_SCRIPTS = frozenset(
    {
        "DOUBLE-STRUCK",
        "FEMININE",
        "MASCULINE",
        "MICRO",
        "MODIFIER",
        "OTHER",
        "SCRIPT",
        "SUBSCRIPT",
        "SUPERSCRIPT",
    }
)


def find_kinds(facts: Facts, rows: IntArray) -> list[str]:
    """The kind of the token of each row."""
    if (tokens := facts.tokens) is None:
        return ["unlabeled"] * len(rows)
    return [find_kind(tokens[row]) for row in rows.tolist()]


def find_kind(token: str) -> str:
    """The kind of a token.

    >>> [find_kind(token) for token in ("[unused7]", "<0x0A>", " the", "##ы", "海", "1990", "!?")]
    ['unused', 'byte', 'Latin', 'Cyrillic', 'CJK', 'digits', 'symbols']
    """
    return classify_token(token) or find_script(token)


def find_script(token: str) -> str:
    """The script of the first letter; ``"digits"`` or ``"symbols"`` without one.

    Python does not know the scripts of characters, but their Unicode names begin with them.
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
    """The script of a letter or a vowel sign, ``"digits"`` of a digit, empty for anything else.

    >>> [name_script(character) for character in "ａ二ाー-µ"]
    ['Latin', 'CJK', 'Devanagari', 'Katakana', '', 'other letters']
    """
    category = unicodedata.category(character)
    if category[0] == "N":
        return "digits"
    if category[0] not in "LM":
        return ""
    words = unicodedata.name(character, "OTHER").split()
    if words[0] in FORMS and len(words) > 1:
        words = words[1:]
    if category[0] == "M" and words[0] in ("COMBINING", "VARIATION", "OTHER"):
        return ""
    if words[0] in NOT_SCRIPTS:
        return "other letters"
    script = words[0].partition("-")[0]
    return script if script == "CJK" else script.capitalize()
