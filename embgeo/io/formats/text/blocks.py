"""Blocks of lines of the same form, taken at once instead of line by line."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def are_plain(lines: Sequence[bytes], spaces: int) -> bool:
    """Whether each line has so many single spaces, none at either end, and no other blank."""
    if {line.count(b" ") for line in lines} != {spaces}:
        return False
    text = b"\n%b\n" % b"\n".join(lines)
    return not any(sign in text for sign in (b"\t", b"\r", b" \n", b"\n "))


def numbers_in(
    lines: Sequence[bytes], separator: bytes, before: int, columns: int, *, quoted: bool = False
) -> npt.NDArray[np.float32]:
    """The numbers of lines behind the first `before` cells, shape (lines, columns).

    Parameters
    ----------
    lines : sequence of bytes
    separator : bytes
        Between cells; empty for any blanks.
    before, columns : int
    quoted : bool
        Whether cells may stand between double quotes.

    Raises
    ------
    ValueError
        A cell that is no number.
    """
    if not lines:
        return np.empty((0, columns), dtype=np.float32)
    with np.errstate(over="ignore"):  # 1e300 becomes inf, and the row is counted as such
        block: npt.NDArray[np.float32] = np.loadtxt(
            [line.decode("latin-1") for line in lines],
            dtype=np.float32,
            delimiter=separator.decode() or None,
            quotechar='"' if quoted else None,
            comments=None,
            ndmin=2,
            usecols=range(before, before + columns),
        )
    return block
