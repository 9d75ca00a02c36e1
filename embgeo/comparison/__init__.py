"""Two or more analyses side by side: differences of every number, and what takes both matrices.

`comparison` is the result, which a page, figures and other programs read; the other modules make
it.
"""
