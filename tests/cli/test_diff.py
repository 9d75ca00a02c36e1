"""``embgeo diff`` as people call it: what is compared, written, said and refused."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from embgeo.comparison.comparison import COMPARISON_NAME, Comparison, load_comparison
from embgeo.core.values import Scalar
from tests.support import command
from tests.support.command import call, content
from tests.support.compared import number, numbers
from tests.support.matrices import gaussian, narrow_cone, rng

refused = partial(command.refused, "diff")

FIXTURES = Path(__file__).parents[2] / "fixtures"
#: Enough for everything that is written, and quick.
QUICK = {"sections": "tokens,cosine", "reference": False}
Array = npt.NDArray[Any]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder with two matrices."""
    monkeypatch.chdir(tmp_path)
    np.save("one.npy", gaussian(1, n=50))
    np.save("two.npy", gaussian(1, n=50) + 0.3 * gaussian(2, n=50))
    say_how(**QUICK)
    return tmp_path


def say_how(**options: object) -> None:
    """Write how checkpoints are measured into the settings."""
    lines = (f"{name} = {json.dumps(value)}\n" for name, value in options.items())
    Path("embgeo.toml").write_text("[analyze]\n" + "".join(lines))


@pytest.fixture(autouse=True)
def plain_pages(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages take most of the time of a run; where none is looked at, an empty one does."""
    if "pages" in request.fixturenames:
        return

    for kind in ("comparison", "analysis"):
        monkeypatch.setattr(f"embgeo.report.{kind}.render", lambda _: "<!doctype html>")


@pytest.fixture
def pages() -> None:
    """Asks for real pages."""


def done(*arguments: object) -> Comparison:
    """The comparison that a call wrote into the folder ``out``."""
    result = call("diff", *arguments, "-o", "out")
    assert result.exit_code == 0, result.output
    return load_comparison(Path("out"))


def saved(path: object, folder: str, *options: object) -> str:
    result = call("analyze", path, "-o", folder, "-q", *options)
    assert result.exit_code == 0, result.output
    return folder


def vectors(name: str, W: Array, tokens: list[str]) -> str:
    """A text file of vectors, which brings its own tokens."""
    lines = [f"{t} {' '.join(map(repr, row))}\n" for t, row in zip(tokens, W.tolist(), strict=True)]
    Path(name).write_text("".join(lines), encoding="utf-8")
    return name


# --- What is compared ----------------------------------------------------------------------------


@pytest.mark.usefixtures("pages")
@pytest.mark.slow
def test_two_checkpoints(here: Path) -> None:
    result = call("diff", "one.npy", "two.npy")
    assert result.exit_code == 0, result.output
    folder = here / "one-vs-two.embgeo"
    assert str(folder / "report.html") in result.stdout
    assert {p.name for p in folder.iterdir()} == {
        COMPARISON_NAME,
        "arrays.npz",
        "report.html",
        "0-one",
        "1-two",
    }
    comparison = load_comparison(folder)
    assert [m.name for m in comparison.members] == ["one", "two"]
    assert number(comparison.pairs[0], "relative_change") == pytest.approx(0.3, abs=0.1)


@pytest.mark.slow
def test_a_rotated_and_permuted_vocabulary_is_the_same_by_token() -> None:
    """The theorems, from files to the saved result."""
    W, order = gaussian(3, n=80), rng(3).permutation(80)
    turn = np.linalg.qr(gaussian(4, n=6))[0]
    tokens = [f"w{i}" for i in range(80)]
    one = vectors("one.txt", W, tokens)
    two = vectors("two.txt", (W @ turn)[order], [tokens[i] for i in order])
    pair = done(one, two).pairs[0]
    assert pair.matching.by == "token"
    assert pair.matching.shared == 80
    assert number(pair, "subspace_distance") < 1e-7  # text vectors are read in float32
    assert number(pair, "procrustes") < 1e-6
    assert number(pair, "cka") == pytest.approx(1.0, abs=1e-9)
    assert number(pair, "neighbor_overlap") == 1.0
    by_row = done(one, two, "--match", "row").pairs[0]
    assert number(by_row, "neighbor_overlap") < 0.3


@pytest.mark.slow
def test_saved_analyses_give_the_numbers_of_their_checkpoints() -> None:
    plain = numbers(done("one.npy", "two.npy").pairs[0])
    one, two = saved("one.npy", "a.embgeo"), saved("two.npy", "b.embgeo")
    for mixed in ((one, "two.npy"), ("one.npy", two), (one, two)):
        comparison = done(*mixed)
        assert numbers(comparison.pairs[0]) == plain
        assert [m.from_saved for m in comparison.members] == [p in (one, two) for p in mixed[:2]]
    assert [m.name for m in comparison.members] == ["a", "b"]


@pytest.mark.slow
def test_the_json_file_of_an_analysis_stands_for_its_folder() -> None:
    saved("one.npy", "a.embgeo")
    comparison = done("a.embgeo/analysis.json", "two.npy")
    assert comparison.members[0].from_saved
    assert number(comparison.pairs[0], "cka") > 0


@pytest.mark.slow
def test_a_member_of_a_comparison_can_be_compared_again() -> None:
    done("one.npy", "two.npy")
    result = call("diff", "out/0-one", "out/1-two", "-o", "again", "-q")
    assert result.exit_code == 0, result.output
    again = load_comparison(Path("again"))
    assert numbers(again.pairs[0]) == numbers(load_comparison(Path("out")).pairs[0])


def reasons(comparison: Comparison) -> set[str]:
    return {s.undefined for s in comparison.pairs[0].scalars}


def test_without_the_checkpoint_scalars_are_still_compared() -> None:
    saved("one.npy", "a.embgeo")
    Path("one.npy").unlink()
    comparison = done("a.embgeo", "two.npy")
    assert reasons(comparison) == {"one.npy, the checkpoint of the saved analysis, was not found"}
    assert comparison.members[0].matrix_absent
    mean = next(d for d in comparison.differences if d.name == "cosine.mean")
    assert mean.difference is not None
    # 50 rows are too few for an error.
    assert mean.change == "not judged"
    assert comparison.pairs[0].matching.shared == 50


def test_a_checkpoint_that_changed_is_not_used() -> None:
    saved("one.npy", "a.embgeo")
    np.save("one.npy", gaussian(9, n=50))
    assert reasons(done("a.embgeo", "two.npy")) == {
        "one.npy has changed since it was analyzed (another sha256)"
    }


def test_a_checkpoint_that_is_damaged_now_is_not_used() -> None:
    saved("one.npy", "a.embgeo")
    Path("one.npy").write_bytes(b"")
    assert "cannot be read" in reasons(done("a.embgeo", "two.npy")).pop()


def test_cuts_and_turns_are_repeated_for_a_saved_analysis() -> None:
    np.save("wide.npy", gaussian(5, n=50).T)
    saved("wide.npy", "a.embgeo", "--transpose", "--rows", "10:40")
    say_how(**QUICK, rows="10:40")
    comparison = done("a.embgeo", "two.npy")
    assert comparison.pairs[0].matching.shared == 30
    assert number(comparison.pairs[0], "neighbor_overlap") >= 0


@pytest.mark.slow
def test_three_and_more() -> None:
    np.save("three.npy", narrow_cone()[:50])
    comparison = done("one.npy", "two.npy", "three.npy")
    assert [(p.first, p.second) for p in comparison.pairs] == [(0, 1), (0, 2)]
    assert comparison.track is None
    result = call("diff", "one.npy", "two.npy", "three.npy")
    assert "one-vs-2-others.embgeo" in result.stdout


def test_sections_hold_for_saved_analyses_too() -> None:
    saved("one.npy", "a.embgeo", "--sections", "tokens,cosine,spectrum", "--no-reference")
    say_how(sections="cosine", reference=False)
    comparison = done("a.embgeo", "two.npy")
    families = {d.quantity.family for d in comparison.differences}
    assert families == {"cosine"}
    assert {d.undefined for d in comparison.differences} <= {"", "no clusters were found"}


@pytest.mark.slow
def test_matrices_of_unlike_size_are_compared_as_far_as_they_go() -> None:
    np.save("other.npy", gaussian(6, n=70, d=9))
    comparison = done("one.npy", "other.npy")
    assert "rows 0 to 49 are not rows 0 to 69" in reasons(comparison).pop()
    asked = done("one.npy", "other.npy", "--match", "row").pairs[0]
    assert asked.matching.shared == 50
    assert number(asked, "cka") > 0
    change = asked["compare.relative_change"]
    assert isinstance(change, Scalar)
    assert change.undefined == "6 columns are not 9"


def test_as_many_tokens_are_asked_as_wanted() -> None:
    for queries, asked in (("7", 7), ("all", 50), ("9999", 50)):
        pair = done("one.npy", "two.npy", "--queries", queries).pairs[0]
        scalar = pair["compare.neighbor_overlap"]
        assert isinstance(scalar, Scalar)
        assert (scalar.standard_error is None) == (asked == 50)
        assert ("7 of 50 shared tokens" in scalar.sample) == (asked == 7)


@pytest.mark.slow
def test_memory_and_threads_change_no_number() -> None:
    plain = numbers(done("one.npy", "two.npy").pairs[0])
    say_how(**QUICK, memory="64MB", threads=2)
    small = done("one.npy", "two.npy").pairs[0]
    assert numbers(small) == pytest.approx(plain, rel=1e-12)


def test_no_queries_leave_the_overlap_out() -> None:
    pair = done("one.npy", "two.npy", "--queries", "0").pairs[0]
    scalar = pair["compare.neighbor_overlap"]
    assert isinstance(scalar, Scalar)
    assert scalar.undefined == "no queries were requested"
    assert number(pair, "cka") > 0


# --- Training runs -------------------------------------------------------------------------------


def run_of(depths: list[float], pattern: str = "ckpt-{}.npy") -> list[str]:
    names = []
    for i, depth in enumerate(depths):
        W = gaussian(20, n=60) + depth + 0.01 * gaussian(21 + i, n=60)
        names.append(pattern.format(100 * (i + 1)))
        np.save(names[-1], W)
    return names


@pytest.mark.slow
def test_a_track_is_ordered_by_step() -> None:
    names = run_of([0.0, 0.0, 0.0, 0.5, 1.0, 1.5])
    comparison = done("--track", *names[::-1])
    assert [m.given for m in comparison.members] == names
    assert [m.step for m in comparison.members] == [100, 200, 300, 400, 500, 600]
    assert comparison.track is not None
    assert comparison.track.source == "the number after 'ckpt' in the names"
    assert len(comparison.pairs) == 5 + 4
    result = call("diff", "--track", *names[:2])
    assert "steps: the number after 'ckpt' in the names" in result.stdout
    assert "ckpt-100-to-ckpt-200.embgeo" in result.stdout


def test_a_track_without_steps_is_refused() -> None:
    refused("--track", "one.npy", "two.npy")


# --- What is written -----------------------------------------------------------------------------


@pytest.mark.slow
def test_equal_runs_write_equal_bytes() -> None:
    def bytes_of() -> dict[str, Any]:
        done("one.npy", "two.npy", "--queries", "20")
        found: dict[str, Any] = {}
        for path in sorted(Path("out").rglob("*")):
            if path.suffix == ".json":
                found[str(path)] = json.loads(path.read_bytes()) | {"timing": 0}
            elif path.is_file() and path.suffix != ".html":
                found[str(path)] = path.read_bytes()
        return found

    assert bytes_of() == bytes_of()


def test_json_goes_to_stdout_alone(here: Path) -> None:
    before = content(here)
    result = call("diff", "one.npy", "two.npy", "--json")
    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout, parse_constant=lambda name: pytest.fail(name))
    assert shown["format"] == "embgeo.comparison"
    assert content(here) == before
    both = call("diff", "one.npy", "two.npy", "--json", "-o", "out")
    kept = json.loads(Path("out", COMPARISON_NAME).read_text())
    again = json.loads(both.stdout)
    del kept["arrays_sha256"]  # of a file that is not on stdout
    assert kept | {"timing": 0} == again | {"timing": 0}


def test_quiet_says_nothing() -> None:
    result = call("diff", "one.npy", "two.npy", "-q")
    assert (result.exit_code, result.output) == (0, "")


@pytest.mark.slow
def test_an_earlier_comparison_is_replaced_and_nothing_else() -> None:
    np.save("three.npy", gaussian(7, n=50))
    done("one.npy", "two.npy", "three.npy")
    Path("out/mine.txt").write_text("keep")
    Path("out/2-three/mine.txt").write_text("keep")
    comparison = done("two.npy", "one.npy")
    assert [m.name for m in comparison.members] == ["two", "one"]
    names = {str(p.relative_to("out")) for p in Path("out").rglob("*") if p.is_file()}
    assert {n for n in names if not n.startswith(("0-two/", "1-one/"))} == {
        COMPARISON_NAME,
        "arrays.npz",
        "report.html",
        "mine.txt",
        "2-three/mine.txt",
    }
    assert not Path("out/0-one").exists()


@pytest.mark.slow
def test_a_damaged_comparison_can_be_written_over() -> None:
    done("one.npy", "two.npy")
    Path("out", COMPARISON_NAME).write_text("{")
    assert done("one.npy", "two.npy").members[1].name == "two"


@pytest.mark.parametrize(
    "target", ["embgeo.comparison.comparison.Comparison.save", "embgeo.report.comparison.render"]
)
def test_nothing_is_left_behind_where_writing_fails(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(target, full)
    refused("one.npy", "two.npy", measured=True)


def test_files_have_the_usual_permissions() -> None:
    done("one.npy", "two.npy")
    mask = os.umask(0)
    os.umask(mask)
    assert (Path("out").stat().st_mode & 0o777) == 0o777 & ~mask


@pytest.mark.skipif(os.name == "nt", reason="no such names there")
@pytest.mark.usefixtures("pages")
@pytest.mark.slow
def test_names_of_files_are_hostile_text(here: Path) -> None:
    name = "a\x1b[31m\u202e<b>.npy"
    np.save(name, gaussian(8, n=50))
    result = call("diff", "one.npy", name)
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.output
    assert "\u202e" not in result.output
    page = next(here.glob("*.embgeo/report.html")).read_text("utf-8")
    assert "<b>.npy" not in page


# --- What is said --------------------------------------------------------------------------------


def test_the_summary_shows_verdicts_differences_and_what_takes_both() -> None:
    np.save("cone.npy", narrow_cone()[:50])
    say_how(reference=False)
    result = call("diff", "one.npy", "cone.npy")
    assert result.exit_code == 0, result.output
    said = result.stdout
    assert "one  one.npy" in said
    assert "Narrow cone" in said
    assert "difference" in said
    for title in ("Mean cosine", "I1 of unit rows", "Subspace distance", "Neighbor overlap"):
        assert title in said
    assert "(chance: " in said
    assert "matched by row (neither side has tokens)" in said


# --- What is refused -----------------------------------------------------------------------------


def test_mistakes_end_in_one_line() -> None:
    for arguments in (
        ("one.npy",),
        ("one.npy", "missing.npy"),
        ("one.npy", FIXTURES / "hostile/truncated.npy"),
        ("-", "-"),
        ("one.npy", "two.npy", "--queries", "some"),
        ("one.npy", "two.npy", "-o", "one.npy"),
        ("one.npy", "two.npy", "-o", "-"),
        ("one.npy", "two.npy", "-o", "."),
        ("one.npy", "two.npy", "--config", "no.toml"),
    ):
        refused(*arguments)


def test_settings_that_do_not_fit_end_in_one_line() -> None:
    for options in (
        {"memory": "much"},
        {"check_reach": True},
    ):
        say_how(**options)
        refused("one.npy", "two.npy")
        Path("embgeo.toml").rename("other.toml")
        refused("one.npy", "two.npy", "--config", "other.toml")


def test_settings_are_for_checkpoints_and_can_be_ignored() -> None:
    one, two = saved("one.npy", "a.embgeo"), saved("two.npy", "b.embgeo")
    say_how(tensor="x", pairs=5)
    assert done(one, two).members[1].from_saved
    assert call("diff", "one.npy", "two.npy").exit_code == 2
    say_how(**QUICK)
    Path("embgeo.toml").rename("quick.toml")
    say_how(tensor="x")
    assert call("diff", "one.npy", "two.npy", "--no-config", "--json").exit_code == 0
    assert call("diff", "one.npy", "two.npy", "--config", "quick.toml").exit_code == 0


def test_a_comparison_is_no_analysis() -> None:
    done("one.npy", "two.npy")
    refused("one.npy", "out")


def test_a_comparison_is_not_written_over_its_own_inputs() -> None:
    done("one.npy", "two.npy")
    refused("out/0-one", "out/1-two", "-o", "out")


def test_a_damaged_analysis_is_refused() -> None:
    folder = saved("one.npy", "a.embgeo")
    Path(folder, "arrays.npz").write_bytes(b"PK")
    refused(folder, "two.npy")


def test_errors_of_writing_name_the_folder() -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    Path("locked").mkdir(mode=0o555)
    refused("one.npy", "two.npy", "-o", "locked/out")


def test_several_matrices_stand_in_one_table() -> None:
    # Its numbers differ from those of the first by rounding alone.
    np.save("copy.npy", np.load("one.npy")[:, ::-1])
    printed = call("diff", "one.npy", "two.npy", "copy.npy").output.splitlines()
    heads = [line for line in printed if line.split() == ["one", "two", "copy"]]
    assert len(heads) == 1
    table = printed[printed.index(heads[0]) + 1 :]
    mean = next(at for at, line in enumerate(table) if line.startswith("  Mean cosine"))
    one, two, copy = (float(word.replace("\u2212", "-")) for word in table[mean].split()[2:])
    word, difference, equal = table[mean + 1].split()
    assert (word, equal) == ("difference", "=")
    assert one == copy
    differences = [line.split() for line in table if line.startswith("    difference")]
    assert {line[-1] for line in differences} == {"="}
    difference = difference.strip("()").replace("\u2212", "-")
    assert float(difference) == pytest.approx(two - one, rel=1e-2)
    distances = next(line for line in table if line.startswith("  Subspace distance"))
    assert "(chance: " in distances
    assert len([line for line in printed if line.startswith("  Moved most, two: ")]) == 1


def test_a_checkpoint_next_to_its_analysis_is_found_from_anywhere(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        saved(f"{name}.npy", f"run/{name}")
        (here / f"{name}.npy").rename(here / "run" / name / f"{name}.npy")
    away = here / "away"
    away.mkdir()
    monkeypatch.chdir(away)
    result = call("diff", here / "run" / "one", here / "run" / "two")
    assert result.exit_code == 0, result.output
    assert "Subspace distance" in result.output
    np.save(here / "run" / "two" / "two.npy", gaussian(3, n=50))
    result = call("diff", here / "run" / "one", here / "run" / "two")
    assert "has changed since it was analyzed" in result.output
