"""Callbacks inside the real trainers of transformers and Lightning, where they are installed."""

from __future__ import annotations

import csv
import warnings
from pathlib import Path
from typing import Any

import pytest

import embgeo
from embgeo.callbacks import LightningGeometry, Monitor, TrainerGeometry, attach
from tests.support.documents import ROOT, blocks

NAMES = ("cosine.mean", "isotropy.i1_unit")

# These packages warn of their own affairs.
pytestmark = pytest.mark.filterwarnings("ignore")


# --- transformers -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def transformers() -> Any:
    return pytest.importorskip("transformers")


def tiny_gpt2(transformers: Any, **options: Any) -> Any:
    config = transformers.GPT2Config(
        vocab_size=100, n_positions=16, n_embd=8, n_layer=1, n_head=2, **options
    )
    return transformers.GPT2LMHeadModel(config)


def texts(torch: Any, count: int = 48) -> list[dict[str, Any]]:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randint(0, 100, (count, 12), generator=generator)
    return [{"input_ids": row, "labels": row} for row in rows]


def trainer_of(transformers: Any, torch: Any, folder: Path, **options: Any) -> Any:
    arguments = transformers.TrainingArguments(
        output_dir=str(folder),
        max_steps=12,
        per_device_train_batch_size=4,
        logging_steps=5,
        save_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
        **options,
    )
    return transformers.Trainer(
        model=tiny_gpt2(transformers), args=arguments, train_dataset=texts(torch)
    )


def test_the_real_trainer_logs_to_all_that_is_attached(
    transformers: Any, torch: Any, tmp_path: Path
) -> None:
    pytest.importorskip("accelerate")
    trainer = trainer_of(transformers, torch, tmp_path, report_to=[])
    before = embgeo.analyze(trainer.model, sections=["cosine"], reference=False)
    seen: list[dict[str, float]] = []

    class Logger(transformers.TrainerCallback):  # type: ignore[misc]
        """As the integrations of trackers hear of it."""

        def on_log(self, _args: Any, state: Any, _control: Any, logs: Any, **_: Any) -> None:
            if "embgeo/cosine.mean" in logs:
                seen.append({**logs, "step": state.global_step})

    trainer.add_callback(Logger())
    callback = attach(trainer, Monitor(NAMES, every=5))
    assert isinstance(callback, transformers.TrainerCallback)
    trainer.train()
    assert [entry["step"] for entry in seen] == [0, 5, 10, 12]
    assert seen[0]["embgeo/cosine.mean"] == before["cosine.mean"].value
    after = embgeo.analyze(trainer.model, sections=["cosine"], reference=False)
    assert seen[-1]["embgeo/cosine.mean"] == after["cosine.mean"].value
    assert seen[-1]["embgeo/cosine.mean"] != seen[0]["embgeo/cosine.mean"]
    history = [entry for entry in trainer.state.log_history if "embgeo/cosine.mean" in entry]
    assert [entry["step"] for entry in history] == [0, 5, 10, 12]
    # The trainer's own entries are what they would have been.
    losses = [entry["step"] for entry in trainer.state.log_history if "loss" in entry]
    assert losses == [5, 10]
    assert callback.monitor.measured_at == 12


def unreachable(*_: Any, **__: Any) -> None:
    raise ConnectionError("no tracker there")


def failing() -> Monitor:
    return Monitor(NAMES, every=5, of=lambda model: model.no_such_layer)


def test_the_real_trainer_outlives_a_callback_that_fails(
    transformers: Any, torch: Any, tmp_path: Path
) -> None:
    pytest.importorskip("accelerate")
    trainer = trainer_of(transformers, torch, tmp_path, report_to=[])
    attach(trainer, failing())
    trainer.add_callback(TrainerGeometry(unreachable, Monitor(NAMES, every=5)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trainer.train()
    assert trainer.state.global_step == 12
    said = [str(one.message) for one in caught if "embgeo" in str(one.message)]
    assert [line.partition(" at step 0: ")[2].partition(":")[0] for line in said] == [
        "AttributeError",
        "ConnectionError",
    ]


@pytest.mark.parametrize("tied", [True, False])
def test_a_real_model(transformers: Any, tied: bool) -> None:
    model = tiny_gpt2(transformers, tie_word_embeddings=tied)
    analysis = embgeo.analyze(model, sections=["cosine", "subspace"], reference=False)
    assert analysis.provenance["tensor"] == "transformer.wte.weight"
    assert (analysis.provenance["n"], analysis.provenance["d"]) == (100, 8)
    assert ("subspace" in analysis.absent) is tied
    if not tied:
        assert analysis.provenance["output"]["tensor"] == "lm_head.weight"


def test_a_real_tokenizer() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    import numpy as np

    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "b": 1}, unk_token="a"))
    analysis = embgeo.analyze(np.eye(3), tokens=tokenizer, sections=["tokens"], reference=False)
    assert analysis.tokens == ("a", "b")


