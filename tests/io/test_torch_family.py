"""Other files of torch, and checkpoints of toolkits: every tensor is what torch reads."""

from __future__ import annotations

import argparse
import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import embgeo
from embgeo.core.errors import AmbiguousTensor, UnreadableFile
from embgeo.io.load import open_checkpoint
from tests.support.binary_files import (
    arrays,
    is_mapped,
    same_bits,
)
from tests.support.refusals import refusal
from tests.support.torch_files import (
    SYSTEM,
    legacy,
    storage,
    tensor,
)

SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "real_embeddings"
OPENNMT = SHARED / "opennmt_legacy_b.pt"
WORDS = [f"w{i}" for i in range(9)]


# The legacy format


PARTS = {
    "whole": tensor("7", 8, shape=(2, 4), strides=(4, 1)),
    "part": tensor("7", 8, part=("8", 2, 5), shape=(5,), strides=(1,)),
    "in a part": tensor("7", 8, part=("9", 4, 4), offset=1, shape=(3,), strides=(1,)),
    "twice": [
        tensor("7", 8, part=("8", 2, 5), shape=(5,), strides=(1,)),
        tensor("5", 2, kind="torch.cuda.FloatStorage", shape=(2, 3), strides=(1, 0)),
    ],
}
PART_STORAGES = storage(10, 11) + storage(*range(8))


