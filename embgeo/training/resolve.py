"""Whether settings make sense, and what they are where nothing is said."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from embgeo.core.errors import BadOption
from embgeo.training.methods.catalog import method
from embgeo.training.models import model_class, settings_of
from embgeo.training.optimization import SCHEDULES, build_schedule, optimizers
from embgeo.training.settings import StudySettings

#: Of [optimizer], what goes to the optimizer and what to the schedule.
OF_OPTIMIZER = ("lr", "weight_decay", "betas", "eps", "momentum")
OF_SCHEDULE = ("warm_up", "start", "end", "after", "rate")


def resolve(config: StudySettings) -> StudySettings:
    """The same settings with everything that was left open, as a run records them.

    Raises
    ------
    BadOption
        As of :func:`check`, and what a model, an optimizer or a schedule does not know.
    """
    check(config)
    kind = model_class(config.model.name)
    known = settings_of(kind)
    for name in config.model.settings:
        if name not in known:
            raise BadOption(
                f"{config.model.name} has no setting {name!r}",
                way_out=f"it has {', '.join(known)}",
            )
    chosen = config.optimizer
    sgd = chosen.kind == "sgd"
    build_schedule(chosen.schedule, set_fields(chosen, OF_SCHEDULE))
    return replace(
        config,
        model=replace(config.model, settings=drop_none({**known, **config.model.settings})),
        optimizer=replace(
            chosen,
            **optimizers.resolve(chosen.kind, set_fields(chosen, OF_OPTIMIZER)),
            **{**list_keywords(SCHEDULES[chosen.schedule]), **set_fields(chosen, OF_SCHEDULE)},
        ),
        method=resolve_methods(config, sgd=sgd),
    )


def resolve_methods(config: StudySettings, *, sgd: bool) -> dict[str, Mapping[str, Any]]:
    """The tables of the methods: complete for those that are compared, for others as given.

    The others may be added to the comparison later.
    """
    found = dict(config.method)
    for name in config.compare:
        table = method(name).resolve(config.method.get(name, {}), sgd=sgd)
        if table:
            found[name] = table
    return found


def set_fields(settings: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Those of the settings that are not None."""
    return drop_none({name: getattr(settings, name) for name in names})


def drop_none(table: Mapping[str, Any]) -> dict[str, Any]:
    """What TOML can hold."""
    return {name: value for name, value in table.items() if value is not None}


def list_keywords(function: Any) -> dict[str, Any]:
    """Settings of a function with their defaults."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def check(config: StudySettings) -> None:
    """Refuse settings that no run can have; what a model or an optimizer knows, it refuses itself.

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
    if not config.training.save_seconds >= 0.0:
        raise BadOption(f"save_seconds is {config.training.save_seconds}", way_out="give 0 or more")
    if not config.training.clip >= 0.0:
        raise BadOption(f"clip is {config.training.clip}", way_out="give a norm, or 0 for none")
    if config.optimizer.asgd and config.optimizer.kind != "sgd":
        raise BadOption("asgd averages plain SGD", way_out='set kind = "sgd" in [optimizer]')
    if config.optimizer.asgd and config.optimizer.average:
        raise BadOption("asgd decides itself when to average", way_out="leave average out")


def counts(config: StudySettings) -> Iterator[tuple[str, int | None]]:
    training, evaluation = config.training, config.evaluation
    yield "epochs", training.epochs
    yield "steps", training.steps
    yield "batch", training.batch
    yield "bptt", training.bptt
    yield "threads", training.threads
    yield "accumulate", training.accumulate
    yield "log_every", training.log_every
    yield "save_steps", training.save_steps
    yield "batch of [evaluation]", evaluation.batch
    yield "bptt of [evaluation]", evaluation.bptt
    yield "every of [evaluation]", evaluation.every
    yield "every of [geometry]", config.geometry.every
    yield "window", config.optimizer.window


def shares(config: StudySettings) -> Iterator[tuple[str, float]]:
    yield "average", config.optimizer.average
    yield "popular", config.evaluation.popular
