"""The earlier import path of :mod:`embgeo.training.methods.integrations`."""

from embgeo.training.methods.integrations import LightningRegularizer, TrainerRegularizer

__all__ = ["LightningRegularizer", "TrainerRegularizer"]
