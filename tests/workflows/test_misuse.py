"""What a person tries who has not read the documentation: one line each, and reprs that fit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.core.values import Scalar
from embgeo.training.study.record import Study, StudyMethod

W = np.random.default_rng(0).standard_normal((120, 6))
QUICK: dict[str, Any] = {"sections": "cosine", "reference": False}


@pytest.fixture(scope="module")
def analysis() -> embgeo.Analysis:
    return embgeo.analyze(W, **QUICK)


@pytest.fixture(scope="module")
def comparison(analysis: embgeo.Analysis) -> embgeo.Comparison:
    return embgeo.diff(analysis, W + 1.0, names=["old", "new"], queries=0, **QUICK)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda a: embgeo.diff(a, W, match="x"),
            "match: unknown way to match 'x'; choose from token, row",
        ),
        (lambda a: embgeo.diff(a, W, queries=-1), "queries: -1 is not a number of tokens"),
        (lambda a: embgeo.diff(a, W, queries=1.5), "queries: 1.5 is not a number of tokens"),
        (lambda a: embgeo.diff(a, W, names=["a", "a"]), "names: are not all different"),
        (
            lambda a: embgeo.figures(a, format="gif"),
            "format: unknown format 'gif'; did you mean pgf? choose from pdf",
        ),
        (lambda _: embgeo.analyze(W, seed="a"), "seed is 'a'; it has to be a whole number"),
        (lambda _: embgeo.analyze(W, pairs=1e5), "pairs is 100000.0; it has to be a whole number"),
        (lambda _: embgeo.Options(popular_share="x"), "popular_share is 'x'"),  # type: ignore[arg-type]
        (lambda _: embgeo.analyze(W, options={"seed": 1}), "options: type dict is not acc"),  # type: ignore[arg-type]
        (
            lambda _: embgeo.analyze(W, sections=5),
            "sections: type int is not accepted; give a text",
        ),
        (
            lambda _: embgeo.analyze(W, show_neighbors=[5]),
            "show_neighbors: type int is not accepted; give a text such",
        ),
        (
            lambda _: embgeo.analyze(W, resources=5),
            "resources: type int is not accepted; give embg",
        ),  # type: ignore[arg-type]
        (
            lambda a: embgeo.diff(a, W, resources=5),
            "resources: type int is not accepted; give embgeo.Resources(threads=1)",
        ),  # type: ignore[arg-type]
        (lambda a: embgeo.render(a, "-"), "out: cannot be standard output; choose another file"),
        (lambda a: embgeo.figures(a, out="-"), "out: cannot be standard output; choose another"),
        (lambda a: embgeo.export(a, to="csv", out="-"), "out: cannot be standard output; choose"),
        (lambda a: embgeo.diff(a, W, every=2), "every: is about a track; add track"),
        (
            lambda a: embgeo.export(a, to="projector"),
            "analysis: the saved analysis was made of an array in memory, or of a pipe; name",
        ),
        (lambda _: embgeo.load(""), "path: is empty; name a file or a folder"),
        (lambda _: embgeo.load(5), "path: type int is not accepted; give a path"),  # type: ignore[arg-type]
        (lambda _: embgeo.load("m.pt", tensor=5), "tensor is 5; it has to be text"),
        (lambda _: embgeo.load("m.pt", counts=5), "counts: type int is not accepted; give a path"),
        (lambda _: embgeo.load("m.pt", rows=5), "rows is 5; it has to be text"),
        (lambda _: embgeo.inspect(None), "path: type NoneType is not accepted; give a path"),  # type: ignore[arg-type]
        (lambda _: embgeo.load_analysis(5), "folder: type int is not accepted; give a path"),  # type: ignore[arg-type]
        (lambda _: embgeo.load_comparison(5), "folder: type int is not accepted; give a path"),  # type: ignore[arg-type]
        (lambda _: embgeo.load_study(5), "folder: type int is not accepted; give a path"),  # type: ignore[arg-type]
        (lambda a: embgeo.gate(a, rules=[5]), "rules: type list is not accepted; give a text, or"),  # type: ignore[list-item]
        (
            lambda a: embgeo.gate(a, rules="verdict <= mild", level="x"),
            "level: type str is not ac",
        ),  # type: ignore[arg-type]
        (lambda a: embgeo.figures(a, width="x"), "width: type str is not accepted; give a number"),  # type: ignore[arg-type]
        (lambda a: embgeo.render(a, 5), "out: type int is not accepted; give a path"),  # type: ignore[arg-type]
        (lambda a: embgeo.diff(a, W, names=5), "names: type int is not accepted; give a text"),  # type: ignore[arg-type]
        (lambda _: embgeo.render(W), "result: type ndarray is not accepted; give an"),  # type: ignore[arg-type]
        (lambda _: embgeo.analyze(W, counts="c.tsv"), "counts: c.tsv is a file, and this is"),
        (lambda _: embgeo.figures(), "results: there is nothing to draw"),
        (lambda a: embgeo.figures(a, venu="acl"), "venu: no argument has this name; did you mean"),  # type: ignore[call-arg]
        (lambda _: embgeo.figures(W), "results: type ndarray is not accepted; give ana"),
        (
            lambda a: embgeo.figures(a, width=3, venue="acl"),
            "width: cannot be combined with venue or",
        ),
        (lambda _: embgeo.export(W, to="csv"), "source: type ndarray is not accepted; give an"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_argument_is_named(
    call: Callable[[embgeo.Analysis], Any], message: str, analysis: embgeo.Analysis
) -> None:
    with pytest.raises(embgeo.EmbgeoError) as caught:
        call(analysis)
    assert str(caught.value).startswith(message)


def test_nothing_prints_a_screenful(
    analysis: embgeo.Analysis, comparison: embgeo.Comparison
) -> None:
    outcome = embgeo.gate(analysis, rules=["cosine.mean <= 0.1"] * 30)
    assert repr(analysis.verdict).startswith("<Verdict undecided: Undecided: ")
    assert repr(outcome).startswith("<Outcome passed, 30 checks\n  passed: cosine.mean is ")
    assert repr(comparison["cosine.mean"]).startswith("<Difference cosine.mean: 0.")
    shown = [analysis, analysis.verdict, analysis.plot, comparison, outcome]
    shown += [embgeo.figures(analysis, figure="cosines", format="svg")]
    for one in shown:
        assert len(repr(one)) < 2_000
        assert len(repr(one).splitlines()) <= 12


def test_a_matrix_with_its_tokens_is_one_line() -> None:
    tokens = [f"t{row}" for row in range(5000)]
    matrix = embgeo.Matrix(np.ones((5000, 2)), tokens=tuple(tokens))
    assert repr(matrix) == "<Matrix W: 5,000 × 2 float64, with tokens>"
    assert matrix != embgeo.Matrix(np.ones((5000, 2)))


def test_one_token_may_be_asked_for_without_a_list() -> None:
    assert embgeo.Options(show_neighbors="to=a,b").show_neighbors == (("to", ("a", "b")),)  # type: ignore[arg-type]


def test_results_are_iterated_by_name(
    analysis: embgeo.Analysis, comparison: embgeo.Comparison
) -> None:
    assert tuple(analysis) == analysis.keys()
    assert tuple(comparison) == comparison.keys()
    for result in (analysis, comparison):
        with pytest.raises(KeyError, match=r"no value is called .?3"):
            result[3]  # type: ignore[index]


def test_a_comparison_says_why_a_number_is_missing(comparison: embgeo.Comparison) -> None:
    with pytest.raises(KeyError, match=r"isotropy\.i1 is missing: it was not compared"):
        comparison["isotropy.i1"]
    with pytest.raises(KeyError, match="'old' is the baseline; there are new"):
        comparison["cosine.mean", "old"]


def test_results_are_compared_by_identity(analysis: embgeo.Analysis, tmp_path: Path) -> None:
    analysis.save(tmp_path)
    again = embgeo.load_analysis(tmp_path)
    assert analysis != again
    assert analysis.verdict == again.verdict
    assert len({analysis, again}) == 2


def test_numbers_become_numbers_of_python(analysis: embgeo.Analysis) -> None:
    mean = analysis["cosine.cone_half_angle_median"]
    assert isinstance(mean, Scalar)
    assert int(mean) == int(float(mean))
    assert round(mean, 3) == round(float(mean), 3)
    seeded = embgeo.analyze(W, seed=np.int64(3), **QUICK)
    assert json.loads(json.dumps(seeded.to_dict()))["provenance"]["seed"] == 3


def test_a_training_of_many_methods_is_a_few_lines() -> None:
    method = StudyMethod("mle", "plain", "", "", {}, ())
    made = Study({"long": "x" * 9000}, ("one sentence",) * 20, methods=(method,) * 20)
    assert repr(made).startswith("<Study with 20 methods: mle, mle, ")
    assert len(repr(made).splitlines()) <= 12


def test_a_training_is_asked_for_by_text(tmp_path: Path) -> None:
    with pytest.raises(embgeo.EmbgeoError, match=r"training\.json"):
        embgeo.load_study(str(tmp_path))
