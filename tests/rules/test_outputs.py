"""The outcome of a gate in every format, with names that try to break out of it."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from junitparser import JUnitXml
from markdown_it import MarkdownIt

from embgeo.core.errors import BadOption
from embgeo.core.text import defuse
from embgeo.rules.check import MOST_SHOWN, Measured, Outcome, check_rules
from embgeo.rules.outputs import (
    as_json,
    github_annotations,
    github_summary,
    junit,
    sarif,
    table,
)
from embgeo.rules.rule import Place, Rule
from embgeo.rules.rule_value import RuleValue
from tests.support.record import check_record
from tests.support.refusals import refusal
from tests.support.sample_analysis import CHARACTERS, HOSTILE

#: Any text that can be the name of a file or a tensor.
names = st.sampled_from(HOSTILE) | st.text(CHARACTERS)
few = settings(max_examples=50)

OUTPUTS = (table, as_json, junit, sarif, github_annotations, github_summary)
RULES = (
    "isotropy.i1 >= 0.5",
    "cosine.mean <= 0.1, warn",
    "frequency.probe_auc <= 0.7, allow undefined",
    "cosine.std <= 0.5",
)


def measured(
    file: str = "model.pt", tensor: str = "encoder.weight", **values: float | RuleValue
) -> Measured:
    """A matrix with these readings; ``cosine_mean=0.2`` is ``cosine.mean``."""
    readings = {
        name.replace("_", ".", 1): value if isinstance(value, RuleValue) else RuleValue(value)
        for name, value in values.items()
    }
    provenance = {
        "file": file,
        "tensor": tensor,
        "sha256": "0" * 64,
        "n": 5000,
        "d": 64,
        "sections": sorted({name.partition(".")[0] for name in readings}),
    }
    return Measured(provenance, readings, (), {"frequency": "no counts"})


SAMPLED = RuleValue(0.24, 0.002, "sampled", title="Spread", convention="over pairs")


def outcome(
    *matrices: Measured, rules: tuple[str, ...] = RULES, place: str = "embgeo.toml"
) -> Outcome:
    """One failure, one warning, one skipped and one passed check for each matrix."""
    parsed = [Rule.parse(text, Place(place, line)) for line, text in enumerate(rules, 3)]
    default = measured(isotropy_i1=0.09125, cosine_mean=0.2, cosine_std=SAMPLED)
    return check_rules(parsed, matrices or (default,))


def hostile(text: str) -> Outcome:
    """The same, with `text` wherever a name can stand."""
    rules = [
        Rule("isotropy.i1", op, 0.5, text=f"{text} {op} 0.5", place=Place(text, 7), warn=warn)
        for op, warn in ((">=", False), (">=", True), ("<=", False))
    ]
    reading = RuleValue(0.1, None, "exact", "", text, text, text)
    broken = RuleValue.missing(text)
    one = Measured({"file": text, "tensor": text, "sections": [text]}, {"isotropy.i1": reading})
    two = Measured({"file": text, "tensor": text + "2"}, {"isotropy.i1": broken, text: reading})
    return check_rules(rules, (one, two))


def test_the_outcome_has_one_of_each_state() -> None:
    assert [check.state for check in outcome().checks] == ["failed", "warned", "skipped", "passed"]
    assert not outcome().passed
    assert outcome(rules=RULES[1:]).passed


@pytest.mark.parametrize(("count", "left"), [(MOST_SHOWN, ""), (MOST_SHOWN + 1, "\n  and 1 more")])
def test_an_outcome_shows_its_first_checks(count: int, left: str) -> None:
    shown = repr(outcome(rules=("cosine.mean <= 1",) * count))
    assert shown.startswith(f"<Outcome passed, {count} checks\n  passed: cosine.mean is 0.2")
    assert (shown.count("cosine.mean"), "more" in shown) == (MOST_SHOWN, bool(left))
    assert shown.endswith(f"{left}>")


each_output = pytest.mark.parametrize(
    "output", OUTPUTS, ids=lambda output: output.__name__.rpartition(".")[2]
)


@each_output
def test_an_output_is_the_one_that_was_read(output: Any) -> None:
    found = outcome()
    places = (lambda file: f"ci dir/{file}",) if output in (sarif, github_annotations) else ()
    text = output.render(found, *places)
    assert text.endswith("\n")
    record = Path(__file__).with_name("outputs.txt")
    check_record(record, output.__name__.rpartition(".")[2], text.splitlines())


@each_output
@few
@given(text=names.filter(bool))
@pytest.mark.slow
def test_hostile_names_stay_in_their_place(output: Any, text: str) -> None:
    """As many lines as with harmless names, every one printable UTF-8 or a no-break space."""
    shown = output.render(hostile(text))
    shown.encode("utf-8")
    assert all(c.isprintable() or c in "\n\xa0" for c in shown)
    assert shown.count("\n") == output.render(hostile("plain")).count("\n")


# --- Table ------------------------------------------------------------------------------------


def test_the_table_counts_rows_that_are_left_out() -> None:
    first = outcome().matrices[0]
    for kept, said in ((4999, "64  1 row left out\n"), (4000, "64  1,000 rows left out\n")):
        dropped = replace(first, provenance={**first.provenance, "kept": kept})
        checks = check_rules([Rule.parse("cosine.mean <= 0.1")], [dropped])
        assert said in table.render(checks)


def test_the_table_names_tensors_that_nobody_measured() -> None:
    shown = table.render(outcome(rules=("decoder.weight: cosine.mean <= 0.1",)))
    assert "no tensor called decoder.weight was measured" in shown
    assert "gate failed: 0 of 1 check; 1 not checkable\n" in shown


# --- JSON -------------------------------------------------------------------------------------


# --- JUnit ------------------------------------------------------------------------------------


def test_junit_read_back_by_junitparser() -> None:
    (suite,) = JUnitXml.fromstring(junit.render(outcome()).encode())
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (4, 1, 0, 1)
    failed, warned, skipped, passed = suite
    assert failed.result[0].message == "isotropy.i1 is 0.09125, has to be at least 0.5"
    assert (warned.is_passed, skipped.is_skipped, passed.is_passed) == (True,) * 3


def test_junit_counts_skipped_checks_and_not_warnings() -> None:
    rules = (RULES[1], RULES[2], RULES[2])
    (suite,) = JUnitXml.fromstring(junit.render(outcome(rules=rules)).encode())
    assert (suite.tests, suite.failures, suite.skipped) == (3, 0, 2)


def test_junit_of_a_crash_is_an_error_and_no_failure() -> None:
    (suite,) = JUnitXml.fromstring(junit.render_error("model.pt: cut off \x00 ]]> <b>").encode())
    assert (suite.tests, suite.failures, suite.errors) == (1, 0, 1)
    (case,) = suite
    assert case.is_error
    assert case.result[0].message == "model.pt: cut off \\x00 ]]> <b>"


def test_sarif_names_the_matrix_where_a_rule_has_no_file() -> None:
    rule = Rule.parse("isotropy.i1 >= 0.5", Place())
    (found,) = json.loads(sarif.render(check_rules([rule], (measured(isotropy_i1=0.1),))))["runs"]
    where = found["results"][0]["locations"][0]["physicalLocation"]
    assert where == {"artifactLocation": {"uri": "model.pt"}}


@few
@given(names)
@pytest.mark.slow
def test_sarif_of_hostile_names_is_json(text: str) -> None:
    (run,) = json.loads(sarif.render(hostile(text)))["runs"]
    assert len(run["results"]) == sum(c.state != "passed" for c in hostile(text).checks)
    assert run["results"][0]["message"]["text"].isprintable()


@few
@given(names)
@pytest.mark.slow
def test_junit_of_hostile_names_is_xml(text: str) -> None:
    (suite,) = JUnitXml.fromstring(junit.render(hostile(text)).encode())
    assert suite.tests == 6
    assert len({case.name for case in suite}) == 2


# --- GitHub -----------------------------------------------------------------------------------


def commands(text: str) -> list[tuple[str, dict[str, str], str]]:
    """Workflow commands as GitHub's runner reads them."""
    found = []
    for line in text.splitlines():
        name, _, rest = line.removeprefix("::").partition(" ")
        properties, _, message = rest.partition("::")
        pairs = [pair.partition("=") for pair in properties.split(",")]
        found.append((name, {k: decoded(v, ":,") for k, _, v in pairs}, decoded(message, "")))
    return found


