"""Validate settings, and fill in defaults."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from embgeo.core.errors import BadOption
from embgeo.core.settings import refuse_unknown
from embgeo.training.checks import list_defaults, name_table
from embgeo.training.methods.definitions import find_method
from embgeo.training.optimization import optimizers
from embgeo.training.optimization.optimizers import SCHEDULES, build_schedule
from embgeo.training.settings import OF_OPTIMIZER, OF_SCHEDULE, StudySettings
from embgeo.training.tasks import make_task
from embgeo.training.tasks.task import refuse_unused


def complete_settings(config: StudySettings) -> StudySettings:
    """Fill in all defaults, as a run records them."""
    check(config)
    task = make_task(config)
    refuse_unused(config, task.USES)
    kind = task.find_model(config.model.name)
    known = list_defaults(kind)
    refuse_unknown(config.model.settings, known, f"[model] of {config.model.name}")
    chosen = config.optimizer
    with name_table("[optimizer]"):
        build_schedule(chosen.schedule, set_fields(chosen, OF_SCHEDULE))
        own = optimizers.complete_optimizer(chosen.kind, set_fields(chosen, OF_OPTIMIZER))
    # Methods that are not compared may be added later, and stay as they are.
    methods = dict(config.method)
    for name in config.compare:
        table = find_method(name, config.method).complete(config.method.get(name, {}))
        methods |= {name: table} if table else {}
    schedule = {**list_defaults(SCHEDULES[chosen.schedule]), **set_fields(chosen, OF_SCHEDULE)}
    found = replace(
        config,
        model=replace(config.model, settings=drop_none({**known, **config.model.settings})),
        optimizer=replace(chosen, **own, **schedule),
        method=methods,
    )
    return task.adapt(found)


def set_fields(settings: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return drop_none({name: getattr(settings, name) for name in names})


def drop_none(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table without unset values, which TOML cannot hold."""
    return {name: value for name, value in table.items() if value is not None}


def check(config: StudySettings) -> None:
    """Refuse invalid settings; models and optimizers check their own.

    Raises
    ------
    BadOption
        Naming the setting.
    """
    for names, where, what, usual in (
        (config.compare, "compare", "method", '["mle", "cosreg"]'),
        (config.seeds, "seeds", "seed", "[0, 1, 2]"),
    ):
        if not names:
            raise BadOption(f"no {what} is given", where=where, way_out=f"give some, as in {usual}")
        if len(set(names)) < len(names):
            raise BadOption(f"a {what} is given twice", where=where, way_out="give each once")
    for name in config.compare:
        find_method(name, config.method)
    for name, own in config.method.items():
        find_method(name, config.method, f"[method.{name}]").settings(own)
    concerned = {name for method in config.compare for name in config.list_tuned(method)}
    for name in config.tune:
        if name not in concerned:
            way_out = "leave it out, or compare that method"
            raise BadOption(f"{name} of [tune] concerns no compared method", way_out=way_out)
    for method in config.compare:
        for name, values in config.list_tuned(method).items():
            for value in values:  # that some run could have
                complete_settings(config.one(method, config.seeds[0], {name: value}))
    training, optimizer = config.training, config.optimizer
    for wrong, cause, way_out in (
        (
            training.patience is not None and training.keep != "best",
            "patience of [training] ends a run behind its best evaluation",
            'set keep = "best" in [training]',
        ),
        (
            optimizer.asgd and optimizer.kind != "sgd",
            "asgd averages plain SGD",
            'set kind = "sgd" in [optimizer]',
        ),
        (
            optimizer.finetune and not optimizer.asgd,
            "finetune is the second stage of averaged SGD",
            "set asgd = true in [optimizer]",
        ),
        (
            optimizer.asgd and optimizer.average,
            "asgd decides itself when to average",
            "leave average out",
        ),
    ):
        if wrong:
            raise BadOption(cause, way_out=way_out)
