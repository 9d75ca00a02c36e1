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
from embgeo.comparison.originals import original
from embgeo.distributed.plans import IN_PARTS
from tests.support.in_parts import check_analyses
from tests.support.matrices import gaussian

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


@pytest.mark.slow
def test_python_merges_as_the_command_does() -> None:
    quick = "--sections tokens --no-reference --save-state"
    for part in (1, 2):
        done(f"analyze W.npy --part {part}/2 {quick} s{part}.npz --quiet")
    labels: dict[str, Any] = {"tokens": "tokens.txt", "counts": Path("counts.tsv")}
    assert embgeo.merge(["s1.npz", "s2.npz"], plan="plan.npz", **labels) is None
    for part in (1, 2):
        done(f"analyze W.npy --part {part}/2 --plan plan.npz --save-state t{part}.npz --quiet")
    states = [Path("t2.npz"), "t1.npz"]
    merged = embgeo.merge(states)
    assert isinstance(merged, embgeo.Analysis)
    done("merge t1.npz t2.npz -o out --quiet")
    saved = embgeo.load_analysis("out")
    assert merged.tokens == saved.tokens
    assert merged.scalars == saved.scalars
    with pytest.raises(embgeo.EmbgeoError, match="exists and is not a state or plan"):
        embgeo.merge(["s1.npz", "s2.npz"], plan="W.npy")


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_rows_out_of_reach_take_a_round_of_their_own() -> None:
    first_round(3, *QUICK)
    shutil.move("W.npy", "moved.npy")
    assert "rows first, which are in no file within reach" in done(
        "merge --plan plan.npz", *states("s")
    )
    shutil.move("moved.npy", "W.npy")
    second_round()
    assert "the second pass is still to come" in refused("merge -o out", *states("t"))
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
    assert "rows first, which are in no file within reach" in done(
        "merge --plan plan.npz", *states("s")
    )


@pytest.mark.slow
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


@pytest.mark.slow
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
        ("--save-state s.npz --sphere", "a pass for each step"),
        ("--save-state s.npz --device cuda", "on the processor"),
        ("--save-state s.npz --engine dask", "a cluster needs no files"),
        ("--save-state s.npz --sections nope", "unknown section 'nope'"),
        ("--save-state W.npy", "exists and is not a state"),
        ("--save-state nowhere/s.npz", "is not a folder"),
        ("--save-state s.npz --plan missing.npz", "missing.npz: there is no such file"),
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
        ("s1.npz s2.npz s3.npz --plan plan.npz -o out", "a plan is not a result yet"),
        ("s1.npz s2.npz s3.npz --plan W.npy", "exists and is not a state or plan"),
        ("s1.npz s3.npz -o out", "rows 40 to 79 are missing"),
        ("s1.npz s2.npz s3.npz s2.npz -o out", "s2.npz: given twice; give each state once"),
        ("s1.npz s2.npz ./s2.npz s3.npz -o out", "given twice"),
        ("s1.npz copy.npz s2.npz s3.npz -o out", "rows 40 to 79 are also in copy.npz"),
        (
            "s1.npz t1.npz -o out",
            "s1.npz: holds the first round of a part, t1.npz the second round of a part; merge",
        ),
        ("plan.npz s1.npz -o out", "s1.npz: holds the first round of a part, plan.npz a plan;"),
        ("plan.npz -o out", "plan.npz: a plan alone; give the states"),
        ("plan.npz again.npz t1.npz -o out", "again.npz: a plan, and so is plan.npz; give one"),
        ("t1.npz t2.npz t3.npz t2.npz -o out", "t2.npz: given twice"),
        ("t1.npz t3.npz -o out", "rows 40 to 79 are missing"),
        ("t1.npz t2.npz t3.npz --plan more.npz", "those of the last round"),
        ("t1.npz t2.npz t3.npz --rank-order -o out", "--rank-order: belongs to the first round"),
        ("W.npy s1.npz -o out", "W.npy: not a state or plan of embgeo; make one with: embgeo anal"),
        ("tokens.txt", "tokens.txt: not a state or plan"),
        ("cut_off.npz s2.npz", "cut_off.npz: a damaged or cut off state"),
        ("missing.npz", "missing.npz: there is no such file"),
        ("s1.npz s2.npz s3.npz -o full", "holds something other"),
        ("s1.npz s2.npz s3.npz --counts counts.tsv --rank-order", "exclude each other"),
        ("s1.npz s2.npz s3.npz --tokens rows000.npy", "rows000.npy"),
    ],
)
@pytest.mark.slow
def test_states_that_do_not_merge(arguments: str, says: str) -> None:
    first_round(3, *QUICK)
    done("merge --plan plan.npz -q", *states("s"))
    second_round()
    shutil.copy("s2.npz", "copy.npz")
    shutil.copy("plan.npz", "again.npz")
    Path("cut_off.npz").write_bytes(Path("s1.npz").read_bytes()[:-500])
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
    assert "its plan is missing" in refused("merge -o out", *states("t"))


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


