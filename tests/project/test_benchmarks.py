"""The benchmarks at tiny sizes: they run, and they notice a wrong answer."""

from __future__ import annotations

import json
import math
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

import embgeo
from benchmarks import coverage, run
from benchmarks.harness import floor, machine, ours, peers, plain, resident
from benchmarks.harness.answers import error, errors
from benchmarks.harness.call import ROOT, Failed, Wrong, here, in_a_process
from benchmarks.harness.contest import Bench, Runs
from benchmarks.harness.load import Load, Moment
from benchmarks.harness.matrices import TENSOR, Shape, open_matrix, write_matrix
from benchmarks.harness.page import render_page
from benchmarks.harness.row import absent, over_rounds, ratio
from benchmarks.harness.truth import compute_truth
from benchmarks.scaling import exponent
from embgeo.core.values import Quantity
from embgeo.result.analysis import Analysis

SHAPE = Shape(400, 12)
#: Those that need no process of their own.
QUICK = ("gpt2_size", "large", "packages", "precision", "scaling")


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path, runs=1, call=here)


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.slow
def test_each_case_runs(bench, name):
    rows = check_case(bench, name)
    sides = {side["name"]: side for row in rows for side in row.sides}
    for side in sides.values():
        assert side["errors"], f"{side['name']} was not checked"
        assert all(seconds > 0 for seconds in side["seconds"])


@pytest.mark.skipif(not resident.available(), reason="reads /proc/PID/smaps")
@pytest.mark.nightly
def test_memory_sees_more_than_the_interpreter(bench):
    above, anonymous, *_ = (row.value for row in check_case(bench, "memory"))
    assert 0.02 < anonymous < above < 2


@pytest.mark.nightly
def test_small_runs_whole_commands(bench):
    whole, part, imports = (row.value for row in check_case(bench, "small"))
    assert min(whole, part) > imports / 3 > 0


def check_case(bench, name):
    module = import_module(f"benchmarks.{name}")
    assert name in run.CASES
    rows = module.measure(bench, module.TINY)
    assert rows
    assert module.TITLE
    for row in rows:
        if row.value is None:
            assert row.note == peers.MISSING
        else:
            assert math.isfinite(row.value)
            assert row.rounds == 1 or not row.sides
    return rows


def test_every_case_and_script_is_there():
    modules = {path.stem for path in (ROOT / "benchmarks").glob("*.py")} - {"run"}
    assert {*run.CASES, *run.SCRIPTS} <= modules
    assert {name for name in modules if is_case(name)} == set(run.CASES)


def is_case(name):
    return "def measure(bench" in (ROOT / "benchmarks" / f"{name}.py").read_text("utf-8")


# What is compared --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_made_matrix_is_read_as_it_was_written(tmp_path, dtype):
    shape = Shape(60, 6, dtype)
    path = write_matrix(shape, tmp_path)
    W = open_matrix(path)
    assert W.shape == (60, 6)
    assert str(W.dtype) == dtype
    matrix = embgeo.load(path)
    assert np.array_equal(matrix.data, W)
    if dtype == "bfloat16":
        with safe_open(path, "np") as file:
            assert file.get_slice(TENSOR).get_shape() == [60, 6]
    assert write_matrix(shape, tmp_path).stat().st_mtime_ns == path.stat().st_mtime_ns


def test_a_made_matrix_has_the_spectrum_and_the_cone_that_it_should(tmp_path):
    W = open_matrix(write_matrix(Shape(4000, 8, decay=0.5), tmp_path)).astype(np.float64)
    assert np.mean(W**2) * 8 == pytest.approx(1.0, abs=0.05)
    sigma = np.linalg.svd(W - W.mean(axis=0), compute_uv=False)
    assert sigma[1:4] / sigma[7] == pytest.approx(2.0 / np.sqrt([2, 3, 4]) * np.sqrt(2), rel=0.1)
    cosines = W / np.linalg.norm(W, axis=1, keepdims=True)
    assert np.sum(cosines.mean(axis=0) ** 2) == pytest.approx(0.1, abs=0.04)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    path = str(write_matrix(SHAPE, folder))
    return path, compute_truth(path)


