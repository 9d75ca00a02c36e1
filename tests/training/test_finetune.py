"""The second stage of averaged SGD: where it begins, when it ends, and how it is resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from embgeo.core.errors import BadOption  # noqa: E402
from embgeo.training.complete import complete_settings  # noqa: E402
from embgeo.training.settings import load_preset  # noqa: E402
from tests.support.refusals import refusal  # noqa: E402
from tests.support.sampling import sample_cases  # noqa: E402
from tests.support.training_runs import Stopped, numbers, run, settings, stopping, trainer_of  # noqa: E402

#: Two epochs of nine steps, and three of finetuning.
SGD: dict[str, Any] = {"kind": "sgd", "lr": 0.5, "asgd": True, "window": 1, "finetune": 3}


def config(method: str = "mle", **tables: Any) -> Any:
    optimizer = SGD | tables.pop("optimizer", {})
    return settings(method, optimizer=optimizer, **tables)


def test_it_begins_from_the_mean_with_a_mean_of_its_own() -> None:
    trainer = trainer_of(config())
    assert trainer.all_steps == 18 + 27
    for _ in range(6):
        trainer.step()
    trainer.average.update()
    trainer.step()
    trainer.average.update()
    mean = [p.clone() for p in trainer.average.mean]
    trainer.begin_finetuning()
    assert all(torch.equal(p, m) for p, m in zip(trainer.average.parameters, mean, strict=True))
    assert trainer.asgd is not None
    assert (trainer.average.count, trainer.asgd.averaging) == (1, True)
    trainer.step()
    assert trainer.average.count == 2
    assert trainer.optimizer.param_groups[0]["lr"] == 0.5


def test_it_takes_its_epochs(tmp_path: Path) -> None:
    result = run(config(), tmp_path)
    assert (result.steps, result.epochs) == (45, 5.0)
    assert "finetuning begins at step 18" in result.notes


def test_it_ends_with_a_validation_loss_above_the_best_before() -> None:
    trainer = trainer_of(config())
    trainer.begin_finetuning()
    assert trainer.asgd is not None
    assert not any(trainer.asgd.checked(loss) for loss in (2.0, 1.0, 1.5))
    assert not trainer.finished
    assert trainer.asgd.checked(1.2)
    assert trainer.finished


@pytest.mark.parametrize(
    ("method", "keep", "after"),
    sample_cases(
        [(*kind, after) for after in (7, 18, 31) for kind in (("sc-exp", "best"), ("mle", "last"))],
        3,
    ),
)
@pytest.mark.slow
def test_it_is_resumed_to_the_same_bits(tmp_path: Path, method: str, keep: str, after: int) -> None:
    known = config(method, training={"save_steps": 6, "keep": keep})
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    run(known, whole)
    with pytest.raises(Stopped):
        run(known, broken, progress=stopping(after=after))
    result = run(known, broken)
    assert result.notes.count("finetuning begins at step 18") == 1
    files = [(folder / "model.safetensors").read_bytes() for folder in (whole, broken)]
    assert files[0] == files[1]
    assert numbers(whole) == numbers(broken)


def test_it_needs_averaged_sgd() -> None:
    for kind in ("adamw", "sgd"):
        with refusal(BadOption):
            complete_settings(settings(optimizer={"kind": kind, "finetune": 2}))


def test_the_published_setting_is_finetuned_unless_it_is_set_to_0() -> None:
    published = load_preset("wt2-paper")
    assert complete_settings(published).optimizer.finetune == 750
    without = complete_settings(published.updated({"optimizer": {"finetune": 0}}))
    assert without.optimizer.finetune == 0
