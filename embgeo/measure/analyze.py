"""Measure a matrix: plan, first pass, second pass, values, reference."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.matrix import Matrix
from embgeo.core.options import Options
from embgeo.core.progress import Progress
from embgeo.core.quantities import spectrum
from embgeo.core.rows import CANDIDATES, NearestRows
from embgeo.core.values import Column, Halves, Histogram, Points, Scalar, Series, Table, Value
from embgeo.measure.passes import Passes, check_usable, check_width, open_rows
from embgeo.measure.provenance import count_dead_output_rows, notes, provenance
from embgeo.measure.reference import NOTE, SECTIONS, Reference
from embgeo.measure.what_if import WhatIf, can_be_treated
from embgeo.metrics import Facts
from embgeo.metrics.frequency import explain_no_classes, rank_by_frequency
from embgeo.metrics.hubs import is_sampled
from embgeo.metrics.neighbors import ALL, find_all_neighbors
from embgeo.metrics.suspects import join_sides
from embgeo.result.analysis import Analysis
from embgeo.stats import TopNeighbors
from embgeo.stats.likely_nearest import find_likely_nearest
from embgeo.stats.reader import RowReader
from embgeo.stats.resources import Resources

#: Sections whose numbers are also measured after each treatment.
TREATED = {"spectrum", "cosine", "isotropy", "projection"}
#: Products of entries for the neighbors of all rows: 30,522 × 768, about 20 s of one core.
ALL_PRODUCTS = 4 * 10**11
#: The same where neighbors for the page are asked for: 50,257 × 768, about half a minute of one
#: core. Of more rows they are searched in their leading coordinates: 151,936 × 1,024, 3.6 minutes
#: of two cores, .991 of the true ones.
PAGE_PRODUCTS = 10**12
#: The same of a comparison: 11,000 × 768, a second or two.
COMPARED_PRODUCTS = 5 * 10**10
#: Suspects of a reason whose nearest rows are searched, at most.
NAMED = 10


def analyze(
    matrix: Matrix,
    *,
    sections: Sequence[str] | None = None,
    options: Options | None = None,
    reference: bool = True,
    command: str = "",
    progress: Progress | None = None,
    resources: Resources | None = None,
    page: bool = True,
) -> Analysis:
    """Measure the geometry of an embedding matrix.

    Parameters
    ----------
    matrix : Matrix
        From :func:`embgeo.load`, or built from an array.
    sections : sequence of str, optional
        Families to compute (see `SECTIONS`); all by default.
    options : Options, optional
    reference : bool
        Whether to measure isotropic Gaussian rows of the same N, d and norms for comparison.
    command : str
        Recorded in the provenance.
    progress : Progress, optional
    resources : Resources, optional
        Memory and threads.
    page : bool
        Whether to measure what only its own page shows, too: the matrix after each treatment, and
        neighbors that take more than a second or two.

    Returns
    -------
    Analysis

    Raises
    ------
    BadOption
        If an option does not fit this matrix.
    EmbgeoError
        If no row is left to analyze, or the entries are too large to be squared.
    """
    check_width(matrix, resources)
    options = options or Options()
    reader = open_rows(matrix, options, resources, progress)
    analysis = measure_rows(reader, options, sections, reference, command, page=page)
    for read in (matrix, matrix.hidden):
        if read is not None:
            read.origin.check_files(at_end=True)
    return analysis


def measure_rows(
    reader: RowReader,
    options: Options,
    sections: Sequence[str] | None = None,
    reference: bool = True,
    command: str = "",
    prepare: Callable[[Passes], None] = lambda _: None,
    page: bool = True,
) -> Analysis:
    """Measure the rows of a reader, see :func:`analyze`; `prepare` is called between the passes."""
    clock = Clock()
    measurement = Passes(reader, options, sections)
    compared = sections if reference else ()
    sections_measured = {family.section for family in measurement.families}
    measurement.shared.keeps_scatter = page and sections_measured >= TREATED
    with measurement.quiet():
        reader.stage = count_stages(measurement, compared, 1)
        measurement.first_pass()
        clock.lap("first pass")
        check_usable(measurement, options)
        reader.stage = count_stages(measurement, compared, 2)
        prepare(measurement)
        if maps_all_rows(measurement, page):
            find_all_neighbors(measurement.facts, reader, measurement.shared)
            clock.lap("neighbors on the map")
        likely = find_likely(measurement) if page else None
        clock.lap("neighbors on the map")
        what_if = None
        if measurement.shared.keeps_scatter:
            what_if = WhatIf(measurement) if can_be_treated(measurement) else None
            measurement.shared.release_scatter()
            clock.lap("what if")
        measurement.second_pass(what_if.statistics if what_if else ())
        clock.lap("second pass")
        analysis = complete(measurement, compared, command, clock, page)
        if likely is not None:
            analysis = replace(analysis, nearest=likely)
        if what_if is not None:
            treated, places = what_if.finish()
            clock.lap("what if")
            analysis = replace(analysis, treated=treated, treated_places=places)
        return analysis


def complete(
    measurement: Passes,
    compared: Sequence[str] | None,
    command: str,
    clock: Clock,
    page: bool = True,
) -> Analysis:
    """Compute the result from the statistics of both passes.

    The sections in `compared`, by default all, are compared with isotropic rows.
    """
    values: list[Value] = []
    seen: dict[str, None] = {}
    for family in measurement.families:
        if family.section not in seen:
            seen[family.section] = None
            measurement.reader.stage = count_stages(measurement, compared, 2 + len(seen))
        values += measurement.compute(family)
        clock.lap(family.section)
    if "suspects" in seen:
        values = add_output_suspects(measurement, values)
        clock.lap("suspects")
    searched = page and "tokens" in seen
    measurement.shared.nearest = add_mapped_rows(measurement, values, searched)
    clock.lap("neighbors on the map")
    referenced = [name for name in seen if is_compared(name, compared)]
    note: dict[str, Any] | None = None
    if referenced:
        measurement.reader.stage = count_stages(measurement, compared, 3 + len(seen))
        values, note = with_reference(values, measurement, referenced)
        clock.lap("reference")
    return assemble(measurement, values, note, command, clock.seconds)


def add_output_suspects(measurement: Passes, values: list[Value]) -> list[Value]:
    """Add the suspects of the output matrix, which has passes of its own for them."""
    reader, matrix = measurement.reader, measurement.reader.matrix
    if matrix.output is None:
        return values
    output = replace(
        matrix.output,
        tokens=matrix.tokens,
        special=matrix.special,
        masked={**matrix.masked, **matrix.output.masked},
    )
    passes = Passes(reader.open_output(output), measurement.options, ("suspects",))
    with passes.quiet():
        passes.first_pass()
        passes.second_pass()
        found = [value for family in passes.families for value in passes.compute(family)]
    measurement.shared.suspects += [replace(one, side="output") for one in passes.shared.suspects]
    return join_sides(values, found, measurement.shared.suspects)


def count_stages(measurement: Passes, compared: Sequence[str] | None, now: int) -> str:
    """Count the stages of an analysis, such as ``4/8``: passes, sections, isotropic rows."""
    families = {family.section for family in measurement.families}
    with_reference = any(is_compared(section, compared) for section in families)
    return f"{now}/{2 + len(families) + with_reference}"


def is_compared(section: str, compared: Sequence[str] | None) -> bool:
    """Tell whether a section gets values of isotropic rows; by default all that can."""
    return section in SECTIONS and (compared is None or section in compared)


class Clock:
    """Seconds spent in each stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] = round(self.seconds.get(stage, 0.0) + now - self._last, 4)
        self._last = now