def decoded(text: str, more: str) -> str:
    for sign in ("\r", "\n", *more):
        text = text.replace(f"%{ord(sign):02X}", sign)
    return text.replace("%25", "%")


def test_rules_of_the_command_line_have_no_file() -> None:
    (error,) = commands(github_annotations.render(outcome(rules=RULES[:1], place="")))
    assert set(error[1]) == {"title"}


def test_no_more_annotations_than_github_shows() -> None:
    for count in (1, 9, 10, 11, 300):
        rules = tuple(
            f"isotropy.i1 >= {n}{end}" for end in ("", ", warn") for n in range(1, count + 1)
        )
        lines = commands(github_annotations.render(outcome(rules=rules)))
        for kind in ("error", "warning"):
            shown = [line for line in lines if line[0] == kind]
            assert len(shown) == min(count, 10)
            left = re.match(r"(\d+) more", shown[-1][2])
            assert (int(left[1]) if left else 0) == max(0, count - 9 if count > 10 else 0)


@few
@given(names)
def test_annotations_of_hostile_names_are_one_command_each(text: str) -> None:
    found = commands(github_annotations.render(hostile(text)))
    keys = ["file", "line", "title"] if text else ["title"]
    assert [(name, sorted(properties)) for name, properties, _ in found] == [
        *[("error", keys)] * 3,
        *[("warning", keys)] * 2,
    ]


