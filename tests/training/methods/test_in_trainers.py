"""Regularizers in the real trainers of transformers and Lightning (docs/regularizers.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from embgeo.training.methods.callbacks import (  # noqa: E402
    LightningRegularizer,
    TrainerRegularizer,
)
from tests.support.documents import ROOT, blocks  # noqa: E402

PAGE = ROOT / "docs" / "regularizers.md"
PROGRAMS = blocks(PAGE, "python")


def program(comment: str) -> str:
    (found,) = [program for program in PROGRAMS if program.startswith(comment)]
    return found


# --- The real trainers ------------------------------------------------------------------------

with_trainers = pytest.mark.filterwarnings("ignore")  # they warn of their own affairs


@pytest.fixture(scope="module")
def transformers() -> Any:
    pytest.importorskip("accelerate")
    return pytest.importorskip("transformers")


def trainer_of(transformers: Any, folder: Path, *, tied: bool = True, **options: Any) -> Any:
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=100,
        n_positions=16,
        n_embd=8,
        n_layer=1,
        n_head=2,
        resid_pdrop=0.0,
        tie_word_embeddings=tied,
    )
    ids = torch.randint(0, 100, (48, 12), generator=torch.Generator().manual_seed(0))
    arguments = transformers.TrainingArguments(
        output_dir=str(folder),
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        learning_rate=1e-2,
        **{
            "max_steps": 12,
            "save_strategy": "no",
            "per_device_train_batch_size": 4,
            **options,
        },
    )
    rows = [{"input_ids": row, "labels": row} for row in ids]
    return transformers.Trainer(
        model=transformers.GPT2LMHeadModel(config),
        args=arguments,
        train_dataset=rows,
        eval_dataset=rows[:8],
    )


@with_trainers
def test_the_program_for_transformers(transformers: Any, tmp_path: Path) -> None:
    trainer = trainer_of(transformers, tmp_path)
    names: dict[str, Any] = {"trainer": trainer, "model": trainer.model}
    exec(compile(program("# with transformers"), str(PAGE), "exec"), names)
    (callback,) = [
        c for c in trainer.callback_handler.callbacks if isinstance(c, TrainerRegularizer)
    ]
    assert set(callback.values) == {"cosreg"}
    assert trainer.state.global_step == 12


@with_trainers
@pytest.mark.parametrize("accumulated", [1, 3])
def test_the_trainer_adds_the_gradient_once_a_step(
    transformers: Any, tmp_path: Path, accumulated: int
) -> None:
    """With a loss of no weight to speak of, the first step is the regularizer's alone."""
    from embgeo.training.methods import CosReg

    trainer = trainer_of(
        transformers,
        tmp_path,
        gradient_accumulation_steps=accumulated,
        per_device_train_batch_size=2,
        optim="sgd",
        max_grad_norm=1e-9,
    )
    reg = CosReg(trainer.model.get_output_embeddings(), gamma=50.0)
    W = trainer.model.get_output_embeddings().weight
    trainer.add_callback(TrainerRegularizer(reg))
    trainer.args.max_steps = 1
    before = W.detach().clone()
    expected = torch.autograd.grad(reg(), W)[0]
    trainer.train()
    assert torch.allclose(before - W.detach(), 1e-2 * expected, rtol=1e-3, atol=1e-7)


@with_trainers
def test_spectrum_control_in_the_trainer(transformers: Any, tmp_path: Path) -> None:
    from embgeo.training.methods import SpectrumControl, make_plain

    trainer = trainer_of(transformers, tmp_path)
    reg = SpectrumControl.attach(trainer.model)
    trainer.add_callback(TrainerRegularizer(reg))
    trainer.train()
    make_plain(trainer.model)
    assert trainer.model.lm_head.weight is trainer.model.transformer.wte.weight
    trainer.model.save_pretrained(tmp_path / "saved")
    again = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "saved")
    assert torch.equal(again.lm_head.weight, trainer.model.lm_head.weight)
    assert torch.equal(again.transformer.wte.weight, again.lm_head.weight)


