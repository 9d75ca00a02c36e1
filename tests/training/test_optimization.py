"""Optimizers, schedules, averages: closed forms, and states to resume from."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

torch = pytest.importorskip("torch")

from embgeo.core.errors import BadOption  # noqa: E402
from embgeo.training.complete import check_settings, complete_settings  # noqa: E402
from embgeo.training.methods import SpectrumControl  # noqa: E402
from embgeo.training.optimization.averaging import NtAsgd, WeightAverage  # noqa: E402
from embgeo.training.optimization.optimizers import (  # noqa: E402
    apply_factor,
    build_optimizer,
    parameter_groups,
)
from embgeo.training.schedules import SCHEDULES  # noqa: E402
from embgeo.training.sections import Adam, Sgd  # noqa: E402
from embgeo.training.settings import list_presets, load_preset  # noqa: E402
from tests.support.language_model import batches, make_model  # noqa: E402
from tests.support.refusals import refusal  # noqa: E402
from tests.support.sampling import each_value  # noqa: E402
from tests.support.training_runs import settings, trainer_of  # noqa: E402


def optimizer_of(model: Any, kind: str, **settings: Any) -> Any:
    coupled = [model.head.weight] if kind == "coupled-adam" else []
    chosen = Sgd(**settings) if kind == "sgd" else Adam(**settings)
    return build_optimizer(chosen, parameter_groups(model), coupled=coupled)


def steps(model: Any, optimizer: Any, number: int, start: int = 0) -> None:
    for inputs, targets in batches(start + number)[start:]:
        logits = model.head(model.hidden(inputs))
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


# --- Optimizers ---------------------------------------------------------------------------------


def test_a_first_step_of_adam_has_the_length_of_the_rate() -> None:
    weight = torch.nn.Parameter(torch.tensor([2.0, -1.0]))
    chosen = Adam(lr=0.01, weight_decay=0.0, betas=(0.5, 0.9))
    optimizer = build_optimizer(chosen, [{"params": [weight]}])
    weight.grad = torch.tensor([1e-3, -7.0])
    optimizer.step()
    assert torch.allclose(weight, torch.tensor([1.99, -0.99]), atol=1e-6)
    assert optimizer.param_groups[0]["betas"] == (0.5, 0.9)


def test_no_preset_with_adam_shrinks_rows_that_are_hardly_updated() -> None:
    """Decay inside the gradient of Adam would shrink them by the rate at each step."""
    seen = []
    for name in list_presets():
        chosen = complete_settings(load_preset(name)).optimizer.algorithm
        if isinstance(chosen, Sgd) or not chosen.weight_decay:
            continue
        seen.append(name)
        ends = []
        for decay in (chosen.weight_decay, 0.0):
            W = torch.nn.Parameter(torch.ones(1, 8))
            own = msgspec.structs.replace(chosen, weight_decay=decay)
            optimizer = build_optimizer(own, [{"params": [W]}])
            generator = torch.Generator().manual_seed(0)
            for _ in range(500):
                W.grad = 1e-5 * torch.randn(1, 8, generator=generator)
                optimizer.step()
            ends.append(W.detach())
        # What decoupled decay alone does is in the settings; the rest is rounding.
        left = (1.0 - chosen.lr * chosen.weight_decay) ** 500
        assert float(ends[0].norm() / ends[1].norm()) == pytest.approx(left, rel=0.1), name
    assert "iwslt14" in seen


def test_groups_hold_every_parameter_once() -> None:
    model = make_model()
    reg = SpectrumControl.attach(model)
    model.rnn.bias_hh_l0.requires_grad_(False)
    groups = parameter_groups(model, reg.parameter_groups())
    held = [id(p) for group in groups for p in group["params"]]
    assert len(held) == len(set(held))
    assert set(held) == {id(p) for p in model.parameters() if p.requires_grad}
    optimizer = build_optimizer(Adam(weight_decay=0.3), groups)
    decays = {
        id(p): group["weight_decay"] for group in optimizer.param_groups for p in group["params"]
    }
    special = {id(p) for p in reg.acts_on()}
    assert {decays[number] for number in special} == {0.0}
    vectors = {id(p) for p in model.parameters() if p.ndim < 2}
    assert {decays[number] for number in vectors if number in decays} == {0.0}
    matrices = {number: d for number, d in decays.items() if number not in special | vectors}
    assert set(matrices.values()) == {0.3}


@each_value
@pytest.mark.parametrize("name", ["mle", "untied", "sc-exp", "coupled-adam"])
@pytest.mark.parametrize("decay", ["matrices", "all"])
def test_what_decays_is_the_same_for_all_methods(name: str, decay: str) -> None:
    """The weights of the LSTM, and with "all" the rest as well."""
    config = settings(optimizer={"weight_decay": 0.3, "decay": decay})
    trainer = trainer_of(config, name)
    names = {id(p): key for key, p in trainer.model.named_parameters()}
    decayed = {
        names[id(p)]
        for group in trainer.optimizer.param_groups
        for p in group["params"]
        if group["weight_decay"]
    }
    layers = {"lstms.0.weight_ih_l0", "lstms.0.weight_hh_l0"}
    assert decayed == (layers if decay == "matrices" else set(names.values()))


def test_factors_of_the_rate() -> None:
    weights = [torch.nn.Parameter(torch.zeros(2)) for _ in range(2)]
    groups = [{"params": [weights[0]]}, {"params": [weights[1]], "lr": 0.1}]
    optimizer = build_optimizer(Sgd(lr=30.0), groups)
    assert apply_factor(optimizer, 0.5) == 15.0
    assert [group["lr"] for group in optimizer.param_groups] == [15.0, 0.05]
    assert apply_factor(optimizer, 2.0) == 60.0  # of the initial one, not of the last
    assert [group["lr"] for group in optimizer.param_groups] == [60.0, 0.2]


def test_what_is_coupled_is_among_the_parameters() -> None:
    with refusal(BadOption):
        build_optimizer(Adam(), parameter_groups(make_model()), coupled=[torch.zeros(3, 2)])


# --- Schedules ----------------------------------------------------------------------------------


def test_the_endpoints_of_one_cycle() -> None:
    factor = SCHEDULES["one-cycle"](warm_up=0.25, start=0.1, end=0.01)
    factors = [factor(step, 101, 0) for step in range(101)]
    assert factors[0] == pytest.approx(0.1)
    assert factors[25] == max(factors) == 1.0
    assert factors[-1] == pytest.approx(0.01)
    assert factors[:26] == sorted(factors[:26])
    assert factors[25:] == sorted(factors[25:], reverse=True)
    # Half way up and half way down, in time and in height.
    assert (factors[12] + factors[13]) / 2 == pytest.approx(0.55, abs=1e-3)
    assert (factors[62] + factors[63]) / 2 == pytest.approx(0.505, abs=1e-3)


@each_value
@pytest.mark.parametrize("steps", [1, 2, 3, 10])
@pytest.mark.parametrize("warm_up", [0.0, 0.3, 1.0])
def test_one_cycle_of_few_steps(steps: int, warm_up: float) -> None:
    factor = SCHEDULES["one-cycle"](warm_up=warm_up)
    factors = [factor(step, steps, 0) for step in range(steps)]
    assert all(0.0 < value <= 1.0 for value in factors)
    if steps > 1:
        assert factors[0] == pytest.approx(0.04 if warm_up else 1.0)
        assert factors[-1] == pytest.approx(1.0 if warm_up == 1.0 else 1e-4)


def test_decay_by_epochs() -> None:
    """Inan et al., small: full rate for five epochs, 0.9 of it in the sixth."""
    factor = SCHEDULES["epoch-decay"](after=5, rate=0.9)
    factors = [factor(0, 1, epoch) for epoch in range(8)]
    assert factors[:5] == [1.0] * 5
    assert factors[5:] == pytest.approx([0.9, 0.81, 0.729])
    large = SCHEDULES["epoch-decay"](after=1, rate=0.97)
    assert [large(0, 1, epoch) for epoch in range(3)] == pytest.approx([1.0, 0.97, 0.97**2])


def test_inverse_sqrt_is_the_published_rate_over_its_largest_value() -> None:
    """Vaswani et al., Eq. 3, where steps count from 1."""
    factor = SCHEDULES["inverse-sqrt"](warm_up_steps=4)
    published = [min(step**-0.5, step * 4**-1.5) for step in range(1, 40)]
    factors = [factor(step, 39, 0) for step in range(39)]
    assert factors == pytest.approx([rate / max(published) for rate in published])
    assert factors[3] == max(factors) == 1.0
    at_once = [SCHEDULES["inverse-sqrt"](warm_up_steps=n)(0, 9, 0) for n in (0, 1)]
    assert at_once == [1.0, 1.0]


def test_cosine_warms_up_along_a_line_and_ends_at_a_tenth() -> None:
    factor = SCHEDULES["cosine"](warm_up_steps=4)
    assert [factor(step, 15, 0) for step in range(5)] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert factor(9, 15, 0) == pytest.approx(0.55)
    assert factor(14, 15, 0) == factor(20, 15, 0) == pytest.approx(0.1)
    assert SCHEDULES["cosine"](warm_up_steps=0, end=0.0)(0, 2, 0) == 1.0
    assert SCHEDULES["cosine"](warm_up_steps=9)(8, 9, 0) == 1.0


def test_linear_falls_with_the_steps_as_in_word2vec() -> None:
    factor = SCHEDULES["linear"](end=0.1)
    assert [factor(step, 4, 0) for step in range(5)] == [1.0, 0.75, 0.5, 0.25, 0.1]


def test_settings_of_optimizers_and_schedules_are_typed() -> None:
    for fields in (
        {"weight_decay": True},
        {"betas": (0.9,)},
        {"schedule": "epoch-decay", "rate": float("nan")},
        {"schedule": "plateau"},
        {"schedule": "one-cycle", "step": 3},
        {"schedule": "constant", "end": 0.3},
        {"kind": "lbfgs"},
        {"kind": "sgd", "betas": (0.9, 0.99)},
        {"kind": "sgd", "finetune": 3},
    ):
        with refusal(BadOption):
            check_settings(settings(optimizer=fields))


# --- Averages -----------------------------------------------------------------------------------


def history(model: Any, average: WeightAverage, number: int) -> list[list[Any]]:
    """So many random changes of the weights, each taken into the mean."""
    seen = []
    for _ in range(number):
        with torch.no_grad():
            for p in model.parameters():
                p.add_(torch.randn_like(p))
        average.update()
        seen.append([p.detach().double().clone() for p in model.parameters()])
    return seen


def test_swapping_there_and_back() -> None:
    model = make_model()
    average = WeightAverage([*model.parameters(), *model.parameters()])
    assert len(average.parameters) == len(list(model.parameters()))
    seen = history(model, average, 9)
    own = [p.detach().clone() for p in model.parameters()]
    with average.applied():
        for p, *each in zip(model.parameters(), *seen, strict=True):
            assert torch.allclose(p.detach().double(), sum(each) / 9, atol=1e-6)
    assert all(torch.equal(p, kept) for p, kept in zip(model.parameters(), own, strict=True))
    assert model.head.weight is model.embed.weight
    with pytest.raises(KeyboardInterrupt), average.applied():
        raise KeyboardInterrupt
    assert all(torch.equal(p, kept) for p, kept in zip(model.parameters(), own, strict=True))
    average.restart()
    (last,) = history(model, average, 1)
    assert torch.equal(average.mean[0].double(), last[0])


def test_a_restored_mean_leaves_the_saved_one_as_it_is() -> None:
    model = make_model()
    average, again = WeightAverage(model.parameters()), WeightAverage(model.parameters())
    average.update()
    saved = [mean.clone() for mean in average.mean]
    again.load_state_dict(average.state_dict())
    history(model, again, 1)
    assert all(torch.equal(one, own) for one, own in zip(saved, average.mean, strict=True))
    assert not torch.equal(again.mean[0], saved[0])


def test_a_mean_of_another_model_is_refused() -> None:
    model = make_model()
    average = WeightAverage(model.parameters())
    average.update()
    with refusal(ValueError):
        WeightAverage([model.embed.weight]).load_state_dict(average.state_dict())


# --- NT-ASGD ------------------------------------------------------------------------------------


def test_the_switch_is_that_of_the_paper() -> None:
    """Algorithm 1: t > n and v > min of the log up to t − n − 1, for any history."""
    generator = torch.Generator().manual_seed(0)
    for window in (1, 3, 5):
        trigger = NtAsgd(WeightAverage(make_model().parameters()), window=window)
        log: list[float] = []
        averaging = False
        for t in range(60):
            loss = 5.0 * math.exp(-t / 9) + torch.rand((), generator=generator).item()
            expected = not averaging and t > window and loss > min(log[: t - window])
            assert trigger.checked(loss) == expected
            averaging = averaging or expected
            assert trigger.averaging == averaging
            log.append(loss)
        assert averaging
    trigger = NtAsgd(WeightAverage(make_model().parameters()), window=1)
    assert not any(trigger.checked(2.5) for _ in range(5))
    assert trigger.checked(2.5000001)


def test_the_average_is_the_mean_of_the_iterates_from_the_switch_on() -> None:
    """Also where the learning rate changes with the length of the window."""
    model = make_model()
    optimizer = optimizer_of(model, "sgd", lr=1.0)
    trigger = NtAsgd(WeightAverage(model.parameters()), window=1)
    iterates: list[Any] = []
    for step in range(12):
        apply_factor(optimizer, 0.5 + step % 3)
        steps(model, optimizer, 1, start=step)
        trigger.after_step()
        if trigger.averaging:
            iterates.append(model.embed.weight.detach().double().clone())
        if step in (2, 3, 4) and trigger.checked([3.0, 2.0, 4.0][step - 2]):
            iterates.append(model.embed.weight.detach().double().clone())
    assert len(iterates) == trigger.average.count == 8
    with trigger.average.applied():
        assert torch.allclose(model.embed.weight.double(), sum(iterates) / 8, atol=1e-6)


def test_finetuning_averages_from_the_start_and_ends() -> None:
    model = make_model()
    trigger = NtAsgd(WeightAverage(model.parameters()), window=2, finetune=True)
    assert trigger.averaging
    assert trigger.average.count == 1
    trigger.after_step()
    assert trigger.average.count == 2
    losses = [3.0, 2.0, 2.5, 2.9, 3.5, 4.0]
    assert [trigger.checked(loss) for loss in losses] == [False] * 4 + [True, False]
    assert trigger.finished


def test_a_window_that_makes_no_sense() -> None:
    for window in (0, 2.5, True):
        with refusal(BadOption):
            NtAsgd(WeightAverage(make_model().parameters()), window=window)
