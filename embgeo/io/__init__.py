"""Reads checkpoints and vector files as matrices with labels and counts.

`places` finds bytes by name, `formats` makes a checkpoint of bytes, `model` chooses the matrix by
evidence, `labels` says whose rows they are, `memory` takes objects of other libraries, and `load`
goes from a path and options to a matrix.

Readers raise `Damaged` with a cause and a way out. `formats.format.open_with` and, for other files,
`files.guard.reading` turn it, and other errors that bad bytes cause, into an `UnreadableFile`, one
line that names the file.
"""
