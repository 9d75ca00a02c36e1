"""Comparisons of analyses: differences of every number, and numbers of two matrices.

`comparison` holds the result, which reports, figures and other programs read; the other modules
make it.
"""
