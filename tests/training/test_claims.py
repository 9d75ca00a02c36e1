"""Claims of the papers: decided by paired seeds, with a truth table, and spread over seeds."""

from __future__ import annotations

import json
import math
import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from embgeo.core.quantities import QUANTITIES as ANALYZED
from embgeo.training.study.claims import CLAIMS, PERPLEXITY, TIME, Claim, PaperClaim
from embgeo.training.study.deciding import (
    MOST_P,
    adjust_claims,
    count_verdicts,
    decide_claims,
    judge_learning,
    quality_name,
)
from embgeo.training.study.numbers import (
    OF_CLASSIFICATION,
    OF_SIMILARITY,
    OF_TRANSLATION,
    QUANTITIES,
    prior,
    prior_distance,
)
from embgeo.training.study.record import ClaimOutcome, Run, TrainingCurve
from embgeo.training.study.spread import (
    compare_seeds,
    in_percent,
    percent_text,
    signed,
    spread,
    student,
)
from tests.support.documents import ROOT
from tests.support.sample_runs import run

OF_TASKS = (*OF_CLASSIFICATION, *OF_TRANSLATION, *OF_SIMILARITY)
LOWER = Claim("k", "t", "s", ("cosreg",), "cosine.mean", "lower")
HIGHER = Claim("k", "t", "s", ("cosreg",), "cosine.mean", "higher")
RATIO = Claim("k", "t", "s", ("cosreg",), TIME, "lower", factor=1.2)


def runs(before: list[float], after: list[float]) -> list[Run]:
    sides = (("mle", before), ("cosreg", after))
    return [
        replace(run(name, seed), numbers={"cosine.mean": value, TIME: value})
        for name, values in sides
        for seed, value in enumerate(values)
    ]


def difference_of(found: ClaimOutcome) -> float:
    assert found.contrast is not None
    return found.contrast.difference


def test_truth_table() -> None:
    for claim, before, after, verdict in (
        (LOWER, [0.50, 0.52, 0.54], [0.30, 0.32, 0.33], "reproduced"),
        (HIGHER, [0.50, 0.52, 0.54], [0.30, 0.32, 0.33], "not reproduced"),
        (HIGHER, [0.30, 0.32, 0.33], [0.50, 0.52, 0.54], "reproduced"),
        # Seeds differ among themselves by more than the methods do, yet always by the same.
        (LOWER, [0.50, 0.70, 0.90], [0.49, 0.69, 0.889], "reproduced"),
        (LOWER, [0.50, 0.52, 0.54], [0.52, 0.50, 0.53], "not decidable"),
        (LOWER, [0.50], [0.10], "not decidable"),
        (LOWER, [0.50, 0.51], [0.10], "not decidable"),
        (LOWER, [0.50, 0.51], [0.10, 0.11], "not decidable"),
        (LOWER, [], [0.10], "not decidable"),
        (RATIO, [1.00, 1.00, 1.00], [1.10, 1.11, 1.09], "reproduced"),
        (RATIO, [1.00, 1.00, 1.00], [1.30, 1.31, 1.29], "not reproduced"),
        (RATIO, [1.00, 1.00, 1.00], [1.19, 1.31, 1.12], "not decidable"),
        (RATIO, [0.00, 1.00], [1.00, 1.00], "not decidable"),
    ):
        (found,) = decide_claims(runs(before, after), (claim,))
        assert found.verdict == verdict
        assert found.reason


def test_a_claim_is_reproduced_only_after_holm_s_correction() -> None:
    """The limit of p is 0.05 with a margin of a third; a claim alone has its own p."""
    steps = np.array([0.9, 1.0, 1.1, 1.25])
    made = runs([5.0] * 4, list(5.0 - steps))
    (alone,) = decide_claims(made, (LOWER,))
    assert (alone.verdict, alone.alone) == ("reproduced", "reproduced")
    assert alone.p_value is not None
    fits = math.floor(MOST_P / alone.p_value)
    for count, verdict in ((fits, "reproduced"), (fits + 1, "nominal")):
        found = decide_claims(made, [replace(LOWER, key=f"{place}") for place in range(count)])
        assert {one.verdict for one in found} == {verdict}
        assert {one.alone for one in found} == {"reproduced"}
        assert {one.cause for one in found} == {None}
        # Fewer claims are decided again from what each says alone.
        assert adjust_claims(found[:1])[0] == replace(alone, key="0")
    against = [replace(HIGHER, key=f"{place}") for place in range(fits + 1)]
    assert {one.verdict for one in decide_claims(made, against)} == {"nominal"}
    assert {one.alone for one in decide_claims(made, against)} == {"not reproduced"}


