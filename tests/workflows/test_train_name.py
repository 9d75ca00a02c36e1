"""``embgeo.train`` is called like a function; the old import path of the regularizers works."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("torch")


ORDERS = (
    # The function first, then the old path.
    "import embgeo; first = embgeo.train; from embgeo.train.regularizers import CosReg",
    # The old path first.
    "from embgeo.train.regularizers import CosReg; import embgeo; first = embgeo.train",
    "import embgeo.train.regularizers; from embgeo.train.regularizers import CosReg; "
    "import embgeo; first = embgeo.train",
    "from embgeo import train as first; from embgeo.train.regularizers import CosReg; "
    "import embgeo",
)
CHECK = """
from embgeo.training.methods import CosReg as now, REGULARIZERS as known
from embgeo.train.regularizers import REGULARIZERS
from embgeo.train.integrations import TrainerRegularizer
assert CosReg is now and REGULARIZERS is known
assert callable(first) and embgeo.train is first
assert embgeo.train.regularizers.CosReg is now
for name in [name for name in sys.modules if name.partition(".")[0] == "embgeo"]:
    del sys.modules[name]
"""


@pytest.mark.slow
def test_both_names_work_in_any_order() -> None:
    """In one process, which forgets embgeo in between: torch takes seconds to import."""
    program = "import sys\n" + "".join(f"{order}\n{CHECK}" for order in ORDERS)
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
