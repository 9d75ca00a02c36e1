"""Check before training that every run of a comparison can be built, and plan the runs."""

from dataclasses import dataclass
from pathlib import Path

import torch

from embgeo.core.errors import BadOption
from embgeo.training.checks import name_table
from embgeo.training.data import read_vocabulary
from embgeo.training.loop.checkpoint import VOCABULARY_NAME, find_start
from embgeo.training.loop.distributed import ProcessGroup, find_device
from embgeo.training.loop.facts import count_parameters
from embgeo.training.loop.loop import Trainer
from embgeo.training.methods import Factorization, Method, Setup, make_plain
from embgeo.training.methods.adversarial_softmax import AdversarialSoftmax, refuse_mixture
from embgeo.training.methods.definitions import find_method
from embgeo.training.methods.method import refuse_sgd
from embgeo.training.models import build
from embgeo.training.settings import StudySettings
from embgeo.training.tasks import Dataset, Task, make_task
from embgeo.training.tasks.language_model import LanguageModeling, split_positions

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
    task.check_data(config, dataset)
    _, *more = task.size_model(dataset)
    for name in config.compare:
        chosen = find_method(name, config.method)
        if chosen.coupled and config.optimizer.kind == "sgd":
            raise refuse_sgd(chosen)
        own = {**config.model.settings, **chosen.model_settings}
        with torch.device("meta"), name_table("[model]"):
            model = task.make_model(config.model.name, _TOKENS, own, *more)
        task.check_model(config, model)
        if any(issubclass(part, AdversarialSoftmax) for part in chosen.parts):
            refuse_mixture(model)
        factored = any(issubclass(part, Factorization) for part in chosen.parts)
        if factored and len(dataset.vocabulary) < model.d:
            raise BadOption(
                f"{name} needs as many rows as columns, and there are {len(dataset.vocabulary):,} "
                f"words and d = {model.d:,}",
                way_out="make d of [model] smaller, or the vocabulary larger",
            )
        check_method(chosen, config)
        check_start(task, chosen, config, dataset)


def check_start(task: Task, chosen: Method, config: StudySettings, dataset: Dataset) -> None:
    """Refuse initial weights that do not fit the model or the vocabulary."""
    if config.training.start is None:
        return
    for seed in config.seeds:
        folder = find_start(Path(config.training.start), chosen.name, seed)
        if read_vocabulary(folder / VOCABULARY_NAME).tokens != dataset.vocabulary.tokens:
            raise BadOption(
                "the weights are of another vocabulary than the text",
                where=folder,
                way_out="leave out size, min_count and tokenizer of [data]",
            )
    with torch.random.fork_rng(devices=[]):
        task.build(config, chosen, dataset)


def check_method(chosen: Method, config: StudySettings) -> None:
    """Refuse invalid settings of a method; the random state does not change."""
    with torch.random.fork_rng(devices=[]), name_table(f"[method.{chosen.name}]"):
        tied = True if chosen.tied is None else chosen.tied
        small = build("awd-lstm", _TOKENS, {**_SMALL, "tied": tied})
        setup = Setup(counts=torch.arange(_TOKENS, 0, -1), sgd=config.optimizer.kind == "sgd")
        chosen.attach(small, setup, config.method.get(chosen.name, {}))


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Plan of the runs of one method."""

    method: str
    #: Number of parameters of the saved model; tied ones count once.
    parameters: int
    #: Number of optimizer steps; an estimate if lengths of windows are random.
    steps: int
    #: Bytes that a step holds at least; see :func:`sum_memory`.
    memory: int


def plan_runs(config: StudySettings, dataset: Dataset) -> list[RunPlan]:
    """Plan each method of a comparison; `config` is resolved."""
    found = []
    for name in config.compare:
        one = config.one(name, config.seeds[0])
        trainer = Trainer(one, dataset, torch.device("cpu"), ProcessGroup())
        steps, memory = trainer.all_steps, sum_memory(trainer)
        make_plain(trainer.model)
        found.append(RunPlan(name, count_parameters(trainer.model), steps, memory))
    return found


def sum_memory(trainer: Trainer) -> int:
    """Sum the bytes of weights, their averages, the state of the optimizer, gradients and logits.

    Gradients come when the logits go: the larger counts. Activations of the layers are not known.
    """
    weights = sum(p.numel() * p.element_size() for p in trainer.parameters)
    known = trainer.optimizer.defaults
    states = 2 if "betas" in known else bool(known.get("momentum"))
    kept: int = weights * (1 + states + bool(trainer.config.optimizer.average))
    last: int = 0 if trainer.task.SPARSE else weights
    if isinstance(trainer.task, LanguageModeling):
        training, model = trainer.config.training, trainer.model
        window = training.batch * training.bptt
        held = split_positions(model, trainer.regularizer, window)
        size = 2 if training.precision == "bf16" else 4
        # The logits, and their softmax in float32.
        last = max(last, held * (model.logits_per_state * size + model.n_tokens * 4))
    return kept + last


def find_free_memory(device: torch.device) -> int | None:
    """Return the bytes that are free on a device; None where torch does not tell."""
    tell = getattr(torch.get_device_module(device), "mem_get_info", None)
    return None if tell is None else int(tell(device)[0])