def test_methods_with_factors_are_held_against_the_plain_model_and_against_the_factors() -> None:
    score = {"mle": 100.0, "factored": 110.0, "sc-exp": 104.0}
    made = [
        replace(run(name, seed, test__perplexity=value + 0.1 * seed), stopped_early=True)
        for name, value in score.items()
        for seed in range(3)
    ]
    found = {o.key: o for o in decide_claims(made)}
    plain, penalty = found["sc-perplexity"], found["sc-perplexity-penalty"]
    assert (plain.reference, plain.verdict) == ("mle", "not reproduced")
    assert (penalty.reference, penalty.verdict) == ("factored", "reproduced")
    assert plain.text.endswith("(against the plain model, as published)")
    assert penalty.text.endswith("(against its factors alone)")
    assert (bool(plain.published), bool(penalty.published)) == (True, False)


def test_a_score_of_any_task_is_not_decided_while_a_run_learns() -> None:
    """Of losses the exponential counts, as a perplexity: 0.01 nats are 1%."""
    for number in ("test.bleu", "test.accuracy", "valid.ws353"):
        claim = replace(HIGHER, number=number)
        for fall, verdict in ((0.009, "reproduced"), (0.011, "not decidable")):
            curve = TrainingCurve((50.0, 100.0), (2.0, 2.0 - fall))
            made = [
                replace(
                    run(name, seed, **{number.replace(".", "__"): value}),
                    steps=100,
                    curves={"valid.loss": curve},
                )
                for name, value in (("mle", 0.5), ("cosreg", 0.6))
                for seed in range(3)
            ]
            assert decide_claims(made, (claim,))[0].verdict == verdict
            geometry = replace(LOWER, number="cosine.mean")
            made = [replace(one, numbers={"cosine.mean": one.numbers[number]}) for one in made]
            assert decide_claims(made, (geometry,))[0].verdict == "not reproduced"


def test_p_values_are_those_of_the_paired_t_test_and_holm_s() -> None:
    from scipy.stats import ttest_rel

    before = [0.50, 0.52, 0.54, 0.49]
    after = [0.44, 0.50, 0.51, 0.48]
    other = Claim("other", "t", "s", ("frage",), "cosine.mean", "lower")
    made = runs(before, after)
    made += [run("frage", seed, cosine__mean=v) for seed, v in enumerate([0.30, 0.33, 0.35, 0.29])]
    first, second = decide_claims(made, (LOWER, other))
    assert first.p_value == pytest.approx(ttest_rel(after, before).pvalue)
    assert first.p_adjusted == first.p_value
    assert second.p_adjusted == pytest.approx(2 * second.p_value)
    assert first.contrast is not None
    assert first.contrast.standard_error is not None
    reach = 3.182446305284263 + 0.978472312363405  # quantiles of t with 3 degrees of freedom
    assert first.contrast.detectable == pytest.approx(reach * first.contrast.standard_error)
    (single,) = decide_claims(runs([0.5], [0.4]), (LOWER,))
    assert (single.p_value, single.p_adjusted) == (None, None)
    assert single.contrast is not None
    assert single.contrast.detectable is None


def test_the_p_value_of_a_factor_is_about_that_factor() -> None:
    (found,) = decide_claims(runs([1.0, 1.0, 1.0], [1.19, 1.31, 1.12]), (RATIO,))
    steps = np.log([1.19, 1.31, 1.12]) - np.log(1.2)
    t = steps.mean() / (steps.std(ddof=1) / np.sqrt(3))
    assert found.p_value == pytest.approx(1.0 - abs(t) / np.sqrt(2.0 + t**2))  # two degrees