def test_the_truth_is_kept_beside_the_matrix(made):
    path, known = made
    assert compute_truth(path) == known
    W = np.asarray(open_matrix(Path(path)), dtype=np.float64)
    sigma = np.linalg.svd(W, compute_uv=False)
    assert known["largest_singular_value"] == pytest.approx(sigma[0], rel=1e-12)
    assert known["singular_values"] == pytest.approx(sigma / sigma[0], rel=1e-10)
    unit = W / np.linalg.norm(W, axis=1, keepdims=True)
    cosines = (unit @ unit.T)[~np.eye(len(W), dtype=bool)]
    assert known["mean_cosine"] == pytest.approx(cosines.mean(), rel=1e-10)
    assert known["std_cosine"] == pytest.approx(cosines.std(), rel=1e-10)
    assert compute_truth(path, 100, 5)["top_share"] == pytest.approx(
        np.linalg.norm(W[:100, :5], 2) ** 2 / np.linalg.norm(W[:100, :5]) ** 2
    )


def test_the_loop_over_eigenvectors_gives_i1(made):
    path, known = made
    assert plain.isotropy_loop(path)["answers"]["i1"] == pytest.approx(known["i1"], rel=1e-12)


@pytest.mark.parametrize("name", ours.TOLERANCES)
@pytest.mark.slow
def test_a_wrong_answer_of_embgeo_stops_everything(made, name):
    path, known = made
    found = ours.from_memory(path, sections=ours.GEOMETRY)["answers"]
    ours.check(found, known)
    off = np.asarray(known[name]) * (1 + 3 * ours.TOLERANCES[name])
    with pytest.raises(Wrong, match=name):
        ours.check(found, known | {name: off})
    del found[name]
    with pytest.raises(Wrong, match=f"no {name}"):
        ours.check(found, known)


def test_a_section_without_values_is_noticed():
    W = np.random.default_rng(0).standard_normal((50, 4))
    with pytest.raises(Wrong, match="frequency"):
        ours.analyze_sections(W, sections=("spectrum", "frequency"))


@pytest.mark.parametrize("name", ["singular_values", "float32_trace", "product_error"])
def test_a_wrong_floor_is_noticed(made, name):
    path, known = made
    found = floor.measure(path)["answers"]
    floor.check(found, known)
    found[name] = 0.9 * np.asarray(found[name]) if name != "product_error" else 1e-3
    with pytest.raises(Wrong, match=r"floor: "):
        floor.check(found, known)


def test_errors_are_relative_to_the_largest_entry():
    assert error([1.0, 0.1], [1.0, 0.2]) == pytest.approx(0.1)
    assert error([2.2], [2.0]) == pytest.approx(0.1)
    assert error([1.0], [1.0, 2.0]) == math.inf
    with pytest.raises(Wrong):
        errors("someone", {"x": math.nan}, {"x": 1.0}, {"x": 0.5})


# How it is timed ---------------------------------------------------------------------------------


