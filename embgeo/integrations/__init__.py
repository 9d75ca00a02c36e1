"""Geometry while a model trains: scalars of the embedding are logged at regular steps.

`TrainerGeometry` is for the Trainer of transformers, `LightningGeometry` for that of Lightning,
`Gauge` for your own loop. Each library is imported only with its callback.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from embgeo.integrations.for_lightning import LightningGeometry
    from embgeo.integrations.for_trainer import TrainerGeometry, attach
    from embgeo.integrations.gauge import Gauge

__all__ = ["Gauge", "LightningGeometry", "TrainerGeometry", "attach"]

_HOME = {
    "Gauge": "gauge",
    "LightningGeometry": "for_lightning",
    "TrainerGeometry": "for_trainer",
    "attach": "for_trainer",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"embgeo.integrations.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
