"""What a mutant of the code is, and that a test which fails catches it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import mutation

SOURCE = '''
LIMIT = 3
NAME = f"{LIMIT + 1}é"

def f(x: int = 1) -> bool:
    """1 + 1"""
    if not x:
        raise ValueError(f"{x} < 2")
    return x < LIMIT and "é" != "1"
'''


def test_mutants_change_what_is_computed_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(SOURCE)
    found = list(mutation.find_mutants(file, tmp_path))
    assert [(mutant.line, mutant.after) for mutant in found] == [
        (2, "(4)"),
        (5, "(2)"),
        (7, "(x)"),
        (9, "(x < LIMIT or 'é' != '1')"),
        (9, "(x <= LIMIT)"),
        (9, "('é' == '1')"),
    ]
    for mutant in found:
        assert (
            SOURCE.encode()[mutant.start : mutant.stop].decode().replace('"', "'") == mutant.before
        )


def test_a_seed_draws_the_same_mutants_again() -> None:
    drawn = mutation.draw("pickle", 5, 1)
    assert drawn == mutation.draw("pickle", 5, 1) != mutation.draw("pickle", 5, 2)


@pytest.mark.nightly
def test_a_mutant_is_caught_by_a_test_that_fails(tmp_path: Path) -> None:
    code, test = tmp_path / "counted.py", tmp_path / "test_code.py"
    code.write_text("def f(x, y):\n    return x + y, x * y\n")
    test.write_text("from counted import f\n\ndef test_f():\n    assert f(1, 1)[0] == 2\n")
    caught = [
        mutation.is_caught(m, "test_code.py", tmp_path)
        for m in mutation.find_mutants(code, tmp_path)
    ]
    assert caught == [True, False]
    assert code.read_text() == "def f(x, y):\n    return x + y, x * y\n"
