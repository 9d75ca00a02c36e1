"""The tasks that models can be trained on, one file each."""

from embgeo.core.settings import refuse_unknown
from embgeo.training.checks import list_defaults, name_table
from embgeo.training.data.batches import BatchIterator
from embgeo.training.data.vocabulary import Dataset
from embgeo.training.evaluation.evaluator import SplitEvaluator, SplitScores
from embgeo.training.registry import check_defaults, check_name, require
from embgeo.training.settings import StudySettings
from embgeo.training.study.numbers import OF_LANGUAGE_MODELS
from embgeo.training.tasks.classification import ClassificationTask
from embgeo.training.tasks.language_model import LanguageModeling
from embgeo.training.tasks.skip_gram import SkipGramTask
from embgeo.training.tasks.task import Losses, Task
from embgeo.training.tasks.translation import TranslationTask

__all__ = [
    "TASKS",
    "BatchIterator",
    "ClassificationTask",
    "Dataset",
    "LanguageModeling",
    "Losses",
    "SkipGramTask",
    "SplitEvaluator",
    "SplitScores",
    "Task",
    "TranslationTask",
    "check_task",
    "make_task",
]

#: Every task by name, to which plug-ins add.
TASKS: dict[str, type[Task]] = {
    task.NAME: task
    for task in (LanguageModeling, ClassificationTask, TranslationTask, SkipGramTask)
}


def make_task(config: StudySettings) -> Task:
    name, settings = config.task.name, config.task.settings
    found = require("task", TASKS, name)
    refuse_unknown(settings, list_defaults(found), f"[task] of {name}")
    with name_table("[task]"):
        return found(**settings)


def check_task(kind: type[Task]) -> str:
    """Return the name of a task from a plug-in; ValueError if it is not a usable task."""
    if not (isinstance(kind, type) and issubclass(kind, Task)):
        raise ValueError("it is not a Task")
    for name in ("load", "feed", "loss", "EVALUATOR"):
        if getattr(kind, name) is getattr(Task, name):
            raise ValueError(f"{kind.__name__} has no {name}")
    if not kind.MODELS and kind.find_model is Task.find_model:
        raise ValueError(f"{kind.__name__} has no MODELS")
    known = {quantity.name for quantity in (*kind.QUANTITIES, *OF_LANGUAGE_MODELS)}
    if f"valid.{kind.QUALITY}" not in known:
        raise ValueError(f"QUANTITIES of {kind.__name__} lack valid.{kind.QUALITY}")
    if odd := [q.name for q in kind.QUANTITIES if q.better not in ("higher", "lower", None)]:
        raise ValueError(f"better of {odd[0]} is neither higher nor lower")
    check_defaults(kind, list_defaults(kind))
    return check_name(kind.NAME)
