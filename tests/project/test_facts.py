"""Decisions read typed facts and names that exist, never prose and never a literal."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

import pytest

from embgeo.core.quantities import OF_PAIRS, QUANTITIES
from embgeo.core.suspects import REASONS
from tests.support.package_source import modules, nodes

#: What holds sentences for people.
PROSE = {
    "convention",
    "headline",
    "note",
    "notes",
    "reason",
    "reference_note",
    "sample",
    "sentence",
    "undefined",
}
READS_TEXT = {"startswith", "endswith", "removeprefix", "removesuffix", "find", "index"}
#: Files of version 1 said in prose what later ones say in fields; the other two look for the
#: literal of a suspect in sets of them.
MAY_READ_PROSE = {
    "embgeo.result.saved",
    "embgeo.diagnosis.findings.suspects",
    "embgeo.diagnosis.verdict",
}


def is_prose(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name in PROSE


def decisions_by_prose(found: Iterable[ast.AST]) -> Iterator[ast.expr]:
    for node in found:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in READS_TEXT and is_prose(node.func.value):
                yield node
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            sides = (node.left, node.comparators[0])
            # Whether there is a text at all is not reading it, nor is the literal of a suspect.
            if any(map(is_prose, sides)) and any(map(is_fixed_text, sides)):
                yield node


def is_fixed_text(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and node.value not in ("", *REASONS)
    return isinstance(node, ast.Name) and node.id.isupper()


@pytest.mark.slow
def test_no_decision_reads_prose() -> None:
    assert not [
        f"{module}:{node.lineno}: {ast.unparse(node)}"
        for module in modules()
        if module not in MAY_READ_PROSE
        for node in decisions_by_prose(nodes(module))
    ]


def test_reading_prose_is_seen() -> None:
    for code in (
        "scalar.convention.startswith('a lower bound')",
        "note.startswith('tied')",
        "'basis-dependent' in scalar.convention",
        "finding.sentence.removeprefix('Not decided: ')",
        "scalar.reference_note == 'chance'",
    ):
        assert list(decisions_by_prose(ast.walk(ast.parse(code))))


#: Where quantities are defined.
DEFINITIONS = re.compile(r"embgeo\.core\.quantities\.\w+|embgeo\.training\.study\.numbers")
NAMES = QUANTITIES.keys() | OF_PAIRS.keys()


def test_names_of_quantities_are_constants() -> None:
    """A literal that is one skips silently once the name changes."""
    assert not [
        f"{module}:{node.lineno}: {node.value}"
        for module in modules()
        if not DEFINITIONS.fullmatch(module)
        for node in nodes(module)
        if isinstance(node, ast.Constant) and node.value in NAMES
    ]


def test_names_of_quantities_are_not_put_together() -> None:
    families = tuple(f"{name.partition('.')[0]}." for name in NAMES)
    assert not [
        f"{module}:{node.lineno}: {ast.unparse(node)}"
        for module in modules()
        if not DEFINITIONS.fullmatch(module)
        for node in nodes(module)
        if isinstance(node, ast.JoinedStr)
        and isinstance(node.values[0], ast.Constant)
        and str(node.values[0].value).startswith(families)
    ]
