"""The fixtures are what their README says: present, small, aligned, and honestly measured."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

FIXTURES = Path(__file__).parents[2] / "fixtures"
TINY = FIXTURES / "tiny"
HOSTILE = FIXTURES / "hostile"
MODELS = ("baseline", "cosreg")
#: Formats whose bytes depend on neither the platform nor a compression library.
PLAIN = (
    "tiny/tiny.npy",
    "tiny/tiny.safetensors",
    "tiny/tiny.w2v.bin",
    "tiny/tiny.w2v.txt",
    "tiny/tiny.vec",
    "tiny/tiny.glove.txt",
    "tiny/tiny.json",
    "tiny/tiny-hf/tokenizer.json",
    "hostile/os_system.pkl",
    "hostile/os_system.pt",
    "hostile/terabytes.npy",
    "hostile/billion_laughs.pkl",
    "hostile/hostile_vocab.json",
)


def read_json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def files_below(folder: Path) -> list[Path]:
    return [p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts]


def vocabulary() -> tuple[list[str], list[int]]:
    lines = (FIXTURES / "vocab_counts.tsv").read_text("utf-8").rstrip("\n").split("\n")
    pairs = [line.split("\t") for line in lines]
    return [token for token, _ in pairs], [int(count) for _, count in pairs]


def stored_bytes(path: Path) -> list[bytes]:
    with zipfile.ZipFile(path) as archive:
        return [archive.read(name) for name in archive.namelist() if "/data/" in name]


def baseline_rows(size: int) -> np.ndarray:
    """The only storage of `size` bytes in baseline.pt; more than one would mean an untied copy."""
    found = [raw for raw in stored_bytes(FIXTURES / "baseline.pt") if len(raw) == size]
    assert len(found) == 1
    return np.frombuffer(found[0], "<f4")


def rows_of(model: str) -> np.ndarray:
    cosreg = load_file(FIXTURES / "cosreg.safetensors")["encoder.weight"]
    if model == "cosreg":
        return cosreg.astype(float)
    return baseline_rows(cosreg.nbytes).reshape(cosreg.shape).astype(float)


@pytest.mark.parametrize("model", MODELS)
def test_expected_isotropy(model: str) -> None:
    """Z straight from its definition: the norms here are small enough for exp."""
    W, expected = rows_of(model), read_json(FIXTURES / "expected.json")[model]
    right = np.linalg.svd(W, full_matrices=False)[2].T
    projections = W @ right
    forward, backward = np.exp(projections).sum(axis=0), np.exp(-projections).sum(axis=0)
    both = np.concatenate([forward, backward])
    towards_mean = np.where(projections.sum(axis=0) >= 0, forward, backward)
    for suffix, z in (("", both), ("_mean_sign", towards_mean)):
        assert expected["i1" + suffix] == pytest.approx(z.min() / z.max(), rel=1e-6)
        assert expected["i2" + suffix] == pytest.approx(z.std() / z.mean(), rel=1e-6)


def test_baseline_is_degenerate_and_cosreg_is_not() -> None:
    """What the two models are for; a retrained pair that loses it must not slip in."""
    expected = read_json(FIXTURES / "expected.json")
    baseline, cosreg = expected["baseline"], expected["cosreg"]
    assert baseline["mean_cosine"] > 0.3 > 0.05 > abs(cosreg["mean_cosine"])
    assert baseline["energy_share_first"] > 0.5 > 0.25 > cosreg["energy_share_first"]
    assert baseline["i1"] < 0.3 < 0.6 < cosreg["i1"]
    assert baseline["i1_unit"] < 0.5 < cosreg["i1_unit"]
    assert baseline["probe_auc"] > 0.9


@pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="make.py tiny needs torch")
@pytest.mark.nightly
def test_make_tiny_makes_the_committed_files(tmp_path: Path) -> None:
    command = [sys.executable, str(FIXTURES / "make.py"), "tiny", "--out", str(tmp_path)]
    subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    made = sorted(path.relative_to(tmp_path) for path in files_below(tmp_path))
    committed = [*files_below(TINY), *files_below(HOSTILE)]
    assert made == sorted(path.relative_to(FIXTURES) for path in committed)
    for plain in PLAIN:
        assert (tmp_path / plain).read_bytes() == (FIXTURES / plain).read_bytes(), plain
