"""The tasks that models can be trained on, one file each."""

from embgeo.training.components import TASKS
from embgeo.training.data.batches import BatchIterator
from embgeo.training.data.vocabulary import Dataset
from embgeo.training.evaluation.evaluator import SplitEvaluator, SplitScores
from embgeo.training.registry import find, load_class
from embgeo.training.settings import StudySettings
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
    "make_task",
]


def make_task(config: StudySettings) -> Task:
    name, settings = config.task.name, config.task.settings
    task: Task = load_class(find("task", TASKS, name))(**settings)
    return task
