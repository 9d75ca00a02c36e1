"""What :mod:`embgeo.training.methods.integrations` was called in version 0.1; still works."""

from embgeo.training.methods.integrations import LightningRegularizer, TrainerRegularizer

__all__ = ["LightningRegularizer", "TrainerRegularizer"]
