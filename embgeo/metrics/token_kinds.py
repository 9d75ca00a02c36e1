"""Kinds of tokens (unused, byte, special, or the script), and groups of them.

Definitions, section 8.

Examples
--------
>>> import embgeo
>>> names = ["<s>", "[unused1]", "<0x0A>", "word", "word2"]
>>> W = np.random.default_rng(0).standard_normal((5, 3))
>>> found = embgeo.analyze(W, tokens=names, sections=["tokens"], reference=False)
>>> [row[0] for row in found["tokens.groups"].rows]
['special tokens', 'unused tokens', 'byte tokens']
"""

import unicodedata
from functools import cache

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.quantities import tokens as q
from embgeo.core.special import classify_token
from embgeo.core.values import Cell, Table, Value
from embgeo.metrics.facts import NO_ROWS, Facts
from embgeo.metrics.family import Family, Measurement
from embgeo.metrics.shared import norms
from embgeo.stats.block import Block
from embgeo.stats.reader import RowReader

#: Masked rows read at once.
STEP = 1024
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


def find_unused_rows(facts: Facts) -> tuple[IntArray, str]:
    """Find kept rows of tokens known to be unused, and how they are known.

    By spelling, or else by a count of 0: the counted corpus need not be the model's training text.
    """
    if facts.tokens is not None:
        tokens = facts.tokens
        spelled = [row for row in facts.kept.tolist() if classify_token(tokens[row]) == "unused"]
        if spelled:
            return np.array(spelled, dtype=np.int64), "by their spelling"
    if facts.counts is not None and facts.frequency is not None:
        never = facts.kept[facts.counts[facts.kept] == 0]
        return never, f"count 0: {facts.frequency.source}"
    return NO_ROWS, ""


def rows_read(m: Measurement) -> IntArray:
    return np.concatenate([NO_ROWS, *m.facts.masked.values()])


def compute(m: Measurement) -> list[Value]:
    facts, lengths = m.facts, m.shared.norms
    rows: list[tuple[Cell, ...]] = []
    for name, positions in group_rows(facts).items():
        median = float(np.median(lengths[positions]))
        rows.append((name, len(positions), median, facts.list_examples(facts.kept[positions])))
    rows += [
        (f"{reason}, left out", len(masked), measure_masked(m.reader, masked), None)
        for reason, masked in facts.masked.items()
        if len(masked)
    ]
    if not rows:
        return []
    note = f"median norm of all rows: {float(np.median(lengths)):.4g}"
    return [Table(q.GROUPS, ("group", "rows", "median norm", "tokens"), tuple(rows), note=note)]


def measure_masked(reader: RowReader, rows: IntArray) -> float | None:
    """Measure the median norm of masked rows; None if none of them is finite."""
    found: list[FloatArray] = []
    for start in range(0, len(rows), STEP):
        block = reader.take(rows[start : start + STEP])
        used = np.isfinite(block).all(axis=1) & block.any(axis=1)
        found.append(Block(rows[start : start + STEP][used], block[used]).norms)
        found.append(np.zeros(int((~block.any(axis=1)).sum())))
    known = np.concatenate(found)
    return float(np.median(known)) if len(known) and np.isfinite(known).all() else None


def group_rows(facts: Facts) -> dict[str, IntArray]:
    """Return the positions among the kept rows by group; a token may be in several."""
    members: dict[str, list[int]] = {}
    if facts.tokens is not None:
        for at, row in enumerate(facts.kept.tolist()):
            if kind := classify_token(facts.tokens[row]):
                members.setdefault(f"{kind} tokens", []).append(at)
    groups = {name: np.array(positions) for name, positions in members.items()}
    if facts.counts is not None:
        never = np.flatnonzero(facts.counts[facts.kept] == 0)
        if len(never):
            groups["never seen"] = never
    return groups


def find_kinds(facts: Facts, rows: IntArray) -> list[str]:
    """Find the kind of the token of each row."""
    if (tokens := facts.tokens) is None:
        return ["unlabeled"] * len(rows)
    return [find_kind(tokens[row]) for row in rows.tolist()]


def find_kind(token: str) -> str:
    """Find the kind of a token.

    >>> [find_kind(token) for token in ("[unused7]", "<0x0A>", " the", "##ы", "海", "1990", "!?")]
    ['unused', 'byte', 'Latin', 'Cyrillic', 'CJK', 'digits', 'symbols']
    """
    return classify_token(token) or find_script(token)


def find_script(token: str) -> str:
    """Find the script of the first letter; ``"digits"`` or ``"symbols"`` without one.

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
    """Name the script of a letter or a vowel sign, ``"digits"`` of a digit, empty for others.

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


FAMILY = Family("tokens", compute, first=(norms,), rows_read=rows_read)
