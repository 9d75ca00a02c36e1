"""Relative rules against a baseline of another kind: undefined or noted, never passed silently."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.core.values import format_number
from embgeo.rules import baseline_file
from embgeo.rules.check import Check, Measured, check_rules, list_unlike
from embgeo.rules.outputs import as_json, github_annotations, github_summary, junit, sarif, table
from embgeo.rules.rule import Rule
from embgeo.rules.rule_value import RuleValue
from tests.support.refusals import refusal
from tests.support.sample_comparison import sample_comparison

FACTS: dict[str, Any] = {
    "file": "model.pt",
    "tensor": "encoder.weight",
    "sha256": "0" * 64,
    "dtype": "float32",
    "n": 5000,
    "d": 64,
    "kept": 5000,
    "sections": ["cosine", "spectrum", "tokens"],
    "options": {"min_norm": None, "popular_share": 0.2, "pairs": 1000},
    "frequency": {"kind": "counts", "source": "counts file a", "sha256": "a", "n_popular": 1000},
    "versions": {},
}
VALUES = {
    "cosine.mean": RuleValue(0.2),
    "spectrum.effective_rank": RuleValue(40.0),
    "tokens.hubness": RuleValue(1.5, size=5000),
    "frequency.norm_ratio": RuleValue(1.25),
}


def check(rule: str, size: int | None = 5000, **changed: Any) -> Check:
    """The check of a matrix that differs from its baseline in these facts only."""
    before = Measured(FACTS, VALUES)
    values = VALUES | {"tokens.hubness": RuleValue(1.5, size=size)}
    now = Measured(FACTS | changed, values)
    return check_rules([Rule.parse(rule)], [now], baseline=[before]).checks[0]


def test_the_same_kind_of_matrix_passes_without_a_note() -> None:
    for name in VALUES:
        done = check(f"{name} change <= 0")
        assert (done.state, done.decision.reason.count(";")) == ("passed", 0)


def test_another_quantity_cannot_be_checked() -> None:
    for rule, changed, says in (
        (
            "cosine.mean drop <= 0",
            {"options": {"min_norm": 0.5}},
            "the baseline was measured with min_norm = None, not 0.5",
        ),
        ("spectrum.effective_rank drop <= 1", {"d": 32}, "number of columns, 64 and 32"),
        ("tokens.hubness rise <= 1", {"size": 4999}, "number of rows, 5,000 and 4,999"),
        ("tokens.hubness rise <= 1", {"size": None}, "5,000 and an unknown number"),
        (
            "frequency.norm_ratio rise <= 1",
            {"options": {"popular_share": 0.5}},
            "measured with popular_share = 0.2, not 0.5",
        ),
        (
            "frequency.norm_ratio rise <= 1",
            {"frequency": FACTS["frequency"] | {"sha256": "b"}},
            "measured with other counts, not counts file a",
        ),
        (
            "frequency.norm_ratio rise <= 1",
            {"n": 4000, "frequency": FACTS["frequency"] | {"source": "counts file b"}},
            "measured with counts file a, not counts file b",
        ),
    ):
        done = check(rule, **changed)
        assert done.state == "unchecked"
        assert says in done.decision.reason
        assert check(f"{rule}, allow undefined", **changed).state == "skipped"


def test_what_a_number_does_not_depend_on_may_differ() -> None:
    for rule, changed in (
        ("cosine.mean drop <= 0", {"options": {"popular_share": 0.5}}),
        ("cosine.mean drop <= 0", {"frequency": None}),
        ("frequency.norm_ratio drop <= 0", {"options": {"isotropy_rows": 100}}),
        # A file by another name holds the same counts; those of other tokens are others anyway.
        ("frequency.norm_ratio drop <= 0", {"frequency": FACTS["frequency"] | {"source": "b"}}),
        (
            "frequency.norm_ratio drop <= 0",
            {"n": 4000, "frequency": FACTS["frequency"] | {"sha256": "b"}},
        ),
    ):
        assert check(rule, **changed).state == "passed"


def test_other_facts_are_noted() -> None:
    done = check("cosine.mean drop <= 0", d=32, n=4000)
    assert done.state == "passed"
    assert done.decision.reason.endswith("the baseline has 5,000 × 64 entries")
    rule, same = Rule.parse("cosine.mean drop <= 0"), Measured(FACTS, VALUES)
    for unknown in ({}, {"n": None}, {"d": None}):
        assert list_unlike(rule, Measured(FACTS | unknown, VALUES), same) == []
    sides = [Measured(FACTS | {"row_range": rows}, VALUES) for rows in ([0, 5000], None)]
    assert list_unlike(rule, sides[1], sides[0]) == ["the baseline is of rows 0 to 4,999"]
    assert list_unlike(rule, sides[0], sides[1]) == ["the baseline is of all rows"]
    assert list_unlike(rule, sides[0], same) == []  # of a baseline file, which keeps no range
    done = check("cosine.mean drop <= 0", tensor="decoder.weight")
    assert done.decision.reason.endswith("the baseline is of encoder.weight")
    done = check("cosine.mean drop <= 0", tensor="model.encoder.weight")
    assert ";" not in done.decision.reason  # the same tensor, wrapped


def test_other_pairs_are_told_apart() -> None:
    """An exact value has no pairs, a sampled one is known less well, a bound is another one."""
    for known, state, notes in (
        ("exact", "passed", 0),
        ("sampled", "passed", 1),
        ("least", "unchecked", 1),
    ):
        rule = Rule.parse("cosine.cone_aperture change <= 0")
        value = RuleValue(90.0, 1.0 if known == "sampled" else None, known)
        sides = [
            Measured(FACTS | {"options": {"pairs": pairs}}, {rule.name: value})
            for pairs in (1000, 9)
        ]
        (done,) = check_rules([rule], sides[1:], baseline=sides[:1]).checks
        assert done.state == state
        assert done.decision.reason.count("with pairs = 1000, not 9") == notes
        (done,) = check_rules([rule], sides[:1], baseline=sides[:1]).checks
        assert (done.state, "pairs" in done.decision.reason) == ("passed", False)


def paired(limit: str, change: float, baseline: bool = False) -> Check:
    """A rule about the intrinsic dimension, of which 600 of 1,500 rows are asked."""
    rng = np.random.default_rng(5)
    scale = np.arange(1.0, 65.0) ** -0.7
    X, noise = (rng.standard_normal((1500, 64)) * scale for _ in range(2))
    Y = X + change * noise
    before = embgeo.analyze(X, sections=["tokens"], reference=False)
    assert before["tokens.intrinsic_dimension"].known == "sampled"
    rule = f"tokens.intrinsic_dimension {limit}"
    if not baseline:
        return embgeo.gate(Y, rules=rule, baseline=before).checks[0]
    sides = [replace(Measured.of(before), analysis=None)]
    now = Measured.of(embgeo.analyze(Y, sections=["tokens"], reference=False))
    return check_rules([Rule.parse(rule)], [now], baseline=sides).checks[0]


@pytest.mark.slow
def test_a_matrix_passes_against_itself() -> None:
    for limit in ("change <= 3%", "change <= 0", "drop <= 1e-9%"):
        assert paired(limit, 0.0).state == "passed"
        assert paired(limit, 0.0, baseline=True).state == "passed"
    assert paired("rise >= 1%", 0.0).state == "failed"


@pytest.mark.slow
def test_the_paired_error_decides_where_both_analyses_are_known() -> None:
    """A hundredth of noise moves the dimension by little, and both sides in the same way."""
    assert paired("change <= 5%", 0.01).state == "passed"
    alone = paired("change <= 5%", 0.01, baseline=True)
    assert alone.state == "failed"
    assert "too large to tell" in alone.decision.reason
    assert paired("change <= 5%", 1.0).state == "failed"


@pytest.mark.slow
def test_not_worse_than_the_baseline_by_more_than_the_error(tmp_path: Path) -> None:
    """Noise passes, a cone fails; errors of a baseline file are known, and not paired."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((2000, 32))
    before = embgeo.analyze(X, sections=["cosine"], reference=False)
    file = tmp_path / "baseline.json"
    file.write_text(baseline_file.render([Measured.of(before, with_verdict=False)], ""))
    rules = ["cosine.mean rise <= 2 se", "cosine.mean rise is not significant"]
    for shift, state in ((0.0, "passed"), (0.3, "failed")):
        Y = X + 0.02 * rng.standard_normal(X.shape) + shift * np.eye(32)[0]
        for baseline in (before, file):
            checks = embgeo.gate(Y, rules=rules, baseline=baseline).checks
            assert [check.state for check in checks] == [state] * 2
    reach = 2 * embgeo.diff(X, Y)["cosine.mean"].standard_error
    sides = [embgeo.analyze(one, sections=["cosine"], reference=False) for one in (X, Y)]
    alone = 2 * math.hypot(*(side.scalar("cosine.mean").population_error for side in sides))
    for baseline, limit in ((before, reach), (file, alone)):
        (check,) = embgeo.gate(Y, rules=rules[0], baseline=baseline).checks
        assert check.decision.reason.endswith(f"is allowed, here {format_number(limit, 2)}")