def test_the_interval_is_student_s() -> None:
    steps = np.array([0.2, 0.25, 0.21, 0.3])
    before = {seed: 0.5 + 0.1 * seed for seed in range(4)}
    after = {seed: value + steps[seed] for seed, value in before.items()}
    found = compare_seeds(before, after)
    assert found is not None
    assert found.interval is not None
    assert found.difference == pytest.approx(steps.mean())
    error = steps.std(ddof=1) / 2.0
    assert found.standard_error == pytest.approx(error)
    assert found.interval[1] - found.difference == pytest.approx(3.182446 * error, rel=1e-6)
    assert student(1) == pytest.approx(12.7062, rel=1e-5)


def test_only_seeds_that_both_have_are_held_against_each_other() -> None:
    found = compare_seeds({0: 1.0, 1: 2.0, 7: 50.0}, {0: 2.0, 1: 3.5, 3: 99.0})
    assert found is not None
    assert (found.seeds, found.before, found.after, found.difference) == (2, 1.5, 2.75, 1.25)


def test_relative_differences_are_those_of_logarithms() -> None:
    found = compare_seeds({0: 100.0, 1: 200.0}, {0: 90.0, 1: 180.0}, relative=True)
    assert found is not None
    assert in_percent(found.difference) == pytest.approx(-10.0)
    assert found.standard_error == pytest.approx(0.0, abs=1e-15)


def test_the_test_split_decides_where_every_run_has_one() -> None:
    both = run("mle", 0, valid__perplexity=5.0, test__perplexity=4.0)
    one = run("mle", 1, valid__perplexity=5.0)
    assert quality_name([both]) == "test.perplexity"
    assert quality_name([both, one]) == "valid.perplexity"


def test_a_claim_whose_reference_was_not_trained_is_not_decidable_and_says_so() -> None:
    trained = [run("al", seed, test__perplexity=90.0 + seed) for seed in range(3)]
    trained += [run("mle", seed, test__perplexity=100.0 + seed) for seed in range(3)]
    found = {o.key: o for o in decide_claims(trained)}
    assert found["al-perplexity"].verdict == "not decidable"
    assert found["al-perplexity"].cause == "no_reference"
    assert "untied, which was not trained" in found["al-perplexity"].reason
    assert not [key for key in found if key.startswith(("cosreg", "spectral"))]


def test_claims_are_listed_once_and_name_known_methods_and_numbers() -> None:
    methods = pytest.importorskip("embgeo.training.methods").METHODS
    known = {
        *ANALYZED,
        *(q.name for q in (*QUANTITIES, *OF_TASKS)),
        PERPLEXITY,
    }
    assert len({claim.key for claim in CLAIMS}) == len(CLAIMS)
    for claim in CLAIMS:
        assert {*claim.methods, claim.against} <= set(methods)
        assert claim.number in known
        assert claim.factor == 1.0 or claim.relative
        for published in claim.published:
            moved = math.log(published.after / published.before) - math.log(claim.factor)
            assert (moved < 0) == (claim.change == "lower"), claim.key


def test_a_claim_reads_the_matrix_that_its_method_acts_on() -> None:
    """Of untied models; a tied one has the same matrix in both roles."""
    made = [
        replace(
            run(name, seed, cosine__mean=0.13),
            others={"output": {"cosine.mean": output + 0.001 * seed}},
        )
        for name, output in (("mle", 0.13), ("cosreg", 0.03))
        for seed in range(3)
    ]
    of_input, of_output = (
        decide_claims(made, (replace(LOWER, role=role),))[0] for role in ("input", "output")
    )
    assert difference_of(of_input) == 0.0
    assert (of_output.verdict, of_output.role) == ("reproduced", "output")
    assert difference_of(of_output) == pytest.approx(-0.1)


def test_the_role_of_a_claim_is_that_of_its_methods() -> None:
    methods = pytest.importorskip("embgeo.training.methods").METHODS
    for claim in CLAIMS:
        if claim.role is not None:
            assert {methods[name].role for name in claim.methods} == {claim.role}, claim.key


