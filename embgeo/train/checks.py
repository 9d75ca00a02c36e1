"""Whether settings make sense, before anything is computed."""

from __future__ import annotations

from collections.abc import Iterator

from embgeo.errors import BadOption
from embgeo.train.config import Config
from embgeo.train.methods import method


def check(config: Config) -> None:
    """Refuse settings that no run can have; what a model or an optimiser knows, it refuses itself.

    Raises
    ------
    BadOption
        Naming the setting.
    """
    if not config.compare or not config.seeds:
        raise BadOption("no method or no seed is given", way_out='compare = ["mle", "cosreg"]')
    for names in (config.compare, config.seeds):
        if len(set(names)) < len(names):
            raise BadOption("a method or a seed is given twice", way_out="give each once")
    for name in (*config.compare, *config.method):
        method(name)
    for name, own in config.method.items():
        method(name).settings(own)
    for seed in config.seeds:
        if not 0 <= seed < 2**31:
            raise BadOption(f"the seed is {seed}", way_out="give a whole number from 0")
    for name, value in counts(config):
        if value is not None and value < 1:
            raise BadOption(f"{name} is {value}", way_out="give a whole number from 1")
    for name, number in shares(config):
        if not 0.0 <= number < 1.0:
            raise BadOption(f"{name} is {number}", way_out="give a number from 0 to below 1")
    if not config.training.clip >= 0.0:
        raise BadOption(f"clip is {config.training.clip}", way_out="give a norm, or 0 for none")
    if config.optimizer.asgd and config.optimizer.kind != "sgd":
        raise BadOption("asgd averages plain SGD", way_out='set kind = "sgd" in [optimizer]')
    if config.optimizer.asgd and config.optimizer.average:
        raise BadOption("asgd decides itself when to average", way_out="leave average out")


def counts(config: Config) -> Iterator[tuple[str, int | None]]:
    training, evaluation = config.training, config.evaluation
    yield "epochs", training.epochs
    yield "steps", training.steps
    yield "batch", training.batch
    yield "bptt", training.bptt
    yield "accumulate", training.accumulate
    yield "log_every", training.log_every
    yield "save_steps", training.save_steps
    yield "batch of [evaluation]", evaluation.batch
    yield "bptt of [evaluation]", evaluation.bptt
    yield "every of [evaluation]", evaluation.every
    yield "every of [geometry]", config.geometry.every
    yield "window", config.optimizer.window


def shares(config: Config) -> Iterator[tuple[str, float]]:
    yield "average", config.optimizer.average
    yield "popular", config.evaluation.popular