def with_reference(
    values: list[Value], measurement: Passes, referenced: Sequence[str]
) -> tuple[list[Value], dict[str, Any]]:
    """Add the values of isotropic rows of the same N, d and norms as references."""
    measurement.reader.announce("isotropic rows", 0)
    reference = Reference(measurement)
    known = {name: x for section in referenced for name, x in reference.find(section).items()}
    note = {"rows": measurement.facts.m, "note": NOTE}
    sigma = reference.sigma if spectrum.SINGULAR_VALUES.family in referenced else None
    return [compare(value, sigma, known) for value in values], note


def compare(value: Value, sigma: FloatArray | None, known: Mapping[str, float]) -> Value:
    """Add the reference of isotropic rows, whose singular values are `sigma`."""
    if (
        isinstance(value, Series)
        and value.quantity is spectrum.SINGULAR_VALUES
        and sigma is not None
    ):
        return replace(value, y={**value.y, "isotropic reference": sigma / sigma[0]})
    reference = known.get(value.name)
    if not isinstance(value, Scalar) or value.reference is not None or reference is None:
        return value
    return replace(value, reference=reference, reference_kind="isotropic", reference_note=NOTE)


def maps_all_rows(measurement: Passes, page: bool) -> bool:
    """Tell whether to search the neighbors of all rows for the map; the queries have theirs then.

    If that takes at most `ALL_PRODUCTS` products; without a `page` of its own, or without the
    section `tokens`, `COMPARED_PRODUCTS`. Hubs of few rows search all of them anyway.
    """
    facts, m = measurement.facts, measurement.facts.m
    sections = {family.section for family in measurement.families}
    most = ALL_PRODUCTS if page and "tokens" in sections else COMPARED_PRODUCTS
    if page and facts.options.neighbors_of == "page":
        most = PAGE_PRODUCTS
    return (
        "projection" in sections
        and ("tokens" not in sections or is_sampled(facts))
        and measurement.reader.is_local
        and facts.listed is None
        and measurement.options.neighbors < m
        and m * m * facts.d // 2 <= most
    )


