"""Mutants that embgeo and the library of the format read alike; the nightly workflow makes more."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support import differential
from tests.support.differential_files import OFFICIAL, Arrays, numbers_of

MUTANTS = 36


def outcomes(name: str, places: range, seed: int = 0) -> list[str]:
    lines: list[str] = []
    differential.run_mutants(OFFICIAL[name], places, seed, lines.append)
    return "".join(lines).splitlines()


@pytest.mark.parametrize("name", list(OFFICIAL))
@pytest.mark.slow
def test_mutants_are_read_alike_or_refused(name: str, tmp_path: Path) -> None:
    pytest.importorskip(OFFICIAL[name].package, reason="the library is not installed")
    out = tmp_path / "lines"
    out.write_text("\n".join(outcomes(name, range(MUTANTS))) + "\n")
    found = differential.read_outcomes(out)
    kinds = {differential.kind(outcome) for outcome in found}
    assert found.total() == MUTANTS
    assert "disagree" not in kinds, differential.describe({name: found})
    assert {"same", "both refuse"} <= kinds


def test_a_slice_has_the_mutants_of_the_whole() -> None:
    whole = outcomes("npy", range(8))
    assert outcomes("npy", range(5, 8)) == whole[5:]
    assert outcomes("npy", range(8), seed=1) != whole


W = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    ("ours", "theirs", "noted", "verdict"),
    [
        ({"a": W}, {"a": W}, False, "same"),
        ({"a": W}, {"a": W.astype(">f8")}, False, "same"),
        ({"a": W}, {"a": W, "b": W}, True, "same, and embgeo leaves out others with a note"),
        ({"a": W}, {"a": W, "b": W}, False, "DISAGREE: embgeo has no 'b', and no note"),
        ({"b": W}, {"a": W}, True, "DISAGREE: only embgeo has 'b'"),
        ({"a": W}, {"a": W + 1}, True, "DISAGREE: 'a' has other numbers"),
        ({"a": W}, {"a": W.T}, True, "DISAGREE: 'a' is float64 (2, 3)"),
        ({"a": W}, {"a": W.astype("f4")}, True, "DISAGREE: 'a' is float64 (2, 3)"),
    ],
)
def test_disagreements_are_found(
    ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray], noted: bool, verdict: str
) -> None:
    def read(arrays: dict[str, np.ndarray]) -> Arrays:
        return {name: numbers_of(array) for name, array in arrays.items()}

    assert differential.compare(read(ours), read(theirs), noted).startswith(verdict)


def test_a_mutant_over_which_the_process_dies_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the library it is a refusal, of embgeo a disagreement."""
    out = tmp_path / "lines"
    calls = iter(["0\topened as npy", "1", "2\t_ is cut off\tValueError\t-\n"])

    def run(*_command: object, **_more: object) -> None:
        with out.open("a") as lines:
            lines.write(next(calls))

    monkeypatch.setattr(differential.subprocess, "run", run)
    differential.drive(OFFICIAL["npy"], 3, 0, out)
    found = [differential.kind(outcome) for outcome in differential.read_outcomes(out)]
    assert found == ["library alone refuses", "disagree", "both refuse"]
