"""Folders of torch.distributed.checkpoint: every tensor is what was saved, however it was cut."""

from __future__ import annotations

import argparse
import io
import os
import pickle
import shutil
from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.core.errors import UnreadableFile
from embgeo.files import scratch
from embgeo.io.formats import torch_distributed
from embgeo.io.load import open_checkpoint
from tests.support.binary_files import (
    arrays,
    as_numpy,
    check_refused,
    is_mapped,
    open_all,
    quick,
    same_bits,
)
from tests.support.refusals import refusal
from tests.support.sampling import each_value
from tests.support.torch_files import Called, pickle_value

#: torch says so whenever one process saves or loads.
pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled")

Box = tuple[tuple[int, ...], tuple[int, ...]]  # first element, shape


@pytest.fixture(scope="module")
def torch() -> Any:
    found = pytest.importorskip("torch")
    pytest.importorskip("torch.distributed.checkpoint", reason="torch without distributed")
    return found


@pytest.fixture
def saved(torch: Any, tmp_path: Path) -> Path:
    """What torch itself writes from one process."""
    from torch.distributed import checkpoint

    torch.manual_seed(1)
    state = {
        "model": {
            "embed_tokens.weight": torch.randn(9, 4),
            "lm_head.weight": torch.randn(4, 9).t(),
            "half": torch.randn(3).to(torch.bfloat16),
            "none": torch.ones(0, 3),
            "scalar": torch.tensor(2.5),
        },
        "optim": {"state": {"embed_tokens.weight": {"exp_avg": torch.ones(9, 4)}}},
        "step": 7,
        "args": argparse.Namespace(lr=1),
    }
    checkpoint.save(state, checkpoint_id=tmp_path / "step-7", no_dist=True)
    return tmp_path / "step-7"


def boxes(shape: tuple[int, ...], *cuts: tuple[int, ...]) -> list[Box]:
    """The fields of the grid that cuts along each axis make."""
    axes = [list(pairwise((0, *cut, n))) for n, cut in zip(shape, cuts, strict=True)]
    return [
        (tuple(a for a, _ in field), tuple(b - a for a, b in field)) for field in product(*axes)
    ]


class Folder:
    """A folder in the making: pieces in files, and torch's own metadata about them."""

    def __init__(self, torch: Any, path: Path, files: int = 2) -> None:
        from torch.distributed.checkpoint import metadata

        self.torch, self.path, self.metadata = torch, path, metadata
        self.content = [b""] * files
        self.entries: dict[str, Any] = {}
        self.storage: dict[Any, Any] = {}

    def add(self, name: str, tensor: Any, cut: list[Box]) -> None:
        from torch.distributed.checkpoint.filesystem import _StorageInfo

        md, size = self.metadata, self.torch.Size
        self.entries[name] = md.TensorStorageMetadata(
            md.TensorProperties.create_from_tensor(tensor),
            tensor.size(),
            [md.ChunkStorageMetadata(size(first), size(shape)) for first, shape in cut],
        )
        for number, (first, shape) in enumerate(cut):
            box = tuple(slice(a, a + n) for a, n in zip(first, shape, strict=True))
            target = io.BytesIO()
            self.torch.save(tensor[box].clone(), target)
            file = number % len(self.content)
            place = _StorageInfo(f"__{file}_0.distcp", len(self.content[file]), target.tell())
            self.content[file] += target.getvalue()
            self.storage[md.MetadataIndex(name, size(first), number)] = place

    def write(self) -> Path:
        self.path.mkdir()
        for number, content in enumerate(self.content):
            (self.path / f"__{number}_0.distcp").write_bytes(content)
        whole = self.metadata.Metadata(self.entries, storage_data=self.storage)
        (self.path / ".metadata").write_bytes(pickle.dumps(whole))
        return self.path


@pytest.mark.slow
def test_what_torch_saves(torch: Any, saved: Path) -> None:
    from torch.distributed import checkpoint as dcp

    checkpoint = open_checkpoint(saved)
    assert checkpoint.format == "model folder (torch.distributed.checkpoint)"
    made = arrays(checkpoint)
    # A step or a namespace is not a tensor.
    loaded = {
        t.name: torch.zeros(t.shape, dtype=getattr(torch, t.dtype))
        for t in checkpoint.tensors
        if not t.problem
    }
    dcp.load(loaded, checkpoint_id=saved, no_dist=True)
    assert len(made) == 6
    for name, value in loaded.items():
        assert same_bits(made[name], as_numpy(torch, value)), name
        assert is_mapped(made[name]) or not value.numel()
    matrix = embgeo.load(saved)
    assert matrix.origin.tensor == "model.embed_tokens.weight"
    assert matrix.output is not None
    assert matrix.output.origin.tensor == "model.lm_head.weight"
    assert matrix.name == "step-7"


