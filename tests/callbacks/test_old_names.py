"""The old import path leads to the new one, with a warning."""

from __future__ import annotations

import pytest

from embgeo import callbacks, integrations


def test_old_names_warn() -> None:
    with pytest.warns(DeprecationWarning, match=r"is now embgeo\.callbacks\.Monitor"):
        assert integrations.Gauge is callbacks.Monitor
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = integrations.Nothing
