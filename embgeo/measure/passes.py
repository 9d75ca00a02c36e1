"""The two passes over the rows of a matrix, shared by all families, and what they require."""

import difflib
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from embgeo.core.arguments import refuse_name
from embgeo.core.errors import BadOption, EmbgeoError, argument
from embgeo.core.matrix import Matrix
from embgeo.core.options import Options
from embgeo.core.progress import Progress
from embgeo.core.values import Value
from embgeo.metrics import FAMILIES, SECTIONS, Facts, Family, Measurement, SharedStatistics
from embgeo.stats import Norms
from embgeo.stats.reader import HiddenStates, RowReader
from embgeo.stats.resources import Resources, limited
from embgeo.stats.statistic import Statistic

#: The largest entry must lie between these: sums of squares hold up to about 1e±308.
SQUARABLE = (1e-140, 1e140)
#: Columns beyond which a matrix of columns × columns, of which there are several, takes over 80 GB.
MOST_COLUMNS = 100_000


def open_rows(
    matrix: Matrix,
    options: Options,
    resources: Resources | None = None,
    progress: Progress | None = None,
) -> RowReader:
    """Open the rows of a matrix in the requested precision."""
    if options.precision == "float32":
        matrix = replace(matrix, rounded=True)
    return RowReader(matrix, resources, progress)


class Passes(Measurement):
    """A measurement with the passes that its families need.

    `sections`: all by default. `families`: those that are not absent. `absent`: sections that are
    left out, and why.
    """

    def __init__(
        self,
        reader: RowReader,
        options: Options,
        sections: Sequence[str] | None = None,
    ) -> None:
        matrix = reader.matrix
        super().__init__(
            Facts.of(matrix, options),
            reader,
            SharedStatistics(reader.eigh),
            None if matrix.hidden is None else HiddenStates(matrix.hidden),
        )
        self.absent: dict[str, str] = {}
        self.families = choose_families(sections)
        self._leave_out_absent()

    @property
    def options(self) -> Options:
        return self.facts.options

    def _leave_out_absent(self) -> None:
        reasons = [(family, family.absent(self)) for family in self.families]
        self.absent |= {family.section: reason for family, reason in reasons if reason}
        self.families = [family for family, reason in reasons if not reason]

    def quiet(self) -> AbstractContextManager[None]:
        """Limit BLAS to one thread per call for a narrow matrix.

        After a call its threads stay awake for some hundredths of a second, which is as long as
        a pass over a narrow matrix takes, and compete with the threads of the pass.
        """
        return limited(1) if self.reader.narrow else nullcontext()

    def first_pass(self) -> None:
        """Read all rows once, or twice if some are damaged; then `facts` knows the kept rows.

        A norm is small only in comparison with all others. Subtracting the short rows from the sums
        would keep their rounding errors, so the pass is repeated without them.
        """
        norms = Norms()
        statistics = distinct([norms, *self.request_first()])
        self.reader.sift(statistics)
        small = norms.find_small(self.reader.matrix.d, self.options.min_norm)
        if len(small[0]):
            statistics = [statistic.blank() for statistic in statistics]
            self.reader.leave_out(statistics, *small)
        self.shared.add(statistics)
        self.know_rows()
        if self.facts.m and self.shared.is_rough:
            wide = replace(self.shared.moments, probed=False)
            self.reader.announce("sums in float64", self.facts.m)
            self.reader.fold([wide])
            self.shared.replace_moments(wide)

    def know_rows(self) -> None:
        """Update `facts` with the kept rows, and drop the families that have too few of them."""
        self.facts = self.facts.after_sifting(self.reader)
        self._leave_out_absent()

    def second_pass(self, more: Sequence[Statistic] = ()) -> None:
        """Decompose the sums of the first pass, and feed the rows to further statistics."""
        statistics = [*self.request_second(), *more]
        if statistics:
            self.reader.announce("second pass", self.facts.m)
            self.reader.fold(statistics)
        self.shared.add(statistics)

    def request_first(self) -> list[Statistic]:
        """Return the statistics of the first pass that the families name."""
        made = (make(self.facts) for family in self.families for make in family.first)
        return distinct(one for one in made if one is not None)

    def request_second(self) -> list[Statistic]:
        """Return the statistics of the second pass that the families request, each once."""
        return distinct(one for family in self.families for one in family.second(self))

    def compute(self, family: Family) -> list[Value]:
        """Compute the values of a family; both passes must be over."""
        self.reader.announce(family.section, 0)
        return family.compute(self)


def choose_families(sections: Sequence[str] | None) -> list[Family]:
    chosen = SECTIONS if sections is None else tuple(sections)
    for name in chosen or ("",):
        if name not in SECTIONS:
            raise refuse_name("section", name, SECTIONS, argument("sections"))
    return [family for family in FAMILIES if family.section in chosen]


def distinct(statistics: Iterable[Statistic]) -> list[Statistic]:
    """Keep the first statistic of each key, so that shared ones are computed once."""
    by_key: dict[Any, Statistic] = {}
    for statistic in statistics:
        by_key.setdefault(statistic.key, statistic)
    return list(by_key.values())


def check_width(matrix: Matrix, resources: Resources | None = None) -> None:
    """Check before the first pass that a d×d matrix fits into memory, and into what is allowed."""
    refusal = "" if resources is None else resources.explain_refusal(matrix.n, matrix.d)
    if matrix.d > MOST_COLUMNS:
        raise EmbgeoError(
            f"{matrix.d:,} columns; embgeo holds products of all pairs of columns, and takes up to "
            f"{MOST_COLUMNS:,}",
            where=matrix.origin.path or matrix.name,
            way_out=f"if tokens are columns in the file, give {argument('transpose')}",
        )
    if refusal:
        raise EmbgeoError(
            refusal,
            where=argument("memory"),
            way_out="allow more, or leave it out to take what is needed",
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
            way_out="give the states that the output matrix sees",
        )
    largest = max((float(np.abs(rows).max()) for _, rows in hidden.blocks()), default=None)
    if largest is None:
        raise EmbgeoError("no hidden state is finite", where=where, way_out="give another file")
    if largest:
        check_squarable(largest, where, "rescale the hidden states")
