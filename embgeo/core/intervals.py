"""The width of intervals whose standard errors come from few draws."""

from __future__ import annotations

import math

#: Standard errors on either side of an estimate in a 95 % interval.
Z_95 = 1.96


def student_z(z: float, freedom: int | None) -> float:
    """The number of standard errors that covers as much of Student's t as `z` of a normal law.

    `freedom` is the degrees of freedom; None means infinitely many.

    >>> round(student_z(1.959964, 9), 4), student_z(1.96, None)
    (2.2622, 1.96)
    """
    if freedom is None or z == 0.0:
        return z
    if freedom < 1:
        return math.inf
    from scipy.special import ndtr, stdtrit

    return float(-stdtrit(freedom, ndtr(-z)))
