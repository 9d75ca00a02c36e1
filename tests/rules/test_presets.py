"""``--preset``: its rules, what it says of a damaged model, and of one without a tokenizer."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import embgeo
from embgeo.core.errors import BadOption
from embgeo.rules.rule import PRESETS, read_preset
from tests.support.chat_model import write_chat_model
from tests.support.command import call
from tests.support.matrices import gaussian
from tests.support.refusals import refusal

PRESET = "finetune-ready"


def states(outcome: embgeo.Outcome) -> dict[str, str]:
    return {check.rule.name.partition(".")[2]: check.state for check in outcome.checks}


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_chat_model(tmp_path_factory.mktemp("chat") / "model")


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_rules(name: str) -> None:
    assert all(rule.text and str(rule.place) == f"preset {name}" for rule in read_preset(name))


@pytest.mark.slow
def test_a_damaged_model(damaged: Path) -> None:
    outcome = embgeo.gate(damaged, preset=PRESET)
    found = states(outcome)
    assert {name for name, state in found.items() if state == "failed"} == {"damaged"}
    assert {*found.values()} == {"failed", "passed"}
    (reason,) = (c.decision.reason for c in outcome.checks if c.state == "failed")
    assert reason.startswith("is 79, has to be at most 0: row ")
    assert reason.endswith(" and 74 more")


@pytest.mark.slow
def test_healthy_models_keep_the_promise_of_their_configuration(tmp_path: Path) -> None:
    for tied, code, failing in ((True, 1, ["tied_as_configured"]), (False, 0, [])):
        model = write_chat_model(tmp_path / str(tied), dead=False, tied=tied)
        done = call("gate", model, "--preset", PRESET, "--no-config", "--json")
        assert done.exit_code == code
        checks = json.loads(done.stdout)["checks"]
        failed = [one["rule"] for one in checks if one["state"] == "failed"]
        assert [rule.partition(".")[2].split()[0] for rule in failed] == failing


@pytest.mark.slow
def test_tokens_without_a_row(damaged: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(damaged, tmp_path / "model")

    def state() -> str:
        rules = [text for text in PRESETS[PRESET] if "missing_rows" in text]
        return states(embgeo.gate(folder, rules=rules))["missing_rows"]

    (folder / "added_tokens.json").unlink(missing_ok=True)
    text = (folder / "tokenizer.json").read_text()
    (folder / "tokenizer.json").write_text(text.replace('"w2989": 2989', '"w2989": 3000'))
    assert state() == "failed"
    (folder / "tokenizer.json").unlink()  # the configuration says how many there are, too
    config = json.loads((folder / "config.json").read_text())
    for size, expected in ((config["vocab_size"], "passed"), (4000, "failed"), (None, "skipped")):
        (folder / "config.json").write_text(json.dumps(config | {"vocab_size": size}))
        assert state() == expected


def test_a_bare_matrix_is_checked_for_its_rows() -> None:
    W = gaussian(500, 100, 8)
    found = states(embgeo.gate(W, preset=PRESET))
    assert {name for name, state in found.items() if state == "skipped"} == {
        "missing_rows",
        "tied_as_configured",
    }
    assert embgeo.gate(W, preset=PRESET).passed
    W[3] = np.nan
    outcome = embgeo.gate(W, preset=PRESET)
    (failed,) = (check for check in outcome.checks if check.state == "failed")
    assert failed.decision.reason == "is 1, has to be at most 0: row 3"


@pytest.mark.slow
def test_in_the_settings(damaged: Path, tmp_path: Path) -> None:
    config = tmp_path / "embgeo.toml"
    config.write_text(f'[gate]\npreset = "{PRESET}"\n')
    done = call("gate", damaged, "--config", config)
    assert done.exit_code == 1
    assert "is 79, has to be at most 0" in done.output


def test_there_is_no_such_preset() -> None:
    with refusal(BadOption):
        read_preset("x")
