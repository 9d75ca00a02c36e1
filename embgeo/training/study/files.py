"""A comparison of methods as ``training.json``, saved and read back.

Beside it lie the runs (``METHOD/seed-S``), ``comparison`` (the embeddings of one seed side by
side, see :mod:`embgeo.comparison.files`) and, once rendered, ``report.html``.

Format history
--------------
1 : first version (embgeo 0.1).
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

from embgeo.core.errors import EmbgeoError, UnreadableFile
from embgeo.core.values import quantity_from_json, quantity_to_json
from embgeo.io.bounded.saved import DAMAGE, read_json, write_text
from embgeo.training.study.training import Curve, Method, Outcome, Run, Training

FORMAT = "embgeo.training"
FORMAT_VERSION = 1
TRAINING_NAME = "training.json"
#: What the folder of a run may be called: nothing leads out of that of the comparison.
RUN_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}/seed-\d{1,10}")
#: The folder with the comparison of the embeddings.
COMPARISON_FOLDER = "comparison"

_AGAIN = "train again with: embgeo train --resume"


def training_to_json(training: Training) -> dict[str, Any]:
    """The content of ``training.json``."""
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "provenance": dict(training.provenance),
        "sentences": list(training.sentences),
        "claims": [asdict(outcome) for outcome in training.outcomes],
        "methods": [asdict(method) for method in training.methods],
        "runs": [asdict(run) for run in training.runs],
        "quantities": [{**quantity_to_json(q), "better": q.better} for q in training.quantities],
        "notes": list(training.notes),
    }


def save_training(training: Training, folder: Path) -> Path:
    """Write ``training.json`` into `folder`, whole or not at all.

    Raises
    ------
    EmbgeoError
        If `folder` cannot be written to.
    """
    path = folder / TRAINING_NAME
    content = training_to_json(training)
    try:
        text = json.dumps(content, indent=1, ensure_ascii=True, allow_nan=False) + "\n"
        write_text(path, text)
    except OSError as error:
        raise EmbgeoError(
            f"cannot be written: {error.strerror or error}",
            where=folder,
            way_out="choose another folder with -o",
        ) from error
    return path


def load_training(folder: Path) -> Training:
    """Read what :func:`save_training` wrote.

    Raises
    ------
    UnreadableFile
        If there is none, a damaged one, or one of a format version that this embgeo does not know.
    """
    path = folder / TRAINING_NAME if folder.is_dir() else folder
    d = read_json(path, folder, (FORMAT, FORMAT_VERSION), "a comparison of methods", _AGAIN)
    try:
        return _from_json(d)
    except DAMAGE as error:
        raise UnreadableFile(f"damaged ({error})", where=path, way_out=_AGAIN) from error


def _from_json(d: dict[str, Any]) -> Training:
    training = Training(
        provenance=dict(d["provenance"]),
        quantities=tuple(map(quantity_from_json, d["quantities"])),
        methods=tuple(Method(**{**m, "deviations": tuple(m["deviations"])}) for m in d["methods"]),
        runs=tuple(map(_run, d["runs"])),
        outcomes=tuple(
            Outcome(**{**o, "interval": o["interval"] and tuple(o["interval"])})
            for o in d["claims"]
        ),
        sentences=tuple(d["sentences"]),
        notes=tuple(d["notes"]),
    )
    names = {method.name for method in training.methods}
    if not training.runs or {run.method for run in training.runs} != names:
        raise ValueError("runs and methods do not belong together")
    return training


def _run(d: dict[str, Any]) -> Run:
    curves = {
        name: Curve(tuple(map(float, c["steps"])), tuple(map(float, c["values"])))
        for name, c in d["curves"].items()
    }
    if any(len(c.steps) != len(c.values) for c in curves.values()):
        raise ValueError("a curve with steps that have no value")
    if not RUN_FOLDER.fullmatch(d["folder"]):
        raise ValueError("a run in no folder of its own")
    numbers = {str(name): float(value) for name, value in d["numbers"].items()}
    return Run(**{**d, "numbers": numbers, "curves": curves, "notes": tuple(d["notes"])})
