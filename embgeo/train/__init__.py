"""``embgeo.train(...)``, and the earlier import path ``embgeo.train.regularizers``.

A name cannot be a function and a package at once: importing ``embgeo.train.regularizers`` sets the
attribute ``train`` of `embgeo` to this module. So the module itself can be called.
``help(embgeo.workflows.train.train)`` describes its arguments.
"""

from __future__ import annotations

import sys
from inspect import Signature, signature
from types import ModuleType
from typing import Any


def _function() -> Any:
    from embgeo.workflows.train import train

    return train


class _CallableModule(ModuleType):
    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return _function()(*arguments, **named)

    @property
    def __signature__(self) -> Signature:
        return signature(_function())


sys.modules[__name__].__class__ = _CallableModule
