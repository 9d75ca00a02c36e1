"""Methods side by side: saved and read back, and the page that shows them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embgeo.charts import balance, training
from embgeo.cli.app import run as command
from embgeo.core.errors import UnreadableFile
from embgeo.core.progress import Progress
from embgeo.report.study import (
    claims_line,
    draw_methods,
    facts,
    headlines,
    render,
    shared_deviations,
)
from embgeo.report.study_tables import heads
from embgeo.report.text.study import render as render_text
from embgeo.training.study.assemble import assemble_study, warn_of_methods
from embgeo.training.study.log import LOG_NAME
from embgeo.training.study.numbers import OF_CLASSIFICATION
from embgeo.training.study.outcomes import OUTCOMES, Outcomes
from embgeo.training.study.record import (
    COMPARISON_FOLDER,
    STUDY,
    STUDY_NAME,
    load_study,
)
from embgeo.training.study.run_result import (
    MOST_POINTS,
    RESULT_NAME,
    RUN_RESULT,
    collect_numbers,
    read_run,
    thin_curves,
)
from embgeo.training.study.wording import describe_few_seeds
from embgeo.workflows.train import compare_embeddings
from tests.support.html_page import Page
from tests.support.outlined import drawn_pages, outline_figures
from tests.support.refusals import refusal
from tests.support.sample_runs import (
    Made,
    embeddings,
    made_runs,
    result,
    sample_training,
    study_methods,
    train_sample,
    write_run,
)
from tests.support.sample_runs import run as bare_run
from tests.support.sampling import each_folder

METHODS = ("mle", "cosreg", "sc-exp")


@cache
def html(*, seeds: int = 3, hostile: bool = False, alone: bool = False, drawn: bool = False) -> str:
    methods = ("mle",) if alone else METHODS
    compared = None if alone else embeddings(hostile=hostile)
    with few_figures() if drawn else outline_figures():
        return render(sample_training(methods=methods, seeds=seeds, hostile=hostile), compared)


@contextmanager
def few_figures() -> Iterator[None]:
    """Those of the embeddings are drawn by the tests of comparisons."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("embgeo.report.page.CHARTS", (balance.CHART, training.CHART))
        yield


@cache
def page(**options: Any) -> Page:
    return Page(html(**options))


KINDS = [{}, {"seeds": 1}, {"hostile": True}, {"alone": True}]
each_kind = pytest.mark.parametrize(
    "options", [*KINDS, *drawn_pages(KINDS, keep=lambda kind: "hostile" in kind)], ids=str
)


@each_kind
def test_the_page_is_whole_and_needs_nothing_else(options: dict[str, Any]) -> None:
    page(**options).check_structure(20)


def test_hostile_text_makes_no_element() -> None:
    calm, hostile = page(), page(hostile=True)
    inside = {"svg", "g", "path", "use", "defs", "text", "tspan", "clippath", "rect"}

    def elements(parsed: Page) -> Counter[str]:
        return Counter({tag: n for tag, n in parsed.tags.items() if tag not in inside})

    assert elements(calm) == elements(hostile)
    assert "window.pwned" in hostile.text
    assert "<script>window.pwned" not in html(hostile=True)


@pytest.mark.usefixtures("outlines")
def test_equal_results_give_equal_pages() -> None:
    training = sample_training(methods=METHODS)
    assert render(training, embeddings()) == html()


def test_a_headline_compares_models_of_one_size_and_names_the_speed_of_training() -> None:
    training = sample_training(methods=METHODS)
    larger = tuple(
        replace(run, parameters=2 * 365_496) if run.method == "cosreg" else run
        for run in training.runs
    )
    assert "cosreg (−3.9%)" not in headlines(replace(training, runs=larger))[0]
    unknown = replace(training, runs=tuple(replace(run, curves={}) for run in training.runs))
    assert headlines(unknown)[1].startswith("Models may not have converged.")
    assert "learning" not in "".join(headlines(training))
    few = sample_training(methods=METHODS, seeds=2)
    lines = headlines(few)
    last = next(line for line in lines if line.startswith("Too few"))
    assert lines.index(last) > 0
    assert last.startswith("Too few seeds to test (2).")


