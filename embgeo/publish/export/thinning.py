"""Fewer rows that still stand for all of them, the rare ones too."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def thin_rows(
    falling: npt.NDArray[np.float64] | None, rows: int, most: int
) -> npt.NDArray[np.int64]:
    """Positions of at most `most` of the rows, evenly over the order of frequency.

    Parameters
    ----------
    falling : float64 array, shape (rows,), or None
        Larger for more frequent tokens; None where nothing is known: then evenly over the rows.

    Returns
    -------
    int array
        Rising.
    """
    order = np.arange(rows) if falling is None else np.argsort(-falling, kind="stable")
    if rows > most:
        order = order[np.linspace(0, rows - 1, most).round().astype(np.int64)]
    return np.sort(order).astype(np.int64)
