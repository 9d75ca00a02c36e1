"""Decisions read typed facts and names that exist, never prose and never a literal."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from embgeo.core import quantities
from embgeo.core.quantities import OF_PAIRS, QUANTITIES, compare, track
from tests.support.package_source import modules, nodes

#: What holds sentences for people.
PROSE = {
    "clause",
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
#: Files of version 1 said in prose what later ones say in fields.
MAY_READ_PROSE = {"embgeo.result.saved"}


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
            # Whether there is a text at all is not reading it.
            if any(map(is_prose, sides)) and any(map(is_fixed_text, sides)):
                yield node


def is_fixed_text(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and node.value != ""
    return isinstance(node, ast.Name) and node.id.isupper()


@pytest.mark.slow
def test_no_decision_reads_prose() -> None:
    assert not [
        f"{module}:{node.lineno}: {ast.unparse(node)}"
        for module in modules()
        if module not in MAY_READ_PROSE
        for node in decisions_by_prose(nodes(module))
    ]


@pytest.mark.parametrize(
    "code",
    [
        "scalar.convention.startswith('a lower bound')",
        "note.startswith('tied')",
        "'basis-dependent' in scalar.convention",
        "finding.sentence.removeprefix('Not decided: ')",
        "scalar.reference_note == 'chance'",
    ],
)
def test_reading_prose_is_seen(code: str) -> None:
    assert list(decisions_by_prose(ast.walk(ast.parse(code))))


def test_the_constant_of_a_quantity_is_its_name_in_capitals() -> None:
    for family in (*quantities.FAMILIES, compare, track):
        for name in quantities.quantities_of(family):
            constant = name.partition(".")[2].upper()
            assert getattr(family, constant).name == name


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


# --- What keeps the fast tests fast, as far as their source shows it ------------------------------


TESTS = Path(__file__).parents[1]
#: Marks of tests that the fast ones leave out; see tests/conftest.py.
SLOW = ("slow", "nightly", "browser")


def fast_tests(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """The test functions of a file that no mark of the file or of their own leaves out."""
    of_file = [node.value for node in tree.body if isinstance(node, ast.Assign)
               and ast.unparse(node.targets[0]) == "pytestmark"]  # fmt: skip
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            marks = "".join(ast.unparse(mark) for mark in (*of_file, *node.decorator_list))
            if not any(f"mark.{name}" in marks for name in SLOW):
                yield node


def test_fast_tests_start_no_python_of_their_own() -> None:
    """It takes as long as hundred other tests, most of it to import."""
    assert not [
        f"{path.relative_to(TESTS)}: {test.name}"
        for path in sorted(TESTS.rglob("test_*.py"))
        for test in fast_tests(ast.parse(path.read_text("utf-8")))
        if any(
            isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.executable"
            for node in ast.walk(test)
        )
    ]


def test_marks_of_files_and_of_functions_are_seen() -> None:
    marked = "@pytest.mark.slow\ndef test_a(): ...\ndef test_b(): ...\ndef helper(): ...\n"
    assert [test.name for test in fast_tests(ast.parse(marked))] == ["test_b"]
    assert not list(fast_tests(ast.parse("pytestmark = [pytest.mark.browser]\n" + marked)))
