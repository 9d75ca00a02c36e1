"""Single rows read from the files of the parts, where whoever merges can reach them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import IntArray
from embgeo.core.errors import EmbgeoError
from embgeo.core.matrix import Matrix
from embgeo.distributed.gathered import RowsMissing
from embgeo.distributed.plans import Fetch, Plan
from embgeo.distributed.seen_norms import SeenNorms
from embgeo.io import load
from embgeo.stats.block import Block


def from_files(plan: Plan, folder: Path) -> Fetch:
    """A function that reads rows of the whole from the files that the parts were made of.

    Rows are held against the norms that the first pass saw: a file of the same name may be another
    one here.

    Parameters
    ----------
    plan : Plan
    folder : Path
        Where the states lie: files are looked for from the current folder, then from there.
    """
    setup = plan.setup
    norms = SeenNorms.of(plan.first)

    @cache
    def opened(file: str, tensor: str, transposed: bool) -> Matrix:
        return open_again(file, tensor, transposed, folder)

    def fetch(rows: IntArray) -> npt.NDArray[Any]:
        found: npt.NDArray[Any] | None = None
        for part in plan.parts:
            low, high = np.searchsorted(rows, (part.start, part.stop))
            if low == high:
                continue
            matrix = opened(part.file, part.tensor, part.transposed)
            enough = matrix.n >= part.stop - part.first_row
            if not enough or (matrix.d, matrix.dtype) != (setup.d, setup.dtype):
                raise RowsMissing(part.file)
            own = matrix.data[rows[low:high] - part.first_row]
            if found is None:
                found = np.empty((len(rows), setup.d), dtype=own.dtype)
            found[low:high] = own
        if found is None:
            raise RowsMissing("no part holds them")
        block = Block(rows, np.asarray(found, dtype=np.float64))
        if norms is None or norms.other_row(block) is not None:
            raise RowsMissing("the files hold other rows by now")
        return found

    return fetch


def open_again(file: str, tensor: str, transposed: bool, folder: Path) -> Matrix:
    """The matrix that parts were cut from; RowsMissing where it cannot be reached."""
    for home in (Path(), folder):
        try:
            return load(
                home / file,
                tensor=tensor or None,
                output="none",
                transpose=transposed,
                padding="keep",
                hash_file=False,
            )
        except EmbgeoError:
            continue
    raise RowsMissing(file)