def test_legacy_parts_of_storages(torch: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    path.write_bytes(legacy(PARTS, ("5", "7"), PART_STORAGES))
    checkpoint = open_checkpoint(path)
    made = arrays(checkpoint)
    twice = made.pop("twice.0"), made.pop("twice.1")
    loaded = torch.load(path, weights_only=False, map_location=lambda stored, _: stored)
    for name, value in made.items():
        assert same_bits(value, loaded[name].numpy()), name
    assert [same_bits(a, b.numpy()) for a, b in zip(twice, loaded["twice"], strict=True)] == [1, 1]
    aliases = {t.name: t.alias_of for t in checkpoint.tensors if t.alias_of}
    assert aliases == {"twice.0": "part"}


def test_legacy_numbers_are_little_endian_whatever_the_machine(torch: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    path.write_bytes(legacy({"w": tensor()}, system={**SYSTEM, "little_endian": False}))
    loaded = torch.load(path, weights_only=False)
    assert same_bits(arrays(open_checkpoint(path))["w"], loaded["w"].numpy())


def test_legacy_bytes_behind_the_last_storage_are_mentioned(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    path.write_bytes(legacy({"w": tensor()}) + b"more")
    assert open_checkpoint(path).notes == ("4 bytes after the last storage were not read",)


# TorchScript


def scripted(torch: Any) -> Any:
    nn = torch.nn

    class Net(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(9, 3)
            self.blocks = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
            self.again = self.blocks[0]
            self.fc = nn.Linear(3, 9)
            self.fc.weight = self.embedding.weight
            self.register_buffer("steps", torch.arange(4))
            self.itos = WORDS

        def forward(self, ids):  # type: ignore[no-untyped-def]
            hidden = self.embedding(ids)
            for block in self.blocks:
                hidden = block(hidden)
            return self.fc(self.again(hidden))

    return Net().eval()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("way", ["script", "trace"])
@pytest.mark.slow
def test_torchscript(torch: Any, tmp_path: Path, way: str) -> None:
    model = scripted(torch)
    made = torch.jit.trace(model, torch.arange(4)) if way == "trace" else torch.jit.script(model)
    made.save(str(tmp_path / "a.pt"))
    checkpoint = open_checkpoint(tmp_path / "a.pt")
    assert checkpoint.format == "TorchScript archive"
    found = arrays(checkpoint)
    expected = {name: value.numpy() for name, value in model.state_dict().items()}
    assert found.keys() == expected.keys()
    assert all(same_bits(found[name], expected[name]) for name in expected)
    matrix = embgeo.load(tmp_path / "a.pt")
    assert matrix.origin.tensor == "embedding.weight"
    assert matrix.output is None
    assert matrix.tokens == (tuple(WORDS) if way == "script" else None)


def test_a_distcp_file_alone_leads_to_its_folder(torch: Any, tmp_path: Path) -> None:
    torch.save(torch.ones(2, 3), tmp_path / "a.pt")
    (tmp_path / "b.pt").write_bytes((tmp_path / "a.pt").read_bytes() * 2)
    with refusal(UnreadableFile):
        open_checkpoint(tmp_path / "b.pt")


# Sharded torch checkpoints


@pytest.mark.parametrize("old", [False, True])
def test_pytorch_model_bin_index(torch: Any, tmp_path: Path, old: bool) -> None:
    parts = [
        {"model.embed_tokens.weight": torch.randn(9, 4), "model.norm.weight": torch.ones(4)},
        {"lm_head.weight": torch.randn(9, 4)},
    ]
    index = {}
    for number, part in enumerate(parts, 1):
        name = f"pytorch_model-0000{number}-of-00002.bin"
        torch.save(part, tmp_path / name, _use_new_zipfile_serialization=not old)
        index |= dict.fromkeys(part, name)
    path = tmp_path / "pytorch_model.bin.index.json"
    path.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": index}, indent=2))
    (tmp_path / "config.json").write_text(json.dumps({"tie_word_embeddings": False}))
    expected = parts[0] | parts[1]
    for given in (path, tmp_path):
        checkpoint = open_checkpoint(given)
        made = arrays(checkpoint)
        assert list(made) == list(expected)
        assert all(same_bits(made[name], expected[name].numpy()) for name in expected)
        assert all(is_mapped(value) for value in made.values())
        assert [file.name[:19] for file in checkpoint.files] == [
            "pytorch_model-00001",
            "pytorch_model-00002",
        ]
        matrix = embgeo.load(given)
        assert matrix.origin.tensor == "model.embed_tokens.weight"
        assert matrix.output is not None
        assert matrix.output.origin.tensor == "lm_head.weight"


# Checkpoints of translation toolkits


@pytest.mark.skipif(not OPENNMT.is_file(), reason="the shared data are not next to the checkout")
def test_opennmt(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, cls in (("torchtext.vocab", "Vocab"), ("onmt.Optim", "Optim")):
        package = name.partition(".")[0]
        monkeypatch.setitem(sys.modules, package, types.ModuleType(package))
        module = types.ModuleType(name)
        setattr(module, cls, type(cls, (), {}))
        monkeypatch.setitem(sys.modules, name, module)
    # The optimizer of today cannot take the state of the one of 2017; nobody asks it to.
    monkeypatch.setattr(torch.optim.Adam, "__setstate__", lambda *_: None)
    loaded = torch.load(OPENNMT, weights_only=False, map_location="cpu")
    checkpoint = open_checkpoint(OPENNMT)
    made = arrays(checkpoint)
    for part in ("model", "generator"):
        assert loaded[part]
        for name, value in loaded[part].items():
            assert same_bits(made[f"{part}.{name}"], value.numpy())
    with refusal(AmbiguousTensor):
        embgeo.load(OPENNMT)
    vocabularies = {name: vocab.itos for name, vocab in loaded["vocab"]}
    source = embgeo.load(OPENNMT, tensor="model.encoder.embeddings.emb_luts.0.weight")
    assert source.tokens == tuple(vocabularies["src"])
    assert source.output is None
    target = embgeo.load(OPENNMT, tensor="model.decoder.embeddings.emb_luts.0.weight")
    assert target.tokens == tuple(vocabularies["tgt"])
    assert target.output is not None
    assert target.output.origin.tensor == "generator.0.weight"
    assert target.output.tokens == target.tokens


def test_two_vocabularies_of_one_length_go_to_their_sides(torch: Any, tmp_path: Path) -> None:
    source, target = [f"s{i}" for i in range(9)], [f"t{i}" for i in range(9)]
    torch.save(
        {
            "model": {
                "encoder.embed_tokens.weight": torch.randn(9, 4),
                "decoder.embed_tokens.weight": torch.randn(9, 4),
            },
            "vocab": [("src", {"itos": source}), ("tgt", {"itos": target})],
        },
        tmp_path / "a.pt",
    )
    for side, words in (("encoder", source), ("decoder", target)):
        matrix = embgeo.load(tmp_path / "a.pt", tensor=f"model.{side}.embed_tokens.weight")
        assert matrix.tokens == tuple(words)


def test_fairseq(torch: Any, tmp_path: Path) -> None:
    model = {
        "encoder.version": torch.ones(1),
        "encoder.embed_tokens.weight": torch.randn(9, 4),
        "encoder.embed_positions._float_tensor": torch.ones(1),
        "encoder.layers.0.fc1.weight": torch.randn(8, 4),
        "decoder.embed_tokens.weight": torch.randn(7, 4),
        "decoder.output_projection.weight": torch.randn(7, 4),
    }
    state = {
        i: {"exp_avg": w.clone(), "exp_avg_sq": w.clone()} for i, w in enumerate(model.values())
    }
    saved = {
        "args": argparse.Namespace(arch="transformer", dropout=0.3),
        "cfg": None,
        "model": model,
        "criterion": None,
        "optimizer_history": [{"optimizer_name": "FairseqAdam", "num_updates": 3}],
        "task_state": {},
        "extra_state": {"train_iterator": {"epoch": 2}, "val_loss": 4.2},
        "last_optimizer_state": {"state": state, "param_groups": []},
    }
    torch.save(saved, tmp_path / "a.pt")
    with refusal(AmbiguousTensor):
        embgeo.load(tmp_path / "a.pt")
    decoder = embgeo.load(tmp_path / "a.pt", tensor="model.decoder.embed_tokens.weight")
    assert decoder.output is not None
    assert decoder.output.origin.tensor == "model.decoder.output_projection.weight"
    encoder = embgeo.load(tmp_path / "a.pt", tensor="model.encoder.embed_tokens.weight")
    assert encoder.output is None
    # A language model has a decoder only, and its projection in the storage of the embedding.
    del model["encoder.embed_tokens.weight"]
    model["decoder.output_projection.weight"] = model["decoder.embed_tokens.weight"]
    torch.save(saved, tmp_path / "lm.pt")
    tied = embgeo.load(tmp_path / "lm.pt")
    assert tied.origin.tensor == "model.decoder.embed_tokens.weight"
    assert tied.output is None
    assert tied.origin.tied


def test_an_optimizer_that_comes_first_does_not_name_the_matrices(
    torch: Any, tmp_path: Path
) -> None:
    weight, projection = torch.randn(9, 4), torch.randn(9, 4)
    torch.save(
        {
            "optim": {"params": [weight, projection]},
            "model": {"embedding.weight": weight, "rnn.weight_hh_l0": torch.randn(16, 4)},
            "generator": {"0.weight": projection},
        },
        tmp_path / "a.pt",
    )
    matrix = embgeo.load(tmp_path / "a.pt")
    assert matrix.origin.tensor == "model.embedding.weight"
    assert matrix.output is not None
    assert matrix.output.origin.tensor == "generator.0.weight"
