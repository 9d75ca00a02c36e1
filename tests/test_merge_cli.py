"""``embgeo analyze --save-state`` and ``embgeo merge``: what is said, refused and written."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import embgeo
from embgeo.cli.app import app
from embgeo.compare.originals import original
from embgeo.parts.plans import IN_PARTS
from tests.in_parts import check_analyses
from tests.matrices import gaussian

N = 120
#: Quick, and yet in need of a second pass and of single rows.
QUICK = ("--sections", "spectrum,cosine,tokens", "--no-reference")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder with a matrix, whole and in three files, and its tokens."""
    monkeypatch.chdir(tmp_path)
    W = gaussian(500, N, 4) + 0.3
    np.save("W.npy", W)
    for start in range(0, N, 40):
        np.save(f"rows{start:03}.npy", W[start : start + 40])
    Path("tokens.txt").write_text("".join(f"t{i}\n" for i in range(N)))
    Path("counts.tsv").write_text("".join(f"t{i}\t{N - i // 2}\n" for i in range(N)))
    return tmp_path


def call(line: str, *more: str) -> Any:
    return CliRunner().invoke(app, [*line.split(), *more])


def done(line: str, *more: str) -> str:
    result = call(line, *more)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


def refused(line: str, *more: str) -> str:
    """The one line that a call ends with; nothing was written."""
    before = {p: p.read_bytes() for p in Path().rglob("*") if p.is_file()}
    result = call(line, *more)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    assert "unexpected" not in result.stderr
    assert {p: p.read_bytes() for p in Path().rglob("*") if p.is_file()} == before
    return str(result.stderr)


def first_round(parts: int = 3, *more: str) -> None:
    for i in range(1, parts + 1):
        done(f"analyze W.npy --part {i}/{parts} --save-state s{i}.npz -q", *more)


def second_round(plan: str = "plan.npz", parts: int = 3) -> None:
    for i in range(1, parts + 1):
        done(f"analyze W.npy --part {i}/{parts} --plan {plan} --save-state t{i}.npz -q")


def states(letter: str) -> list[str]:
    return sorted(map(str, Path().glob(f"{letter}*.npz")))


def test_the_whole_story() -> None:
    told = done("analyze W.npy --part 1/3 --save-state s1.npz --tokens tokens.txt")
    assert told == "s1.npz: first round, rows 0 to 39\n"
    first_round(3, "--tokens", "tokens.txt", "--counts", "counts.tsv")
    told = done("merge --plan plan.npz", *states("s"))
    assert "plan.npz: second pass over 120 rows, gathers" in told
    assert "next: embgeo analyze PART --plan plan.npz" in told
    assert done("analyze W.npy --rows 40:80 --plan plan.npz --save-state t2.npz") == (
        "t2.npz: second round, rows 40 to 79\n"
    )
    second_round()
    told = done("merge", *states("t"))
    assert "report: " in told
    done("analyze W.npy --tokens tokens.txt --counts counts.tsv --no-sphere -o one -q")
    one, found = (embgeo.load_analysis(Path(name)) for name in ("one", "W.embgeo"))
    assert found.scalar("isotropy.i_sphere").undefined == IN_PARTS  # type: ignore[union-attr]
    scalars = {s.name: s for s in one.scalars}
    same_reason = tuple(scalars[s.name] if s.undefined == IN_PARTS else s for s in found.scalars)
    found = replace(found, scalars=same_reason)
    check_analyses(found, one)
    assert original(found, Path("W.embgeo")) == (None, "the saved analysis was merged from parts")
    record = json.loads(Path("W.embgeo/analysis.json").read_text())["provenance"]
    assert [part["rows"] for part in record["parts"]] == [[0, 40], [40, 80], [80, 120]]
    assert len({part["sha256"] for part in record["parts"]}) == 3
    assert record["file"] == "W.npy"
    assert record["command"].startswith("embgeo")


