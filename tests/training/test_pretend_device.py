"""Training and analyses on a pretend GPU: no kernel gets tensors of two devices."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip("torch")

from tests.support.processes import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def table() -> Any:
    """What the runs gave, in a process of their own: torch keeps a device for good."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.pretend_runs"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_steps_saves_and_evaluations_stay_on_the_device(table: Any) -> None:
    assert len(table["runs"]) == 8
    for case, found in table["runs"].items():
        assert isinstance(found, dict), f"{case}: {found}"
        # Rounding: the LSTM is another kernel, and autocast of the CPU takes other functions.
        close = 1e-5 if case.endswith("float32") else 1e-2
        assert found["loss"] == pytest.approx(found["expected"], rel=close), case
        assert found["devices"] == ["pretend"], case
        assert found["resumed"], case
        assert found["saved"], case


def test_analyses_stay_on_the_device(table: Any) -> None:
    """Singular values of rows in float32 are the least exact."""
    assert set(table["analyses"]) == {"float16", "float64"}
    for stored, difference in table["analyses"].items():
        assert isinstance(difference, float), f"{stored}: {difference}"
        assert difference < (1e-9 if stored == "float64" else 1e-5), stored


def test_the_device_refuses_what_a_gpu_refuses(table: Any) -> None:
    assert set(table["refused"].values()) == {True}, table["refused"]
    assert set(table["allowed"].values()) == {True}, table["allowed"]
