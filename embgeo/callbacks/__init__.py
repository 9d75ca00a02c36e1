"""Geometry while a model trains: scalars of the embedding are logged at regular steps.

`TrainerGeometry` is for the Trainer of transformers, `LightningGeometry` for that of Lightning,
`Monitor` for your own loop. Each library is imported only with its callback.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from embgeo.callbacks.lightning import LightningGeometry
    from embgeo.callbacks.monitor import Monitor
    from embgeo.callbacks.trainer import TrainerGeometry, attach

__all__ = ["LightningGeometry", "Monitor", "TrainerGeometry", "attach"]

_HOME = {
    "Monitor": "monitor",
    "LightningGeometry": "lightning",
    "TrainerGeometry": "trainer",
    "attach": "trainer",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"embgeo.callbacks.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
