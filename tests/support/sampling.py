"""Cases of which ordinary runs take a sample and the nightly run takes all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

#: Whether this run takes nightly cases; where not, they are not even collected (conftest.py).
AT_NIGHT = True


def sample_cases(cases: Iterable[Any], keep: int | Callable[[Any], bool]) -> list[Any]:
    """All cases, for ``pytest.mark.parametrize``; those not sampled are marked nightly.

    Parameters
    ----------
    cases : iterable
        Values, tuples of values (one per argument) or ``pytest.param``.
    keep : int or callable
        Every `keep`-th case is sampled, the first included; or those for which it is true.
    """
    chosen = [
        (case, keep(case) if callable(keep) else not number % keep)
        for number, case in enumerate(cases)
    ]
    return [case if kept else nightly(case) for case, kept in chosen if kept or AT_NIGHT]


def nightly(case: Any) -> Any:
    """The case, as one that only the nightly run takes."""
    if hasattr(case, "marks"):
        return case._replace(marks=(*case.marks, pytest.mark.nightly))
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.nightly)
