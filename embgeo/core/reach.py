"""How far intervals reach whose standard errors come from few draws."""

from __future__ import annotations

import math

#: Standard errors to either side of an estimate that make a 95 % interval.
REACH = 1.96


def student_reach(z: float, freedom: int | None) -> float:
    """Standard errors that hold as much of Student's t as `z` do of a normal distribution.

    Parameters
    ----------
    z : float
    freedom : int or None
        Degrees of freedom; None: infinitely many.

    Examples
    --------
    >>> round(student_reach(1.959964, 9), 4), student_reach(1.96, None)
    (2.2622, 1.96)
    """
    if freedom is None or z == 0.0:
        return z
    if freedom < 1:
        return math.inf
    from scipy.special import ndtr, stdtrit

    return float(-stdtrit(freedom, ndtr(-z)))
