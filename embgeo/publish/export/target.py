"""What an export is: a saved result goes in, files that other programs read come out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import EmbgeoError
from embgeo.result.analysis import Analysis

FORMAT = "embgeo.export"
FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Labels:
    """What is known of each row that is exported.

    Attributes
    ----------
    names : tuple of str
        Of the columns, the token first where there are tokens.
    columns : tuple of sequences
        All of the same length; tokens are hostile text.
    """

    names: tuple[str, ...]
    columns: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Vectors:
    """The rows of a matrix.

    Attributes
    ----------
    name : str
        Of the tensor; hostile text.
    n, d : int
    blocks : callable
        Gives the rows in order, float64 blocks of shape (·, d); can be called again.
    labels : Labels
    origin : dict
        File, tensor, checksum and shape of the whole matrix, JSON-ready.
    """

    name: str
    n: int
    d: int
    blocks: Callable[[], Iterator[npt.NDArray[np.float64]]]
    labels: Labels
    origin: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """What is exported, and what was chosen.

    Attributes
    ----------
    record : dict
        How it was made, JSON-ready; every target keeps it.
    analysis : Analysis or None
        None only for targets that need vectors.
    vectors : Vectors or None
        None for targets that need none.
    scalars : tuple of str
        Names of the scalars for a model card; empty for the default.
    model, task : str
        Name and task in a model card; hostile text.
    binary : bool
        Whether vectors go into a binary file.
    """

    record: dict[str, Any]
    analysis: Analysis | None = None
    vectors: Vectors | None = None
    scalars: tuple[str, ...] = ()
    model: str = ""
    task: str = "text-generation"
    binary: bool = False

    def saved(self) -> Analysis:
        """The analysis of a target that needs one."""
        if self.analysis is None:
            raise EmbgeoError("this export needs a saved analysis")
        return self.analysis


@dataclass(frozen=True, slots=True)
class Target:
    """One format to export to.

    Attributes
    ----------
    name : str
        Of the option.
    suffix : str
        Of the file, or of the folder.
    write : callable
        Writes the request to a path that does not exist yet; files next to it begin with its name.
    is_ours : callable
        Whether a file (or folder) that exists was written by `write`.
    needs_vectors : bool
    """

    name: str
    suffix: str
    write: Callable[[Request, Path], None]
    is_ours: Callable[[Path], bool]
    needs_vectors: bool = False
