"""From a matrix to a result: plan, first pass, second pass, compute."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from embgeo.core.errors import BadOption, EmbgeoError
from embgeo.core.matrix import Matrix
from embgeo.core.options import Options
from embgeo.core.values import Column, Histogram, Points, Scalar, Series, Table, Value
from embgeo.measure.passes import Progress, Run
from embgeo.measure.provenance import notes, provenance
from embgeo.measure.reference import NOTE, expected, isotropic_twin
from embgeo.measure.resources import Resources
from embgeo.metrics import FAMILIES, SECTIONS, Context, Family, Seen
from embgeo.metrics.popularity import popularity, why_absent
from embgeo.result.analysis import Analysis
from embgeo.stats import Norms

#: Sections whose values mean something on isotropic Gaussian rows.
REFERENCE_SECTIONS = ("spectrum", "projection", "cosine", "isotropy")
#: Values that say nothing when compared with a reference matrix.
NO_REFERENCE = ("isotropy.eigengap",)

#: The largest entry must lie between these: sums of squares hold up to about 1e±308.
SQUARABLE = (1e-140, 1e140)


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
    progress = progress or Progress()
    families = chosen_families(sections)
    clock = Clock()
    run = Run(matrix, options, progress, resources)
    seen = Seen(run.context.eigh, frugal=True)
    absent: dict[str, str] = {}
    families = present(families, run.context, absent)
    with run.quiet():
        run.first_pass(families, seen)
        clock.lap("first pass")
        check_usable(matrix, run, options)
        families = present(families, run.context, absent)
        run.second_pass(families, seen)
        clock.lap("second pass")
        compared = sections if reference else ()
        return complete(run, families, seen, absent, compared, command, clock)


def complete(
    run: Run,
    families: Sequence[Family],
    seen: Seen,
    absent: dict[str, str],
    compared: Sequence[str] | None,
    command: str,
    clock: Clock,
) -> Analysis:
    """From what the passes saw to the result.

    Parameters
    ----------
    run : Run
    families : sequence of Family
        Those that are not absent.
    seen : Seen
    absent : dict of str to str
        Families that are left out, and why.
    compared : sequence of str or None
        Sections to be compared with isotropic rows; None: all.
    command : str
    clock : Clock
    """
    values: list[Value] = []
    for family in families:
        run.progress.start(f"values: {family.FAMILY}", 0)
        values += family.compute(run.context, seen)
        clock.lap(family.FAMILY)
    wanted = [s for s in REFERENCE_SECTIONS if compared is None or s in compared]
    note: dict[str, Any] | None = None
    if wanted:
        values, note = with_reference(values, run, seen, wanted)
        clock.lap("reference")
    return result(run.matrix, run, families, values, absent, note, command, clock.seconds)


def present(families: Sequence[Family], context: Context, absent: dict[str, str]) -> list[Family]:
    """The families without a reason to be left out; `absent` takes down the reasons."""
    reasons = [(family, family.absent(context)) for family in families]
    absent |= {family.FAMILY: reason for family, reason in reasons if reason}
    return [family for family, reason in reasons if not reason]


def chosen_families(sections: Sequence[str] | None) -> list[Family]:
    wanted = SECTIONS if sections is None else tuple(sections)
    unknown = [name for name in wanted if name not in SECTIONS]
    if unknown or not wanted:
        raise BadOption(
            f"no section is called {', '.join(map(repr, unknown)) or 'nothing'}",
            where="--sections",
            way_out=f"choose among {', '.join(SECTIONS)}",
        )
    return [family for family in FAMILIES if family.FAMILY in wanted]


class Clock:
    """Seconds by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] = round(self.seconds.get(stage, 0.0) + now - self._last, 4)
        self._last = now


def check_usable(matrix: Matrix, run: Run, options: Options) -> None:
    """Whether there is something to measure, and the options fit it."""
    where = matrix.origin.path or matrix.name
    context = run.context
    if not context.m:
        raise EmbgeoError(
            f"none of {matrix.n:,} rows can be analyzed ({context.masked:,} masked, "
            f"{context.zero:,} zero, {context.nonfinite:,} non-finite)",
            where=where,
            way_out="choose another tensor with --tensor, see: embgeo inspect",
        )
    if not SQUARABLE[0] < run.census.largest < SQUARABLE[1]:
        raise EmbgeoError(
            f"the largest entry is {run.census.largest:.3g}, its square is beyond what a "
            "floating-point number holds",
            where=where,
            way_out="rescale the matrix, or look whether its bytes were read as the right dtype",
        )
    if options.isotropy_rows is not None and options.isotropy_rows > context.m:
        raise BadOption(
            f"{options.isotropy_rows:,} rows asked for, the matrix has {context.m:,} to sample",
            where="--isotropy-rows",
            way_out="give a smaller number",
        )
    if options.asked:
        check_asked(context, options)
    if matrix.hidden is not None:
        check_hidden(matrix.hidden, context)


