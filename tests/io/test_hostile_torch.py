"""Damaged and hostile files in torch's older formats: one line, quickly, and nothing runs."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from embgeo.io.formats import torch_legacy, torch_zip
from tests.support.binary_files import archive_of, check_refused, open_as, tensor_program
from tests.support.torch_files import (
    MAGIC,
    SYSTEM,
    Called,
    Named,
    Stored,
    legacy,
    pickle_value,
    storage,
    tensor,
)

SIX = storage(0, 1, 2, 3, 4, 5)
SOUND = legacy({"w": tensor()})
BOMB = 2**62


def stored(pid: object) -> object:
    return Called("torch._utils._rebuild_tensor", Stored(pid), 0, (2, 3), (3, 1))


FLOATS = Named("torch.FloatStorage")

LEGACY: dict[str, tuple[bytes, str]] = {
    "cut in the numbers": SOUND[:-1],
    "cut before the count": SOUND[:-30],
    "cut in the object": SOUND[:160],
    "cut behind the magic": pickle_value(MAGIC),
    "shorter than promised": legacy({"w": tensor(elements=7)}, storages=SIX),
    "negative elements": legacy({"w": tensor(elements=-1)}),
    "negative shape": legacy({"w": tensor(shape=(-2, 3))}),
    "repeated into absurdity": legacy({"w": tensor(shape=(2**40, 3), strides=(0, 1))}),
    "33 dimensions": legacy({"w": tensor(shape=(1,) * 33, strides=(1,) * 33)}),
    "part outside": legacy({"w": tensor(part=("1", 1, 6))}),
    "part too short": legacy({"w": tensor(part=("1", 1, 5))}),
    "part of three": legacy({"w": tensor(part=("1", 1))}),
    "unknown storage": legacy({"w": tensor(kind="torch.EvilStorage")}),
    "storage of no class": legacy(
        {"w": stored(("storage", "torch.FloatStorage", "0", "cpu", 6, None))}
    ),
    "pid of five": legacy({"w": stored(("storage", FLOATS, "0", "cpu", 6))}, (), b""),
    "keys missing": legacy({"w": tensor()}, ()),
    "key of nobody": legacy({"w": tensor()}, ("1",)),
    "key twice": legacy({"w": tensor()}, ("0", "0"), SIX * 2),
    "keys of text": legacy({"w": tensor()}, "0"),
    "keys of numbers": legacy({"w": tensor()}, (2.5,)),
    "other version": legacy({"w": tensor()}, version=1002),
    "no tensor": legacy({"w": 1}, (), b""),
    "command": legacy(Called("os.system", "touch CANARY"), (), b""),
}


@pytest.mark.parametrize("case", list(LEGACY))
def test_legacy(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = LEGACY[case]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.pt").write_bytes(content)
    check_refused(torch_legacy, tmp_path / "a.pt")
    assert os.listdir(tmp_path) == ["a.pt"]


def test_commands_beside_a_sound_tensor_stay_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    value = {
        "w": tensor(),
        "evil": Called("os.system", "touch CANARY"),
        "module": Stored(("module", Called("os.system", "touch CANARY"), "a.py", "import os")),
        "nested": [Called("builtins.exec", Called("builtins.compile", "open('CANARY', 'w')"))],
    }
    (tmp_path / "a.pt").write_bytes(legacy(value))
    (found,) = open_as(torch_legacy, tmp_path / "a.pt").tensors
    assert found.open().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert os.listdir(tmp_path) == ["a.pt"]


# TorchScript


def test_torchscript_code_is_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    evil = pickle.dumps(None)[:2] + b"cos\nsystem\nX\x0c\x00\x00\x00touch CANARY\x85R."
    members = {
        "s/data.pkl": tensor_program(),
        "s/data/0": bytes(24),
        "s/constants.pkl": evil,
        "s/code/__torch__.py": b"import os; os.system('touch CANARY')",
    }
    (tmp_path / "a.pt").write_bytes(archive_of(members))
    checkpoint = open_as(torch_zip, tmp_path / "a.pt")
    assert checkpoint.format == "TorchScript archive"
    assert [t.name for t in checkpoint.tensors] == ["w"]
    assert os.listdir(tmp_path) == ["a.pt"]


def test_system_description_is_only_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    path.write_bytes(legacy({"w": tensor()}, system={**SYSTEM, "type_sizes": "odd"}))
    assert open_as(torch_legacy, path).tensors[0].shape == (2, 3)
