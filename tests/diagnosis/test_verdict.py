"""The verdict: a truth table over shapes of matrices, and what it says when numbers are missing."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import embgeo
from embgeo.cli.app import COMMANDS
from embgeo.core.quantities.frequency import WEIGHTED_MEAN_COSINE
from embgeo.core.values import format_number
from embgeo.diagnosis.finding import format_percent
from embgeo.diagnosis.findings import FINDINGS
from embgeo.diagnosis.thresholds import CONE, PARTITION, THRESHOLDS
from embgeo.diagnosis.verdict import Verdict, judge
from embgeo.result.analysis import Analysis
from tests.support.sample_analysis import sample, with_scalar, without
from tests.support.sampling import sample_cases


def test_shapes() -> None:
    for shape, overall, states in (
        ("cone", "degenerate", {"cone": "degenerate", "isotropy": "degenerate"}),
        (
            "isotropic",
            "healthy",
            {
                "cone": "healthy",
                "spectrum": "healthy",
                "two-sided": "healthy",
                "isotropy": "healthy",
            },
        ),
        (
            "two-sided",
            "degenerate",
            {"cone": "healthy", "spectrum": "degenerate", "two-sided": "degenerate"},
        ),
    ):
        verdict = judge(sample(shape))
        assert verdict.state == overall
        assert {key: state_of(verdict, key) for key in states} == states


def test_every_sentence_quotes_numbers_of_the_analysis() -> None:
    for shape in ("cone", "isotropic", "two-sided"):
        analysis = sample(shape)
        for finding in judge(analysis).findings:
            assert finding.quoted or finding.key == "suspects"
            assert all(analysis.find_scalar(name) is not None for name in finding.quoted)


def test_large_share_with_few_dimensions_is_no_collapse() -> None:
    verdict = judge(sample("isotropic", d=2))
    assert state_of(verdict, "spectrum") == "healthy"
    assert state_of(verdict, "two-sided") == "healthy"


def test_few_rows_of_large_norm_are_named_as_the_cause() -> None:
    analysis = with_scalar(sample("isotropic"), "spectrum.top_share", value=0.9)
    assert "long rows along one direction carry 90%" in sentence(judge(analysis), "spectrum")


@pytest.mark.parametrize(("share", "spread"), [(0.3, 0.25), (0.65, 0.321)])
def test_an_uneven_spectrum_does_not_name_long_rows(share: float, spread: float) -> None:
    """Neither of spread directions nor where rows of norm 1 would not have such a share."""
    analysis = with_scalar(sample("isotropic", d=4), "spectrum.top_share", value=share)
    analysis = with_scalar(analysis, "cosine.std", value=spread)
    assert "long rows" not in sentence(judge(analysis), "spectrum")


def test_rogue_coordinate_explains_a_cone_and_is_silent_otherwise() -> None:
    cone = with_scalar(sample("cone", d=64), "cosine.max_dimension_share", value=0.7)
    assert state_of(judge(cone), "coordinate") == "degenerate"
    assert judge(sample("isotropic")).finding("coordinate") is None


def test_a_large_share_of_a_coordinate_with_few_dimensions_is_not_rogue() -> None:
    """0.9 is 1.73 times 2·ln(8)/8, and 3.5 times half of it."""
    cone = with_scalar(sample("cone", d=8), "cosine.max_dimension_share", value=0.9)
    assert judge(cone).finding("coordinate") is None


def test_nothing_to_go_by() -> None:
    empty = without(sample("cone"), "cosine", "spectrum", "isotropy", "frequency")
    verdict = judge(empty)
    assert verdict.state == "undecided"
    assert verdict.headline == "Undecided: skipped with --sections."
    assert judge(Analysis(provenance={})).state == "undecided"


def test_limits_are_ordered() -> None:
    for t in THRESHOLDS:
        assert t.mild < t.degenerate if t.worse == "above" else t.mild > t.degenerate
    assert len({t.name for t in THRESHOLDS}) == len(THRESHOLDS)


def test_partition_limits_follow_from_the_cone_limits() -> None:
    assert math.exp(-2 * math.sqrt(CONE.mild)) == pytest.approx(PARTITION.mild, abs=0.04)
    assert math.exp(-2 * math.sqrt(CONE.degenerate)) == pytest.approx(
        PARTITION.degenerate, abs=0.04
    )


def test_percent_is_exact_at_the_ends_only() -> None:
    for share, text in (
        (0.0, "0"),
        (1.0, "100"),
        (0.91234, "91"),
        (0.99999, "99.999"),
        (1e-5, "0.001"),
    ):
        assert format_percent(share) == f"{text}%"


def state_of(verdict: Verdict, key: str) -> str:
    finding = verdict.finding(key)
    assert finding is not None
    return finding.state


def sentence(verdict: Verdict, key: str) -> str:
    finding = verdict.finding(key)
    assert finding is not None
    return finding.sentence


@pytest.mark.parametrize("shape", [(30, 10), (30, 3), (30, 50), (50, 64), (2000, 4)])
@pytest.mark.parametrize("seed", sample_cases(range(4), 4))
@pytest.mark.slow
def test_random_rows_are_never_called_degenerate(shape: tuple[int, int], seed: int) -> None:
    rows = np.random.default_rng(seed).standard_normal(shape)
    assert judge(embgeo.analyze(embgeo.Matrix(rows))).state == "healthy"


def test_one_row_decides_nothing() -> None:
    verdict = judge(embgeo.analyze(embgeo.Matrix(np.ones((1, 5)))))
    assert verdict.state == "undecided"
    assert verdict.headline.endswith(": too few rows (1 in 5 dimensions).")


def test_three_statements_about_frequency_are_kept_apart() -> None:
    """Norms and the probe are said; only neighbors beyond chance are "separated"."""
    analysis = sample("isotropic")
    for name, value in (
        ("probe_auc", 0.98),
        ("neighbor_rarity_rare", 0.76),  # base rate 0.8
        ("neighbor_rarity_popular", 0.3),
        ("norm_spearman", 0.86),
    ):
        analysis = with_scalar(analysis, f"frequency.{name}", value=value)
    verdict = judge(analysis)
    assert state_of(verdict, "frequency") == "healthy"
    said = sentence(verdict, "frequency")
    assert said.startswith("Rare tokens are not separated from frequent ones: 76%")
    assert "linear probe reads frequency (AUC 0.98" in said
    assert "chance: 0.5), as usual." in said
    assert "Norm correlates with frequency (Spearman 0.86" in said
    apart = with_scalar(analysis, "frequency.neighbor_rarity_rare", value=0.98)
    assert state_of(judge(apart), "frequency") == "degenerate"
    assert judge(apart).finding("frequency").word == "separated"


def test_limits_of_neighbors() -> None:
    """The base rate is 0.8; the last one is within three errors of it."""
    for rare, popular, word in (
        (0.9, 0.701, "not separated"),
        (0.9, 0.699, "partly separated"),
        (0.9, 0.401, "partly separated"),
        (0.9, 0.399, "separated"),
        (0.801, 0.2, "not separated"),
    ):
        analysis = sample("isotropic")
        errors = {"standard_error": 0.001, "population_error": 0.001}
        for name, value in (("rare", rare), ("popular", popular)):
            name = f"frequency.neighbor_rarity_{name}"
            analysis = with_scalar(analysis, name, value=value, **errors)
        finding = judge(analysis).finding("frequency")
        assert finding is not None
        assert finding.word == word


def test_a_section_left_out_is_named_and_the_rest_still_said() -> None:
    rows = np.random.default_rng(0).standard_normal((200, 8))
    verdict = judge(embgeo.analyze(embgeo.Matrix(rows), sections=("cosine",)))
    assert verdict.headline == "Undecided: the section spectrum was skipped."
    assert sentence(verdict, "cone").startswith("No cone")


def test_one_dimension_is_undecided() -> None:
    rows = np.random.default_rng(0).standard_normal((50, 1))
    for matrix in (rows, np.abs(rows)):
        verdict = judge(embgeo.analyze(embgeo.Matrix(matrix)))
        assert verdict.headline == "Undecided: one dimension has only two directions."


def test_a_share_and_its_percentage_are_rounded_alike() -> None:
    assert format_percent(0.99985) == "99.99%"
    assert format_number(0.99985) == "0.9999"


def test_the_frequency_sentence_says_where_the_weighted_cone_is_another() -> None:
    plain = sample("isotropic")
    agreeing, other = (
        with_scalar(plain, WEIGHTED_MEAN_COSINE.name, value=value) for value in (0.01, 0.52)
    )
    assert "as often as it occurs" not in sentence(judge(agreeing), "frequency")
    said = "Weighted by counts, so that frequent tokens decide, the mean cosine is 0.52"
    assert said in sentence(judge(other), "frequency")


def test_a_fault_says_why_it_matters_and_what_helps():
    for finding in judge(sample("cone")).findings:
        assert (
            bool(finding.why) == bool(finding.advice) == (finding.state in ("mild", "degenerate"))
        )
    saved = judge(sample("cone")).finding("cone").to_dict()
    assert "Gao et al. 2019" in saved["why"]
    assert "embgeo train --data TEXT --compare mle,cosreg,coupled-adam" in saved["advice"]


def test_advice_names_sources_methods_and_options_that_exist():
    for question in [module.QUESTION for module in FINDINGS]:
        from embgeo.training.methods import METHODS

        advice = (
            question.advice if isinstance(question.advice, str) else question.advice(sample("cone"))
        )
        assert question.why
        assert re.search(r"(19|20)\d\d\)", question.why + advice) or not re.search(
            "et al", question.why + advice
        )
        for methods in re.findall(r"--compare ([\w,-]+)", advice):
            assert set(methods.strip(",").split(",")) <= set(METHODS)
        for command in re.findall(r"embgeo ([a-z]+)", advice):
            assert command in COMMANDS