def test_published_numbers_are_those_of_the_tables() -> None:
    """As transcribed from the papers: each number stands in a table of that name."""
    path = ROOT.parent / "shared" / "reference" / "paper_tables.json"
    if not path.is_file():
        pytest.skip("paper_tables.json is not next to this checkout, in shared/reference")
    rows = json.loads(path.read_text("utf-8"))["rows"]
    papers = {"Gao": "gao2019", "Wang et": "wang2020", "Gong": "gong2018", "Inan": "inan2017"}
    for claim in CLAIMS:
        key = next((name for start, name in papers.items() if claim.source.startswith(start)), None)
        for reported in claim.published if key else ():
            tables = {
                *re.findall(r"Tables? (\d)", reported.table),
                *re.findall(r"and (\d)", reported.table),
            }
            held = {
                row["value"]
                for row in rows
                if row["paper"].startswith(str(key))
                and (row["table"] in tables or (not tables and row["table"].startswith("fig")))
            }
            # Accuracies are printed in percent.
            held |= {round(value / 100.0, 4) for value in held if value is not None}
            assert {reported.before, reported.after} <= held, claim.key


def test_numbers_of_the_same_model_and_corpus_come_first() -> None:
    for key, trained, first in (
        ("sc-perplexity-polynomial", ("transformer-xl", "wikitext-103"), 30.4),
        ("sc-perplexity-polynomial", ("awd-lstm", "wikitext-2"), 66.0),
        ("sc-time", ("transformer-xl", "wikitext-2"), 2681.0),
        ("frage-perplexity", ("awd-lstm-mos", "ptb"), 55.97),
        ("frage-perplexity", ("awd-lstm-mos", "wikitext-2"), 63.33),
        ("re-perplexity", ("vd-rhn", "ptb"), 68.5),
        ("frage-perplexity", ("vd-lstm", "drawn"), 67.1),
    ):
        (claim,) = (one for one in CLAIMS if one.key == key)
        made = [run(claim.methods[0], 0)]
        (found,) = decide_claims(
            made, (replace(claim, methods=claim.methods[:1]),), trained=trained
        )
        assert found.published.startswith(f"{first:g} → ")


def test_fewer_than_three_seeds_have_neither_interval_nor_p_value() -> None:
    (found,) = decide_claims(runs([0.5, 0.6], [0.1, 0.2]), (LOWER,))
    assert (found.cause, found.p_value) == ("few_seeds", None)
    assert found.contrast is not None
    assert (found.contrast.seeds, found.contrast.difference) == (2, pytest.approx(-0.4))
    assert (found.contrast.interval, found.contrast.detectable) == (None, None)


def test_the_share_is_of_the_first_published_difference() -> None:
    reported = PaperClaim(0.24, 0.63, "I1", "model", "text", "Table 3")
    claim = replace(HIGHER, published=(reported,))
    (found,) = decide_claims(runs([0.2, 0.2, 0.2], [0.3, 0.31, 0.29]), (claim,))
    assert found.share == pytest.approx(0.1 / 0.39)
    ratio = replace(RATIO, factor=1.0, published=(PaperClaim(66.0, 65.2, "p", "m", "t", "1"),))
    (found,) = decide_claims(runs([100.0] * 3, [99.0, 99.0, 99.0]), (ratio,))
    assert found.share == pytest.approx(math.log(0.99) / math.log(65.2 / 66.0))
    (bound,) = decide_claims(runs([1.0] * 3, [1.1] * 3), (replace(ratio, factor=1.2),))
    assert bound.share is None


def test_the_share_of_published_bleu_is_one_of_tokenized_bleu() -> None:
    made = [
        run(name, seed, test__bleu=bleu, test__tokenized_bleu=tokenized)
        for name, bleu, tokenized in (("mle", 30.0, 28.0), ("frage", 30.2, 28.5))
        for seed in range(3)
    ]
    (claim,) = (one for one in CLAIMS if one.key == "frage-bleu")
    (found,) = decide_claims(made, (replace(claim, tasks=("lm",)),))
    assert (found.number, difference_of(found)) == ("test.bleu", pytest.approx(0.2))
    assert found.share == pytest.approx(0.5 / 0.85)
    assert "tokenized BLEU" in found.published
    untokenized = [replace(one, numbers={"test.bleu": one.numbers["test.bleu"]}) for one in made]
    (found,) = decide_claims(untokenized, (replace(claim, tasks=("lm",)),))
    assert (difference_of(found), found.share) == (pytest.approx(0.2), None)


