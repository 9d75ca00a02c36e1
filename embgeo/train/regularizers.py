"""The earlier import path of :mod:`embgeo.training.methods`."""

from __future__ import annotations

from typing import Any

from embgeo.training import methods

__all__ = list(methods.__all__)


def __getattr__(name: str) -> Any:
    return getattr(methods, name)


def __dir__() -> list[str]:
    return __all__