@pytest.mark.slow
def test_a_plan_that_asks_for_nothing() -> None:
    """Two rounds by a script, where one would do: too few rows for errors over tokens."""
    np.save("W.npy", gaussian(5, 120, 60))
    first_round(3, "--sections", "spectrum")
    told = done("merge --plan plan.npz", *states("s"))
    assert told.startswith("plan.npz: the second round is empty\n")
    told = done("analyze W.npy --part 1/3 --plan plan.npz --save-state t1.npz")
    assert told == "t1.npz: second round, rows 0 to 39\n"
    second_round()
    done("merge -o out -q", *states("t"))
    done("merge -o one_round -q", *states("s"))
    one, found = (embgeo.load_analysis(Path(name)) for name in ("one_round", "out"))
    check_analyses(found, one)


# Parts of two matrices ----------------------------------------------------------------------------

#: Sections whose plans know the norms of all rows, and some whose plans do not.
KNOWING = ("with norms", QUICK), ("without norms", ("--sections", "projection", "--no-reference"))


@pytest.fixture
def other(here: Path) -> Path:
    """A matrix of the same shape, of which two rows are the same."""
    W = gaussian(503, N, 4) + 0.3
    W[[0, -1]] = np.load("W.npy")[[0, -1]]
    np.save("V.npy", W)
    return here


@pytest.mark.usefixtures("other")
@pytest.mark.parametrize("cut", ["--part 2/3", "--rows 40:80"])
def test_a_part_cut_out_of_another_matrix(cut: str) -> None:
    first_round(3, *QUICK)
    done(f"analyze V.npy {cut} --save-state v.npz -q", *QUICK)
    said = refused("merge v.npz s1.npz s3.npz --plan plan.npz")
    assert said == (
        "embgeo: v.npz: cut out of another matrix (V.npy) than s1.npz (W.npy), of the same shape; "
        "merge parts of one matrix only\n"
    )


@pytest.mark.usefixtures("other")
@pytest.mark.parametrize("quick", [options for _, options in KNOWING], ids=[n for n, _ in KNOWING])
@pytest.mark.parametrize("cut", ["--part 2/3", "--part 1/2", "--rows 7:8"])
def test_another_matrix_in_the_second_round(cut: str, quick: tuple[str, ...]) -> None:
    first_round(3, *quick)
    done("merge --plan plan.npz -q", *states("s"))
    assert "V.npy: its rows" in (
        said := refused(f"analyze V.npy {cut} --plan plan.npz --save-state v.npz")
    )
    assert "not those of the first round" in said


@pytest.mark.usefixtures("other")
def test_rows_are_told_by_their_norms_where_files_are_cut_otherwise() -> None:
    for start in (0, 40, 80):
        done(f"analyze rows{start:03}.npy --first-row {start} --save-state s{start}.npz -q", *QUICK)
    done("merge --plan plan.npz -q", *states("s"))
    done("analyze W.npy --part 2/5 --plan plan.npz --save-state t.npz -q")
    assert "row 24 has another norm" in refused(
        "analyze V.npy --part 2/5 --plan plan.npz --save-state v.npz"
    )
    W = np.load("rows040.npy")
    W[13] *= 1 + 1e-5
    np.save("rows040.npy", W)
    assert "rows040.npy: its rows are not those of the first round: row 53 has" in refused(
        "analyze rows040.npy --rows 1:40 --first-row 40 --plan plan.npz --save-state v.npz"
    )


@pytest.mark.usefixtures("other")
def test_rows_that_are_gathered_are_told_by_their_norms() -> None:
    first_round(3, *QUICK)
    shutil.move("W.npy", "moved.npy")
    done("merge --plan plan.npz -q", *states("s"))
    np.save("v.npy", np.load("V.npy")[40:80])
    assert "has another norm" in refused(
        "analyze v.npy --rows 1:40 --first-row 40 --plan plan.npz --save-state v.npz"
    )


@pytest.mark.usefixtures("other")
def test_parts_in_files_of_their_own_may_be_of_any_matrix() -> None:
    """Nobody can tell that these were cut out of something else."""
    np.save("v.npy", np.load("V.npy")[40:80])
    for name, start in (("rows000", 0), ("v", 40), ("rows080", 80)):
        done(f"analyze {name}.npy --first-row {start} --save-state s{start}.npz -q", *QUICK)
    done("merge --plan plan.npz -q", *states("s"))


def test_labels_that_some_parts_have() -> None:
    def measured(state: str, part: int, *labels: str) -> None:
        done(f"analyze W.npy --part {part}/2 --save-state {state} -q", *QUICK, *labels)

    tokens = ("--tokens", "tokens.txt")
    measured("bare.npz", 1)
    measured("named.npz", 1, *tokens)
    measured("counted.npz", 2, *tokens, "--counts", "counts.tsv")
    measured("ranked.npz", 1, *tokens, "--rank-order")
    for one, cause in (
        ("bare.npz", "bare.npz: its rows 0 to 59 have no tokens, those of counted.npz have; give"),
        ("named.npz", "named.npz: its rows 0 to 59 have no counts, those of counted.npz have;"),
        (
            "ranked.npz",
            "counted.npz: its rows 60 to 119 have counts, those of ranked.npz are sorted by freq",
        ),
    ):
        assert cause in refused(f"merge {one} counted.npz -o out")


def test_nothing_can_be_analyzed() -> None:
    np.save("W.npy", np.zeros((N, 4)))
    first_round(2)
    assert "none of 120 rows can be analyzed" in refused("merge -o out", *states("s"))


def test_entries_beyond_their_squares() -> None:
    np.save("W.npy", np.full((N, 4), 1e200))
    first_round(2)
    assert "its square is beyond" in refused("merge -o out", *states("s"))