def example(name: str) -> str:
    """The program of docs/python.md that begins with this comment."""
    (found,) = [p for p in blocks(ROOT / "docs" / "python.md", "python") if p.startswith(name)]
    return found


def test_the_example_for_transformers(transformers: Any, torch: Any, tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    trainer = trainer_of(transformers, torch, tmp_path, report_to=[])
    exec(example("# with a transformers.Trainer"), {"trainer": trainer})
    steps = [e["step"] for e in trainer.state.log_history if "embgeo/cosine.mean" in e]
    assert steps == [0, 12]


def test_the_example_lightning(lightning: Any) -> None:
    known: dict[str, Any] = {}
    exec(example("# with lightning"), known)
    assert any(isinstance(c, LightningGeometry) for c in known["trainer"].callbacks)
    assert lightning.Trainer is known["Trainer"]


# --- Lightning --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lightning() -> Any:
    return pytest.importorskip("lightning.pytorch")


def lightning_model(lightning: Any, torch: Any) -> Any:
    class Model(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Embedding(50, 6)
            self.out = torch.nn.Linear(6, 50)

        def training_step(self, batch: Any, _: int) -> Any:
            loss = torch.nn.functional.cross_entropy(self.out(self.table(batch)), batch)
            self.log("loss", loss)
            return loss

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    return Model()


def fit(lightning: Any, torch: Any, folder: Path, logger: Any, *more: Any) -> Any:
    trainer = lightning.Trainer(
        max_steps=12,
        accelerator="cpu",
        devices=1,
        logger=logger,
        callbacks=list(more),
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        accumulate_grad_batches=2,
        log_every_n_steps=1,
        default_root_dir=folder,
    )
    model = lightning_model(lightning, torch)
    trainer.fit(model, torch.utils.data.DataLoader(torch.randint(0, 50, (64,)), batch_size=2))
    return model


def test_the_real_lightning_logs_to_all_loggers(lightning: Any, torch: Any, tmp_path: Path) -> None:
    from lightning.pytorch.loggers import CSVLogger

    loggers = [CSVLogger(tmp_path / name) for name in ("one", "two")]
    callback = LightningGeometry(Monitor(NAMES, every=5))
    assert isinstance(callback, lightning.Callback)
    model = fit(lightning, torch, tmp_path, loggers, callback)
    after = embgeo.analyze(model, sections=["cosine"], reference=False)
    for logger in loggers:
        logger.save()
        with open(Path(logger.log_dir) / "metrics.csv", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row.get("embgeo/cosine.mean")]
        assert [int(row["step"]) for row in rows] == [0, 5, 10, 12]
        assert float(rows[-1]["embgeo/cosine.mean"]) == after["cosine.mean"].value


def test_the_real_lightning_outlives_what_fails(
    lightning: Any, torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No logger, a measurement that fails, a logger that fails: each is one warning."""
    from lightning.pytorch.loggers import CSVLogger

    def log_own(_self: Any, metrics: dict[str, float], step: Any = None) -> None:  # noqa: ARG001
        if "embgeo/seconds" in metrics:
            unreachable()

    monkeypatch.setattr(CSVLogger, "log_metrics", log_own)
    log_nothing = CSVLogger(tmp_path)
    for logger, monitor, says in (
        (False, Monitor(NAMES, every=5), "no logger"),
        (False, failing(), "measured nothing at step 0: AttributeError"),
        (log_nothing, Monitor(NAMES, every=5), "logged nothing at step 0: ConnectionError"),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit(lightning, torch, tmp_path, logger, LightningGeometry(monitor))
        assert sum(says in str(warning.message) for warning in caught) == 1
