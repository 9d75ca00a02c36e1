"""The version of embgeo: the only place where it stands; releases take it from here."""

from __future__ import annotations

VERSION = "0.1.0"
