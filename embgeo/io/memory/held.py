"""What was found in an object in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from embgeo.core.matrix import Frequency


@dataclass(frozen=True, slots=True)
class HeldMatrix:
    """An embedding matrix and what its object knows about it.

    Attributes
    ----------
    rows : array, shape (N, d)
    name : str
        What the object calls it.
    tokens : tuple of str or None
    frequency : Frequency or None
    output : array or None
        The output embedding of an untied model, with N rows.
    output_name : str
    format : str
        Which kind of object it was.
    reason : str
        Why this matrix was taken, where there were several.
    tied_by : str
        How the output embedding is the input embedding; empty where it is not.
    notes : tuple of str
    """

    rows: npt.NDArray[Any]
    name: str = ""
    tokens: tuple[str, ...] | None = None
    frequency: Frequency | None = None
    output: npt.NDArray[Any] | None = None
    output_name: str = ""
    format: str = "array"
    reason: str = ""
    tied_by: str = ""
    notes: tuple[str, ...] = ()
