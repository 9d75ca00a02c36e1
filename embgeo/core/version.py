"""The version of embgeo. The build reads it from here."""

from __future__ import annotations

VERSION = "0.1.0"
