"""From a matrix to a result: plan, first pass, second pass, compute."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from embgeo.core.matrix import Matrix
from embgeo.core.options import Options
from embgeo.core.progress import Progress
from embgeo.core.quantities import isotropy, spectrum
from embgeo.core.values import Column, Histogram, Influence, Points, Scalar, Series, Table, Value
from embgeo.measure.checks import check_usable
from embgeo.measure.passes import Measurement, open_rows
from embgeo.measure.provenance import notes, provenance
from embgeo.measure.reference import (
    MAX_ENTRIES,
    NOTE,
    expected,
    expected_of_many,
    isotropic_twin,
)
from embgeo.metrics.popularity import explain_absence, rank_by_frequency
from embgeo.result.analysis import Analysis
from embgeo.stats.resources import Resources

#: Sections whose values mean something on isotropic Gaussian rows.
REFERENCE_SECTIONS = ("spectrum", "projection", "cosine", "isotropy", "coordinates")
#: Those that one pass in float32 gives, where a twin is too large to be measured like the matrix.
LARGE_REFERENCE_SECTIONS = ("spectrum",)
#: Values that say nothing when compared with a reference matrix.
NO_REFERENCE = (isotropy.EIGENGAP.name,)


def analyze(
    matrix: Matrix,
    *,
    sections: Sequence[str] | None = None,
    options: Options | None = None,
    reference: bool = True,
    command: str = "",
    progress: Progress | None = None,
    resources: Resources | None = None,
) -> Analysis:
    """Measure the geometry of an embedding matrix.

    Parameters
    ----------
    matrix : Matrix
        From :func:`embgeo.load`, or made of an array.
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
    options = options or Options()
    clock = Clock()
    reader = open_rows(matrix, options, resources, progress)
    measurement = Measurement(reader, options, sections)
    with measurement.quiet():
        measurement.first_pass()
        clock.lap("first pass")
        check_usable(measurement)
        measurement.second_pass()
        clock.lap("second pass")
        return complete(measurement, sections if reference else (), command, clock)


def complete(
    measurement: Measurement, compared: Sequence[str] | None, command: str, clock: Clock
) -> Analysis:
    """From the statistics of both passes to the result.

    Parameters
    ----------
    measurement : Measurement
    compared : sequence of str or None
        Sections to be compared with isotropic rows; None: all.
    command : str
    clock : Clock
    """
    values: list[Value] = []
    for family in measurement.families:
        values += measurement.compute(family)
        clock.lap(family.FAMILY)
    wanted = [s for s in REFERENCE_SECTIONS if compared is None or s in compared]
    note: dict[str, Any] | None = None
    if wanted:
        values, note = with_reference(values, measurement, wanted)
        clock.lap("reference")
    return assemble(measurement, values, note, command, clock.seconds)


class Clock:
    """Seconds by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] = round(self.seconds.get(stage, 0.0) + now - self._last, 4)
        self._last = now


def with_reference(
    values: list[Value], measurement: Measurement, wanted: Sequence[str]
) -> tuple[list[Value], dict[str, Any]]:
    """The values with what isotropic rows of the same N, d and norms give."""
    options, reader, d = measurement.options, measurement.reader, measurement.facts.d
    norms = measurement.shared.norms
    found = expected(norms, d)
    twin = isotropic_twin(norms, d, options.seed, reader.spread)
    reader.announce("isotropic reference", 0)
    # Flat all over, its extremes take many steps to find and say little.
    plain = replace(options, isotropy_rows=None, asked=(), pairs=0, sphere=False, random=False)
    plain = replace(plain, damaged_below=0.0)  # its norms are those of healthy rows
    simulated = list(wanted)
    if len(norms) * d > MAX_ENTRIES:
        simulated = [section for section in wanted if section in LARGE_REFERENCE_SECTIONS]
        plain = replace(plain, precision="float32")
        found |= expected_of_many(len(norms), d)
    other: Analysis | None = None
    if simulated:
        # Norms that float32 does not hold are kept off devices, which may have nothing wider.
        single = twin.working is np.float32
        resources = reader.resources if single else replace(reader.resources, device="cpu")
        other = analyze(
            twin, sections=simulated, options=plain, reference=False, resources=resources
        )
        found = {s.name: s.value for s in other.scalars if s.value is not None} | found
    note = {"rows": measurement.facts.m, "note": NOTE}
    changed = [
        replace(value, reference=found[value.name], reference_kind="isotropic", reference_note=NOTE)
        if isinstance(value, Scalar)
        and value.reference is None
        and value.name in found
        and value.name not in NO_REFERENCE
        else value
        for value in values
    ]
    if other is not None:
        changed = [with_reference_curve(value, other) for value in changed]
    return changed, note


def with_reference_curve(value: Value, other: Analysis) -> Value:
    if not isinstance(value, Series) or value.name != spectrum.SINGULAR_VALUES.name:
        return value
    curve = other[value.name]
    if not isinstance(curve, Series):
        raise TypeError(value.name)
    return replace(value, y={**value.y, "isotropic reference": curve.y["uncentered"]})


def assemble(
    measurement: Measurement,
    values: list[Value],
    reference: dict[str, Any] | None,
    command: str,
    timing: dict[str, float],
) -> Analysis:
    """The result, from the values of all families."""
    facts, hidden, matrix = measurement.facts, measurement.hidden, measurement.reader.matrix
    popular = None
    if any(f.FAMILY == "frequency" for f in measurement.families) and not explain_absence(facts):
        popular = rank_by_frequency(facts, measurement.options).popular
    kept = facts.kept
    return Analysis(
        provenance=provenance(measurement, popular, reference, command),
        scalars=tuple(v for v in values if isinstance(v, Scalar)),
        series=tuple(v for v in values if isinstance(v, Series)),
        histograms=tuple(v for v in values if isinstance(v, Histogram)),
        points=tuple(v for v in values if isinstance(v, Points)),
        columns=tuple(v for v in values if isinstance(v, Column)),
        tables=tuple(v for v in values if isinstance(v, Table)),
        influences=tuple(v for v in values if isinstance(v, Influence)),
        absent=measurement.absent,
        notes=notes(matrix, facts, 0 if hidden is None else hidden.count_left_out()),
        rows=kept,
        tokens=None if matrix.tokens is None else tuple(matrix.tokens[row] for row in kept),
        counts=None if facts.frequency is None else facts.frequency.counts[kept],
        popular=popular,
        timing=timing,
    )