def test_files_of_rows_in_any_order() -> None:
    for start in (80, 0, 40):
        done(f"analyze rows{start:03}.npy --first-row {start} --save-state s{start}.npz -q", *QUICK)
    done("merge --tokens tokens.txt --plan plan.npz -q", *states("s"))
    for start in (0, 80, 40):
        done(
            f"analyze rows{start:03}.npy --first-row {start} --plan plan.npz "
            f"--save-state t{start}.npz -q"
        )
    done("merge plan.npz -q -o out", *states("t"))
    done("analyze W.npy --tokens tokens.txt -o one -q", *QUICK)
    one, found = (embgeo.load_analysis(Path(name)) for name in ("one", "out"))
    check_analyses(found, one)


def test_rows_out_of_reach_take_a_round_of_their_own() -> None:
    first_round(3, *QUICK)
    shutil.move("W.npy", "moved.npy")
    assert "rows first, which no file within reach holds" in done(
        "merge --plan plan.npz", *states("s")
    )
    shutil.move("moved.npy", "W.npy")
    second_round()
    assert "the pass is still to come" in refused("merge -o out", *states("t"))
    assert "second pass" in done("merge --plan plan2.npz", *states("t"))
    second_round("plan2.npz")
    done("merge -o out -q", *states("t"))
    done("analyze W.npy -o one -q", *QUICK)
    one, found = (embgeo.load_analysis(Path(name)) for name in ("one", "out"))
    check_analyses(found, one)


def test_another_file_of_the_same_name_is_out_of_reach() -> None:
    first_round(3, *QUICK)
    W = np.load("W.npy")
    np.save("W.npy", gaussian(502, *W.shape))
    assert "rows first, which no file within reach holds" in done(
        "merge --plan plan.npz", *states("s")
    )


def test_more_states_than_a_process_may_open() -> None:
    resource = pytest.importorskip("resource", reason="limits of open files are POSIX's")
    first_round(40, "--sections", "spectrum", "--no-reference")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 64
    resource.setrlimit(resource.RLIMIT_NOFILE, (opened + 20, limits[1]))
    try:
        done("merge -o out -q", *states("s"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_one_round_says_what_the_second_would_add() -> None:
    first_round(2, *QUICK)
    told = done("merge -o out", *states("s"))
    assert told.endswith(
        "a second round adds cosine, tokens: embgeo merge STATES --plan plan.npz\n"
    )
    assert set(embgeo.load_analysis(Path("out")).absent) == {"cosine", "tokens"}
    shown = json.loads(done("merge --json", *states("s")))
    assert shown["provenance"]["sections"] == ["spectrum"]


def test_more_parts_than_rows() -> None:
    np.save("W.npy", gaussian(501, 3, 2))
    first_round(7, "--sections", "spectrum", "--no-reference")
    done("merge -o out -q", *states("s"))
    assert embgeo.load_analysis(Path("out")).provenance["n"] == 3


def test_a_state_replaces_a_state() -> None:
    first_round(1, *QUICK)
    first_round(1, *QUICK)
    done("merge --plan plan.npz -q s1.npz")
    done("merge --plan plan.npz -q s1.npz")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--part 1/2", "--part: is about a part of a matrix; give --save-state FILE too"),
        ("--plan plan.npz", "--plan: is about a part"),
        ("--first-row 3", "--first-row: is about a part"),
        ("--scheduler tcp://x:1", "add --engine dask"),
        ("--save-state s.npz -o out", "a part gives a state, not a result"),
        ("--save-state s.npz --json", "a part gives a state, not a result"),
        ("--save-state s.npz --part 3/2", "write I/P"),
        ("--save-state s.npz --part 1/2 --rows 0:9", "both say which rows"),
        ("--save-state s.npz --rows 0:999", "reaches beyond"),
        ("--save-state s.npz --hidden W.npy", "not measured in parts"),
        ("--save-state s.npz --pairs all", "all rows in one place"),
        ("--save-state s.npz --neighbors-of all", "all rows in one place"),
        ("--save-state s.npz --sphere", "a pass for each of its steps"),
        ("--save-state s.npz --device cuda", "on the processor"),
        ("--save-state s.npz --engine dask", "a cluster needs no files"),
        ("--save-state s.npz --sections nope", "no section is called 'nope'"),
        ("--save-state W.npy", "exists and is no state"),
        ("--save-state nowhere/s.npz", "is no folder"),
        ("--save-state s.npz --plan missing.npz", "missing.npz: cannot be read"),
        ("--save-state s.npz --plan W.npy", "W.npy: "),
        ("--save-state s.npz --plan plan.npz --seed 3", "--seed: is in the plan already"),
        ("--save-state s.npz --plan plan.npz --tokens tokens.txt", "--tokens: is in the plan"),
    ],
)
def test_options_that_contradict_each_other(options: str, says: str) -> None:
    assert says in refused("analyze W.npy", *options.split())


