"""Analyses of the families that a test reads, without the others of their section."""

from __future__ import annotations

from types import ModuleType
from typing import Any
from unittest import mock

import embgeo
from embgeo.measure import passes


def measure(matrix: Any, *families: ModuleType, **more: Any) -> embgeo.Analysis:
    """The analysis of a matrix by modules of `embgeo.metrics` alone."""
    found = tuple(module.FAMILY for module in families)
    sections = [family.section for family in found]
    with mock.patch.object(passes, "FAMILIES", found):
        return embgeo.analyze(matrix, sections=sections, reference=False, **more)
