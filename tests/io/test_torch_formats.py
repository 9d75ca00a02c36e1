"""torch checkpoints, in its zip format and the one before: every tensor is what torch reads."""

from __future__ import annotations

import argparse
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embgeo.core.errors import UnreadableFile
from tests.support.binary_files import (
    TORCH_DTYPES,
    arrays,
    as_numpy,
    is_mapped,
    open_file,
    same_bits,
)
from tests.support.refusals import refusal
from tests.support.sampling import each_value, sample_cases
from tests.support.torch_files import module_of

TWO_GIB = 2**31

each_format = pytest.mark.parametrize("old", [False, True], ids=["zip", "legacy"])


def save(torch: Any, value: object, path: Path, old: bool, protocol: int = 2) -> Path:
    torch.save(value, path, pickle_protocol=protocol, _use_new_zipfile_serialization=not old)
    return path


@each_value
@each_format
@pytest.mark.parametrize("protocol", sample_cases([2, 3, 4, 5], 3))
@pytest.mark.parametrize("dtype", TORCH_DTYPES)
def test_dtypes(torch: Any, tmp_path: Path, dtype: str, protocol: int, old: bool) -> None:
    bits = torch.arange(7 * 48, dtype=torch.int64).to(torch.uint8) % 2
    tensor = bits.view(getattr(torch, dtype)) if dtype != "bool" else bits.bool()
    tensor = tensor.reshape(3, -1)
    checkpoint = open_file(save(torch, {"w": tensor}, tmp_path / "a.pt", old, protocol))
    assert checkpoint.format == ("legacy torch checkpoint" if old else "torch checkpoint")
    made = arrays(checkpoint)["w"]
    assert same_bits(made, as_numpy(torch, tensor))
    assert is_mapped(made)


@each_format
def test_views_and_aliases(torch: Any, tmp_path: Path, old: bool) -> None:
    base = torch.arange(60, dtype=torch.float32).reshape(6, 10)
    tensors = {
        "base": base,
        "tied": base,
        "transposed": base.t(),
        "rows": base[2:5],
        "rows at another offset": base[3:6],
        "every other column": base[:, ::2],
        "corner": base[3:, 4:],
        "expanded": base[0].expand(4, 10),
        "row": base[1],
        "scalar": base[2, 3],
        "empty": base[:0],
        "permuted": base.reshape(2, 3, 10).permute(2, 0, 1),
        "another": torch.ones(3),
        "nothing": torch.ones(0, 4),
    }
    checkpoint = open_file(save(torch, tensors, tmp_path / "a.pt", old))
    made = arrays(checkpoint)
    assert list(made) == list(tensors)
    for name, tensor in tensors.items():
        assert same_bits(made[name], tensor.numpy()), name
    aliases = {t.name: t.alias_of for t in checkpoint.tensors if t.alias_of}
    assert aliases == {"tied": "base"}
    assert checkpoint.notes == ()


def test_parameters_subclasses_and_containers(torch: Any, tmp_path: Path) -> None:
    class Marked(torch.Tensor):  # type: ignore[misc, name-defined]
        pass

    with module_of(Marked):
        torch.save(
            {
                "parameter": torch.nn.Parameter(torch.ones(2, 2)),
                "marked": torch.full((2, 2), 3.0).as_subclass(Marked),
                "list": [torch.zeros(1), (torch.ones(1),)],
                "numpy": np.full((2, 2), 4.0),
                "args": argparse.Namespace(lr=0.1, prior=torch.ones(3)),
                "size": torch.ones(2, 3).shape,
                "step": 7,
            },
            tmp_path / "a.pt",
        )
    made = arrays(open_file(tmp_path / "a.pt"))
    assert {name: array.flat[0] for name, array in made.items()} == {
        "parameter": 1,
        "marked": 3,
        "list.0": 0,
        "list.1.0": 1,
        "numpy": 4,
        "args.prior": 1,
    }