@pytest.mark.slow
def test_the_metadata_file_may_be_named_itself(saved: Path) -> None:
    checkpoint = open_checkpoint(saved / ".metadata")
    assert checkpoint.format == "torch.distributed.checkpoint"
    assert [file.name for file in checkpoint.files] == ["__0_0.distcp"]


@each_value
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e5m2", "int64"])
@pytest.mark.parametrize(
    "cuts", [((3, 6), ()), ((), (2,)), ((1, 4), (1, 3)), ((3, 3, 6), ())], ids=str
)
def test_pieces_are_put_together(
    torch: Any, tmp_path: Path, dtype: str, cuts: tuple[tuple[int, ...], ...]
) -> None:
    from torch.distributed import checkpoint as dcp

    weight = torch.arange(36).reshape(9, 4).to(getattr(torch, dtype))
    folder = Folder(torch, tmp_path / "c")
    folder.add("small", torch.ones(2), boxes((2,), ()))
    folder.add("w", weight, boxes((9, 4), *cuts))
    path = folder.write()
    loaded = {"w": torch.zeros(9, 4, dtype=weight.dtype)}
    dcp.load(loaded, checkpoint_id=path, no_dist=True)
    assert torch.equal(loaded["w"].float(), weight.float())
    made = arrays(open_checkpoint(path))
    assert same_bits(made["w"], as_numpy(torch, weight))
    assert len(open_checkpoint(path).files) == 2


