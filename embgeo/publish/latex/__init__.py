"""LaTeX tables with booktabs, one file each; they see nothing but saved results."""

from embgeo.publish.latex import isotropy, neighbors, numbers
from embgeo.publish.latex.latex_table import LatexTable

TABLES: tuple[LatexTable, ...] = (numbers.TABLE, isotropy.TABLE, neighbors.TABLE)
