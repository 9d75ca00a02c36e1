"""What keeps the fast tests fast, as far as their source shows it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

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