def test_percent_signs_colons_and_commas_are_read_back() -> None:
    ((_, properties, message), *_) = commands(github_annotations.render(hostile("a,b::c%0Ad=e")))
    assert properties["file"] == "a,b::c%0Ad=e"
    assert properties["title"] == "embgeo gate: a,b::c%0Ad=e >= 0.5"
    assert "(a,b::c%0Ad=e a,b::c%0Ad=e)" in message


def runner_sees_a_command(line: str) -> bool:
    """How GitHub's runner finds commands in a log, of its newer and of its older syntax."""
    return line.lstrip().startswith("::") or "##[" in line


@given(st.lists(st.sampled_from(["::", "##[", "error", "::add-mask::x", " ", "\n", "#", ":", "a"])))
def test_nothing_in_the_log_is_taken_for_a_command(pieces: list[str]) -> None:
    shown = defuse("".join(pieces))
    assert not any(runner_sees_a_command(line) for line in shown.splitlines())


def test_defused_json_says_the_same() -> None:
    text = as_json.render(hostile("##[add-mask]x ::error::y"))
    assert "##[" in text
    assert json.loads(defuse(text)) == json.loads(text)


def rendered(markdown: str) -> str:
    """What is left to see of a summary: references resolved, the few tags of ours taken out."""
    return html.unescape(re.sub(r"</?code>|<br>|`", "", markdown))


