"""LaTeX tables with booktabs, one file each; they see nothing but saved results."""

from __future__ import annotations

from embgeo.tables import isotropy, neighbors
from embgeo.tables.base import LatexTable

TABLES: tuple[LatexTable, ...] = (isotropy.TABLE, neighbors.TABLE)