@pytest.mark.filterwarnings("ignore:Couldn't retrieve source code")
@each_format
@pytest.mark.parametrize("whole", [False, True], ids=["state_dict", "module"])
def test_a_module_whose_class_is_gone(torch: Any, tmp_path: Path, old: bool, whole: bool) -> None:
    nn = torch.nn

    class Net(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.encoder = nn.Embedding(9, 4)
            self.rnn = nn.LSTM(4, 4)
            self.decoder = nn.Linear(4, 9)
            self.decoder.weight = self.encoder.weight
            self.layers = nn.ModuleList([nn.Linear(2, 2), nn.BatchNorm1d(2)])
            self.word_to_id = {f"w{i}": i for i in range(9)}

    with module_of(Net) as module:
        model = Net()
        save(torch, model if whole else model.state_dict(), tmp_path / "a.pt", old)
    checkpoint = open_file(tmp_path / "a.pt")
    made = arrays(checkpoint)
    expected = {name: value.numpy() for name, value in model.state_dict().items()}
    assert list(made) == list(expected)
    assert all(same_bits(made[name], expected[name]) for name in expected)
    aliases = {t.name: t.alias_of for t in checkpoint.tensors if t.alias_of}
    assert aliases == {"decoder.weight": "encoder.weight"}
    assert checkpoint.tokens == (tuple(f"w{i}" for i in range(9)) if whole else None)
    assert module.__name__ not in sys.modules


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor", "ignore:Sparse CSR")
@each_format
def test_tensors_of_other_kinds_are_named(torch: Any, tmp_path: Path, old: bool) -> None:
    tensors = {
        "w": torch.ones(2, 2),
        "quantized": torch.quantize_per_tensor(torch.ones(2, 2), 0.1, 0, torch.qint8),
        "sparse": torch.eye(3).to_sparse(),
        "csr": torch.eye(3).to_sparse_csr(),
        "meta": torch.ones(2, device="meta"),
        "conj": torch.ones(2, dtype=torch.complex64).conj(),
    }
    checkpoint = open_file(save(torch, tensors, tmp_path / "a.pt", old))
    assert {t.name: (t.shape, t.problem) for t in checkpoint.tensors} == {
        "w": ((2, 2), ""),
        "quantized": ((2, 2), "is a quantized tensor of torch"),
        "sparse": ((3, 3), "is a sparse tensor of torch"),
        "csr": ((3, 3), "is a sparse tensor of torch"),
        "meta": ((2,), "is a meta tensor of torch"),
        "conj": ((2,), "is a lazily negated or conjugated view"),
    }


def rezipped(source: Path, target: Path, change: Callable[[str, bytes], bytes | None]) -> None:
    """The archive again, compressed, with members changed or (None) left out."""
    with (
        zipfile.ZipFile(source) as old,
        zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            data = change(name, old.read(name))
            if data is not None:
                new.writestr(name, data)


@pytest.mark.parametrize("kept", ["all", "no byteorder"])
def test_archives_that_are_compressed_or_without_their_byte_order(
    torch: Any, tmp_path: Path, kept: str
) -> None:
    """torch before 2.1 did not write it."""
    weight = torch.randn(50, 8, generator=torch.Generator().manual_seed(1))
    torch.save({"w": weight}, tmp_path / "a.pt")
    left_out = "byteorder" if kept == "no byteorder" else "nothing"
    rezipped(
        tmp_path / "a.pt",
        tmp_path / "b.pt",
        lambda name, data: None if name.endswith(left_out) else data,
    )
    assert same_bits(arrays(open_file(tmp_path / "b.pt"))["w"], weight.numpy())


@pytest.mark.parametrize("dtype", ["float32", "float8_e5m2"])
def test_big_endian_checkpoints(torch: Any, tmp_path: Path, dtype: str) -> None:
    weight = torch.arange(12, dtype=torch.float32).reshape(3, 4).to(getattr(torch, dtype))
    torch.save({"w": weight.t()}, tmp_path / "a.pt")
    expected = as_numpy(torch, weight.t())
    width = weight.element_size()

    def swap(name: str, data: bytes) -> bytes:
        if name.endswith("byteorder"):
            return b"big"
        if "/data/" in name:
            return np.frombuffer(data, dtype=f"V{width}").view(f"u{width}").byteswap().tobytes()
        return data

    rezipped(tmp_path / "a.pt", tmp_path / "b.pt", swap)
    made = arrays(open_file(tmp_path / "b.pt"))["w"]
    np.testing.assert_array_equal(made.astype("f8"), expected.astype("f8"))


def test_other_zip_archives_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.docx", "w") as archive:
        archive.writestr("word/document.xml", "<x/>")
    with refusal(UnreadableFile):
        open_file(tmp_path / "a.docx")
    with zipfile.ZipFile(tmp_path / "empty.zip", "w"):
        pass
    with refusal(UnreadableFile):
        open_file(tmp_path / "empty.zip")


def test_large_torch_checkpoint_is_mapped(torch: Any, tmp_path: Path) -> None:
    torch.save({"w": torch.ones(16, 16)}, tmp_path / "small.pt")
    with zipfile.ZipFile(tmp_path / "small.pt") as archive:
        names = archive.namelist()
        program = archive.read(names[0])
    grown = program.replace(b"M\x00\x01t", b"J" + (TWO_GIB // 4 - 16).to_bytes(4, "little") + b"t")
    assert grown != program
    path = tmp_path / "a.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(names[0], grown)
        info = zipfile.ZipInfo(next(name for name in names if name.endswith("data/0")))
        # zipfile writes the sizes afterwards; the hole in between takes no room on the disk.
        with archive.open(info, "w", force_zip64=True):
            archive.fp.seek(TWO_GIB, 1)  # type: ignore[union-attr]
        info.file_size = info.compress_size = TWO_GIB
    tensor = open_file(path).tensors[0]
    assert tensor.shape == (16, 16)
    assert is_mapped(tensor.open())