def test_large_tensors_in_pieces_take_a_temporary_file(
    torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weight = torch.randn(40, 8)
    folder = Folder(torch, tmp_path / "c")
    folder.add("w", weight, boxes((40, 8), (10, 20, 30), ()))
    path = folder.write()
    assert not is_mapped(arrays(open_checkpoint(path))["w"])
    monkeypatch.setattr(scratch, "MEMORY_BYTES", 100)
    made = arrays(open_checkpoint(path))["w"]
    assert is_mapped(made)
    assert same_bits(made, weight.numpy())


def test_a_tokenizer_in_the_folder_labels_the_rows(saved: Path) -> None:
    (saved / "vocab.txt").write_text("".join(f"w{i}\n" for i in range(9)))
    assert embgeo.load(saved).tokens == tuple(f"w{i}" for i in range(9))


def test_a_hidden_file_of_that_name_may_be_something_else(tmp_path: Path) -> None:
    (tmp_path / ".metadata").write_bytes(b"\x00\x01something else")
    np.save(tmp_path / "a.npy", np.ones((3, 2)))
    assert open_checkpoint(tmp_path).tensors[0].shape == (3, 2)


def test_odd_tilings_and_compressed_pieces_get_a_note(torch: Any, tmp_path: Path) -> None:
    folder = Folder(torch, tmp_path / "c")
    folder.add("w", torch.ones(4, 4), boxes((4, 4), (2,), ()))
    pinwheel: list[Box] = [((0, 0), (1, 2)), ((0, 2), (2, 1)), ((1, 0), (2, 1)), ((1, 1), (1, 1))]
    folder.add("pinwheel", torch.ones(3, 3), [*pinwheel, ((2, 1), (1, 2))])
    folder.add("zipped", torch.ones(2), boxes((2,), ()))
    for index, info in folder.storage.items():
        if index.fqn == "zipped":
            info.transform_descriptors = ["zstd"]
    checkpoint = open_checkpoint(folder.write())
    assert {t.name: (t.shape, t.problem) for t in checkpoint.tensors} == {
        "w": ((4, 4), ""),
        "pinwheel": ((3, 3), "has pieces that do not fill it like the cells of a grid"),
        "zipped": ((2,), "has compressed pieces"),
    }


# Hostile metadata

Change = Callable[[Folder], None]


def last(folder: Folder) -> Any:
    return folder.storage[list(folder.storage)[-1]]


def chunk(folder: Folder, number: int) -> Any:
    return folder.entries["w"].chunks[number]


def _other_file(name: str) -> Change:
    return lambda folder: setattr(last(folder), "relative_path", name)


def _overlapping(folder: Folder) -> None:
    """Both pieces claim the first rows."""
    chunk(folder, 1).offsets = chunk(folder, 0).offsets


def _the_same_bytes(folder: Folder) -> None:
    """A tensor a thousand times the size of the file, from one piece again and again."""
    info = last(folder)
    info.offset, info.length = 0, len(folder.content[0])
    row = boxes((2000, 4), tuple(range(2, 2000, 2)), ())
    folder.add("w", folder.torch.ones(2000, 4), row[:1])
    for first, shape in row:
        size = folder.torch.Size
        folder.storage[folder.metadata.MetadataIndex("w", size(first))] = info
        folder.entries["w"].chunks.append(
            folder.metadata.ChunkStorageMetadata(size(first), size(shape))
        )


HOSTILE: dict[str, Change] = {
    "offset beyond the file": lambda f: setattr(last(f), "offset", 10**6),
    "offset near 2^63": lambda f: setattr(last(f), "offset", 2**63 - 1),
    "negative offset": lambda f: setattr(last(f), "offset", -5),
    "negative length": lambda f: setattr(last(f), "length", -5),
    "offset inside": lambda f: setattr(last(f), "offset", 1),
    "cut": lambda f: setattr(last(f), "length", 600),
    "empty": lambda f: setattr(last(f), "length", 0),
    "missing file": _other_file("__7_0.distcp"),
    "file outside": _other_file("../secret"),
    "absolute file": _other_file("/etc/passwd"),
    "no file name": _other_file(""),
    "not in any file": lambda f: f.storage.popitem() and None,
    "piece outside": lambda f: setattr(chunk(f, 1), "sizes", f.torch.Size([9, 9])),
    "other shape": lambda f: setattr(f.entries["w"], "size", f.torch.Size([2**40, 2**40])),
    "no pieces": lambda f: f.entries["w"].chunks.clear(),
    "overlap": _overlapping,
    "other dimensions": lambda f: setattr(chunk(f, 0), "sizes", f.torch.Size([2])),
    "other type": lambda f: setattr(f.entries["w"].properties, "dtype", f.torch.int32),
    "no type": lambda f: setattr(f.entries["w"], "properties", None),
    "no state": lambda f: setattr(f.entries["w"], "properties", f.torch.int32),
    "no list of pieces": lambda f: setattr(f.entries["w"], "chunks", 7),
    "a number for a name": lambda f: f.entries.update({7: f.entries["w"]}),
    "a piece of a number": _other_file(7),  # type: ignore[arg-type]
    "no storage": lambda f: setattr(f, "storage", None),
    "the same bytes": _the_same_bytes,
}


@pytest.mark.parametrize("case", list(HOSTILE))
@pytest.mark.slow
def test_hostile_metadata(torch: Any, tmp_path: Path, case: str) -> None:
    folder = Folder(torch, tmp_path / "c", files=1)
    folder.add("w", torch.randn(400, 4), boxes((400, 4), (200,), ()))
    HOSTILE[case](folder)
    path = folder.write()
    # What is wrong inside a piece shows when it is opened.
    with quick(), refusal(UnreadableFile):
        open_all(torch_distributed, path / ".metadata")


def test_pieces_are_bounded(torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder(torch, tmp_path / "c")
    folder.add("w", torch.randn(40, 4), boxes((40, 4), (10, 20, 30), ()))
    path = folder.write()
    monkeypatch.setattr(torch_distributed, "_MOST_PIECES", 4)
    check_refused(torch_distributed, path / ".metadata")
    monkeypatch.setattr(torch_distributed, "_MOST_PIECES", 5)
    open_all(torch_distributed, path / ".metadata")


def test_a_link_out_of_the_folder_is_refused(saved: Path, tmp_path: Path) -> None:
    shutil.move(saved / "__0_0.distcp", tmp_path / "elsewhere")
    (saved / "__0_0.distcp").symlink_to(tmp_path / "elsewhere")
    check_refused(torch_distributed, saved / ".metadata")


PROGRAMS = {
    "command inside": {"state_dict_metadata": Called("os.system", "touch CANARY")},
    "no metadata": Called("torch.distributed.checkpoint.metadata.Metadata"),
}


@pytest.mark.parametrize("case", list(PROGRAMS))
def test_pickles_that_are_no_metadata(
    tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / ".metadata"
    path.write_bytes(pickle_value([PROGRAMS[case], "torch.distributed.checkpoint.metadata"]))
    check_refused(torch_distributed, path)
    assert os.listdir(tmp_path) == [".metadata"]