def test_of_an_auc_the_half_counts_and_nothing_is_taken_from_chance() -> None:
    for before, after, verdict, cause in (
        ([0.80, 0.82, 0.84], [0.62, 0.61, 0.62], "reproduced", None),
        ([0.80, 0.82, 0.84], [0.90, 0.93, 0.95], "not reproduced", None),
        # Below one half is chance: it neither adds to a success nor is one.
        ([0.60, 0.55, 0.58], [0.58, 0.10, 0.59], "not decidable", "interval"),
        ([0.52, 0.51, 0.50], [0.48, 0.49, 0.47], "not decidable", "at_chance"),
        ([0.38, 0.40, 0.39], [0.48, 0.49, 0.47], "not decidable", "at_chance"),
    ):
        (found,) = decide_claims(runs(before, after), (replace(LOWER, folded=True),))
        assert (found.verdict, found.cause) == (verdict, cause)
    (found,) = decide_claims(
        runs([0.80, 0.82, 0.84], [0.3, 0.1, 0.2]), (replace(LOWER, folded=True),)
    )
    assert difference_of(found) == pytest.approx(0.5 - 0.82)


def test_a_method_whose_runs_are_those_of_another_is_not_decided() -> None:
    """RE of a model without an output bias is the tied model itself."""
    score = {"untied": 90.0, "mle": 100.0, "re": 100.0, "real": 95.0}
    made = [
        replace(run(name, seed, test__perplexity=value + 0.1 * seed), stopped_early=True)
        for name, value in score.items()
        for seed in range(3)
    ]
    found = {one.key: one for one in decide_claims(made)}
    assert found["re-perplexity"].cause == "same_runs"
    assert "those of mle" in found["re-perplexity"].reason
    assert (found["re-perplexity"].p_value, found["re-perplexity"].p_adjusted) == (None, None)
    assert found["real-over-re"].verdict == "reproduced"


def test_a_claim_says_how_many_settings_both_sides_tried() -> None:
    (found,) = decide_claims(runs([0.5], [0.4]), (LOWER,), trials={"cosreg": 9})
    assert (found.trials, found.reference_trials) == (9, 0)


def test_checks_are_not_counted_and_not_corrected_for() -> None:
    check = replace(LOWER, key="check", sanity=True)
    claim, checked = decide_claims(runs([0.50, 0.52, 0.54], [0.30, 0.32, 0.33]), (LOWER, check))
    assert claim.p_adjusted == claim.p_value
    assert (checked.p_value, checked.p_adjusted) == (claim.p_value, None)
    assert count_verdicts((claim, checked)) == {
        "reproduced": 1, "nominal": 0, "not reproduced": 0, "not decidable": 0,
    }  # fmt: skip


# --- Convergence ------------------------------------------------------------------------------


def test_a_run_that_learns_in_its_last_quarter_is_still_learning() -> None:
    for values, learning in (
        ([200.0, 120.0, 100.0, 99.5, 99.2], "converged"),
        ([200.0, 120.0, 100.0, 99.5, 98.9], "learning"),
        ([200.0, 100.0, 120.0, 140.0, 150.0], "converged"),  # overfits
        ([200.0, 100.0, 120.0, 110.0, 98.0], "learning"),
    ):
        steps = (0.0, 40.0, 75.0, 90.0, 100.0)
        made = replace(
            run("mle", 0),
            steps=100,
            curves={"valid.perplexity": TrainingCurve(steps, tuple(values))},
        )
        assert judge_learning(made) == learning
        assert judge_learning(replace(made, stopped_early=True)) == "converged"


def test_without_a_check_in_either_part_nothing_is_known() -> None:
    only_end = {"valid.perplexity": TrainingCurve((0.0, 100.0), (200.0, 90.0))}
    assert judge_learning(replace(run("mle", 0), steps=100, curves=only_end)) == "unknown"
    assert judge_learning(run("mle", 0)) == "unknown"


def test_a_perplexity_is_not_decided_while_a_run_learns() -> None:
    claim = replace(RATIO, number=PERPLEXITY, factor=1.0)

    def decided(last: float | None) -> ClaimOutcome:
        made = []
        for name, value in (("mle", 100.0), ("cosreg", 90.0)):
            for seed in range(3):
                one = run(name, seed, valid__perplexity=value + 0.1 * seed)
                end = 100.0 if last is None or seed else last
                curve = TrainingCurve((50.0, 100.0), (100.0, end))
                curves = {} if last is None else {"valid.perplexity": curve}
                made.append(replace(one, steps=100, curves=curves))
        (found,) = decide_claims(made, (claim,))
        return found

    assert decided(99.5).verdict == "reproduced"
    learning, unknown = decided(90.0), decided(None)
    assert (learning.verdict, learning.cause) == ("not decidable", "still_learning")
    assert (unknown.verdict, unknown.cause) == ("not decidable", "unknown_learning")
    assert learning.contrast is not None
    assert learning.contrast.interval is not None


