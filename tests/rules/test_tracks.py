"""Rules about a saved track: about the run as a whole, and about each of its checkpoints."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import embgeo
from embgeo.core.errors import EmbgeoError
from embgeo.rules.outputs import OUTPUTS
from tests.support.sample_comparison import sample_comparison

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
    assert all(output.render(outcome) for output in OUTPUTS)


def test_a_rule_about_a_run_takes_a_track(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", np.eye(6))
    outcome = embgeo.gate(tmp_path / "one.npy", rules=RULES[0])
    (check,) = outcome.checks
    assert check.state == "unchecked"
    assert "name the folder of embgeo diff --track" in check.decision.reason


def test_a_comparison_that_is_not_a_track_is_refused(tmp_path: Path) -> None:
    sample_comparison().save(tmp_path / "two")
    with pytest.raises(EmbgeoError, match="a comparison that is not a track; name one"):
        embgeo.gate(tmp_path / "two", rules=RULES[2])
