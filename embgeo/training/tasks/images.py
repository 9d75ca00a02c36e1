"""Classification of images, which Gao et al. compare with translation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from embgeo.core.values import Quantity
from embgeo.training.data.document_batches import DocumentBatch
from embgeo.training.data.images import ImageCorpus, find_digits, load_images
from embgeo.training.methods import Step
from embgeo.training.models import EmbeddingModel
from embgeo.training.settings import StudySettings
from embgeo.training.study.document_outcomes import list_quantities
from embgeo.training.tasks.classification import ClassificationTask
from embgeo.training.tasks.cnn import Cnn
from embgeo.training.tasks.task import OF_TEXTS, refuse_settings


class ImageTask(ClassificationTask):
    """Predict the class of an image.

    Parameters
    ----------
    fold : int
        Which tenth of data without a test split is for testing: 0 to 9.
    """

    NAME: ClassVar[str] = "images"
    MODELS: ClassVar[tuple[type[EmbeddingModel], ...]] = (Cnn,)
    QUANTITIES: ClassVar[tuple[Quantity, ...]] = list_quantities("images")

    def __init__(self, *, fold: int = 0) -> None:
        super().__init__(fold=fold)

    def resolve(self, config: StudySettings) -> StudySettings:
        """Take the digits of scikit-learn without other data."""
        if config.data.path:
            return config
        return replace(config, data=replace(config.data, path=str(find_digits())))

    def load(self, config: StudySettings) -> ImageCorpus:
        refuse_settings(config, OF_TEXTS | {"data": (*OF_TEXTS["data"], "min_count", "size")})
        return load_images(Path(config.data.path), self.fold)

    def size_model(self, dataset: ImageCorpus) -> tuple[Any, ...]:  # type: ignore[override]
        return len(dataset.classes), dataset.shape

    def describe_step(self, batch: DocumentBatch) -> Step:
        return Step(targets=batch.classes)

    def estimate_batch(self, config: StudySettings, n_tokens: int) -> int:  # noqa: ARG002
        """Feature maps of both convolutions of `Cnn` with their gradients, for 28 × 28 pixels."""
        pixels = 28 * 28
        filters = int(config.model.settings.get("filters", 0))
        return 8 * config.training.batch * filters * (pixels + pixels // 2)
