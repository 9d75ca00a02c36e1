"""What a person tries who has not read the documentation: one line each, and reprs that fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.core.values import Scalar
from embgeo.training.study.record import Study, StudyMethod
from tests.support.refusals import refusal

W = np.random.default_rng(0).standard_normal((120, 6))
QUICK: dict[str, Any] = {"sections": "cosine", "reference": False}


@pytest.fixture(scope="module")
def analysis() -> embgeo.Analysis:
    return embgeo.analyze(W, **QUICK)


@pytest.fixture(scope="module")
def comparison(analysis: embgeo.Analysis) -> embgeo.Comparison:
    return embgeo.diff(analysis, W + 1.0, names=["old", "new"], queries=0, **QUICK)


def test_a_wrong_argument_is_named(analysis: embgeo.Analysis) -> None:
    for call in (
        lambda a: embgeo.diff(a, W, match="x"),
        lambda a: embgeo.diff(a, W, queries=-1),
        lambda a: embgeo.diff(a, W, queries=1.5),
        lambda a: embgeo.diff(a, W, names=["a", "a"]),
        lambda a: embgeo.figures(a, format="gif"),
        lambda _: embgeo.analyze(W, seed="a"),
        lambda _: embgeo.analyze(W, pairs=1e5),
        lambda _: embgeo.Options(popular_share="x"),  # type: ignore[arg-type]
        lambda _: embgeo.analyze(W, options={"seed": 1}),  # type: ignore[arg-type]
        lambda _: embgeo.analyze(W, sections=5),
        lambda _: embgeo.analyze(W, show_neighbors=[5]),
        lambda _: embgeo.analyze(W, resources=5),  # type: ignore[arg-type]
        lambda a: embgeo.diff(a, W, resources=5),  # type: ignore[arg-type]
        lambda a: embgeo.render(a, "-"),
        lambda a: embgeo.figures(a, out="-"),
        lambda a: embgeo.export(a, to="csv", out="-"),
        lambda a: embgeo.diff(a, W, every=2),
        lambda a: embgeo.export(a, to="projector"),
        lambda _: embgeo.load(""),
        lambda _: embgeo.load(5),  # type: ignore[arg-type]
        lambda _: embgeo.load("m.pt", tensor=5),
        lambda _: embgeo.load("m.pt", counts=5),
        lambda _: embgeo.load("m.pt", rows=5),
        lambda _: embgeo.inspect(None),  # type: ignore[arg-type]
        lambda _: embgeo.load_analysis(5),  # type: ignore[arg-type]
        lambda _: embgeo.load_comparison(5),  # type: ignore[arg-type]
        lambda _: embgeo.load_study(5),  # type: ignore[arg-type]
        lambda a: embgeo.gate(a, rules=[5]),  # type: ignore[list-item]
        lambda a: embgeo.gate(a, rules="verdict <= mild", level="x"),  # type: ignore[arg-type]
        lambda a: embgeo.figures(a, width="x"),  # type: ignore[arg-type]
        lambda a: embgeo.render(a, 5),  # type: ignore[arg-type]
        lambda a: embgeo.diff(a, W, names=5),  # type: ignore[arg-type]
        lambda _: embgeo.render(W),  # type: ignore[arg-type]
        lambda _: embgeo.analyze(W, counts="c.tsv"),
        lambda _: embgeo.figures(),
        lambda a: embgeo.figures(a, venu="acl"),  # type: ignore[call-arg]
        lambda _: embgeo.figures(W),
        lambda a: embgeo.figures(a, width=3, venue="acl"),
        lambda _: embgeo.export(W, to="csv"),
    ):
        with refusal():
            call(analysis)


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
        with refusal(KeyError):
            result[3]  # type: ignore[index]


def test_a_comparison_says_why_a_number_is_missing(comparison: embgeo.Comparison) -> None:
    with refusal(KeyError):
        comparison["isotropy.i1"]
    with refusal(KeyError):
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
    with refusal():
        embgeo.load_study(str(tmp_path))