def test_a_task_of_ones_own_has_each_score_once_and_its_own_unit() -> None:
    training = sample_training(methods=("mle", "cosreg"), seeds=1)
    scores = {"valid.accuracy": 0.5, "test.accuracy": 0.4}
    runs = tuple(
        replace(run, task="own", quality="accuracy", numbers={**run.numbers, **scores})
        for run in training.runs
    )
    corpus = {"name": "mine", "unit": "lines", "rows": 9, "tokens": {"train": 1200}}
    training = replace(
        training,
        runs=runs,
        quantities=OF_CLASSIFICATION,
        provenance={**training.provenance, "corpus": corpus},
    )
    names = [head.name for head in heads(training)]
    assert (names[0], names.count("valid.accuracy")) == ("test.accuracy", 1)
    assert len(set(names)) == len(names)
    assert "1,200 training lines" in facts(training)
    assert "time a unit" in [head.title for head in heads(training)]
    texts = replace(training, provenance={"corpus": {**corpus, "unit": "stream"}})
    assert "1,200 training tokens" in facts(texts)
    assert "time a token" in [head.title for head in heads(texts)]


def test_a_low_i1_that_long_rows_make_is_named_next_to_that_of_unit_rows() -> None:
    def warned(unit: float, rows: float) -> tuple[str, ...]:
        numbers = {"isotropy__i1_unit": unit, "isotropy__i1_unit_rows": rows}
        return tuple(w.text for w in warn_of_methods([bare_run("coupled-adam", 0, **numbers)]))

    assert warned(2e-5, 0.968) == (
        "coupled-adam: I1 at mean norm 1 is 2e-05 because a few rows are long; I1 of unit rows "
        "is 0.968",
    )
    assert not warned(0.21, 0.23)
    assert not warned(0.8, 0.9)


def test_an_equal_perplexity_is_not_below_and_an_unknown_one_says_nothing() -> None:
    def warned(**numbers: float) -> bool:
        return bool(warn_of_methods([bare_run("mle", 0, **numbers)]))

    assert warned(test__perplexity=50.0, test__unigram=50.0)
    # Of a single run, no number of runs is said.
    (said,) = warn_of_methods([bare_run("mle", 0, test__perplexity=50.0, test__unigram=50.0)])
    assert said.text.startswith("mle: perplexity 50 is not below")
    assert not warned(test__perplexity=49.9, test__unigram=50.0)
    assert not warned(test__perplexity=60.0)


@pytest.mark.usefixtures("outlines")
def test_curves_are_means_over_seeds() -> None:
    chart = draw_methods(sample_training(methods=METHODS)).charts["training.cosine.mean"]
    assert chart["x"] == [0, 100, 200, 300, 400]
    assert [line["label"] for line in chart["lines"]] == list(METHODS)
    assert chart["lines"][0]["y"][0] == pytest.approx(0.21)


@pytest.mark.usefixtures("outlines")
def test_figures_need_what_they_show() -> None:
    alone = draw_methods(sample_training(methods=("mle",)))
    assert "balance" not in alone
    assert "training" in alone
    for figure in draw_methods(sample_training(methods=METHODS)).left.values():
        assert figure.caption in page().text


# --- Files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("hostile", [False, True])
@pytest.mark.usefixtures("outlines")
def test_saved_and_read_back(hostile: bool, tmp_path: Path) -> None:
    training = sample_training(methods=METHODS, hostile=hostile)
    path = STUDY.save(training, tmp_path)
    assert path.name == STUDY_NAME
    again = load_study(tmp_path)
    assert STUDY.to_json(again) == STUDY.to_json(training)
    assert render(again, embeddings(hostile=hostile)) == html(hostile=hostile)


