"""What all methods have in common, and what a step does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")


from embgeo.training.evaluation.scores import Scores  # noqa: E402
from embgeo.training.loop.distributed import list_precisions, numerics  # noqa: E402
from embgeo.training.loop.facts import BIAS_DEVIATION, list_deviations  # noqa: E402
from embgeo.training.loop.loop import Trainer  # noqa: E402
from embgeo.training.methods import METHODS  # noqa: E402
from embgeo.training.methods.method import list_embeddings  # noqa: E402
from embgeo.training.settings import StudySettings  # noqa: E402
from embgeo.training.study.log import read_log  # noqa: E402
from tests.support.training_runs import CPU, PLAIN, corpus, numbers, run, settings, trainer_of  # noqa: E402


def deviations_of(trainer: Trainer) -> tuple[str, ...]:
    return list_deviations(trainer.method, trainer.model, trainer.config.model)


def test_every_method_starts_from_the_same_weights_and_reads_the_same_windows() -> None:
    for name in METHODS:
        baseline, trainer = trainer_of(settings(), "mle"), trainer_of(settings(), name)
        assert trainer.initial_sha256 == baseline.initial_sha256
        W, other = trainer.matrices()
        torch.testing.assert_close(W, baseline.matrices()[0])
        assert (other is not None) == (METHODS[name].tied is False)
        for _ in range(12):
            ours, theirs = trainer.batches.take(), baseline.batches.take()
            assert torch.equal(ours.inputs, theirs.inputs)


def test_the_output_bias_starts_at_the_unigram_distribution() -> None:
    for name in ("mle", "untied", "sc-exp"):
        config = settings(model={"bias_init": "log-counts"})
        trainer, plain = trainer_of(config, name), trainer_of(settings(), name)
        counts = np.maximum(corpus().vocabulary.counts.astype(np.float64), 1.0)
        expected = counts / counts.sum()
        found = trainer.model.get_output_embeddings().bias
        np.testing.assert_allclose(found.detach().exp().numpy(), expected, rtol=1e-6)
        assert float(found.detach().exp().sum()) == pytest.approx(1.0)
        assert not plain.model.get_output_embeddings().bias.any()
        assert trainer.initial_sha256 == plain.initial_sha256
        assert BIAS_DEVIATION in deviations_of(trainer)
        assert BIAS_DEVIATION not in deviations_of(plain)


def test_a_method_without_an_output_bias_starts_as_before() -> None:
    trainer = trainer_of(settings(model={"bias_init": "log-counts"}), "re")
    assert trainer.model.get_output_embeddings().bias is None
    assert BIAS_DEVIATION not in list_deviations(
        trainer.method, trainer.model, trainer.config.model
    )


def test_dropout_masks_are_the_same_for_methods_that_draw_the_same() -> None:
    """The first loss depends on weights, windows and masks alone."""
    losses = {}
    for name in ("mle", "cosreg", "frage", "re", "sc-exp", "coupled-adam"):
        losses[name] = float(trainer_of(settings(), name).step().loss)
    assert len({round(loss, 5) for loss in losses.values()}) == 1


# --- The step ---------------------------------------------------------------------------------


def gradients(config: StudySettings, name: str = "mle") -> dict[str, Any]:
    trainer = trainer_of(config, name)
    trainer.step()
    return {key: p.grad for key, p in trainer.model.named_parameters()}


#: Nothing is carried over.
TRANSFORMER = {"name": "transformer", "d": 8, "layers": 1, "heads": 2, "dropout": 0.0}


@pytest.mark.parametrize("name", ["mle", "cosreg", "al"])
def test_accumulated_windows_are_one_batch(name: str) -> None:
    """Two windows after another, of 2 streams, are one of 4, if nothing is carried over."""
    usual = settings(name, model=TRANSFORMER)
    one, two = trainer_of(usual), trainer_of(usual.updated({"training": {"accumulate": 2}}))
    window = one.batches.take()
    halves = [
        window._replace(inputs=window.inputs[:, part], targets=window.targets[:, part])
        for part in (slice(2), slice(2, 4))
    ]
    one.batches.take = lambda: window  # type: ignore[method-assign]
    two.batches.take = lambda: halves.pop(0)  # type: ignore[method-assign]
    assert float(two.step().loss) == pytest.approx(float(one.step().loss))
    for p, q in zip(one.parameters, two.parameters, strict=True):
        torch.testing.assert_close(q.grad, p.grad, rtol=1e-4, atol=1e-7)


def test_the_last_step_of_a_run_is_the_mean_of_fewer_windows() -> None:
    """Of nine windows, two a step, the last is alone, and has the gradient of one."""
    optimizer = {"kind": "sgd", "lr": 0.0, "weight_decay": 0.0}
    usual = settings(model=TRANSFORMER, optimizer=optimizer, training={"epochs": 1})
    found = []
    for accumulate in (1, 2):
        trainer = trainer_of(usual.updated({"training": {"accumulate": accumulate}}))
        while not trainer.finished:
            trainer.step()
        assert trainer.step_number == -(-9 // accumulate)
        found.append([p.grad for p in trainer.parameters])
    torch.testing.assert_close(*found)


def test_a_loss_that_is_summed_over_steps_has_so_many_times_the_gradient() -> None:
    """That of a penalty too, whether it looks at logits or at weights alone."""
    for name in ("mle", "cosreg", "al", "sc-exp"):
        mean = gradients(settings(name, model=PLAIN), name)
        summed = gradients(settings(name, model=PLAIN, training={"sum_over_steps": True}), name)
        for name, gradient in mean.items():
            torch.testing.assert_close(summed[name], 10.0 * gradient, rtol=1e-4, atol=1e-7)


def test_a_summed_loss_at_a_tenth_of_the_rate_is_the_same_training() -> None:
    """Windows have ten steps; the step that spectrum control takes itself counts, too."""
    found = []
    for lr, summed in ((1.0, False), (0.1, True)):
        config = settings(
            "sc-poly",
            model=PLAIN,
            optimizer={"kind": "sgd", "lr": lr, "weight_decay": 0.0},
            training={"sum_over_steps": summed},
        )
        trainer = trainer_of(config)
        for _ in range(3):
            trainer.step()
        found.append(trainer.matrices()[0])
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-6)


def test_gradients_are_clipped_with_those_of_the_penalty() -> None:
    config = settings(
        "cosreg", training={"clip": 0.01}, method={"cosreg": {"gamma": 1e4}}, model=PLAIN
    )
    found = torch.cat([g.flatten() for g in gradients(config, "cosreg").values()])
    assert float(torch.linalg.vector_norm(found)) == pytest.approx(0.01, rel=1e-3)


def test_the_rate_follows_the_schedule_and_the_length_of_windows() -> None:
    config = settings(
        optimizer={"kind": "sgd", "lr": 2.0, "schedule": "epoch-decay", "after": 1, "rate": 0.5},
        training={"random_lengths": True, "epochs": 3},
    )
    trainer = trainer_of(config)
    twin = trainer_of(config)
    while not trainer.finished:
        epoch = trainer.batches.epoch
        trainer.step()
        expected = 2.0 * 0.5**epoch * twin.batches.take().length_ratio
        assert trainer.optimizer.param_groups[0]["lr"] == pytest.approx(expected)


def test_one_cycle_ends_with_the_run() -> None:
    config = settings(optimizer={"schedule": "one-cycle", "warm_up": 0.5, "end": 0.001})
    trainer = trainer_of(config)
    rates = []
    while not trainer.finished:
        trainer.step()
        rates.append(trainer.optimizer.param_groups[0]["lr"])
    assert len(rates) == trainer.steps == 18
    assert max(rates) == pytest.approx(0.01, rel=0.02)
    assert rates[-1] == pytest.approx(1e-5)


def test_what_is_evaluated_is_the_mean_of_the_last_weights() -> None:
    trainer = trainer_of(settings(optimizer={"average": 0.25}))
    kept = []
    while not trainer.finished:
        trainer.step()
        kept.append(trainer.matrices()[0].clone())
    with trainer.evaluated():
        found = trainer.matrices()[0]
    # The last quarter of 18 steps is the five whose end is beyond three quarters.
    torch.testing.assert_close(found, torch.stack(kept[-5:]).mean(0))
    torch.testing.assert_close(trainer.matrices()[0], kept[-1])


def test_the_best_weights_are_kept(tmp_path: Path) -> None:
    """At a rate that ruins everything, the first check is the best."""
    config = settings(
        optimizer={"kind": "sgd", "lr": 30.0, "weight_decay": 0.0},
        training={"keep": "best", "epochs": 4},
        evaluation={"every": 3},
    )
    found = run(config, tmp_path)
    losses = {
        line["step"]: line["valid.loss"] for line in numbers(tmp_path) if "valid.loss" in line
    }
    best = min(losses.values())
    assert found.valid["loss"] == pytest.approx(best, rel=1e-6)
    step = next(step for step, loss in losses.items() if loss == best)
    assert step == 3
    steps, values, _ = read_log(tmp_path / "metrics.jsonl")["valid.loss"]
    assert values[steps == step] == pytest.approx(best, rel=1e-6)
    assert max(values) > best
    assert found.notes == (
        f"the weights are those of step {step}, with the lowest validation loss",
    )


def test_the_numbers_of_the_best_weights_stand_at_their_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the last step they would be a false point at the end of every curve."""
    left = iter([3.0, 2.0, 4.0, 5.0])
    monkeypatch.setattr(Scores, "valid", lambda *_: {"loss": next(left)})
    run(settings(training={"keep": "best", "epochs": 4}, evaluation={"every": 9}), tmp_path)
    last = numbers(tmp_path)[-1]
    assert (last["step"], "valid.loss" in last) == (18, True)


