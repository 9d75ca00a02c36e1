"""``embgeo.train`` is called like a function; the old import path of the regularizers works."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("torch")


@pytest.mark.parametrize(
    "program",
    [
        # The function first, then the old path.
        "import embgeo; first = embgeo.train; from embgeo.train.regularizers import CosReg",
        # The old path first.
        "from embgeo.train.regularizers import CosReg; import embgeo; first = embgeo.train",
        "import embgeo.train.regularizers; from embgeo.train.regularizers import CosReg;"
        "import embgeo; first = embgeo.train",
        "from embgeo import train as first; from embgeo.train.regularizers import CosReg;"
        "import embgeo",
    ],
)
def test_both_names_work_in_any_order(program: str) -> None:
    check = (
        "from embgeo.training.methods import CosReg as now, REGULARIZERS as known\n"
        "from embgeo.train.regularizers import REGULARIZERS\n"
        "from embgeo.train.integrations import TrainerRegularizer\n"
        "assert CosReg is now and REGULARIZERS is known\n"
        "assert callable(first) and embgeo.train is first\n"
        "assert embgeo.train.regularizers.CosReg is now\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", f"{program}\n{check}"], check=True)
