"""Other packages on the same matrix, each in the way that its own manual shows.

These functions run in the Python where the peers are installed, which need not know embgeo.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import clock
from benchmarks.harness.answers import errors
from benchmarks.harness.matrices import Array, open_matrix

#: Above this many rows weightwatcher gives an empty frame and no error, unless it is told more.
ANY_SIZE = 10**9
MISSING = "it is not installed (see benchmarks/README.md)"


def weightwatcher(path: str) -> dict[str, Any]:
    """Seconds of ``analyze`` on a model that consists of this one embedding."""
    import torch
    import weightwatcher as ww

    def analyze(W: Array) -> Any:
        layer = torch.nn.Embedding.from_pretrained(torch.from_numpy(W))
        watcher = ww.WeightWatcher(model=torch.nn.Sequential(layer))
        began = clock.now()
        frame = watcher.analyze(max_N=ANY_SIZE)
        return frame, clock.now() - began

    analyze(few())
    frame, seconds = analyze(np.array(open_matrix(Path(path))))
    found = {
        "top_share": 1.0 / float(frame["stable_rank"].iloc[0]),
        "largest_singular_value": float(frame["sv_max"].iloc[0]),
    }
    return {"seconds": seconds, "answers": found}


def check_weightwatcher(found: dict[str, Any], truth: dict[str, Any]) -> dict[str, float]:
    tolerances = {"top_share": 1e-5, "largest_singular_value": 1e-5}
    return errors("weightwatcher", found, truth, tolerances)


def isoscore(path: str) -> dict[str, Any]:
    from IsoScore.IsoScore import IsoScore

    IsoScore(few())
    W = np.array(open_matrix(Path(path)))
    began = clock.now()
    score = IsoScore(W)
    seconds = clock.now() - began
    return {"seconds": seconds, "answers": {"isoscore": float(score)}}


def check_isoscore(found: dict[str, Any], truth: dict[str, Any]) -> dict[str, float]:
    """Its sums are float32 where the matrix is."""
    return errors("IsoScore", found, truth, {"isoscore": 1e-3})


def two_nn(path: str) -> dict[str, Any]:
    """scikit-dimension's TwoNN, every row with its two nearest ones."""
    from skdim.id import TwoNN

    # The form that embgeo computes; the default is another one, a line through 90% of the ratios.
    form = {"method": "mle", "discard_fraction": 0.0}
    TwoNN(**form).fit(few())
    W = np.array(open_matrix(Path(path)))
    began = clock.now()
    dimension = TwoNN(**form).fit(W).dimension_
    seconds = clock.now() - began
    return {"seconds": seconds, "answers": {"dimension": float(dimension)}}


def check_two_nn(found: dict[str, Any], truth: dict[str, Any]) -> dict[str, float]:
    return errors("scikit-dimension", found, truth, {"dimension": 1e-3})


def few() -> Array:
    """Rows for a first call, in which packages import what they need."""
    return np.random.default_rng(0).standard_normal((200, 16)).astype(np.float32)


def list_installed(python: Path | None) -> dict[str, str]:
    """Packages and versions that a Python interpreter has; nothing without one."""
    if python is None:
        return {}
    code = (
        "import importlib.metadata as m, json\n"
        "print(json.dumps({d.name.lower(): d.version for d in m.distributions()}))\n"
    )
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found