def test_stdin_cannot_be_read_twice() -> None:
    assert "stdin" in refused("analyze - --save-state s.npz")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("s1.npz s2.npz s3.npz --plan plan.npz -o out", "a plan is no result yet"),
        ("s1.npz s2.npz s3.npz --plan W.npy", "exists and is no state or plan"),
        ("s1.npz s3.npz -o out", "rows 40 to 79 are in no part"),
        ("s1.npz s2.npz s3.npz s2.npz -o out", "in another part too"),
        ("s1.npz t1.npz -o out", "not a mixture"),
        ("plan.npz -o out", "not a mixture"),
        ("plan.npz plan.npz t1.npz -o out", "not a mixture"),
        ("t1.npz t3.npz -o out", "rows 40 to 79 are in no part"),
        ("t1.npz t2.npz t3.npz --plan more.npz", "those of the last round"),
        ("t1.npz t2.npz t3.npz --rank-order -o out", "belong to the first round"),
        ("W.npy -o out", "W.npy: "),
        ("tokens.txt", "tokens.txt: "),
        ("missing.npz", "missing.npz: cannot be read"),
        ("s1.npz s2.npz s3.npz -o full", "holds something else"),
        ("s1.npz s2.npz s3.npz --counts counts.tsv --rank-order", "exclude each other"),
        ("s1.npz s2.npz s3.npz --tokens rows000.npy", "rows000.npy"),
    ],
)
def test_states_that_do_not_merge(arguments: str, says: str) -> None:
    first_round(3, *QUICK)
    done("merge --plan plan.npz -q", *states("s"))
    second_round()
    Path("full").mkdir()
    Path("full/mine.txt").write_text("precious")
    assert says in refused("merge", *arguments.split())


def test_states_of_another_plan() -> None:
    first_round(3, *QUICK)
    done("merge --plan plan.npz -q", *states("s"))
    second_round()
    first_round(3, *QUICK, "--seed", "1")
    done("merge --plan other.npz -q", *states("s"))
    assert "made for another plan" in refused("merge other.npz -o out", *states("t"))
    shutil.move("other.npz", "plan.npz")
    assert "not there any more" in refused("merge -o out", *states("t"))


def test_a_matrix_that_changed_between_the_rounds() -> None:
    first_round(3, *QUICK)
    done("merge --plan plan.npz -q", *states("s"))
    W = np.load("W.npy")
    W[50] *= 2
    np.save("W.npy", W)
    done("analyze W.npy --part 1/3 --plan plan.npz --save-state t1.npz -q")
    assert "not those of the first round" in refused(
        "analyze W.npy --part 2/3 --plan plan.npz --save-state t2.npz"
    )


def test_every_section_may_need_a_second_round() -> None:
    first_round(2, "--sections", "isotropy")
    assert "every section needs a second round (isotropy)" in refused("merge", *states("s"))


def test_no_round_is_left() -> None:
    first_round(2, "--sections", "spectrum")
    assert "need no second round" in refused("merge --plan plan.npz", *states("s"))


def test_nothing_can_be_analysed() -> None:
    np.save("W.npy", np.zeros((N, 4)))
    first_round(2)
    assert "none of 120 rows can be analysed" in refused("merge -o out", *states("s"))


def test_entries_beyond_their_squares() -> None:
    np.save("W.npy", np.full((N, 4), 1e200))
    first_round(2)
    assert "its square is beyond" in refused("merge -o out", *states("s"))