def check_asked(context: Context, options: Options) -> None:
    if context.tokens is None:
        raise BadOption("the rows have no tokens", where="--neighbors", way_out="give --tokens")
    known = {context.tokens[row] for row in context.kept.tolist()}
    for token, others in options.asked:
        for name in (token, *others):
            if name not in known:
                raise BadOption(
                    f"no token is called {name!r}",
                    where="--neighbors",
                    way_out="spell it as the vocabulary does",
                )


def check_hidden(hidden: Matrix, context: Context) -> None:
    where = hidden.origin.path or "--hidden"
    if hidden.d != context.d:
        raise BadOption(
            f"hidden states of {hidden.d:,} columns, the embedding has {context.d:,}",
            where=where,
            way_out="give the states that the output projection sees",
        )
    if context.hidden_blocks is None:
        return
    largest = max((float(np.abs(b.rows).max()) for b in context.hidden_blocks()), default=None)
    if largest is None:
        raise EmbgeoError("no hidden state is finite", where=where, way_out="give another file")
    if largest and not SQUARABLE[0] < largest < SQUARABLE[1]:
        raise EmbgeoError(
            f"the largest entry is {largest:.3g}, its square is beyond what a floating-point "
            "number holds",
            where=where,
            way_out="rescale the hidden states",
        )


def with_reference(
    values: list[Value], run: Run, seen: Seen, wanted: Sequence[str]
) -> tuple[list[Value], dict[str, Any]]:
    """The values with what isotropic rows of the same N, d and norms give beside them."""
    options = run.context.options
    norms = seen.statistics.get("Norms")
    if not isinstance(norms, Norms):
        norms = Norms()
        run.fold([norms])
    found = expected(norms.values(), run.context.d)
    twin = isotropic_twin(norms.values(), run.context.d, options.seed, run.spread)
    note = {"rows": run.context.m if twin else 0, "note": NOTE}
    other: Analysis | None = None
    if twin is None:
        note["note"] = f"{NOTE}: closed forms only, the matrix is too large to simulate"
    else:
        run.progress.start("isotropic reference", 0)
        # Flat all over, its extremes take many steps to find and tell little.
        plain = replace(options, isotropy_rows=None, asked=(), pairs=0, sphere=False, random=False)
        # Norms that float32 does not hold are kept off devices, which may have nothing wider.
        ordinary = twin.working is np.float32
        resources = run.resources if ordinary else replace(run.resources, device="cpu")
        other = analyze(twin, sections=wanted, options=plain, reference=False, resources=resources)
        simulated = {s.name: s.value for s in other.scalars if s.value is not None}
        found = simulated | found
    changed = [
        replace(value, reference=found[value.name], reference_note=NOTE)
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
    if not isinstance(value, Series) or value.name != "spectrum.singular_values":
        return value
    curve = other[value.name]
    if not isinstance(curve, Series):
        raise TypeError(value.name)
    return replace(value, y={**value.y, "isotropic reference": curve.y["uncentered"]})


def result(
    matrix: Matrix,
    run: Run,
    families: Sequence[Family],
    values: list[Value],
    absent: dict[str, str],
    reference: dict[str, Any] | None,
    command: str,
    timing: dict[str, float],
) -> Analysis:
    context = run.context
    popular = None
    if any(family.FAMILY == "frequency" for family in families) and not why_absent(context):
        popular = popularity(context).popular
    kept = context.kept
    return Analysis(
        provenance=provenance(
            matrix,
            context,
            tuple(dict.fromkeys(family.FAMILY for family in families)),
            popular,
            reference,
            command,
        ),
        scalars=tuple(v for v in values if isinstance(v, Scalar)),
        series=tuple(v for v in values if isinstance(v, Series)),
        histograms=tuple(v for v in values if isinstance(v, Histogram)),
        points=tuple(v for v in values if isinstance(v, Points)),
        columns=tuple(v for v in values if isinstance(v, Column)),
        tables=tuple(v for v in values if isinstance(v, Table)),
        absent=absent,
        notes=notes(matrix, context, run.hidden_left_out()),
        rows=kept,
        tokens=None if matrix.tokens is None else tuple(matrix.tokens[row] for row in kept),
        counts=None if context.counts is None else context.counts[kept],
        popular=popular,
        timing=timing,
    )