@few
@given(names)
def test_summary_of_hostile_names_has_five_cells_a_row(text: str) -> None:
    shown = github_summary.render(hostile(text))
    rows = [line for line in shown.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 6
    assert all(row.count("|") == 6 for row in rows)
    left = re.sub(r"`[^`|\\]+`|&#\d+;|</?code>|<br>", "", "\n".join(rows[2:]))
    left = re.sub(r"\*\*(failed|not checkable)\*\*|(?<= )[<>=/]=? |: |(?<=\w)/(?=\w)", "", left)
    assert not re.search(r"[\[\]`*_<>@#&$~!\\:/]", left)


@few
@given(names.filter(bool))
@pytest.mark.slow
def test_summary_of_hostile_names_is_a_table_of_plain_text_to_a_markdown_reader(text: str) -> None:
    reader = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    tokens = reader.parse(github_summary.render(hostile(text)))
    inner = [child for token in tokens if token.type == "inline" for child in token.children or ()]
    assert {t.type for t in inner} <= {
        "text",
        "text_special",
        "code_inline",
        "html_inline",
        "strong_open",
        "strong_close",
    }
    assert {t.content for t in inner if t.type == "html_inline"} <= {"<code>", "</code>", "<br>"}
    assert sum(t.type == "td_open" for t in tokens) == 6 * 5


def test_summary_within_its_limit_lists_failures_first_and_says_what_is_left() -> None:
    for most in (700, 5_000, github_summary.MOST_BYTES):
        rules = tuple(f"isotropy.i1 {op} {n}" for n in range(1, 1500) for op in ("<=", ">="))
        shown = github_summary.render(outcome(rules=rules), most)
        assert len(shown.encode()) <= most
        rows = [line for line in shown.splitlines() if line.startswith("| ")][1:]
        left = re.search(r"([\d,]+) more checks", shown)
        assert len(rows) + (int(left[1].replace(",", "")) if left else 0) == len(rules)
        states = [row.split("|")[1].strip() for row in rows]
        assert states == sorted(states, key=["**failed**", "passed"].index)


def test_summary_that_just_fits_is_whole() -> None:
    whole = github_summary.render(outcome())
    room = len(whole.encode()) - 1 + len(github_summary.more(4).encode())
    assert github_summary.render(outcome(), room) == whole
    assert "1 more check" in github_summary.render(outcome(), room - 1)


def test_summary_of_a_crash() -> None:
    shown = github_summary.render_error("model.pt: cut off </code><script>" + "x" * 2_000_000)
    assert len(shown.encode()) < github_summary.MOST_BYTES
    assert "could not run" in shown
    assert "<script>" not in shown


# --- Rules against matrices -------------------------------------------------------------------


def states(*rules: str, matrices: tuple[Measured, ...], **more: Any) -> list[str]:
    parsed = [Rule.parse(text) for text in rules]
    return [check.state for check in check_rules(parsed, matrices, **more).checks]


def test_no_rules_is_never_a_pass() -> None:
    with refusal(BadOption):
        check_rules([], [measured(cosine_mean=0.1)])


def test_a_relative_rule_wants_a_baseline() -> None:
    with refusal(BadOption):
        states("cosine.mean drop <= 1", matrices=(measured(cosine_mean=0.1),))


def test_why_there_is_no_value() -> None:
    for name, says in (
        ("frequency.probe_auc", "the section frequency was skipped: no counts"),
        ("tokens.hubness", "the section tokens was not measured"),
        ("cosine.std", "it was not measured with these files and options"),
        ("tokens.missing_rows", "the section tokens was not measured"),
    ):
        assert measured(cosine_mean=0.1).reading(name).undefined == says


def test_why_nobody_knows_how_many_tokens_there_are() -> None:
    named = Measured({"sections": ["tokens"]}, {}).reading("tokens.missing_rows")
    assert named.undefined == "nothing says how many tokens the rows are for"


def test_a_curve_is_no_number() -> None:
    matrix = Measured({"sections": ["cosine"]}, {"cosine.mean": RuleValue(0.1)}, ("cosine.curve",))
    with refusal(BadOption):
        states("cosine.curve <= 1", matrices=(matrix,))


def test_rules_of_one_tensor() -> None:
    one = measured(tensor="model.encoder.weight", cosine_mean=0.1)
    two = measured(tensor="model.decoder.weight", cosine_mean=0.2)
    both = (one, two)
    assert states("cosine.mean <= 0.15", matrices=both) == ["passed", "failed"]
    assert states("encoder.weight: cosine.mean <= 0.15", matrices=both) == ["passed"]
    assert states("model.decoder.weight: cosine.mean <= 0.15", matrices=both) == ["failed"]
    assert states("coder.weight: cosine.mean <= 0.15", matrices=both) == ["unchecked"]
    assert states("x: cosine.mean <= 1, allow undefined", matrices=both) == ["skipped"]


def test_what_of_a_baseline_belongs_to_which_matrix() -> None:
    def rise(*baseline: Measured, matrices: tuple[Measured, ...]) -> list[str]:
        return states("cosine.mean rise <= 0", matrices=matrices, baseline=baseline)

    low, high = measured(tensor="a", cosine_mean=0.1), measured(tensor="b", cosine_mean=0.2)
    assert rise(low, high, matrices=(low, high)) == ["passed", "passed"]
    assert rise(high, low, matrices=(low, high)) == ["passed", "passed"]
    assert rise(low, matrices=(high,)) == ["failed"]  # one and one belong together
    with refusal():
        rise(low, matrices=(low, high))
    here = measured("here.pt", cosine_mean=0.1)
    there = measured("there.pt", cosine_mean=0.2)
    assert rise(here, there, matrices=(there,)) == ["passed"]
    with refusal():
        rise(here, here, matrices=(here,))
