"""Packages that are not dependencies."""

import importlib
import sys
from typing import Any

from embgeo.core.errors import EmbgeoError


def import_pandas() -> Any:
    try:
        return importlib.import_module("pandas")
    except ImportError as error:
        raise EmbgeoError(
            "pandas is not installed", where="to_pandas", way_out="pip install pandas"
        ) from error


def import_base(packages: tuple[str, ...], name: str) -> Any:
    """Import a class to derive from, of the first installed package; `object` without one.

    Of two names of a package, the imported one is in use.
    """
    for package in sorted(packages, key=lambda package: package not in sys.modules):
        try:
            return getattr(importlib.import_module(package), name)
        except ImportError:
            continue
    return object
