"""Every writer, killed before each of its writes: what is read then is the old or the new result.

Those of ``repair`` are in test_repair.py; training runs are killed in test_resume.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.core.errors import EmbgeoError
from embgeo.files.saved import write_file
from embgeo.result.analysis import Analysis
from embgeo.workflows import folders
from tests.support.command import call
from tests.support.moments import State, drop_temporary, moments, put, state_of
from tests.support.sample_analysis import sample
from tests.support.sample_comparison import sample_comparison
from tests.support.sampling import each_value

OLD, NEW = sample(n=200), sample("isotropic", n=200)


@dataclass(frozen=True)
class Writer:
    """Something that writes.

    Attributes
    ----------
    old, new : callable
        Write into a folder what is there before, and what takes its place.
    read : callable
        What a reader finds, equal for equal results; raises EmbgeoError or OSError for none.
    """

    old: Callable[[Path], object]
    new: Callable[[Path], object]
    read: Callable[[Path], object]


def analysis(one: Any, output: Any = None) -> Callable[[Path], object]:
    return lambda folder: folders.write_analysis(one, folder / "a", output)


def mean_of(found: Analysis) -> float:
    mean = found.find_scalar("cosine.mean")
    assert mean is not None
    assert mean.value is not None
    return mean.value


def read_analysis(folder: Path) -> object:
    inner = folder / "a" / folders.OUTPUT_FOLDER
    output = mean_of(embgeo.load_analysis(inner)) if inner.exists() else None
    return mean_of(embgeo.load_analysis(folder / "a")), output


def comparison(members: int) -> Callable[[Path], object]:
    return lambda folder: folders.write_comparison(
        sample_comparison(members=members, matrices=False), folder / "c"
    )


def read_comparison(folder: Path) -> object:
    found = embgeo.load_comparison(folder / "c")
    return [mean_of(member.analysis) for member in found.members]


def export(one: Any, to: str, name: str) -> Callable[[Path], object]:
    return lambda folder: embgeo.export(one, to, folder / name)


def contents(*names: str) -> Callable[[Path], object]:
    return lambda folder: [(folder / name).read_bytes() for name in names]


def project(number: int) -> Callable[[Path], object]:
    def write(folder: Path) -> None:
        path = folder.with_name("w.npy")
        np.save(path, np.full((4, 2), number, "f4"))
        tokens = folder.with_name("t.txt")
        tokens.write_text("".join(f"{number}{k}\n" for k in range(4)))
        analysis = embgeo.analyze(path, tokens=tokens, sections="projection", reference=False)
        embgeo.export(analysis, "projector", folder / "p")

    return write


def read_projector(folder: Path) -> object:
    # The file by which the projector finds the others.
    (folder / "p" / "projector_config.pbtxt").read_bytes()
    return contents("p/tensors.tsv", "p/metadata.tsv")(folder)


WRITERS = {
    "analysis": Writer(analysis(OLD), analysis(NEW), read_analysis),
    "analysis of two matrices": Writer(analysis(OLD, OLD), analysis(NEW, NEW), read_analysis),
    "comparison": Writer(comparison(3), comparison(2), read_comparison),
    "csv": Writer(export(OLD, "csv", "e.csv"), export(NEW, "csv", "e.csv"), contents("e.csv")),
    "parquet": Writer(
        export(OLD, "parquet", "e.parquet"),
        export(NEW, "parquet", "e.parquet"),
        contents("e.parquet"),
    ),
    "projector": Writer(project(1), project(2), read_projector),
    "text": Writer(
        lambda folder: write_file(folder / "t", "old"),
        lambda folder: write_file(folder / "t", "new"),
        contents("t"),
    ),
}

#: Beginnings of the names of those that take long, or import a large package.
SLOW = ("analysis", "comparison", "parquet")


def found(writer: Writer, folder: Path) -> object:
    try:
        return writer.read(folder)
    except (EmbgeoError, OSError):
        return None


@pytest.fixture(autouse=True)
def no_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are files like others: they need not be rendered at every moment."""
    for page in ("analysis", "comparison"):
        monkeypatch.setattr(f"embgeo.report.{page}.render", lambda _: "<html>")


@each_value
@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * name.startswith(SLOW)) for name in WRITERS],
)
def test_what_is_there_is_whole_at_every_moment(name: str, exists: bool, tmp_path: Path) -> None:
    if name == "parquet":
        pytest.importorskip("pyarrow")
    writer = WRITERS[name]
    (home := tmp_path / "home").mkdir()
    before = None
    if exists:
        writer.old(home)
        before = found(writer, home)
        assert before is not None
    with moments(home) as states:
        writer.new(home)
    after = found(writer, home)
    assert after not in (None, before)
    # Of states that differ in temporary files only, the last one: those are of no use to a reader.
    distinct = {tuple(drop_temporary(left).items()): left for left in states}
    assert len(distinct) > 1
    for at, left in enumerate(distinct.values()):
        killed = put(left, tmp_path / str(at))
        assert found(writer, killed) in (None, before, after), at
        writer.new(killed)
        assert found(writer, killed) == after
        assert drop_temporary(state_of(killed)).keys() == drop_temporary(states[-1]).keys()


def test_figures_and_tables_are_whole_each(tmp_path: Path) -> None:
    old, new = {"a.svg": b"old", "a.json": b"old"}, {"a.svg": b"new", "a.json": b"new"}
    folders.write_set(tmp_path / "out", old)
    with moments(tmp_path / "out") as states:
        folders.write_set(tmp_path / "out", new)
    for left in states:
        assert set(drop_temporary(left)) == set(new)
        assert set(drop_temporary(left).values()) <= {b"old", b"new"}
    # All are written before the first one is replaced.
    assert sum(drop_temporary(left) == old for left in states) > len(new)
    assert drop_temporary(states[-1]) == new


def test_no_output_of_a_gate_outlives_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass that was written earlier is gone before anything of the next run is there."""
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.random.default_rng(0).standard_normal((60, 6)).astype("f4"))
    files = ("--junit", "j.xml", "--sarif", "s.sarif")
    rules = {"old": "cosine.mean <= 0.5", "new": "cosine.mean >= 0.5"}

    def gate(rule: str) -> int:
        return call("gate", "a.npy", "-r", rules[rule], *files).exit_code

    def said(left: State) -> tuple[str, ...]:
        junit, (sarif,) = left["j.xml"] or b"", json.loads(left["s.sarif"] or b"")["runs"]
        outcome = "unfinished" if b"did not finish" in junit else "failed"
        outcome = "passed" if b'failures="0"' in junit and b'errors="0"' in junit else outcome
        finished = sarif["invocations"][0]["executionSuccessful"]
        return outcome, f"{len(sarif['results'])} failed" if finished else "unfinished"

    assert gate("old") == 0
    with moments(tmp_path) as states:
        assert gate("new") == 1
    seen = list(dict.fromkeys(said(drop_temporary(left)) for left in states))
    assert seen == [
        ("passed", "0 failed"),
        ("unfinished", "0 failed"),
        ("unfinished", "unfinished"),
        ("failed", "unfinished"),
        ("failed", "1 failed"),
    ]
