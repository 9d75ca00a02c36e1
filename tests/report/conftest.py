"""A browser for the tests of a file, and a page in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import chromium, complaints, open_page


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def page(driver: Any, folder: Path) -> Iterator[Any]:
    """The page of a file's `folder`, fresh; at the end of every test the console is silent."""
    open_page(driver, folder / "page.html")
    yield driver
    assert complaints(driver) == []
