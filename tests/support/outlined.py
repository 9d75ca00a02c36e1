"""Pages with outlines for figures: drawing takes most of the time, and most tests read text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from embgeo.charts.specification import Specification
from tests.support.sampling import sample_cases


@contextmanager
def outline_figures() -> Iterator[None]:
    """Charts are specified in full, and printed as empty ``<svg>`` elements."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("embgeo.report.page.render_svg", outline)
        yield


def outline(spec: Specification) -> str:
    return f'<svg class="figure" role="img" data-outline-of="{spec.name}"></svg>'


def drawn_pages(kinds: list[dict[str, Any]], keep: Callable[[Any], bool]) -> list[Any]:
    """The options of the same pages with drawn figures; ordinary runs take those kept."""
    drawn = sample_cases([{"drawn": True, **kind} for kind in kinds], keep)
    return [case if hasattr(case, "marks") else slow(case) for case in drawn]


def slow(case: Any) -> Any:
    return pytest.param(case, marks=pytest.mark.slow)


drawn_or_not = pytest.mark.parametrize("drawn", [False, slow(True)])
