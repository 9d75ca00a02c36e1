"""Isotropy of Arora's partition function (definitions, section 4).

Z(a) = Σ_i exp⟨w_i, a⟩ for unit a. Everything is computed from ℓ(a) = log Z(a).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.quantities import isotropy as q
from embgeo.core.values import Cell, Quantity, Scalar, Series, Table, Value
from embgeo.metrics.base import (
    NO_ROWS,
    SPHERE_LIMIT,
    Context,
    Eigen,
    Seen,
    row_moments,
    sampled,
    signed_eigen,
)
from embgeo.metrics.sphere import sphere_values
from embgeo.stats import LogPartition, Norms
from embgeo.stats.statistic import Statistic

FAMILY = "isotropy"

#: Below this relative gap, rounding the entries to float32 (6e-8) can turn two neighboring
#: eigenvectors into each other by about a tenth of a radian.
SAFE_GAP = 1e-6
#: Pairs of a random direction and its negative, which one product serves: 1,000 directions.
RANDOM_PAIRS = 500

BOTH = "E = eigenvectors of WᵀW, v and −v"
ONE = "E = eigenvectors of WᵀW, one sign each, ⟨mean row, v⟩ ≥ 0"


RAW = (q.I1, q.I2)
RAW_SIGNED = (q.I1_MEAN_SIGN, q.I2_MEAN_SIGN)
UNIT = (q.I1_UNIT, q.I2_UNIT)
UNIT_SIGNED = (q.I1_UNIT_MEAN_SIGN, q.I2_UNIT_MEAN_SIGN)
CENTERED = (q.I1_CENTERED, q.I2_CENTERED)
SAMPLED = (q.I1_SAMPLED, q.I2_SAMPLED)
SAMPLED_SIGNED = (q.I1_SAMPLED_MEAN_SIGN, q.I2_SAMPLED_MEAN_SIGN)


def absent(context: Context) -> str:
    return ""


def first(context: Context) -> list[Statistic]:
    return [row_moments(context), Norms()]


def second(context: Context, seen: Seen) -> list[Statistic]:
    unit, longest, mean = unit_scale(seen), longest_row(seen), seen.moments.mean
    shared = seen.eigen_centered.vectors.astype(np.float32)
    wanted: list[Statistic] = [
        LogPartition(
            "eigenvectors",
            seen.eigen.vectors,
            scales=(1.0, unit),
            bound=longest * max(1.0, unit),
            single=None if seen.rotation is None else shared,
            rotation=seen.rotation,
        ),
    ]
    if context.options.random:
        wanted.append(LogPartition("random", random_directions(context), bound=longest))
    if not seen.all_rows_equal:
        wanted.append(
            LogPartition(
                "centered",
                seen.eigen_centered.vectors,
                shift=mean,
                bound=longest + float(np.linalg.norm(mean)),
                single=shared,
            )
        )
    return wanted


def rows_read(context: Context, seen: Seen) -> IntArray:
    rows = context.options.isotropy_rows
    return NO_ROWS if rows is None else np.unique(np.concatenate(list(samples(context, rows))))


def longest_row(seen: Seen) -> float:
    return float(seen.find(Norms, "Norms").values().max())


def unit_scale(seen: Seen) -> float:
    return 1.0 / float(seen.find(Norms, "Norms").values().mean())


def random_directions(context: Context) -> FloatArray:
    drawn = context.rng("random directions").standard_normal((context.d, RANDOM_PAIRS))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=0))


def compute(context: Context, seen: Seen) -> list[Value]:
    eigenvectors = seen.find(LogPartition, ("log partition", "eigenvectors"))
    raw = eigenvectors.log_z(1.0)
    unit = eigenvectors.log_z(unit_scale(seen))
    gap, marked = eigengap(seen.eigen, context.m)
    values: list[Value] = [
        *isotropy_pair(RAW, raw, BOTH + marked),
        *isotropy_pair(UNIT, unit, f"{BOTH}; W / mean row norm" + marked),
        *centered_pair(context, seen),
        *isotropy_pair(RAW_SIGNED, raw[:1], ONE + marked),
        *isotropy_pair(UNIT_SIGNED, unit[:1], f"{ONE}; W / mean row norm" + marked),
        q.LOG_I1.measured(float(raw.min() - raw.max()), convention=BOTH + marked),
        gap,
        *(random_values(seen) if context.options.random else []),
        isoscore(seen),
        z_series(q.Z, raw),
        z_series(q.Z_UNIT, unit),
    ]
    values += sphere_values(context, seen.eigen, raw, longest_row(seen), SPHERE_LIMIT)
    if context.options.isotropy_rows is not None:
        values += sampled_runs(context, context.options.isotropy_rows)
    return values


def i1_i2(log_z: FloatArray) -> tuple[float, float]:
    """I1 and I2 over the given log Z, of any shape."""
    largest = float(log_z.max())
    relative = np.exp(log_z - largest)
    return float(np.exp(log_z.min() - largest)), float(np.std(relative) / np.mean(relative))


def isotropy_pair(
    quantities: tuple[Quantity, Quantity], log_z: FloatArray, convention: str
) -> list[Scalar]:
    i1, i2 = i1_i2(log_z)
    if i1 == 0.0:
        reason = "smaller than the smallest floating-point number, see isotropy.log_i1"
        return [
            quantities[0].undefined(reason, convention=convention),
            quantities[1].measured(i2, convention=convention),
        ]
    return [
        quantity.measured(value, convention=convention)
        for quantity, value in zip(quantities, (i1, i2), strict=True)
    ]


def centered_pair(context: Context, seen: Seen) -> list[Scalar]:
    if seen.all_rows_equal:
        return [quantity.undefined(seen.all_rows_equal) for quantity in CENTERED]
    log_z = seen.find(LogPartition, ("log partition", "centered")).log_z()
    _, marked = eigengap(seen.eigen_centered, context.m)
    convention = "E = eigenvectors of the centered WᵀW, v and −v; W − 1μᵀ" + marked
    return isotropy_pair(CENTERED, log_z, convention)


def eigengap(eigen: Eigen, rows: int) -> tuple[Scalar, str]:
    """The smallest relative gap, and what the conventions add where it is unsafe.

    Directions beyond the numerical rank do not count: Z is N at each of them, whatever the basis.
    """
    inside = eigen.values[: eigen.rank(rows)]
    if len(inside) < 2:
        return q.EIGENGAP.undefined("fewer than two eigenvalues differ from zero"), ""
    gap = float(np.min((inside[:-1] - inside[1:]) / inside[:-1]))
    unsafe = gap < SAFE_GAP
    convention = f"basis-dependent below {SAFE_GAP:g}"
    return (
        q.EIGENGAP.measured(gap, convention=convention),
        "; basis-dependent: neighboring eigenvalues nearly coincide" if unsafe else "",
    )


def random_values(seen: Seen) -> list[Scalar]:
    log_z = seen.find(LogPartition, ("log partition", "random")).log_z()
    relative = np.exp(log_z - log_z.max())
    relative /= relative.mean()
    spread = float(relative.std(ddof=1))
    sample = f"{relative.size:,} random directions, {relative.shape[1]:,} and their negatives"
    # A direction and its negative are no two draws: the standard error is that over pairs.
    squares = np.square(relative - 1.0).mean(axis=0)
    variance_error = float(np.std(squares, ddof=1) / np.sqrt(len(squares)))
    error = float(variance_error / (2 * spread)) if spread > 0 else 0.0
    return [
        q.Z_RANDOM_STD.measured(spread, standard_error=error, sample=sample),
        q.Z_RANDOM_MIN.measured(float(relative.min()), sample=sample, convention="an upper bound")
        if relative.all()
        else q.Z_RANDOM_MIN.undefined("smaller than the smallest floating-point number"),
        q.Z_RANDOM_MAX.measured(float(relative.max()), sample=sample, convention="a lower bound"),
    ]


def isoscore(seen: Seen) -> Scalar:
    """Rudman et al. 2022 from the eigenvalues of the covariance."""
    eigenvalues = seen.eigen_centered.values
    d = len(eigenvalues)
    if d < 2:
        return q.ISOSCORE.undefined("d = 1: one direction cannot be compared with others")
    if seen.all_rows_equal:
        return q.ISOSCORE.undefined(seen.all_rows_equal)
    # By the largest first: squares of eigenvalues overflow where the entries do not yet.
    relative = eigenvalues / eigenvalues[0]
    scaled = np.sqrt(d) * relative / np.linalg.norm(relative)
    defect = np.linalg.norm(scaled - 1.0) / np.sqrt(2.0 * (d - np.sqrt(d)))
    phi = (d - defect**2 * (d - np.sqrt(d))) ** 2 / d**2
    return q.ISOSCORE.measured(float(np.clip((d * phi - 1.0) / (d - 1.0), 0.0, 1.0)))


def z_series(quantity: Quantity, log_z: FloatArray) -> Series:
    relative = np.exp(log_z - log_z.max())
    relative = relative / relative.mean()
    k = np.arange(1, log_z.shape[1] + 1, dtype=np.float64)
    return Series(
        quantity,
        k,
        {"Z(v_k)": relative[0], "Z(−v_k)": relative[1]},
        "eigenvector k, strongest first",
        "Z / mean Z",
        note="v_k points to the side of the mean row",
    )


def samples(context: Context, rows: int) -> Iterator[IntArray]:
    """The rows of each run."""
    rng = context.rng("isotropy runs")
    for _ in range(context.options.isotropy_runs):
        yield sampled(context.kept, rows, rng)


def sampled_runs(context: Context, rows: int) -> list[Value]:
    """Wang's protocol: isotropy of uniform samples of rows, E recomputed for each."""
    table: list[tuple[float, float, float, float]] = []
    for run, chosen in enumerate(samples(context, rows), 1):
        context.announce(f"isotropy of samples, {run} of {context.options.isotropy_runs}", 2 * rows)
        moments = row_moments(context)
        context.fold([moments], chosen)
        vectors = signed_eigen(moments.gram(), moments.mean, context.eigh).vectors
        partition = LogPartition("run", vectors)
        context.fold([partition], chosen)
        log_z = partition.log_z()
        table.append((*i1_i2(log_z), *i1_i2(log_z[:1])))
    runs = np.asarray(table)
    sample = f"{len(runs)} samples of {rows:,} rows"
    values: list[Value] = []
    for at, quantity in enumerate((*SAMPLED, *SAMPLED_SIGNED)):
        column = runs[:, at]
        if at % 2 == 0 and not column.all():
            values.append(quantity.undefined("in a sample it is too small for a float"))
            continue
        deviation = float(column.std(ddof=1)) if len(runs) > 1 else None
        spread = "" if deviation is None else f"; standard deviation over runs {deviation:.4g}"
        values.append(
            quantity.measured(
                float(column.mean()),
                standard_error=None if deviation is None else deviation / float(np.sqrt(len(runs))),
                sample=sample + spread,
                convention=BOTH if at < 2 else ONE,
            )
        )
    columns = ("run", "I1", "I2", "I1, one sign", "I2, one sign")
    body: list[tuple[Cell, ...]] = [(run + 1, *map(float, row)) for run, row in enumerate(runs)]
    body.append(("mean", *map(float, runs.mean(axis=0))))
    if len(runs) > 1:
        body.append(("standard deviation", *map(float, runs.std(axis=0, ddof=1))))
    return [*values, Table(q.RUNS, columns, tuple(body), note=sample)]
