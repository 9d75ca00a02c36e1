"""What a library user hands in is checked before anything is computed."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import embgeo
from embgeo.core.errors import BadOption


@pytest.mark.parametrize(
    "option",
    [
        {"seed": -1},
        {"pairs": -1},
        {"isotropy_rows": 0},
        {"isotropy_runs": 0},
        {"neighbors": 0},
        {"neighbors_of": "none"},
        {"popular_share": 0.0},
        {"popular_share": 1.0},
        {"popular_share": float("nan")},
    ],
)
def test_options_without_meaning_are_refused_by_name(option: dict[str, Any]) -> None:
    with pytest.raises(BadOption, match=next(iter(option))):
        embgeo.Options(**option)


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(3),
        np.zeros((0, 3)),
        np.zeros((3, 0)),
        np.zeros((2, 2, 2)),
        np.zeros((3, 3), dtype=np.int64),
        np.zeros((3, 3), dtype=np.complex128),
    ],
)
def test_what_is_no_matrix_of_real_numbers_is_refused(array: np.ndarray[Any, Any]) -> None:
    with pytest.raises(BadOption):
        embgeo.Matrix(array)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_every_floating_type_is_taken(dtype: Any) -> None:
    assert embgeo.Matrix(np.eye(3).astype(dtype)).n == 3