def test_of_several_baselines_the_one_of_the_same_tensor_is_meant() -> None:
    decoder = Measured(FACTS | {"tensor": "decoder.weight"}, {"cosine.mean": RuleValue(0.4)})
    moved = Measured(FACTS | {"file": "elsewhere.pt"}, {"cosine.mean": RuleValue(0.3)})
    rules = [Rule.parse("cosine.mean drop <= 0")]
    now = [Measured(FACTS, VALUES)]
    (done,) = check_rules(rules, now, baseline=[decoder, moved]).checks
    assert done.baseline == RuleValue(0.3)
    (done,) = check_rules(rules, now, baseline=[decoder, moved, Measured(FACTS, VALUES)]).checks
    assert done.baseline == RuleValue(0.2)
    with refusal():
        check_rules(rules, now, baseline=[*now, *now])


def test_a_baseline_file_keeps_sizes(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    sampled = RuleValue(0.5, 0.01, "sampled", freedom=1, size=1)
    values = VALUES | {
        "tokens.sampled": sampled,
        "tokens.least": RuleValue(2.0, None, "least", size=7),
    }
    path.write_text(baseline_file.render([Measured(FACTS | {"absent": {}}, values)], "command"))
    (read,) = baseline_file.read(path)
    assert dict(read.readings) == values
    assert read.provenance["frequency"] == FACTS["frequency"]
    path.write_text(path.read_text().replace('"size": 7', '"size": 0'))
    with pytest.raises(Exception, match="size is 0"):
        baseline_file.read(path)


# --- Rules about a saved track: about the run as a whole, and about each of its checkpoints -------


RULES = ("track.duplicates == 0", "track.outliers == 0, warn", "cosine.mean <= 0.1")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    comparison = sample_comparison(track=True, members=4)
    assert comparison.track is not None
    track = replace(comparison.track, same_as=(None, 0, None, 0), outliers=(2,))
    replace(comparison, track=track).save(tmp_path / "run.embgeo")
    return tmp_path / "run.embgeo"


def test_a_track_is_checked_as_a_whole_and_step_by_step(run: Path) -> None:
    outcome = embgeo.gate(run, rules=RULES)
    by_rule = {rule: [c for c in outcome.checks if c.rule.text in rule] for rule in RULES}
    (duplicates,), (outliers,) = by_rule[RULES[0]], by_rule[RULES[1]]
    assert duplicates.state == "failed"
    assert duplicates.decision.reason == "is 2, has to be exactly 0: steps 1,000 and 2,000"
    assert outliers.state == "warned"
    assert outliers.decision.reason == "is 1, has to be exactly 0: step 1,500"
    assert [c.state for c in by_rule[RULES[2]]] == ["failed", "passed", "passed", "passed"]
    for output in (table, as_json, junit, sarif, github_annotations, github_summary):
        assert output.render(outcome)


def test_a_rule_about_a_run_takes_a_track(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", np.eye(6))
    outcome = embgeo.gate(tmp_path / "one.npy", rules=RULES[0])
    (check,) = outcome.checks
    assert check.state == "unchecked"
    assert "name the folder of embgeo diff --track" in check.decision.reason


def test_a_comparison_that_is_not_a_track_is_refused(tmp_path: Path) -> None:
    sample_comparison().save(tmp_path / "two")
    with refusal():
        embgeo.gate(tmp_path / "two", rules=RULES[2])
