"""Checks that a matrix can be measured with the given options."""

from __future__ import annotations

import difflib
from pathlib import Path

import numpy as np

from embgeo.core.errors import BadOption, EmbgeoError, argument
from embgeo.core.matrix import Matrix
from embgeo.core.options import Options
from embgeo.metrics import Facts, Measurement
from embgeo.stats.reader import HiddenStates

#: The largest entry must lie between these: sums of squares hold up to about 1e±308.
SQUARABLE = (1e-140, 1e140)
#: Columns beyond which a matrix of columns × columns, of which there are several, takes over 80 GB.
MOST_COLUMNS = 100_000


def check_width(matrix: Matrix) -> None:
    """Check before the first pass that a d×d matrix fits into memory."""
    if matrix.d > MOST_COLUMNS:
        raise EmbgeoError(
            f"{matrix.d:,} columns; embgeo holds products of all pairs of columns, and takes up to "
            f"{MOST_COLUMNS:,}",
            where=matrix.origin.path or matrix.name,
            way_out=f"if tokens are columns in the file, give {argument('transpose')}",
        )


def check_usable(measurement: Measurement, options: Options) -> None:
    """Check after the first pass that rows remain and that the options fit them."""
    facts = measurement.facts
    matrix, largest = measurement.reader.matrix, measurement.reader.census.largest
    where = matrix.origin.path or matrix.name
    if not facts.m:
        raise EmbgeoError(
            f"none of {matrix.n:,} rows can be analyzed ({facts.n_masked:,} masked, "
            f"{len(facts.zero):,} zero, {len(facts.nonfinite):,} non-finite)",
            where=where,
            way_out=f"choose another tensor with {argument('tensor')}, see: embgeo inspect",
        )
    way_out = "rescale the matrix, or look whether its bytes were read as the right dtype"
    check_squarable(largest, where, way_out)
    if options.isotropy_rows is not None and options.isotropy_rows > facts.m:
        raise BadOption(
            f"{options.isotropy_rows:,} rows requested, the matrix has {facts.m:,} to sample",
            where=argument("isotropy_rows"),
            way_out="give a smaller number",
        )
    if options.show_neighbors:
        check_asked(facts, options)
    if measurement.hidden is not None:
        check_hidden(measurement.hidden, facts)


def check_squarable(largest: float, where: Path | str, way_out: str) -> None:
    """Check that the square of the largest entry neither overflows nor vanishes."""
    if not SQUARABLE[0] < largest < SQUARABLE[1]:
        cause = f"the largest entry is {largest:.3g}, its square is beyond what a floating-point "
        raise EmbgeoError(f"{cause}number holds", where=where, way_out=way_out)


def check_asked(facts: Facts, options: Options) -> None:
    """Check that the tokens whose neighbors are listed exist."""
    if facts.tokens is None:
        way_out = f"give {argument('tokens')}"
        raise BadOption(
            "the rows have no tokens", where=argument("show_neighbors"), way_out=way_out
        )
    known = {facts.tokens[row] for row in facts.kept.tolist()}
    for token, others in options.show_neighbors:
        for name in (token, *others):
            if name not in known:
                near = difflib.get_close_matches(name, known, n=3)
                listed = " or ".join(map(repr, near))
                raise BadOption(
                    f"no token is called {name!r}",
                    where=argument("show_neighbors"),
                    way_out=f"did you mean {listed}?"
                    if near
                    else "spell it as the vocabulary does",
                )


def check_hidden(hidden: HiddenStates, facts: Facts) -> None:
    """Check that the hidden states fit the embedding and can be squared."""
    where = hidden.states.origin.path or argument("hidden")
    if hidden.width != facts.d:
        raise BadOption(
            f"hidden states of {hidden.width:,} columns, the embedding has {facts.d:,}",
            where=where,
            way_out="give the states that the output projection sees",
        )
    largest = max((float(np.abs(rows).max()) for _, rows in hidden.blocks()), default=None)
    if largest is None:
        raise EmbgeoError("no hidden state is finite", where=where, way_out="give another file")
    if largest:
        check_squarable(largest, where, "rescale the hidden states")
