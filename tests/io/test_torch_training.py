"""What training programs save around a model: it never hides the embedding, and never runs."""

from __future__ import annotations

import argparse
import datetime
import enum
import pathlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.core.errors import AmbiguousTensor
from embgeo.io.load import open_checkpoint
from embgeo.io.model.checkpoint import Checkpoint, Tensor
from embgeo.io.model.choice import choose
from tests.support.binary_files import arrays, same_bits
from tests.support.refusals import refusal
from tests.support.torch_files import module_of

N, D = 50, 4


class Color(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    HIGH = 3


class EasyDict(dict):  # type: ignore[type-arg]
    """As the package of that name: every entry is an attribute too."""

    def __init__(self, **entries: object) -> None:
        super().__init__()
        for name, value in entries.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        super().__setitem__(name, value)


def trained(torch: Any) -> tuple[Any, Any]:
    """A small model with the optimizer that has taken a step."""
    torch.manual_seed(1)
    model = torch.nn.Sequential()
    model.add_module("embedding", torch.nn.Embedding(N, D))
    model.add_module("fc", torch.nn.Linear(D, N))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.arange(5)).sum().backward()
    optimizer.step()
    return model, optimizer


@pytest.mark.slow
def test_lightning_checkpoint_with_omegaconf(torch: Any, tmp_path: Path) -> None:
    omegaconf = pytest.importorskip("omegaconf", reason="omegaconf writes such checkpoints")
    model, optimizer = trained(torch)
    config = omegaconf.OmegaConf.create(
        {"model": {"dim": D, "layers": [1, 2]}, "lr": 1e-3, "path": "${oc.env:HOME}"}
    )
    torch.save(
        {
            "epoch": 3,
            "global_step": 12,
            "pytorch-lightning_version": "2.5.0",
            "state_dict": {f"model.{name}": value for name, value in model.state_dict().items()},
            "loops": {"fit_loop": {"state_dict": {}, "epoch_progress": {"total": {"ready": 1}}}},
            "callbacks": {
                "ModelCheckpoint{'monitor': 'loss'}": {
                    "best_model_score": torch.tensor(0.5),
                    "best_k_models": {"/runs/a.ckpt": torch.tensor(0.5)},
                    "dirpath": pathlib.PurePosixPath("/runs"),
                }
            },
            "optimizer_states": [optimizer.state_dict()],
            "lr_schedulers": [{"last_epoch": 3, "base_lrs": [0.1]}],
            "hparams_name": "config",
            "hyper_parameters": config,
            "datamodule_hyper_parameters": omegaconf.OmegaConf.create([1, {"a": 2}]),
        },
        tmp_path / "a.ckpt",
    )
    made = arrays(open_checkpoint(tmp_path / "a.ckpt"))
    for name, value in model.state_dict().items():
        assert same_bits(made[f"state_dict.model.{name}"], value.numpy())
    assert not any(name.startswith(("hyper_parameters", "datamodule")) for name in made)
    matrix = embgeo.load(tmp_path / "a.ckpt")
    assert matrix.origin.tensor == "state_dict.model.embedding.weight"
    assert matrix.output is not None
    assert matrix.output.origin.tensor == "state_dict.model.fc.weight"


def test_optimizer_state_in_the_shape_of_the_embedding_is_no_candidate(
    torch: Any, tmp_path: Path
) -> None:
    torch.save(
        {
            "net": {"whatever.weight": torch.randn(N, D)},
            "optimizer": {"state": {0: {"exp_avg": torch.ones(N, D), "max_exp_avg_sq": None}}},
            "opt_state": {"embedding.weight": torch.ones(N, D)},
            "momentum_buffer": [torch.ones(N, D)],
        },
        tmp_path / "a.pt",
    )
    matrix = embgeo.load(tmp_path / "a.pt")
    assert matrix.origin.tensor == "net.whatever.weight"
    assert matrix.origin.reason == "the only matrix in the file"


