"""DataFrames of pandas: a row for each token, named by the index."""

from __future__ import annotations

import sys
from typing import Any

from embgeo.core.errors import BadOption
from embgeo.io.bounded.small_files import safe_text
from embgeo.io.memory.held import HeldMatrix


def find_matrix(W: Any) -> HeldMatrix | None:
    """Of a DataFrame of numbers; an index other than 0, 1, … names the tokens.

    Raises
    ------
    BadOption
        A column that holds something else than numbers.
    """
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(W, pandas.DataFrame):
        return None
    for column, kind in zip(W.columns, W.dtypes, strict=True):
        if not pandas.api.types.is_numeric_dtype(kind) or pandas.api.types.is_bool_dtype(kind):
            raise BadOption(
                f"column {column!r} of the DataFrame holds no numbers",
                way_out="give the columns of the vectors alone; set_index names the tokens",
            )
    rows = W.to_numpy()
    if rows.dtype.kind not in "f":  # whole numbers, or numbers with missing ones
        rows = W.to_numpy(dtype="float64", na_value=float("nan"))
    named = not isinstance(W.index, pandas.RangeIndex)
    tokens = tuple(safe_text(str(label)) for label in W.index) if named else None
    return HeldMatrix(rows, tokens=tokens, format="pandas DataFrame")
