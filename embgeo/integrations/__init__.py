"""Geometry while a model trains: chosen numbers at regular steps, to whatever logs.

`TrainerGeometry` is for the Trainer of transformers, `LightningGeometry` for Lightning's, `Gauge`
for a loop of one's own. Neither library is imported unless its callback is asked for.
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
