"""Check before training that every run of a comparison can be built, and plan the runs."""

from typing import Any

import torch

from embgeo.core.errors import BadOption
from embgeo.training.loop.distributed import ProcessGroup, find_device
from embgeo.training.loop.facts import count_parameters
from embgeo.training.loop.loop import Trainer
from embgeo.training.methods import Factorization, Method, Setup, make_plain
from embgeo.training.methods.adversarial_softmax import AdversarialSoftmax, refuse_mixture
from embgeo.training.methods.method import attach_method
from embgeo.training.models import build
from embgeo.training.registry import find_method
from embgeo.training.settings import StudySettings
from embgeo.training.tasks import Dataset, make_task

#: A small model for checks of methods, whose settings do not depend on its size.
_SMALL = {"d": 4, "hidden": 4, "layers": 1}
_TOKENS = 10


def check_study(config: StudySettings, dataset: Dataset) -> None:
    """Build each method of a comparison on the meta device, and discard it.

    Otherwise errors in the settings of the last method would appear after the others are trained.
    `config` is resolved.
    """
    find_device(config.training.device)
    task = make_task(config)
    task.feed(config, dataset, ProcessGroup(), torch.device("cpu"))
    _, *more = task.size_model(dataset)
    for name in config.compare:
        chosen = find_method(name, config.method)
        own = {**config.model.settings, **chosen.model_settings}
        with torch.device("meta"):
            model = task.make_model(config.model.name, _TOKENS, own, *more)
        task.check_model(config, model)
        if any(issubclass(part, AdversarialSoftmax) for part in chosen.classes):
            refuse_mixture(model)
        factored = any(issubclass(part, Factorization) for part in chosen.classes)
        if factored and len(dataset.vocabulary) < model.d:
            raise BadOption(
                f"{name} needs as many rows as columns, and there are {len(dataset.vocabulary):,} "
                f"words and d = {model.d:,}",
                way_out="make d of [model] smaller, or the vocabulary larger",
            )
        check_method(chosen, config)


def check_method(chosen: Method, config: StudySettings) -> None:
    """Refuse invalid settings of a method; the random state does not change."""
    with torch.random.fork_rng(devices=[]):
        tied = True if chosen.tied is None else chosen.tied
        small = build("awd-lstm", _TOKENS, {**_SMALL, "tied": tied})
        setup = Setup(counts=torch.arange(_TOKENS, 0, -1), sgd=config.optimizer.kind == "sgd")
        attach_method(chosen, small, setup, config.method.get(chosen.name, {}))


def plan_runs(config: StudySettings, dataset: Dataset) -> list[dict[str, Any]]:
    """Plan each method of a comparison: parameters of the saved model, and optimizer steps.

    Tied parameters count once. The steps are an estimate if lengths of windows are random. `config`
    is resolved.
    """
    found = []
    for name in config.compare:
        one = config.one(name, config.seeds[0])
        trainer = Trainer(one, dataset, torch.device("cpu"), ProcessGroup())
        steps = trainer.all_steps
        make_plain(trainer.model)
        parameters = count_parameters(trainer.model)
        found.append({"method": name, "parameters": parameters, "steps": steps})
    return found