def test_damage_is_told_in_one_line(tmp_path: Path) -> None:
    for folder, change in each_folder(
        tmp_path,
        (
            lambda d: d.update(format="other"),
            lambda d: d.update(format_version=99),
            lambda d: d.pop("runs"),
            lambda d: d["runs"].clear(),
            lambda d: d["runs"][0].update(folder="../../outside/seed-0"),
            lambda d: d["runs"][0].update(method="frage"),
            lambda d: d["runs"][0].update(others={"sauce": {}}),
            lambda d: d["runs"][0]["numbers"].update(x="many"),
            lambda d: d["runs"][0]["curves"]["train.loss"]["steps"].pop(),
            lambda d: d["methods"][0].update(unknown=1),
            lambda d: d["provenance"].update(corpus=3),
            lambda d: d["provenance"].update(settings={"model": 3}),
        ),
    ):
        content = json.loads(json.dumps(STUDY.to_json(sample_training())))
        change(content)
        (folder / STUDY_NAME).write_text(json.dumps(content), encoding="utf-8")
        with refusal(UnreadableFile):
            load_study(folder)


def test_a_control_without_runs_is_left_out_of_the_headlines() -> None:
    training = sample_training()
    methods = tuple(replace(method, reference="other") for method in training.methods)
    assert headlines(replace(training, methods=methods)) == (claims_line(training),)


def test_what_all_methods_leave_out_is_said_once() -> None:
    study = sample_training(methods=METHODS)
    assert shared_deviations(study) == ["rows of norm zero are left out"]
    last = replace(study.methods[-1], deviations=())
    assert shared_deviations(replace(study, methods=(*study.methods[:-1], last))) == []


def test_few_seeds_are_no_reason_where_they_are_enough() -> None:
    for seeds, few in ((2, True), (3, False)):
        line = claims_line(sample_training(methods=("mle", "al"), seeds=seeds))
        assert line.startswith("None of 2 claims of the papers can be decided")
        assert ("fewer than 3 seeds" in line) is few


@pytest.mark.slow
def test_runs_are_read_from_their_folders(tmp_path: Path) -> None:
    runs = []
    for made in made_runs(METHODS, 3):
        home = write_run(tmp_path, made)
        runs.append(read_run(tmp_path, home))
    settings = runs[0].result.settings
    read = assemble_study(
        runs,
        study_methods(METHODS),
        {"command": "embgeo train --data pydocs.txt", "settings": settings},
    )
    assert STUDY.to_json(read) == STUDY.to_json(sample_training(methods=METHODS))
    assert read.runs[0].numbers["training.microseconds_per_token"] == 50.0


def test_published_numbers_are_sought_by_model_and_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    place = "embgeo.training.study.assemble.decide_claims"
    monkeypatch.setattr(place, lambda *_, trained, **__: asked.append(trained) or ())
    one = train_sample(Made("mle", 0, 100.0))
    for experts in ({}, {"experts": 1}, {"experts": 2}):
        settings = {**one.result.settings, "model": {"name": "awd-lstm", **experts}}
        made = replace(one, result=replace(one.result, settings=settings))
        assemble_study([made], study_methods(("mle",)), {})
    assert asked == [("awd-lstm", "pydocs")] * 2 + [("awd-lstm-mos", "pydocs")]


def test_a_run_of_two_matrices_is_read_with_both_and_with_its_losses(tmp_path: Path) -> None:
    home = write_run(tmp_path, Made("al", 0, 100.0))
    losses = Outcomes("text", "test", ((30.5, 6), (20.25, 5)))
    OUTCOMES.save(losses, home)
    found = read_run(tmp_path, home)
    output, own = (found.analyses[role].find_scalar("cosine.mean") for role in ("output", "input"))
    assert output != own
    assert found.outcomes == losses
    assert read_run(tmp_path, write_run(tmp_path, Made("mle", 0, 90.0))).outcomes is None


def test_a_damaged_result_of_a_run(tmp_path: Path) -> None:
    for folder, (field, value) in each_folder(
        tmp_path,
        (
            ("format", 2),
            ("steps", "many"),
            ("valid", None),
            ("seed", True),
            ("test", 3),
            ("corpus", {"name": "pydocs"}),
            ("corpus", {"files": {"pydocs.txt": 3}}),
        ),
    ):
        home = write_run(folder, Made("mle", 0, 100.0))
        (home / RESULT_NAME).write_text(
            json.dumps({**RUN_RESULT.to_json(result(Made("mle", 0, 1.0))), field: value})
        )
        with refusal(UnreadableFile):
            read_run(folder, home)


