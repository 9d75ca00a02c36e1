"""Validate settings, and fill in defaults."""

from msgspec.structs import asdict, replace

from embgeo.core.errors import BadOption
from embgeo.core.text import join_words
from embgeo.files.settings import parse_table, to_toml
from embgeo.training import components
from embgeo.training.limits import MOST_RUNS
from embgeo.training.registry import find, find_method, find_model
from embgeo.training.schedules import SCHEDULES
from embgeo.training.sections import OPTIMIZERS, OptimizerSettings
from embgeo.training.settings import StudySettings


def complete_settings(config: StudySettings) -> StudySettings:
    """Fill in all defaults, as a run records them."""
    found = check_settings(config)
    # Imported with torch, which the refusal of a misspelled setting need not wait for.
    from embgeo.training.tasks import make_task
    from embgeo.training.tasks.task import refuse_unused

    task = make_task(found)
    refuse_unused(found, task.USES)
    return task.adapt(found)


def check_settings(config: StudySettings) -> StudySettings:
    """Refuse invalid settings without torch, and fill in all defaults but those of the task."""
    for names, where, what, usual in (
        (config.compare, "compare", "method", '["mle", "cosreg"]'),
        (config.seeds, "seeds", "seed", "[0, 1, 2]"),
    ):
        if not names:
            raise BadOption(f"no {what} is given", where=where, way_out=f"give some, as in {usual}")
        if len(set(names)) < len(names):
            raise BadOption(f"a {what} is given twice", where=where, way_out="give each once")
    for name in config.compare:
        if find_method(name, config.method).coupled and config.optimizer.kind == "sgd":
            cause = f"{name} is an optimizer, and so is sgd"
            raise BadOption(cause, way_out='leave it out, or set kind = "adamw" in [optimizer]')
    for name, own in config.method.items():
        find_method(name, config.method, f"[method.{name}]").settings(own)
    tuned = [config.list_tuned(method) for method in config.compare]
    for name in config.tune:
        if not any(name in lists for lists in tuned):
            way_out = "leave it out, or compare that method"
            raise BadOption(f"{name} of [tune] concerns no compared method", way_out=way_out)
    trials = sum(len(values) for lists in tuned for values in lists.values())
    for what, number in (("trials", trials), ("runs", len(config.runs))):
        if number > MOST_RUNS:
            cause, way_out = f"a study of {number:,} {what}", f"give {MOST_RUNS:,} at most"
            raise BadOption(cause, way_out=way_out)
    for method, lists in zip(config.compare, tuned, strict=True):
        for name, values in lists.items():
            for value in values:  # that some run could have
                check_settings(config.one(method, config.seeds[0], {name: value}))
    training = config.training
    if training.patience is not None and training.keep != "best":
        raise BadOption(
            "patience of [training] ends a run behind its best evaluation",
            way_out='set keep = "best" in [training]',
        )
    task, model = config.task, config.model
    parse_table(find("task", components.TASKS, task.name), task.settings, f"[task] of {task.name}")
    kind, named = find_model(task.name, model.name), f"[model] of {model.name}"
    chosen = parse_table(kind, model.settings, named)
    # Methods that are not compared may be added later, and stay as they are.
    methods = dict(config.method)
    for name in config.compare:
        found = find_method(name, config.method)
        parse_table(kind, {**model.settings, **found.model}, f"{named} for {name}")
        table = found.complete(config.method.get(name, {}))
        methods |= {name: table} if table else {}
    return replace(
        config,
        model=replace(model, settings=to_toml(chosen)),
        optimizer=complete_optimizer(config.optimizer),
        method=methods,
    )


def complete_optimizer(chosen: OptimizerSettings) -> OptimizerSettings:
    """Fill in the settings of optimizer and schedule; `BadOption` for those of another one."""
    algorithm, factor = chosen.algorithm, chosen.factor
    own = asdict(algorithm) | asdict(factor)
    for name in chosen.settings:
        for key, known in (("kind", OPTIMIZERS), ("schedule", SCHEDULES)):
            users = [user for user, kind in known.items() if name in kind.__struct_fields__]
            if name not in own and users:
                raise BadOption(
                    f"{name} of [optimizer] is not for the {key} {getattr(chosen, key)}",
                    way_out=f"leave it out, or set {key} to {join_words(users, 'or')}",
                )
    if own.get("asgd") and chosen.average:
        raise BadOption("asgd decides itself when to average", way_out="leave average out")
    return replace(chosen, settings=own)
