"""pandas, which is not a dependency."""

import importlib
from typing import Any

from embgeo.core.errors import EmbgeoError


def import_pandas() -> Any:
    try:
        return importlib.import_module("pandas")
    except ImportError as error:
        raise EmbgeoError(
            "pandas is not installed", where="to_pandas", way_out="pip install pandas"
        ) from error