def test_a_run_without_log_or_test_split(tmp_path: Path) -> None:
    home = write_run(tmp_path, Made("mle", 0, 100.0))
    (home / LOG_NAME).unlink()
    content = RUN_RESULT.to_json(result(Made("mle", 0, 100.0)))
    (home / RESULT_NAME).write_text(json.dumps({**content, "test": None}))
    found = read_run(tmp_path, home)
    assert found.curves == {}
    numbers = collect_numbers(found.result, found.curves)
    assert "test.perplexity" not in numbers
    assert numbers["valid.perplexity"] == 104.0
    with refusal(UnreadableFile):
        read_run(tmp_path, tmp_path)


def test_long_curves_are_thinned_and_keep_their_ends() -> None:
    steps = np.arange(10_000.0)
    (curve,) = thin_curves({"x": (steps, steps**2)}).values()
    assert len(curve.steps) == MOST_POINTS
    assert (curve.steps[0], curve.steps[-1]) == (0.0, 9_999.0)
    assert curve.values[-1] == 9_999.0**2


# --- Other commands ------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a training leaves behind, without the models."""
    home = tmp_path / "pydocs.runs"
    for made in made_runs(METHODS, 3):
        write_run(home, made)
    STUDY.save(sample_training(methods=METHODS), home)
    embeddings().save(home / COMPARISON_FOLDER)
    return home


def test_further_matrices_are_compared_after_all_embeddings(tmp_path: Path) -> None:
    for made in made_runs(("mle", "untied"), 1):
        write_run(tmp_path, made)
    study = sample_training(methods=("mle", "untied"), seeds=1)
    found = compare_embeddings(study, tmp_path, "", Progress())
    assert found is not None
    assert [one.name for one in found.members] == ["mle", "untied", "untied (output)"]
    alone = sample_training(methods=("mle",), seeds=1)
    assert compare_embeddings(alone, tmp_path, "", Progress()) is None


@pytest.mark.usefixtures("outlines")
@pytest.mark.slow
def test_report_renders_a_training_again(folder: Path) -> None:
    assert command(["report", str(folder), "-q"]) == 0
    again = (folder / "report.html").read_text(encoding="utf-8")
    assert "3 methods on pydocs" in again
    assert command(["report", str(folder / STUDY_NAME), "-o", str(folder / "b.html"), "-q"]) == 0
    assert (folder / "b.html").read_text(encoding="utf-8") == again


@pytest.mark.slow
def test_figures_draw_a_training(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder.parent / "figures"
    chosen = ["--figure", "training", "--figure", "spectrum", "--format", "svg"]
    assert command(["figures", str(folder), *chosen, "-o", str(out)]) == 0
    data = (out / "training.csv").read_text(encoding="utf-8")
    assert {line.split(",")[0] for line in data.splitlines()[1:]} == set(METHODS)
    capsys.readouterr()


def test_diff_wants_runs_by_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["diff", str(folder), str(folder / "mle" / "seed-0")]) == 2
    error = capsys.readouterr().err
    assert "runs of several methods; name one of them" in error
    assert error.count("\n") == 1


def test_gate_takes_a_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rule = ["--rule", "cosine.mean <= 0.9"]
    assert command(["gate", str(folder / "cosreg" / "seed-1"), *rule]) == 0
    assert "passed" in capsys.readouterr().out


@pytest.mark.parametrize(("seeds", "where"), [(1, "its seed"), (2, "both seeds")])
def test_with_too_few_seeds_the_page_says_what_happened(seeds: int, where: str) -> None:
    few = sample_training(seeds=seeds)
    runs = []
    for one in few.runs:
        cosine = 0.54 if one.method == "mle" else 0.004
        runs.append(replace(one, numbers={**one.numbers, "cosine.mean": cosine}, others={}))
    lines = describe_few_seeds(replace(few, runs=tuple(runs)))
    (cosreg,) = (line for line in lines if line.startswith("COSREG"))
    assert cosreg.startswith(f"COSREG removed the cone in {where} (0.54 → 0.004); perplexity ")
    more = "embgeo train --resume -o FOLDER --seeds 3"
    assert lines[-1] == f"Too few seeds to test ({seeds}). {more} adds some."
    assert lines[-1] in list(render_text(few))
    assert describe_few_seeds(sample_training()) == ()
