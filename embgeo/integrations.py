"""The old import path of :mod:`embgeo.callbacks`, for one version."""

import warnings
from typing import Any

#: Old names of classes.
_RENAMED = {"Gauge": "Monitor"}


def __getattr__(name: str) -> Any:
    from embgeo import callbacks

    new = _RENAMED.get(name, name)
    if new not in callbacks.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    message = f"embgeo.integrations.{name} is now embgeo.callbacks.{new}"
    warnings.warn(message, DeprecationWarning, stacklevel=2)
    return getattr(callbacks, new)