def find_likely(measurement: Passes) -> NearestRows | None:
    """Find the neighbors of all rows for the page where that was asked for and rows are many."""
    facts, m, k = measurement.facts, measurement.facts.m, measurement.options.neighbors
    sections = {family.section for family in measurement.families}
    if (
        facts.options.neighbors_of != "page"
        or "projection" not in sections
        or m * m * facts.d // 2 <= PAGE_PRODUCTS
        or k > CANDIDATES // 2
        or m <= 2 * CANDIDATES
        or not measurement.reader.is_local
        or facts.listed is not None
    ):
        return None
    rng, vectors = facts.generator("likely neighbors"), measurement.shared.eigen.vectors
    found = find_likely_nearest(
        measurement.reader, facts.kept, k, vectors, rng, "neighbors of all rows"
    )
    listed = list_nearest(facts, facts.kept, found.neighbors, found.cosines)
    return replace(listed, recall=found.recall)


def add_mapped_rows(measurement: Passes, values: Iterable[Value], page: bool) -> NearestRows | None:
    """Add the nearest rows of the rows on the map to those that a family has searched.

    For a `page`, those of the rows that tables and suspects name, known only after the second
    pass, so this takes a further one.
    """
    known, facts, k = measurement.shared.nearest, measurement.facts, measurement.options.neighbors
    reader, m = measurement.reader, measurement.facts.m
    if m <= k or facts.listed is not None or (known is not None and len(known.rows) == m):
        return known
    searched = measurement.shared.get(TopNeighbors, ALL)
    if searched is not None:
        return list_nearest(facts, facts.kept, searched.neighbors[:, :k], searched.cosines[:, :k])
    if not page:
        return known
    named = [number for value in values if isinstance(value, Table) for number in list_rows(value)]
    for own in measurement.shared.suspects:
        named += own.rows[:NAMED].tolist()
    rows = np.intersect1d(np.array(named, dtype=np.int64), facts.kept)
    if known is not None:
        rows = np.setdiff1d(rows, facts.kept[known.rows], assume_unique=True)
    if not len(rows):
        return known
    parts = [
        (part.neighbors, part.cosines)
        for part in reader.sweep(
            lambda block: TopNeighbors("map", block.index, block.unit, k), rows, "neighbors"
        )
    ]
    near, cosines = (np.concatenate(part) for part in zip(*parts, strict=True))
    further = list_nearest(facts, rows, np.asarray(near), np.asarray(cosines))
    return further if known is None else known.union(further)


def list_nearest(facts: Facts, rows: IntArray, near: IntArray, cosines: FloatArray) -> NearestRows:
    """List the nearest rows as a result lists them: by their positions among the kept rows."""
    at, places = np.searchsorted(facts.kept, rows), np.searchsorted(facts.kept, near)
    return NearestRows(at, np.asarray(places), np.asarray(cosines, dtype=np.float32))


def list_rows(table: Table) -> Iterator[int]:
    """Yield the numbers of the rows that a table lists; none if it lists other things."""
    if "row" in table.columns:
        at = table.columns.index("row")
        yield from (number for cells in table.rows if isinstance(number := cells[at], int))


def assemble(
    measurement: Passes,
    values: list[Value],
    reference: dict[str, Any] | None,
    command: str,
    timing: dict[str, float],
) -> Analysis:
    """Build the result from the values of all families."""
    facts, hidden, matrix = measurement.facts, measurement.hidden, measurement.reader.matrix
    popular = None
    if any(f.section == "frequency" for f in measurement.families) and not explain_no_classes(
        facts
    ):
        popular = rank_by_frequency(facts).popular
    listed = slice(None) if facts.listed is None else facts.listed
    kept = facts.kept[listed]
    hidden_left_out = 0 if hidden is None else hidden.count_left_out()
    return Analysis(
        provenance=provenance(measurement, popular, reference, command),
        scalars=tuple(v for v in values if isinstance(v, Scalar)),
        series=tuple(v for v in values if isinstance(v, Series)),
        histograms=tuple(v for v in values if isinstance(v, Histogram)),
        points=tuple(v for v in values if isinstance(v, Points)),
        columns=tuple(v for v in values if isinstance(v, Column)),
        tables=tuple(v for v in values if isinstance(v, Table)),
        halves=tuple(v for v in values if isinstance(v, Halves)),
        suspects=tuple(measurement.shared.suspects),
        nearest=measurement.shared.nearest if facts.listed is None else None,
        absent=measurement.absent,
        notes=notes(
            matrix,
            facts,
            hidden_left_out,
            count_dead_output_rows(measurement),
            float(np.median(measurement.shared.norms)),
        ),
        rows=kept,
        tokens=None if matrix.tokens is None else tuple(matrix.tokens[row] for row in kept),
        counts=None if facts.frequency is None else facts.frequency.counts[kept],
        popular=None if popular is None else popular[listed],
        timing=timing,
    )