def test_contenders_take_turns_forwards_and_backwards(tmp_path):
    seen = []

    def contender(name, seconds):
        def once():
            seen.append(name)
            return {"seconds": seconds * (1 + len(seen) // 3)}, {"x": 1e-9 * len(seen)}

        return once

    bench = Bench(tmp_path)
    runs = bench.contest({"a": contender("a", 2.0), "b": contender("b", 1.0)}, usual=3)
    assert seen == ["a", "b", "b", "a", "a", "b"]
    assert runs["a"].seconds == [2.0, 4.0, 4.0]
    assert runs["b"].seconds == [1.0, 2.0, 3.0]
    assert runs["a"].errors == {"x": 5e-9}
    row = ratio("both", runs["a"], runs["b"], bound=1.9)
    assert (row.value, row.spread) == (2.0, (4 / 3, 2.0))
    assert row.what == "both, against b"
    assert row.verdict == "missed"


def test_what_could_not_be_measured_is_neither_met_nor_missed():
    assert absent("x", "no GPU", bound=1.0).verdict == "not measured"
    assert over_rounds("x", [1.0], bound=1.0).verdict == "met"
    assert over_rounds("x", [1.0]).verdict == ""


def test_exponent_is_that_of_the_power_law():
    assert exponent([10, 100, 1000], [0.3, 3.0, 30.0]) == pytest.approx(1.0)
    assert exponent([1, 2, 4], [5.0, 20.0, 80.0]) == pytest.approx(2.0)


def test_a_call_in_a_process_gives_what_a_call_here_gives(made):
    path, known = made
    assert (
        in_a_process(compute_truth, {"path": path}) == here(compute_truth, {"path": path}) == known
    )


@pytest.mark.slow
def test_a_process_that_fails_says_why(tmp_path):
    missing = str(tmp_path / "missing.npy")
    with pytest.raises(Failed, match=r"truth ended with 1: FileNotFoundError.*missing\.npy"):
        in_a_process(compute_truth, {"path": missing})
    with pytest.raises(Failed, match="another Python"):
        here(compute_truth, {"path": missing}, Path(sys.executable))


MAPS = """\
7f00-7f10 r--s 00000000 fe:00 12                         /data/the matrix.npy
Rss:                 900 kB
Anonymous:             0 kB
7f10-7f20 rw-p 00000000 00:00 0
Rss:                 300 kB
Anonymous:           200 kB
7f20-7f30 r-xp 00000000 fe:00 13                         /lib/libc.so
Rss:                  50 kB
Anonymous:             4 kB
"""


def test_resident_memory_leaves_the_file_out():
    seen = resident.read(MAPS, Path("/data/the matrix.npy"))
    assert seen == resident.Resident(above=350 * 1024, anonymous=204 * 1024)


def test_load_of_others_is_told_apart_from_our_own():
    start = Moment(load=0.1, time=0.0, everybody=100.0, own=10.0)
    cores = run.os.cpu_count()
    quiet = Moment(load=2.0, time=10.0, everybody=100.0 + 10.01 * cores, own=10.0 + 10.0 * cores)
    assert Load.between(start, quiet).warning == ""
    busy = Moment(load=2.0, time=10.0, everybody=100.0 + 10.0 * cores, own=10.0 + 5.0 * cores)
    load = Load.between(start, busy)
    assert load.others == pytest.approx(0.5)
    assert "other processes took 50%" in load.warning
    blind = Load(before=cores, after=cores, others=None)
    assert "load average" in blind.warning


def test_the_machine_is_described():
    assert machine.machine()["cores"] >= 1
    found = machine.versions()
    assert found["numpy"] == np.__version__
    assert any(name.startswith("BLAS of ") for name in found)


# What is written ---------------------------------------------------------------------------------


def case_of(rows, warning="", failed="", version="1"):
    return {
        "title": "A case",
        "rows": [row.to_json() for row in rows],
        "printed": "",
        "failed": failed,
        "date": "2026-01-01 00:00",
        "minutes": 1.0,
        "load": {"before": 0.0, "after": 2.0, "others": 0.01, "warning": warning},
        "versions": {"numpy": version},
    }


def results_of(**cases):
    here = {"cpu": "CPU", "cores": 2, "memory_gb": 8.0, "system": "Linux"}
    return {"machine": here, "tiny": False, "cases": cases}


def runs_of(name, *seconds):
    runs = Runs(name)
    for second in seconds:
        runs.add({"seconds": second, "stages": {"pass": second / 2}}, {"i1": 1e-7})
    return runs


def test_the_page_holds_bounds_times_errors_and_warnings():
    row = ratio("a | b", runs_of("embgeo", 1.0, 1.2, 1.4), runs_of("floor", 1.0, 1.0, 1.0), 1.3)
    text = render_page(
        results_of(
            one=case_of([row, absent("gone", "no GPU", 2.0)]),
            two=case_of([], warning="the machine was busy", failed="broken", version="2"),
        )
    )
    assert "| a ¦ b, against floor | 1.2 (1 – 1.4) | ≤ 1.3 | met | 3 |" in text
    assert "| gone | – | ≤ 2 | not measured |  |" in text
    assert "embgeo 1.2 s; floor 1 s" in text
    assert "- embgeo: pass 0.6 s; answers off by at most i1 1e-07" in text
    assert "**Warning.** two: the machine was busy." in text
    assert "**Failed.** broken" in text
    assert text.count("- numpy: ") == 2


def arguments_for(tmp_path, *more):
    folders = ("--out", str(tmp_path / "out"), "--scratch", str(tmp_path))
    return ["--tiny", "--runs", "1", *folders, *more]


@pytest.mark.slow
def test_one_command_measures_and_writes(tmp_path, capsys):
    assert run.main(arguments_for(tmp_path, "--only", "startup")) == 0
    shown = Path(capsys.readouterr().out.strip())
    (row,) = json.loads(shown.with_suffix(".json").read_text("utf-8"))["cases"]["startup"]["rows"]
    assert row["value"] > 0.5
    assert (row["rounds"], row["verdict"]) == (1, "")
    assert "Tiny sizes" in shown.read_text("utf-8")


def test_cases_are_added_to_the_results_of_the_day(tmp_path, monkeypatch, capsys):
    row = over_rounds("x", [1.0], bound=2.0).to_json()
    monkeypatch.setattr(run, "run_comparison", lambda name, _: {"title": name, "rows": [row]})
    assert run.main(arguments_for(tmp_path, "--only", "large")) == 0
    row = {**row, "value": 1.5}
    assert run.main(arguments_for(tmp_path, "--only", "large", "--only", "small")) == 0
    shown = Path(capsys.readouterr().out.split()[-1])
    cases = json.loads(shown.with_suffix(".json").read_text("utf-8"))["cases"]
    assert list(cases) == ["small", "large"]
    assert [case["rows"][0]["value"] for case in cases.values()] == [1.5, 1.5]


def test_a_wrong_answer_ends_with_1(tmp_path, monkeypatch, capsys):
    def wrong(*_):
        raise Wrong("embgeo: i1 is off by 0.1")

    monkeypatch.setattr(run, "run_comparison", wrong)
    assert run.main(arguments_for(tmp_path, "--only", "large")) == 1
    shown = Path(capsys.readouterr().out.strip()).read_text("utf-8")
    assert "**Failed.** wrong answer: embgeo: i1 is off by 0.1" in shown


@pytest.mark.parametrize("option", [("--runs", "0"), ("--peers", "nowhere"), ("--only", "none")])
def test_options_without_meaning_are_refused(option, capsys):
    with pytest.raises(SystemExit) as ended:
        run.main(list(option))
    assert ended.value.code == 2
    assert option[0] in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.slow
def test_peers_are_asked_for_in_their_own_python():
    assert peers.list_installed(None) == {}
    assert peers.list_installed(Path(sys.executable))["numpy"] == np.__version__


# --- The benchmark of coverage runs, and marks intervals that do not hold what they claim ---------


NUMBER = Quantity("cosine.mean", "Mean", "")


def drawn(claimed: float) -> list[Analysis]:
    rng = np.random.default_rng(0)
    return [
        Analysis({}, scalars=(NUMBER.measured(value, population_error=claimed),))
        for value in rng.standard_normal(2_000)
    ]


@pytest.mark.parametrize(("claimed", "held"), [(1.0, 0.95), (0.5, 0.67), (2.0, 1.0)])
@pytest.mark.slow
def test_coverage_is_that_of_the_intervals(claimed, held):
    ((name, share, ratio, _),) = coverage.cover(drawn(claimed), "population", {})
    assert name == NUMBER.name
    assert share == pytest.approx(held, abs=0.015)
    assert ratio == pytest.approx(claimed, rel=0.05)


def test_a_known_truth_takes_the_place_of_the_mean():
    ((_, share, _, _),) = coverage.cover(drawn(1.0), "population", {NUMBER.name: 5.0})
    assert share < 0.01


def test_a_number_is_judged_by_the_draws_that_have_its_error():
    scalars = (NUMBER.measured(9.0), NUMBER.measured(0.0, population_error=1.0))
    found = [Analysis({}, scalars=(scalars[k > 2],)) for k in range(4)]
    ((_, share, _, known),) = coverage.cover(found, "population", {NUMBER.name: 0.0})
    assert (share, known) == (1.0, 0.25)


def test_what_is_outside_is_marked(capsys):
    coverage.show("cone", "a.b", 0.95, 1.0)
    coverage.show("cone", "a.b", 0.99, 1.0)
    coverage.show("cone", "a.b", 0.99, 1.0, conservative=True)
    coverage.show("cone", "a.b", 0.95, 1.0, 0.14)
    inside, outside, conservative, few = capsys.readouterr().out.splitlines()
    assert "<--" not in inside + conservative
    assert outside.endswith("<--")
    assert few.endswith("of 14%")
    assert "of" not in inside


@pytest.mark.nightly
@pytest.mark.parametrize(
    "table", ["population_errors", "unseen_populations", "differences", "paired_differences"]
)
def test_each_table_is_made(table, monkeypatch, capsys):
    monkeypatch.setattr(coverage, "ROWS", 100)
    monkeypatch.setattr(coverage, "POPULATIONS", (coverage.cone,))
    getattr(coverage, f"show_{table}")(2)
    assert "cone" in capsys.readouterr().out


@pytest.mark.nightly
def test_two_draws_of_one_population_rarely_differ():
    """Of 25 comparisons about one may; before, 85% of them did."""
    flagged = [
        coverage.is_flagged(
            coverage.compare_matrices(
                (
                    coverage.draw_matrix(coverage.cone, s),
                    coverage.draw_matrix(coverage.cone, s + 50),
                ),
                (0, 0),
            )
        )
        for s in range(25)
    ]
    assert sum(flagged) <= 4