# --- Spread over seeds ------------------------------------------------------------------------


def test_as_many_digits_as_seeds_vouch_for() -> None:
    for values, text in (
        ([312.43], "312.4"),
        ([312.0, 314.0], "313.0 ± 1.4"),
        ([0.24551, 0.24889], "0.2472 ± 0.0024"),
        ([0.5, 0.5], "0.5 ± 0"),
        ([45158.6, 45810.7], "45,480 ± 460"),
        ([0.9999991, 0.9999993], "1 − 8e-07 ± 1e-07"),
        ([-0.0123, -0.0127], "−0.01250 ± 0.00028"),
    ):
        found = spread(values)
        assert found is not None
        assert found.text == text


def test_percents_are_zero_only_if_exact() -> None:
    logs = [0.0, math.log(0.986), math.log(1.0004), math.log(2.5), math.log(1.000002)]
    assert [percent_text(x) for x in logs] == ["0%", "−1.4%", "+0.04%", "+150.0%", "+0.0002%"]


def test_groups_without_common_seeds_are_compared_by_welch_s_t() -> None:
    from scipy.stats import ttest_ind

    a, b = [0.5, 0.52, 0.55, 0.49], [0.4, 0.31, 0.44]
    found = compare_seeds(dict(enumerate(a)), dict(enumerate(b, 50)), paired=False)
    expected = ttest_ind(b, a, equal_var=False)
    assert found is not None
    assert found.seeds == 3
    assert found.difference == pytest.approx(np.mean(b) - np.mean(a))
    assert found.freedom == pytest.approx(expected.df)
    assert found.p_value() == pytest.approx(expected.pvalue)
    assert found.interval == pytest.approx(tuple(expected.confidence_interval()))
    same = compare_seeds({0: 1.0, 1: 1.0, 2: 1.0}, {5: 2.0, 6: 2.0, 7: 2.0}, paired=False)
    assert same is not None
    assert (same.side(), same.p_value()) == ("higher", sys.float_info.min)


def test_nothing_has_no_spread() -> None:
    assert spread([]) is None
    assert compare_seeds({0: 1.0}, {1: 1.0}) is None


# --- Priors of spectrum control -----------------------------------------------------------------


def test_priors_have_the_published_form() -> None:
    for kind, gamma, ratio in (
        ("exponential", 1.0, 0.1),
        ("exponential", 0.5, 0.02),
        ("polynomial", 0.6, None),
        ("polynomial", 0.8, None),
    ):
        k = range(1, 41)
        if ratio is None:
            slow = [n**-gamma for n in k]
        else:
            c2 = -math.log(ratio) / (40**gamma - 1)
            slow = [math.exp(-c2 * n**gamma) / math.exp(-c2) for n in k]
        settings = {"gamma": gamma} if ratio is None else {"gamma": gamma, "tail_ratio": ratio}
        np.testing.assert_allclose(prior(kind, 40, settings), slow, rtol=1e-12)
    np.testing.assert_array_equal(
        prior("exponential", 9, {}), prior("exponential", 9, {"gamma": 1.0, "tail_ratio": 0.1})
    )


def test_distance_from_a_prior() -> None:
    target = prior("exponential", 10, {})
    assert prior_distance(3.0 * target[::-1], target) == pytest.approx(0.0, abs=1e-12)
    flat = np.ones(10)
    assert prior_distance(flat, target) > 0.1
    assert math.isnan(prior_distance(np.zeros(10), target))
    assert math.isnan(prior_distance(np.ones(9), target))


def test_a_difference_near_1_is_a_number_as_any_other() -> None:
    assert [signed(value) for value in (1.0015, -0.998, 1.0, 0.0, -0.0229)] == [
        "+1.00",
        "−1.00",
        "+1",
        "0",
        "−0.0229",
    ]
