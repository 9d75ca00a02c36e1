"""What an export is: a saved result goes in, files that other programs read come out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.result.analysis import Analysis

FORMAT = "embgeo.export"
FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Vectors:
    """The exported rows of a matrix; its name and the labels are untrusted text."""

    name: str
    n: int
    d: int
    #: Gives the rows in order, in float64 blocks of shape (·, d), any number of times.
    blocks: Callable[[], Iterator[npt.NDArray[np.float64]]]
    #: Columns with one entry a row, the tokens first if there are any.
    labels: Mapping[str, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Request:
    """What to export, and how."""

    #: The provenance of the export, JSON-ready.
    record: dict[str, Any]
    analysis: Analysis
    #: None for targets that need none.
    vectors: Vectors | None = None
    #: Whether vectors go into a binary file.
    binary: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """A format to export to."""

    name: str
    #: Of the file or the folder.
    suffix: str
    #: Writes to a path that does not exist; further files begin with the name of the path.
    write: Callable[[Request, Path], None]
    #: Whether an existing file or folder was written by `write`.
    is_ours: Callable[[Path], bool]
    needs_vectors: bool = False
