"""Methods that settings define: with other settings, on another model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from embgeo.core.errors import BadOption  # noqa: E402
from embgeo.training.complete import complete_settings  # noqa: E402
from embgeo.training.methods import METHODS  # noqa: E402
from embgeo.training.registry import find_method  # noqa: E402
from embgeo.training.settings import StudySettings  # noqa: E402
from tests.support.refusals import refusal  # noqa: E402
from tests.support.training_runs import (  # noqa: E402
    Stopped,
    numbers,
    run,
    run_all,
    settings,
    stopping,
    trainer_of,
)

TABLES: dict[str, Any] = {
    "cosreg": {"gamma": 2.0},
    "cosreg-10": {"base": "cosreg", "gamma": 10.0},
    "untied-adam": {"base": "coupled-adam", "model": {"tied": False}},
}


def with_tables(**more: Any) -> StudySettings:
    return settings(compare=list(TABLES), method=TABLES, **more)


def test_a_second_one_has_settings_of_its_own() -> None:
    config = complete_settings(with_tables())
    assert config.method["cosreg"]["gamma"] == 2.0
    assert config.method["cosreg-10"] == {
        **config.method["cosreg"],
        "base": "cosreg",
        "gamma": 10.0,
    }
    found = find_method("cosreg-10", config.method)
    assert (found.name, found.title) == ("cosreg-10", "CosReg (cosreg-10)")
    assert found.reference == "mle"
    first, second = (trainer_of(config, name) for name in ("cosreg", "cosreg-10"))
    assert second.initial_sha256 == first.initial_sha256
    assert second.regularizer().item() == pytest.approx(5.0 * first.regularizer().item())
    # What a run records makes the same run again.
    one = config.one("cosreg-10", 0)
    assert set(one.method) == {"cosreg-10"}
    assert complete_settings(one) == one


def test_a_method_on_another_model() -> None:
    own = {"untied-cosreg": {"base": "cosreg", "model": {"tied": False}, "gamma": 3.0}}
    config = complete_settings(settings(compare=["cosreg", *own], method=own))
    found = find_method("untied-cosreg", config.method)
    assert (found.reference, found.model_settings) == ("cosreg", {"tied": False})
    one = config.one("untied-cosreg", 0)
    assert one.method["untied-cosreg"]["model"] == {"tied": False}
    assert complete_settings(one) == one
    assert trainer_of(config, "cosreg").matrices()[1] is None
    assert trainer_of(config, "untied-cosreg").matrices()[1] is not None


def test_definitions_that_make_no_sense() -> None:
    for table in (
        {"x": {"base": "cosrg"}},
        {"x": {"base": "mle", "model": 3}},
        {"x": {"base": "mle", "model": {}}},
        {"x": {"base": 3}},
        {"mle": {"base": "cosreg"}},
        {"../x": {"base": "cosreg"}},
        {"x": {"base": "cosreg", "gama": 1.0}},
        {"x": {"gamma": 1.0}},
    ):
        with refusal(BadOption):
            complete_settings(settings(method=table))


def test_a_name_that_is_nearly_a_defined_one() -> None:
    with refusal(BadOption):
        complete_settings(settings(compare=["cosreg-1"], method=TABLES))


@pytest.mark.parametrize("name", ["cosreg-10", "untied-adam"])
@pytest.mark.slow
def test_a_defined_method_is_resumed_to_the_same_bits(tmp_path: Path, name: str) -> None:
    config = with_tables(training={"save_steps": 5}).one(name, 0)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    run(config, whole)
    with pytest.raises(Stopped):
        run(config, broken, progress=stopping(after=7))
    run(config, broken)
    files = [(folder / "model.safetensors").read_bytes() for folder in (whole, broken)]
    assert files[0] == files[1]
    assert numbers(whole) == numbers(broken)


def test_a_study_has_a_folder_for_each(tmp_path: Path) -> None:
    run_all(with_tables(training={"steps": 2}), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(TABLES)


def test_a_setting_of_the_wrong_type() -> None:
    for setting in (
        {"c1": "loose"},
        {"frobenius": [1.0]},
        {"gamma": "much"},
    ):
        with refusal(BadOption):
            METHODS["sc-exp"].settings(setting)
