"""Layers compiled by torch.compile: near the same numbers, and the same bytes when resumed."""

import shutil
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from embgeo.core.errors import BadOption  # noqa: E402
from embgeo.training.complete import complete_settings  # noqa: E402
from embgeo.training.loop.check import check_study  # noqa: E402
from tests.support.refusals import refusal  # noqa: E402
from tests.support.training_runs import (  # noqa: E402
    LLAMA,
    Stopped,
    corpus,
    run,
    settings,
    stopping,
)


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")  # the compiler warns of its own code
@pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler")
def test_a_compiled_run_is_resumed_to_the_same_bytes(tmp_path: Path) -> None:
    """A minute of compilation."""
    training = {"steps": 4, "save_steps": 2, "compile": True}
    config = settings(**LLAMA).updated({"training": training})
    found = run(config, tmp_path / "one")
    plain = run(config.updated({"training": {"compile": None}}), tmp_path / "plain")
    assert found.valid["loss"] == pytest.approx(plain.valid["loss"], rel=1e-4)
    with pytest.raises(Stopped):
        run(config, tmp_path / "two", progress=stopping(3))
    run(config, tmp_path / "two")
    bytes_of = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two")]
    assert bytes_of[0] == bytes_of[1]


def test_models_with_a_state_are_not_compiled() -> None:
    config = complete_settings(settings(training={"compile": True}))
    with refusal(BadOption):
        check_study(config, corpus())
