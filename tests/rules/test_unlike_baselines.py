"""Relative rules against a baseline of another kind: undefined or noted, never passed silently."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from embgeo.core.errors import EmbgeoError
from embgeo.rules import baseline_file
from embgeo.rules.check import Check, Measured, check_rules, list_unlike
from embgeo.rules.rule import Rule
from embgeo.rules.rule_value import RuleValue

FACTS = {
    "file": "model.pt",
    "tensor": "encoder.weight",
    "sha256": "0" * 64,
    "dtype": "float32",
    "n": 5000,
    "d": 64,
    "kept": 5000,
    "sections": ["cosine", "spectrum", "tokens"],
    "options": {"min_norm": None, "popular_share": 0.2, "pairs": 1000},
    "versions": {},
}
VALUES = {
    "cosine.mean": RuleValue(0.2),
    "spectrum.effective_rank": RuleValue(40.0),
    "tokens.hubness": RuleValue(1.5, size=5000),
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


@pytest.mark.parametrize(
    ("rule", "changed", "says"),
    [
        (
            "cosine.mean drop <= 0",
            {"options": {"min_norm": 0.5}},
            "the baseline was measured with min_norm = None, not 0.5",
        ),
        ("spectrum.effective_rank drop <= 1", {"d": 32}, "number of columns, 64 and 32"),
        ("tokens.hubness rise <= 1", {"size": 4999}, "number of rows, 5,000 and 4,999"),
        ("tokens.hubness rise <= 1", {"size": None}, "5,000 and an unknown number"),
    ],
)
def test_another_quantity_cannot_be_checked(rule: str, changed: dict[str, Any], says: str) -> None:
    done = check(rule, **changed)
    assert done.state == "unchecked"
    assert says in done.decision.reason
    assert check(f"{rule}, allow undefined", **changed).state == "skipped"


def test_other_facts_are_noted() -> None:
    done = check("cosine.mean drop <= 0", d=32, n=4000)
    assert done.state == "passed"
    assert done.decision.reason.endswith("the baseline has 5,000 × 64 entries")
    assert list_unlike(Measured(FACTS, {}), Measured(FACTS, {})) == []
    for unknown in ("n", "d"):
        assert list_unlike(Measured(FACTS | {unknown: None}, {}), Measured(FACTS, {})) == []
    done = check("cosine.mean drop <= 0", tensor="decoder.weight")
    assert done.decision.reason.endswith("the baseline is of encoder.weight")
    done = check("cosine.mean drop <= 0", tensor="model.encoder.weight")
    assert ";" not in done.decision.reason  # the same tensor, wrapped
    # The number of pairs decides how well a value is known, not what it is.
    assert check("cosine.mean drop <= 0", options={"pairs": 9}).decision.reason.count(";") == 0


def test_of_several_baselines_the_one_of_the_same_tensor_is_meant() -> None:
    decoder = Measured(FACTS | {"tensor": "decoder.weight"}, {"cosine.mean": RuleValue(0.4)})
    moved = Measured(FACTS | {"file": "elsewhere.pt"}, {"cosine.mean": RuleValue(0.3)})
    rules = [Rule.parse("cosine.mean drop <= 0")]
    now = [Measured(FACTS, VALUES)]
    (done,) = check_rules(rules, now, baseline=[decoder, moved]).checks
    assert done.baseline == RuleValue(0.3)
    (done,) = check_rules(rules, now, baseline=[decoder, moved, Measured(FACTS, VALUES)]).checks
    assert done.baseline == RuleValue(0.2)
    with pytest.raises(EmbgeoError, match="several matrices"):
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
    path.write_text(path.read_text().replace('"size": 7', '"size": 0'))
    with pytest.raises(Exception, match="size is 0"):
        baseline_file.read(path)