@pytest.fixture(scope="module")
def lightning() -> Any:
    return pytest.importorskip("lightning.pytorch")


def module_of(lightning: Any) -> Any:
    class Module(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.head = torch.nn.Linear(8, 50, bias=False)

        def training_step(self, batch: Any, _: int) -> Any:
            return torch.nn.functional.cross_entropy(self.head(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    return Module()


def loader() -> Any:
    generator = torch.Generator().manual_seed(0)
    data = torch.randn(96, 8, generator=generator), torch.randint(0, 50, (96,), generator=generator)
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*data), batch_size=8)


@with_trainers
def test_the_program_for_lightning(
    lightning: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    names: dict[str, Any] = {"module": module_of(lightning), "loader": loader()}
    exec(compile(program("# with lightning"), str(PAGE), "exec"), names)
    (callback,) = [c for c in names["trainer"].callbacks if isinstance(c, LightningRegularizer)]
    assert set(callback.values) == {"cosreg"}


@with_trainers
def test_lightning_lets_methods_take_their_steps(lightning: Any, tmp_path: Path) -> None:
    from embgeo.training.methods import Frage

    torch.manual_seed(0)
    module = module_of(lightning)
    reg = Frage(module.head, torch.arange(50) < 10)
    callback = LightningRegularizer(reg)
    trainer = lightning.Trainer(
        max_steps=5,
        accumulate_grad_batches=2,
        callbacks=[callback],
        default_root_dir=tmp_path,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        accelerator="cpu",
    )
    trainer.fit(module, loader())
    taken = reg.optimizer.state_dict()["state"][0]["step"]
    assert int(taken) == 5
    again = LightningRegularizer(Frage(module.head, torch.arange(50) < 10))
    again.load_state_dict(callback.state_dict())
    assert again.regularizers[0]().item() == reg().item()


@with_trainers
@pytest.mark.slow
@pytest.mark.parametrize("tied", [True, False])
def test_checkpoints_of_spectrum_control_are_plain_models(
    transformers: Any, tmp_path: Path, tied: bool
) -> None:
    import embgeo
    from embgeo.training.methods import SpectrumControl

    def train(folder: Path, steps: int, resume: Path | None = None) -> Any:
        trainer = trainer_of(
            transformers,
            folder,
            tied=tied,
            max_steps=steps,
            save_strategy="steps",
            save_steps=4,
            eval_strategy="steps",
            eval_steps=4,
            load_best_model_at_end=True,
            lr_scheduler_type="constant",
        )
        trainer.add_callback(TrainerRegularizer(SpectrumControl.attach(trainer.model)))
        trainer.train(resume_from_checkpoint=None if resume is None else str(resume))
        return trainer

    whole = train(tmp_path / "whole", 12)
    best = Path(whole.state.best_model_checkpoint)
    W = whole.model.get_output_embeddings().weight
    plain = transformers.GPT2LMHeadModel.from_pretrained(best)
    assert torch.equal(plain.lm_head.weight, W)
    assert (plain.lm_head.weight is plain.transformer.wte.weight) is tied
    ids = torch.arange(12).view(1, 12)
    expected = whole.model.eval()(ids).logits
    assert torch.allclose(plain.eval()(ids).logits, expected, atol=1e-5)
    analysis = embgeo.analyze(best, output="none", sections=["cosine"], reference=False)
    assert analysis.provenance["tensor"] == "transformer.wte.weight"
    resumed = train(tmp_path / "whole", 16, best)
    straight = train(tmp_path / "straight", 16)
    # Equal but for the start of the power iteration, which the Trainer does not save.
    found = resumed.model.get_output_embeddings().weight
    # The four steps move entries by up to 0.035.
    assert torch.allclose(found, straight.model.get_output_embeddings().weight, atol=3e-3)
