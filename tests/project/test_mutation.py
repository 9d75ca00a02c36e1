"""What a mutant of the code is, and that a test which fails catches it."""

from __future__ import annotations

import importlib
import subprocess
import sys
import types
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

class Held:
    field: int = 5
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


MODULE = """
LIMIT = 3

class Holder:
    @property
    def limit(self):
        return LIMIT + 1

def f(x, y=2):
    return x + y
"""


@pytest.mark.parametrize(("change", "found"), [
    ("(x - y)", (4, -1, 3)), ("(LIMIT - 1)", (2, 3, 3)), ("(4)", (5, 3, 4)), ("(3)", (4, 4, 3)),
])  # fmt: skip
def test_a_mutant_goes_into_functions_properties_constants_and_defaults(
    change: str, found: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mutated_module.py"
    file.write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("mutated_module")
    monkeypatch.setitem(sys.modules, "other", types.SimpleNamespace(LIMIT=module.LIMIT))
    f = module.f
    mutant = next(m for m in mutation.find_mutants(file, tmp_path) if m.after == change)
    mutation.install(mutant, tmp_path)
    assert (module.Holder().limit, f(1), sys.modules["other"].LIMIT) == found
    assert file.read_text() == MODULE
    del sys.modules["mutated_module"]


@pytest.mark.nightly
def test_mutants_of_an_area_are_caught_by_its_tests() -> None:
    command = [sys.executable, "-m", "tests.support.mutation", "rules", "--mutants", "3"]
    found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=mutation.ROOT)
    assert "without a mutant fail: []" in found.stdout
    assert "| rules | 3 | " in found.stdout