def names_of(*names: str, shape: tuple[int, int] = (N, D)) -> Checkpoint:
    tensors = tuple(Tensor(name, shape, "float32", lambda: np.zeros(0)) for name in names)
    return Checkpoint("test", tensors, path=Path("model.ckpt"))


def test_averaged_copies_are_mentioned_and_left_out() -> None:
    for copy in (
        "ema.{}",
        "model_ema.{}",
        "state_dict_ema.{}",
        "ema_state_dict.module.{}",
        "swa.{}",
    ):
        averaged = [copy.format(name) for name in ("embed_tokens.weight", "lm_head.weight")]
        model = ["model.embed_tokens.weight", "model.lm_head.weight"]
        both = names_of(*averaged, *model)
        choice = choose(both)
        assert choice.input.name == "model.embed_tokens.weight"
        assert choice.output is not None
        assert choice.output.name == "model.lm_head.weight"
        assert [t.name for t in choice.candidates] == model
        (note,) = choice.notes
        assert note.startswith(f"{averaged[0]} is a running average of the weights")
        assert f"--tensor {averaged[0]}" in note
        # What the note offers is there, with the projection of its own kind.
        other = choose(both, tensor=averaged[0])
        assert other.output is not None
        assert other.output.name == averaged[1]
        assert other.notes == ()


def test_a_file_of_averaged_weights_alone_is_chosen_from() -> None:
    choice = choose(
        names_of("ema.layers.0.weight", "ema.embed_tokens.weight", "ema.lm_head.weight")
    )
    assert choice.input.name == "ema.embed_tokens.weight"
    assert choice.output is not None
    assert choice.output.name == "ema.lm_head.weight"


def test_a_file_of_optimizer_state_alone_is_put_to_the_user() -> None:
    with refusal(AmbiguousTensor):
        choose(names_of("state.0.exp_avg", "state.0.exp_avg_sq"))


@pytest.mark.parametrize("old", [False, True])
def test_odd_contents_stay_inert(torch: Any, tmp_path: Path, old: bool) -> None:
    weight = torch.randn(N, D).to(torch.bfloat16)
    with module_of(Color, Level, EasyDict):
        torch.save(
            {
                "embedding": weight,
                "float8": weight.to(torch.float8_e5m2),
                "numpy scalars": [np.float32(1.5), np.int64(3), np.bool_(True), np.str_("a")],
                "when": datetime.datetime(2019, 1, 2, tzinfo=datetime.UTC),
                "took": datetime.timedelta(1),
                "where": [pathlib.PurePosixPath("/a/b"), pathlib.PureWindowsPath("c:/a")],
                "enums": [Color.RED, Level.HIGH],
                "easy": EasyDict(lr=0.1, table=torch.ones(3, 2)),
                "args": argparse.Namespace(
                    lr=1, inner=argparse.Namespace(deep=argparse.Namespace(prior=torch.ones(2)))
                ),
                "device": torch.device("cpu"),
                "dtype": torch.float32,
                "set": {1, "a"},
                "frozen": frozenset({2}),
                "complex": 1 + 2j,
                "bytes": bytearray(b"abc"),
                "slice": slice(1, 2),
                "range": range(5),
                "function": len,
                "class": argparse.Namespace,
                "pairs": [("first", torch.ones(1)), ("second", torch.zeros(1))],
            },
            tmp_path / "a.pt",
            _use_new_zipfile_serialization=not old,
        )
    checkpoint = open_checkpoint(tmp_path / "a.pt")
    made = arrays(checkpoint)
    assert {name: value.shape for name, value in made.items()} == {
        "embedding": (N, D),
        "float8": (N, D),
        "easy.table": (3, 2),
        "args.inner.deep.prior": (2,),
        "pairs.first": (1,),
        "pairs.second": (1,),
    }
    assert np.array_equal(made["embedding"].astype(np.float32), weight.float().numpy())
    assert checkpoint.notes == ()
    assert embgeo.load(tmp_path / "a.pt").origin.tensor == "embedding"
