"""The board of suspects: its command repairs the model, and stands only where that can be done."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

import embgeo
from embgeo.core.suspects import REASONS
from embgeo.report.board import list_board
from embgeo.report.text.suspects import write_repair
from tests.support.command import call


def zeroed() -> np.ndarray:
    rows = np.random.default_rng(0).normal(size=(400, 16)).astype(np.float32)
    rows[[3, 7]] = 0.0
    return rows


def command_of(path: Path) -> str:
    analysis = embgeo.analyze(path)
    board = list_board(analysis)
    assert [line["reason"] for line in board if line["serious"]] == ["zero"]
    assert all(not line["help"] for line in board if REASONS[line["reason"]].serious)
    return write_repair(analysis)


def test_files_that_a_repair_writes_have_its_command(tmp_path: Path) -> None:
    shards = tmp_path / "shards"
    shards.mkdir()
    name = "model-00001-of-00002.safetensors"
    save_file({"embed_tokens.weight": zeroed()}, shards / name)
    save_file({"norm.weight": np.ones(16, np.float32)}, shards / name.replace("1-of", "2-of"))
    held = {"embed_tokens.weight": name, "norm.weight": name.replace("1-of", "2-of")}
    (shards / "model.safetensors.index.json").write_text(json.dumps({"weight_map": held}))
    alone = tmp_path / "a model.safetensors"
    save_file({"embed_tokens.weight": zeroed()}, alone)
    for path in (shards, alone):
        out = tmp_path / f"{path.stem}.repaired"
        words = shlex.split(command_of(path).replace("REPAIRED", shlex.quote(str(out))))
        assert words[:3] == ["embgeo", "repair", str(path)]
        assert call(*words[1:]).exit_code == 0
        assert "zero" not in {own.reason for own in embgeo.analyze(out).suspects}


def test_other_files_have_no_command(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", zeroed())
    assert command_of(tmp_path / "rows.npy") == ""
