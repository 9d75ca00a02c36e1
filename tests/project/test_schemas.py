"""The JSON Schemas of docs/schemas describe what embgeo writes, and nothing else."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embgeo
from tests.support.documents import ROOT
from tests.support.sample_comparison import sample_comparison
from tests.support.sample_runs import sample_training

fastjsonschema = pytest.importorskip("fastjsonschema", reason="fastjsonschema is not installed")

_SPEC = importlib.util.spec_from_file_location("make_schemas", ROOT / "docs" / "make_schemas.py")
MAKER = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(MAKER)


def written(folder: Path) -> dict[str, Any]:
    """A file of each format."""
    X = np.random.default_rng(0).standard_normal((60, 6))
    counts = np.arange(60, 0, -1)
    embgeo.analyze(X, counts=counts, tokens=[f"w{n}" for n in range(60)]).save(folder)
    sample_comparison(members=3, track=True).save(folder)
    MAKER.STUDY.save(sample_training(), folder)
    files = ("analysis.json", "comparison.json", "training.json")
    return {name: json.loads((folder / name).read_text("utf-8")) for name in files}


def test_schemas_are_those_of_the_records() -> None:
    for format_ in MAKER.FORMATS:
        text = MAKER.target(format_).read_text("utf-8")
        assert text == MAKER.document(format_), "run: python docs/make_schemas.py"


@pytest.mark.slow
def test_what_is_written_fits_and_what_is_changed_does_not(tmp_path: Path) -> None:
    files = written(tmp_path)
    for format_ in MAKER.FORMATS:
        validate = fastjsonschema.compile(json.loads(MAKER.target(format_).read_text("utf-8")))
        content = files[format_.file]
        validate(content)
        last = [key for key in content if key != "arrays_sha256"][-1]
        for changed in (
            {key: value for key, value in content.items() if key != "format_version"},
            {key: value for key, value in content.items() if key != last},
            content | {"format": "other"},
            content | {"more": 1},
            content | {last: 1},
        ):
            with pytest.raises(fastjsonschema.JsonSchemaException):
                validate(changed)
