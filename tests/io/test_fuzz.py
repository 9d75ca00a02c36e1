"""Mutants of a sound file of each format; the nightly workflow makes ten thousand."""

from __future__ import annotations

import importlib.util
import json
import random
import subprocess
import warnings
from pathlib import Path

import pytest

from embgeo.core.errors import UnreadableFile
from tests.support import fuzz
from tests.support.fuzz_parsers import PARSERS
from tests.support.fuzz_seeds import SEEDS, Seed

MUTANTS = 48
#: Each takes a process of its own, and a quarter of a second.
SLOW_MUTANTS = 2
#: What is damaged here is left out, and the matrix is read without it.
LENIENT = ("folder tokenizer_config.json",)


@pytest.mark.parametrize("seed", SEEDS.values(), ids=list(SEEDS))
@pytest.mark.slow
def test_mutants(seed: Seed) -> None:
    if seed.needs and importlib.util.find_spec(seed.needs) is None:
        pytest.skip(f"{seed.needs} is not installed")
    count = SLOW_MUTANTS if seed.slow else MUTANTS
    tally = fuzz.fuzz(seed, count)
    assert not tally.failures, tally.failures[0]
    assert tally.opened + tally.refused == count
    # Were none refused, or none opened, they would say nothing about half of the reader.
    assert tally.refused or seed.name in LENIENT
    assert tally.opened or seed.slow


@pytest.mark.parametrize("name", PARSERS)
def test_mutants_in_memory(name: str) -> None:
    parser, chance = PARSERS[name], random.Random(name)
    mutants, refused = [], []
    for content in parser.sound():
        parser.read(content)
        mutants += [fuzz.mutant(content, chance) for _ in range(MUTANTS)]
    for data in mutants:
        try:
            parser.read(data)
        except UnreadableFile as error:
            refused.append(str(error))
    assert all(map(str.isprintable, refused))
    assert 0 < len(refused) < len(mutants)


def test_mutants_guided_by_coverage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("atheris", reason="atheris is not installed")
    keep, corpus = tmp_path / "failures", tmp_path / "corpus"
    assert fuzz.fuzz_guided([SEEDS["npy"]], 1, keep, corpus) == 0
    line = capsys.readouterr().out
    assert "no failure" in line
    assert int(line.split()[1]) > 20
    assert list(keep.iterdir()) == []
    assert json.loads((corpus / "counts.json").read_text()) == {"npy": int(line.split()[1])}
    assert len(list((corpus / "npy").iterdir())) > 1


def test_what_coverage_finds_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "ZeroDivisionError\nstat::number_of_executed_units: 30\nstat::new_units_added: 2"

    def run(command: list[str], **_more: object) -> subprocess.CompletedProcess[str]:
        (Path(command[-1]) / f"unit-{len(list(Path(command[-1]).iterdir()))}").touch()
        return subprocess.CompletedProcess(command, 77, "", said)

    monkeypatch.setattr(subprocess, "run", run)
    keep, corpus = tmp_path / "failures", tmp_path / "corpus"
    for runs in (1, 2):
        assert fuzz.fuzz_guided([SEEDS["npz compressed"]], 1, keep, corpus) == 1
        out = capsys.readouterr().out
        assert f"2 on new paths, failed; {30 * runs} mutants of all runs" in out
        assert json.loads((corpus / "counts.json").read_text()) == {"npz compressed": 30 * runs}
        assert len(list((corpus / "npz-compressed").iterdir())) == runs
    assert (keep / "npz-compressed.txt").read_text() == said


def test_a_seed_makes_the_same_mutants_again() -> None:
    content = bytes(range(256)) * 4
    made = [fuzz.mutant(content, random.Random(seed)) for seed in (1, 1, 2)]
    assert made[0] == made[1] != made[2]


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (lambda: {}["missing"], "KeyError"),
        (lambda: warnings.warn("noise", RuntimeWarning, stacklevel=1), "RuntimeWarning"),
        (lambda: 1 // 0, "ZeroDivisionError"),
    ],
)
def test_a_reader_that_fails_is_found(
    monkeypatch: pytest.MonkeyPatch, wrong: object, expected: str
) -> None:
    calls = iter([lambda: None])

    def read(_seed: Seed, _folder: Path) -> None:
        next(calls, wrong)()  # type: ignore[operator]

    monkeypatch.setattr(fuzz, "read", read)
    failures = fuzz.fuzz(SEEDS["npy"], 3).failures
    assert failures
    assert expected in failures[0][1]


@pytest.mark.slow
def test_a_reader_that_hangs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("resource", reason="this system has no alarms")
    monkeypatch.setattr(fuzz, "DEADLINE", 0.2)
    waits = iter([False])

    def read(_seed: Seed, _folder: Path) -> None:
        while next(waits, True):
            pass

    monkeypatch.setattr(fuzz, "read", read)
    failures = fuzz.fuzz(SEEDS["npy"], 1).failures
    assert "more than 0.2 seconds" in failures[0][1]
