"""Rules: how they are read, and when they hold."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import embgeo
from embgeo.core.errors import BadOption
from embgeo.core.matrix import Matrix
from embgeo.core.values import Quantity, Scalar
from embgeo.diagnosis.finding import State
from embgeo.diagnosis.verdict import Verdict
from embgeo.rules.decide import Decision, decide, format_apart
from embgeo.rules.rule import Place, Rule
from embgeo.rules.rule_value import RuleValue, deviations, find_doubt, round_digits
from tests.support.refusals import check_message, refusal
from tests.support.sample_analysis import CHARACTERS

Z = deviations(0.95)


def exact(value: float) -> RuleValue:
    return RuleValue(value)


def sampled(value: float, error: float) -> RuleValue:
    return RuleValue(value, error, "sampled")


def few(value: float, error: float) -> RuleValue:
    return RuleValue(value, error, "sampled", freedom=3)


def least(value: float) -> RuleValue:
    return RuleValue(value, None, "least")


def most(value: float) -> RuleValue:
    return RuleValue(value, None, "most")


def unsure(value: float) -> RuleValue:
    return RuleValue(value, None, "unsure")


NONE = RuleValue.missing("one row has no pairs")


# --- RuleValue a rule ---------------------------------------------------------------------------


def test_rules_that_are_read() -> None:
    for text, fields in (
        ("cosine.mean <= 0.1", ("cosine.mean", "value", "<=", 0.1, "")),
        ("  cosine.mean<=0.1 ", ("cosine.mean", "value", "<=", 0.1, "")),
        ("cosine.mean ≤ .1", ("cosine.mean", "value", "<=", 0.1, "")),
        ("isotropy.i1 ≥ 5.", ("isotropy.i1", "value", ">=", 5.0, "")),
        ("isotropy.isoscore > -2.5", ("isotropy.isoscore", "value", ">", -2.5, "")),
        ("isotropy.isoscore > −2.5e-1", ("isotropy.isoscore", "value", ">", -0.25, "")),
        ("suspects.zero == 0", ("suspects.zero", "value", "==", 0.0, "")),
        ("isotropy.i1 drop <= 5%", ("isotropy.i1", "drop", "<=", 5.0, "%")),
        ("isotropy.i1 drop<5 %", ("isotropy.i1", "drop", "<", 5.0, "%")),
        (
            "spectrum.effective_rank rise >= 10",
            ("spectrum.effective_rank", "rise", ">=", 10, ""),
        ),
        ("cosine.mean rise <= 2 se", ("cosine.mean", "rise", "<=", 2.0, "se")),
        ("cosine.mean drop>.5se", ("cosine.mean", "drop", ">", 0.5, "se")),
        ("cosine.mean rise is not significant", ("cosine.mean", "rise", "<=", 0.0, "level")),
        ("cosine.mean change <= 1e-3", ("cosine.mean", "change", "<=", 1e-3, "")),
    ):
        rule = Rule.parse(text)
        assert (rule.name, rule.sense, rule.op, rule.amount, rule.unit) == fields
        assert rule.text == text.strip()
        assert (rule.tensor, rule.warn, rule.allow_undefined) == ("", False, False)


def test_what_may_stand_around_a_rule() -> None:
    for text, tensor, warn, allow in (
        ("cosine.mean <= 0.1, warn", "", True, False),
        ("cosine.mean <= 0.1 ,allow  undefined", "", False, True),
        ("cosine.mean <= 0.1, warn, allow undefined", "", True, True),
        ("model.encoder.weight: cosine.mean <= 0.1", "model.encoder.weight", False, False),
        ("embeddings:0 : cosine.mean <= 0.1,warn", "embeddings:0", True, False),
        ("a b, c: cosine.mean <= 0.1", "a b, c", False, False),
    ):
        rule = Rule.parse(text)
        assert (rule.tensor, rule.warn, rule.allow_undefined) == (tensor, warn, allow)
        assert rule.text == "cosine.mean <= 0.1"


def test_rules_that_are_none() -> None:
    for text in (
        "",
        "cosine.mean",
        "cosine.mean > = 0.1",
        "cosine.mean 0.1",
        "cosine.mean <= 0.1 maybe",
        "cosine.mean <= 0.1\ncosine.mean <= 1",
        "cosine.mean = 0.1",
        "cosine.mean != 0.1",
        "cosine.mean <= few",
        "verdikt <= mild",
        "cosine.mean <= nan",
        "cosine.mean <= 1e999",
        "cosine.mean <= 5%",
        "cosine.mean <= 2 se",
        "cosine.mean is not significant",
        "cosine.mean rise is significant",
        "cosine.mean rise <= 2 sec",
        "verdict rise is not significant",
        "verdict rise <= 1 se",
        "cosine.mean fall <= 5%",
        "cosine.mean drop <= -5%",
        "cosine.mean drop == 0",
        "cosine.mean change >= 5%",
        "cosine.mean <= 0.1, wran",
        "cosine.mean <= 0.1,",
        "cosine.mean <= 0,1",
    ):
        with refusal(BadOption):
            Rule.parse(text, Place("embgeo.toml", 7))


@given(st.text(CHARACTERS) | st.text("a.b <=>≥0.1e5%-drop,warn"))
def test_any_text_is_a_rule_or_refused(text: str) -> None:
    try:
        rule = Rule.parse(text)
    except BadOption:
        return
    assert math.isfinite(rule.amount)
    assert rule.text in text


# --- The truth table --------------------------------------------------------------------------

TRUTH = [
    # Exact values.
    ("a.b >= 0.5", exact(0.5), None, "passed"),
    ("a.b >= 0.5", exact(0.4999999), None, "failed"),
    ("a.b > 0.5", exact(0.5), None, "failed"),
    ("a.b > 0.5", exact(0.5000001), None, "passed"),
    ("a.b <= 0.5", exact(0.5), None, "passed"),
    ("a.b <= 0.5", exact(0.6), None, "failed"),
    ("a.b < 0.5", exact(0.5), None, "failed"),
    ("a.b < 0.5", exact(0.4), None, "passed"),
    ("a.b == 0", exact(0.0), None, "passed"),
    ("a.b == 0", exact(1e-12), None, "failed"),
    # Sampled values: 1.96 standard errors either side have to be on the right side.
    ("a.b <= 0.7", sampled(0.696, 0.002), None, "passed"),
    ("a.b <= 0.7", sampled(0.6962, 0.002), None, "failed"),
    ("a.b >= 0.7", sampled(0.704, 0.002), None, "passed"),
    ("a.b >= 0.7", sampled(0.7038, 0.002), None, "failed"),
    ("a.b == 0.7", sampled(0.7, 0.002), None, "failed"),
    ("a.b == 0.7", sampled(0.7, 0.0), None, "passed"),
    # Bounds prove one side only; without any error nothing is proved.
    ("a.b >= 120", least(130), None, "passed"),
    ("a.b >= 120", least(110), None, "failed"),
    ("a.b <= 150", least(130), None, "failed"),
    ("a.b <= 150", most(130), None, "passed"),
    ("a.b >= 120", most(130), None, "failed"),
    ("a.b <= 0.7", unsure(0.1), None, "failed"),
    ("a.b >= 0.7", unsure(0.9), None, "failed"),
    # Against a baseline.
    ("a.b drop <= 0.1", exact(0.9), exact(1.0), "passed"),
    ("a.b drop <= 0.1", exact(0.89), exact(1.0), "failed"),
    ("a.b drop < 0.1", exact(0.9), exact(1.0), "failed"),
    ("a.b drop <= 0.1", exact(5.0), exact(1.0), "passed"),
    ("a.b rise <= 0.1", exact(1.1), exact(1.0), "passed"),
    ("a.b rise <= 0.1", exact(1.2), exact(1.0), "failed"),
    ("a.b rise <= 0.1", exact(-5.0), exact(1.0), "passed"),
    ("a.b rise >= 0.1", exact(1.2), exact(1.0), "passed"),
    ("a.b rise >= 0.1", exact(1.05), exact(1.0), "failed"),
    ("a.b drop >= 0.1", exact(0.8), exact(1.0), "passed"),
    ("a.b drop > 0.2", exact(0.8), exact(1.0), "failed"),
    ("a.b change <= 0.1", exact(1.1), exact(1.0), "passed"),
    ("a.b change <= 0.1", exact(0.9), exact(1.0), "passed"),
    ("a.b change <= 0.1", exact(1.2), exact(1.0), "failed"),
    ("a.b change < 0.1", exact(0.8), exact(1.0), "failed"),
    # Percentages are of the baseline's size, whatever its sign.
    ("a.b drop <= 5%", exact(0.95), exact(1.0), "passed"),
    ("a.b drop <= 5%", exact(0.94), exact(1.0), "failed"),
    ("a.b drop <= 5%", exact(-1.05), exact(-1.0), "passed"),
    ("a.b drop <= 5%", exact(-1.06), exact(-1.0), "failed"),
    ("a.b rise <= 5%", exact(-0.94), exact(-1.0), "failed"),
    ("a.b rise >= 5%", exact(-0.94), exact(-1.0), "passed"),
    ("a.b rise >= 5%", exact(-0.96), exact(-1.0), "failed"),
    ("a.b change <= 5%", exact(1.06), exact(1.0), "failed"),
    ("a.b rise <= 5%", exact(0.0), exact(0.0), "passed"),
    ("a.b rise <= 5%", exact(1e-6), exact(0.0), "failed"),
    ("a.b drop <= 5%", exact(1e-6), exact(0.0), "passed"),
    # The last digits of another machine, or of a rounded baseline, are no drop.
    ("a.b drop <= 0", exact(0.46731234567), exact(0.4673123458), "passed"),
    ("a.b drop <= 0", exact(0.4673123), exact(0.4673124), "failed"),
    ("a.b drop <= 0", exact(1.0 - 0.9e-9), exact(1.0), "passed"),
    ("a.b drop <= 0", exact(1.0 - 1.5e-9), exact(1.0), "failed"),
    # A drop by all of it does not depend on the baseline, nor a rise of a negative one.
    ("a.b drop <= 100%", exact(0.0), least(1.0), "passed"),
    ("a.b rise >= 100%", exact(0.5), sampled(-1.0, 0.1), "passed"),
    # Errors of both sides combine: 0.002·√2·1.96 = 0.0055.
    ("a.b drop <= 0.1", sampled(0.906, 0.002), sampled(1.0, 0.002), "passed"),
    ("a.b drop <= 0.1", sampled(0.905, 0.002), sampled(1.0, 0.002), "failed"),
    ("a.b drop <= 0.1", sampled(0.905, 0.002), exact(1.0), "passed"),
    ("a.b drop <= 0.1", exact(0.905), sampled(1.0, 0.002), "passed"),
    ("a.b drop <= 0.1", exact(0.903), sampled(1.0, 0.002), "failed"),
    ("a.b change <= 0.1", sampled(1.0, 0.04), sampled(1.0, 0.04), "failed"),
    ("a.b change <= 0.1", sampled(1.0, 0.03), sampled(1.0, 0.03), "passed"),
    ("a.b rise >= 0.1", sampled(1.105, 0.002), sampled(1.0, 0.002), "failed"),
    ("a.b rise >= 0.1", sampled(1.106, 0.002), sampled(1.0, 0.002), "passed"),
    # In standard errors of the difference, here 0.005: the numbers alone are compared.
    ("a.b rise <= 2 se", sampled(1.0099, 0.003), sampled(1.0, 0.004), "passed"),
    ("a.b rise <= 2 se", sampled(1.0101, 0.003), sampled(1.0, 0.004), "failed"),
    ("a.b rise <= 2 se", exact(1.0099), sampled(1.0, 0.005), "passed"),
    ("a.b rise <= 2 se", sampled(0.5, 0.003), sampled(1.0, 0.004), "passed"),
    ("a.b drop >= 2 se", sampled(0.9899, 0.003), sampled(1.0, 0.004), "passed"),
    ("a.b drop >= 2 se", sampled(0.9901, 0.003), sampled(1.0, 0.004), "failed"),
    ("a.b change <= 2 se", sampled(0.9899, 0.003), sampled(1.0, 0.004), "failed"),
    # 1.96 of them at the level of 95%.
    ("a.b rise is not significant", sampled(1.0097, 0.003), sampled(1.0, 0.004), "passed"),
    ("a.b rise is not significant", sampled(1.0099, 0.003), sampled(1.0, 0.004), "failed"),
    ("a.b drop is not significant", sampled(1.0099, 0.003), sampled(1.0, 0.004), "passed"),
    # Of three draws, Student's t allows 3.18 where a normal distribution allows 1.96.
    ("a.b rise is not significant", few(1.0158, 0.005), exact(1.0), "passed"),
    ("a.b rise is not significant", few(1.0160, 0.005), exact(1.0), "failed"),
    # Without an error nothing can be said, but that equal values did not move.
    ("a.b rise <= 2 se", exact(1.1), exact(1.0), "unchecked"),
    ("a.b rise <= 2 se", exact(0.9), exact(1.0), "unchecked"),
    ("a.b rise <= 2 se", unsure(1.1), sampled(1.0, 0.1), "unchecked"),
    ("a.b rise <= 2 se", most(1.1), sampled(1.0, 0.1), "unchecked"),
    ("a.b rise <= 0 se", exact(1.0), exact(1.0), "passed"),
    # A bound in the baseline turns round.
    ("a.b drop <= 0.1", exact(1.0), least(1.0), "failed"),
    ("a.b drop <= 0.1", exact(1.0), most(1.0), "passed"),
    ("a.b rise <= 0.1", exact(1.0), least(1.0), "passed"),
    ("a.b drop <= 0.1", least(1.0), exact(1.0), "passed"),
    ("a.b drop <= 0.1", least(1.0), least(1.0), "failed"),
    # What is not defined cannot be checked, unless that is allowed.
    ("a.b >= 0", NONE, None, "unchecked"),
    ("a.b >= 0, warn", NONE, None, "warned"),
    ("a.b >= 0, allow undefined", NONE, None, "skipped"),
    ("a.b >= 0, warn, allow undefined", NONE, None, "skipped"),
    ("a.b drop <= 1", exact(1.0), NONE, "unchecked"),
    ("a.b drop <= 1, allow undefined", exact(1.0), NONE, "skipped"),
    ("a.b drop <= 1", exact(1.0), None, "unchecked"),
    ("a.b drop <= 5%", exact(1.0), NONE, "unchecked"),
    ("a.b rise <= 5%", NONE, exact(1.0), "unchecked"),
    ("a.b change <= 5%, allow undefined", exact(1.0), NONE, "skipped"),
    ("a.b change <= 5%, warn", exact(1.0), NONE, "warned"),
    ("a.b drop <= 1, allow undefined", NONE, exact(1.0), "skipped"),
    # Rules that only warn.
    ("a.b >= 0.5, warn", exact(0.4), None, "warned"),
    ("a.b >= 0.5, warn", exact(0.6), None, "passed"),
    ("a.b drop <= 5%, warn", exact(0.5), exact(1.0), "warned"),
]


def test_truth_table() -> None:
    for text, reading, baseline, state in TRUTH:
        assert decide(Rule.parse(text), reading, baseline, Z).state == state


def test_a_rule_on_the_value_does_not_look_at_the_baseline() -> None:
    rule = Rule.parse("a.b >= 0.5")
    assert decide(rule, exact(0.6), NONE, Z) == decide(rule, exact(0.6), None, Z)


finite = st.floats(-1e6, 1e6)
errors = st.floats(0, 1e3)
senses = st.sampled_from(["drop", "rise", "change"])


@given(senses, st.sampled_from(["<=", "<", ">=", ">"]), st.floats(0, 1e6), finite, finite)
def test_relative_rules_without_errors_are_what_they_say(
    sense: str, op: str, amount: float, x: float, b: float
) -> None:
    if sense == "change" and op in (">=", ">"):
        return
    moved = {"drop": b - x, "rise": x - b, "change": abs(x - b)}[sense]
    size = max(abs(x), abs(b), amount)
    for unit, limit in (("", amount), ("%", amount / 100 * abs(b))):
        if abs(moved - limit) <= 1e-8 * max(size, limit):
            continue  # within rounding of the limit
        holds = {"<=": moved <= limit, "<": moved < limit, ">=": moved >= limit, ">": moved > limit}
        rule = Rule("a.b", op, amount, sense, unit)  # type: ignore[arg-type]
        assert (decide(rule, exact(x), exact(b), Z).state == "passed") is holds[op]


@given(senses, st.sampled_from(["", "%"]), st.floats(0, 100), finite, errors, finite, errors)
def test_more_error_never_turns_a_failure_into_a_pass(
    sense: str, unit: str, amount: float, x: float, e: float, b: float, f: float
) -> None:
    rule = Rule("a.b", "<=", amount, sense, unit)  # type: ignore[arg-type]
    states = [
        decide(rule, sampled(x, e * k), sampled(b, f * k), Z).state == "passed" for k in (0, 1, 2)
    ]
    assert states == sorted(states, reverse=True)


@pytest.mark.parametrize("unit", ["", "%"])
@pytest.mark.parametrize(("x", "b"), [(1.0, 1.1), (-1.0, -1.1), (0.05, 0.02), (-0.03, 0.02)])
@pytest.mark.slow
def test_a_rule_that_is_just_broken_passes_as_rarely_as_its_level_says(
    x: float, b: float, unit: str
) -> None:
    """Of samples from a truth right at the limit at most 2.5% may pass."""
    rng = np.random.default_rng(0)
    error = 0.02
    for sense, op in itertools.product(("drop", "rise"), ("<=", ">=")):
        moved = (b - x) if sense == "drop" else (x - b)
        amount = moved / abs(b) * 100 if unit == "%" else moved
        if amount < 0:
            continue
        rule = Rule("a.b", op, amount, sense, unit)  # type: ignore[arg-type]
        passed = [
            decide(rule, sampled(x + dx, error), sampled(b + db, error), Z).state == "passed"
            for dx, db in rng.normal(0, error, (2000, 2))
        ]
        assert np.mean(passed) < 0.025 + 3 * np.sqrt(0.025 / 2000)


# --- What is said -----------------------------------------------------------------------------


def test_reasons() -> None:
    for text, reading, baseline in (
        ("a.b >= 0.5", exact(0.7), None),
        ("a.b >= 0.5", exact(0.09125), None),
        ("a.b > 0.5", exact(0.5), None),
        ("a.b >= 0.5", exact(0.49999999), None),
        ("a.b <= 0.7", sampled(0.98, 0.002), None),
        ("a.b <= 0.7", sampled(0.699, 0.002), None),
        ("a.b >= 0.7", sampled(0.701, 0.002), None),
        ("a.b <= 150", least(130), None),
        ("a.b drop <= 5%", exact(0.7), exact(0.8)),
        ("a.b rise >= 1", exact(0.7), exact(0.8)),
        ("a.b drop <= 5%", exact(0.8), exact(0.8)),
        ("a.b rise <= 900", exact(0.044), exact(0.004)),
        ("a.b rise <= 5%", exact(0.4673), exact(0.004687)),
        ("a.b rise <= 5%", exact(11.0), exact(1.0)),
        ("a.b rise <= 5%", exact(11.1), exact(1.0)),
        ("a.b rise > 5%", exact(0), exact(0)),
        ("a.b >= 1", RuleValue(2.0, 0.1, "least"), None),
        ("a.b drop <= 5", exact(3), exact(0)),
        ("a.b rise <= 1", exact(0.5), exact(0)),
        ("a.b drop <= 0.1", sampled(0.71, 0.01), sampled(0.8, 0.01)),
        ("a.b rise <= 9e307", exact(1e308), exact(-1e308)),
        ("a.b rise <= 2 se", sampled(0.83, 0.003), sampled(0.8, 0.004)),
        ("a.b rise is not significant", sampled(0.83, 0.003), sampled(0.8, 0.004)),
        ("a.b rise <= 2 se", exact(0.83), exact(0.8)),
        ("a.b <= 1", NONE, None),
        ("a.b drop <= 1", exact(1), NONE),
    ):
        check_message(decide(Rule.parse(text), reading, baseline, Z).reason)


@given(finite, finite)
def test_numbers_that_differ_look_different(one: float, other: float) -> None:
    assert one == other or format_apart(one, other) != format_apart(other, one)


# --- Levels and readings ----------------------------------------------------------------------


def test_whole_numbers_that_floats_hold_are_written_whole() -> None:
    assert [str(round_digits(v)) for v in (2.5, 3.0, 9e15, 1e16)] == [
        "2.5", "3", "9000000000000000", "1e+16",
    ]  # fmt: skip


def test_the_usual_level_is_1_96_standard_errors() -> None:
    assert deviations(0.95) == pytest.approx(1.959964, abs=1e-6)
    assert deviations(0.0) == 0.0
    assert deviations(0.99) == pytest.approx(2.575829, abs=1e-6)


def test_levels_that_are_none() -> None:
    for level in (-0.1, 1.0, 1.5, math.nan):
        with refusal(BadOption):
            deviations(level)


def test_without_a_level_errors_are_not_looked_at() -> None:
    assert decide(Rule.parse("a.b <= 0.7"), sampled(0.699, 9.0), None, 0.0) == Decision(
        "passed", "is 0.699 ± 9"
    )


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_an_analysis_that_somebody_edited(value: float) -> None:
    quantity = Quantity("a.b", "B", "Meaning.")
    for scalar in (Scalar(quantity, value), Scalar(quantity, None)):
        reading = RuleValue.of(scalar)
        assert decide(Rule.parse("a.b >= 0"), reading, None, Z).state == "unchecked"
        assert decide(Rule.parse("a.b >= 0, allow undefined"), reading, None, Z).state == "skipped"
    vague = RuleValue.of(Scalar(quantity, 1.0, standard_error=value, known="sampled"))
    assert vague.known == "unsure"
    assert decide(Rule.parse("a.b >= 0"), vague, None, Z).state == "failed"


def test_what_a_real_analysis_knows_of_its_values() -> None:
    rows = np.random.default_rng(0).standard_normal((60, 4))
    known = {}
    for runs in (1, 3):
        options = embgeo.Options(pairs=50, isotropy_rows=20, isotropy_runs=runs)
        analysis = embgeo.analyze(
            Matrix(rows), sections=("cosine", "isotropy"), options=options, reference=False
        )
        known[runs] = {s.name: find_doubt(s) for s in analysis.scalars if s.value is not None}
    found = known[3]
    assert found["cosine.mean"] == "exact"
    assert found["cosine.positive_share"] == "sampled"
    assert found["cosine.cone_aperture"] == "least"
    assert found["isotropy.i1_sampled"] == "sampled"
    assert known[1]["isotropy.i1_sampled"] == "unsure"
    # The starts of k-means are random, and no error is known of what they miss.
    starts = {"cosine.clusters", "cosine.silhouette"}
    assert {name for name, doubt in found.items() if doubt == "unsure"} <= starts


# --- the verdict ----------------------------------------------------------------------------


def verdict(state: State) -> RuleValue:
    return RuleValue.of_verdict(Verdict(f"{state}: because.", state, ()))


def test_rules_on_the_verdict() -> None:
    for text, state, expected in (
        ("verdict <= mild", "healthy", ("passed", "is healthy")),
        ("verdict <= mild", "mild", ("passed", "is mild")),
        ("verdict <= mild", "degenerate", ("failed", "is degenerate, has to be at most mild")),
        ("verdict < mild, warn", "mild", ("warned", "is mild, has to be less than mild")),
        ("verdict == healthy", "healthy", ("passed", "is healthy")),
        ("encoder.weight: verdict ≤ mild", "mild", ("passed", "is mild")),
        ("verdict <= mild", "undecided", ("unchecked", "is not defined: undecided: because.")),
        (
            "verdict <= mild, allow undefined",
            "undecided",
            ("skipped", "is not defined: undecided: because."),
        ),
    ):
        assert decide(Rule.parse(text), verdict(state), None, Z) == expected


def test_a_verdict_against_a_baseline() -> None:
    for before, now, expected in (
        ("mild", "mild", ("passed", "is mild as in the baseline")),
        ("mild", "healthy", ("passed", "fell from mild to healthy")),
        (
            "healthy",
            "degenerate",
            ("failed", "rose from healthy to degenerate; a rise of at most 0 is allowed"),
        ),
        (
            "mild",
            "degenerate",
            ("failed", "rose from mild to degenerate; a rise of at most 0 is allowed"),
        ),
    ):
        rule = Rule.parse("verdict rise <= 0")
        assert decide(rule, verdict(now), verdict(before), Z) == expected


def test_what_is_no_rule_on_the_verdict() -> None:
    for text in ("verdict <= 1", "verdict <= bad", "verdict rise <= 5%"):
        with refusal(BadOption):
            Rule.parse(text)
