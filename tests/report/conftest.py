"""What tests of pages share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.outlined import outlined


@pytest.fixture
def outlines() -> Iterator[None]:
    """Pages are printed without drawing, for tests that read their text only."""
    with outlined():
        yield