def test_the_last_weights_may_be_the_best(tmp_path: Path) -> None:
    """The run ends between two checks: its end is looked at, too."""
    config = settings(training={"keep": "best", "steps": 7}, evaluation={"every": 3})
    run(config, tmp_path)
    steps = [line["step"] for line in numbers(tmp_path) if "valid.loss" in line]
    assert steps == [3, 6, 7, 7]


def test_bf16_trains_too() -> None:
    exact, short = (
        trainer_of(settings(model=PLAIN, training={"precision": precision}))
        for precision in ("float32", "bf16")
    )
    for _ in range(4):
        expected, found = float(exact.step().loss), float(short.step().loss)
        assert found == pytest.approx(expected, rel=0.01)
        assert found != expected
    assert list_embeddings(short.model)[0].dtype == torch.float32


def test_what_was_set_for_numerics_is_set_back() -> None:
    threads = torch.get_num_threads()
    with numerics("tf32", CPU, threads + 1):
        assert torch.get_num_threads() == threads + 1
        assert torch.are_deterministic_algorithms_enabled()
        assert all(getattr(place, name) == short for place, name, _, short in list_precisions())
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.get_float32_matmul_precision() == "highest"
    assert torch.get_num_threads() == threads


def test_tf32_that_a_program_has_set_is_kept() -> None:
    places = list_precisions()
    before = [getattr(place, name) for place, name, _, _ in places]
    try:
        place, name, _, short = places[0]
        setattr(place, name, short)
        with numerics("float32", CPU):
            assert all(getattr(place, name) == exact for place, name, exact, _ in places)
        assert getattr(place, name) == short
    finally:
        for (place, name, _, _), value in zip(places, before, strict=True):
            setattr(place, name, value)


def test_cache_and_dynamic_evaluation_are_told(tmp_path: Path) -> None:
    config = settings(training={"steps": 2}, evaluation={"cache": True, "dynamic": True})
    found = run(config, tmp_path)
    assert found.test is not None
    for scores in (found.valid, found.test):
        assert {"cache", "dynamic"} <= set(scores)
    assert "valid.cache" in numbers(tmp_path)[-1]


def test_a_cache_of_a_model_without_a_state(tmp_path: Path) -> None:
    model = {"name": "transformer", "d": 8, "layers": 1, "heads": 2}
    config = settings(model=model, training={"steps": 2}, evaluation={"cache": True})
    assert run(config, tmp_path).valid["cache"] is not None
