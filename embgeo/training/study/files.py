"""A comparison of methods as ``training.json``, saved and read back.

Beside it lie the runs (``METHOD/seed-S``), ``comparison`` (the embeddings of one seed side by
side, see :mod:`embgeo.comparison.comparison`) and, once rendered, ``report.html``.

Format history
--------------
1 : first version (embgeo 0.1).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from embgeo.io.bounded.records import RecordFormat
from embgeo.training.study.training import Training

TRAINING_NAME = "training.json"
#: What the folder of a run may be called: nothing leads out of that of the comparison.
RUN_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}/seed-\d{1,10}")
#: The folder with the comparison of the embeddings.
COMPARISON_FOLDER = "comparison"


def check(training: Training) -> None:
    """ValueError unless runs and methods belong together."""
    names = {method.name for method in training.methods}
    if not training.runs or {run.method for run in training.runs} != names:
        raise ValueError("runs and methods do not belong together")
    for run in training.runs:
        if any(len(curve.steps) != len(curve.values) for curve in run.curves.values()):
            raise ValueError("a curve with steps that have no value")
        if not RUN_FOLDER.fullmatch(run.folder):
            raise ValueError("a run in no folder of its own")


TRAINING = RecordFormat(
    "embgeo.training",
    1,
    Training,
    TRAINING_NAME,
    what="a comparison of methods",
    again="train again with: embgeo train --resume",
    check=check,
)


def training_to_json(training: Training) -> dict[str, Any]:
    """The content of ``training.json``."""
    return TRAINING.to_json(training)


def save_training(training: Training, folder: Path) -> Path:
    """Write ``training.json`` into `folder`; EmbgeoError if that cannot be written to."""
    return TRAINING.save(training, folder)


def load_training(folder: Path | str) -> Training:
    """Read the `folder` of a training; UnreadableFile if that is missing or damaged."""
    return TRAINING.load(Path(folder))
