"""Isotropy of Arora's partition function (definitions, section 4).

Z(a) = Σ_i exp⟨w_i, a⟩ for unit a. Everything is computed from ℓ(a) = log Z(a).

Examples
--------
>>> import embgeo
>>> directions = np.random.default_rng(0).standard_normal((500, 16)) / 4
>>> for offset in (0.0, 0.5):
...     found = embgeo.analyze(directions + offset, sections=["isotropy"], reference=False)
...     print(f"{found['isotropy.i1'].value:.3f} {found['isotropy.isoscore'].value:.2f}")
0.950 0.96
0.018 0.96
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.quantities import isotropy as q
from embgeo.core.values import Caveat, Quantity, Scalar, Series, Value
from embgeo.metrics.by_half import (
    CENTERED,
    UNCENTERED,
    ByHalf,
    add_errors,
    centered_eigenvalues,
    note_dominant_row,
    request_squares,
)
from embgeo.metrics.facts import NO_ROWS, Facts
from embgeo.metrics.family import Family, Measurement
from embgeo.metrics.shared import SharedStatistics, norms, row_moments
from embgeo.numerics.eigen import signed_eigen, signed_eigen_of_rows
from embgeo.numerics.halves import GROUPS, measure_spread, sum_halves
from embgeo.numerics.sampling import sample_rows
from embgeo.numerics.spectra import compute_isoscore
from embgeo.stats import GroupSquares, LogPartition
from embgeo.stats.log_partition import AVERAGED_BOUND, SINGLE_BOUND
from embgeo.stats.reader import RowReader
from embgeo.stats.statistic import Statistic

#: Below this relative gap, rounding the entries to float32 (6e-8) can rotate two neighboring
#: eigenvectors into each other by about a tenth of a radian.
SAFE_GAP = 1e-6
#: Below this gap, as a share of the largest eigenvalue, rounding in float64 turns eigenvectors by
#: more than 2e-3, and I1 by more than 1e-6.
TURNING = 1e-13
#: Products of rows of at least this norm with unit vectors have all digits in float32.
SHORTEST_SINGLE = 1e-30
#: Rows shorter than this on average need float64.
SHORT = 0.25
#: Eigenvalues that differ by fewer of its standard errors may change places in another draw.
APART = 5.0
WITH_ERRORS = (q.I1_UNIT_ROWS, q.ISOSCORE)
#: Rounding of the mean of rows, relative to their norms.
ROUNDING = 1e-13

BOTH = "E = eigenvectors of WᵀW, v and −v"
ONE = "E = eigenvectors of WᵀW, one sign each, ⟨mean row, v⟩ ≥ 0"

#: With a larger deviation along a direction too many rows would be multiplied twice.
MOST_SPREAD = 2.0
RAW = (q.I1, q.I2)
RAW_SIGNED = (q.I1_MEAN_SIGN, q.I2_MEAN_SIGN)
SAMPLED = (q.I1_SAMPLED, q.I2_SAMPLED)


def second(m: Measurement) -> list[Statistic]:
    shared = m.shared
    mean = shared.moments.mean
    unit, bound = 1.0 / float(shared.norms.mean()), bound_exponents(shared)
    spread = float(np.sqrt(max(0.0, shared.eigen_centered.values[0]) / m.facts.m))
    widest = AVERAGED_BOUND if spread * max(1.0, unit) < MOST_SPREAD else SINGLE_BOUND
    has_errors = m.facts.kept_groups is not None
    partition = LogPartition(
        "eigenvectors",
        shared.eigen.vectors,
        scales=(1.0, unit),
        bound=bound * max(1.0, unit),
        unit_rows=True,
        single=shared.single,
        rotation=shared.rotation,
        longest_single=min(widest / max(1.0, unit), widest - float(np.linalg.norm(mean))),
        rows=m.facts.m,
        mean=mean @ shared.eigen.vectors,
        labels=m.facts.groups if has_errors else None,
        groups=GROUPS if has_errors else 1,
    )
    squares = [*request_squares(m, UNCENTERED), *request_squares(m, CENTERED)]
    return [partition, *squares, *shared.request_singular_values("uncentered")]


def bound_exponents(shared: SharedStatistics) -> float:
    """Return an upper bound of |⟨w, a⟩|; infinite if float32 is not precise enough.

    For short rows Z is N plus a small part, and I2 depends on that part alone. Compared with
    float64, the error of float32 is less than 1e-6 of I2 for rows of length 0.25 and more; it is
    5e-6 for a length of 0.1.
    """
    short = float(shared.norms.mean()) < SHORT or float(shared.norms.min()) < SHORTEST_SINGLE
    return np.inf if short else float(shared.norms.max())


def rows_read(m: Measurement) -> IntArray:
    asked = m.facts.options.isotropy_rows
    return NO_ROWS if asked is None else np.unique(np.concatenate([*samples(m.facts, asked)]))


def compute(m: Measurement) -> list[Value]:
    facts, shared = m.facts, m.shared
    eigenvectors = shared.find(LogPartition, "eigenvectors")
    raw = add_null_directions(eigenvectors.log_z(1.0), facts.d, facts.m)
    scale = 1.0 / float(shared.norms.mean())
    unit = add_null_directions(eigenvectors.log_z(scale), facts.d, facts.m)
    sigma = shared.singular_values("uncentered")
    inside = np.square(sigma[: shared.rank])
    unsigned = find_unsigned(shared)
    directions = add_null_directions(eigenvectors.log_z_of_unit_rows(), facts.d, facts.m)
    of_rows, _ = compute_i1_i2(directions)
    gap, unsafe = measure_eigengap(inside)
    if not unsafe and are_turned(inside, (raw, unit, directions)):
        unsafe = "rounding of the largest eigenvalue turns the eigenvectors of the smallest ones"
    values: list[Value] = [
        *measure_pair(RAW, raw, BOTH, unsafe),
        measure_i1(q.I1_UNIT, unit, f"{BOTH}; W / mean row norm", unsafe),
        q.I1_UNIT_ROWS.measured(of_rows, **by_basis(f"{BOTH}; rows divided by norms", unsafe)),
        *measure_pair(RAW_SIGNED, raw[:1], ONE, unsafe, unsigned),
        gap,
        measure_isoscore(q.ISOSCORE, shared.eigen_centered.values, shared.all_rows_equal),
        make_z_series(q.Z, raw),
    ]
    if facts.options.isotropy_rows is not None:
        values += measure_samples(facts, m.reader, facts.options.isotropy_rows)
    values = add_errors(m, values, WITH_ERRORS, lambda: measure_halves(m, directions))
    centered = shared.get(GroupSquares, CENTERED)
    return values if centered is None else note_dominant_row(centered, values)


def measure_halves(m: Measurement, log_z: FloatArray) -> ByHalf:
    """Measure the halves, at the eigenvectors of the whole.

    I1 and I2 of rows with their norms have no error: the longest rows decide sums of exponentials,
    and another draw has other ones.
    """
    shared, found = m.shared, dict[Quantity, FloatArray | Caveat]()
    squares, centered = (shared.get(GroupSquares, of) for of in (UNCENTERED, CENTERED))
    if centered is not None and m.facts.d > 1:
        values = -np.sort(-centered_eigenvalues(centered), axis=1)
        found[q.ISOSCORE] = np.array([*map(compute_isoscore, values)])
    if squares is None:
        return found
    if is_turning(squares, log_z):
        return found | {q.I1_UNIT_ROWS: "turning"}
    halves = shared.find(LogPartition, "eigenvectors").log_z_of_unit_rows_by_half()
    n = sum_halves(squares.n)
    found[q.I1_UNIT_ROWS] = np.array(
        [
            compute_i1_i2(add_null_directions(half, m.facts.d, int(rows)))[0]
            for half, rows in zip(halves, n, strict=True)
        ]
    )
    return found


def is_turning(squares: GroupSquares, log_z: FloatArray) -> bool:
    """Tell whether an eigenvector that makes I1 may turn into another in another draw of tokens.

    It may if another eigenvalue is within `APART` standard errors of their difference; `log_z` is
    that of all rows, shape (2, d).
    """
    halves = 2.0 * sum_halves(squares.squares)
    values = squares.squares.sum(axis=0)
    for place in {int(log_z.argmin()) % log_z.shape[1], int(log_z.argmax()) % log_z.shape[1]}:
        if place >= len(values):  # where no row has a part, in any basis
            continue
        errors = measure_spread(halves - halves[:, place, None])
        near = np.abs(values - values[place]) <= APART * errors
        near[place] = False
        if near.any():
            return True
    return False


def add_null_directions(log_z: FloatArray, d: int, rows: int) -> FloatArray:
    """log Z, shape (2, k), at all d eigenvectors: at those that no row has a part along, Z is N."""
    missing = d - log_z.shape[1]
    return np.pad(log_z, ((0, 0), (0, missing)), constant_values=float(np.log(rows)))


def compute_i1_i2(log_z: FloatArray) -> tuple[float, float]:
    """Compute I1 and I2 over the given log Z, of any shape."""
    largest = float(log_z.max())
    relative = np.exp(log_z - largest)
    return float(np.exp(log_z.min() - largest)), float(np.std(relative) / np.mean(relative))


def are_turned(values: FloatArray, log_zs: Sequence[FloatArray]) -> bool:
    """Tell whether rounding of the largest eigenvalue turns eigenvectors between unlike Z.

    A vector turns by the rounding over the gap of its eigenvalue. `values` are those within the
    numerical rank, which fall.
    """
    close = np.flatnonzero(values[:-1] - values[1:] < TURNING * values[:1])
    return len(close) > 0 and any(
        np.ptp(log_z[:, close[0] : len(values)]) > SAFE_GAP for log_z in log_zs
    )


def by_basis(convention: str, unsafe: str, unsigned: bool = False) -> dict[str, Any]:
    """Return the convention and the caveats of a value at eigenvectors.

    `unsafe`: why it depends on the choice of the basis; empty if it does not.
    """
    caveats: tuple[Caveat, ...] = ()
    if unsafe:
        caveats += ("basis_dependent",)
        convention += f"; basis-dependent: {unsafe}"
    if unsigned:
        caveats += ("sign_dependent",)
        convention += "; sign-dependent: the mean row is 0 along an eigenvector, up to rounding"
    return {"convention": convention, "caveats": caveats}


def find_unsigned(shared: SharedStatistics) -> bool:
    """Tell whether rounding decides the sign of an eigenvector within the numerical rank."""
    inside = shared.eigen.vectors[:, : shared.rank]
    side = np.abs(shared.moments.mean @ inside)
    return bool((side <= ROUNDING * float(shared.norms.mean())).any())


def measure_pair(
    quantities: tuple[Quantity, Quantity],
    log_z: FloatArray,
    convention: str,
    unsafe: str,
    unsigned: bool = False,
) -> list[Scalar]:
    second = compute_i1_i2(log_z)[1]
    return [
        measure_i1(quantities[0], log_z, convention, unsafe, unsigned),
        quantities[1].measured(second, **by_basis(convention, unsafe, unsigned)),
    ]


def measure_i1(
    quantity: Quantity, log_z: FloatArray, convention: str, unsafe: str, unsigned: bool = False
) -> Scalar:
    i1, facts = compute_i1_i2(log_z)[0], by_basis(convention, unsafe, unsigned)
    if i1 != 0.0:
        return quantity.measured(i1, **facts)
    reason = "smaller than the smallest floating-point number: "
    reason += f"its natural logarithm is {float(log_z.min() - log_z.max()):,.4g}"
    return quantity.undefined(reason, convention=facts["convention"])


def measure_eigengap(inside: FloatArray) -> tuple[Scalar, str]:
    """Measure the smallest relative gap of eigenvalues, and why eigenvectors are a choice, if so.

    Directions beyond the numerical rank do not count: Z is N there in any basis.
    """
    if len(inside) < 2:
        return q.EIGENGAP.undefined("fewer than two eigenvalues differ from zero"), ""
    gap = float(np.min((inside[:-1] - inside[1:]) / inside[:-1]))
    convention = f"basis-dependent below {SAFE_GAP:g}"
    unsafe = "neighboring eigenvalues nearly coincide" if gap < SAFE_GAP else ""
    return q.EIGENGAP.measured(gap, convention=convention), unsafe


def measure_isoscore(quantity: Quantity, variances: FloatArray, all_rows_equal: str) -> Scalar:
    """Measure IsoScore from the eigenvalues of the covariance."""
    if len(variances) < 2:
        return quantity.undefined("d = 1: one direction cannot be compared with others")
    if all_rows_equal:
        return quantity.undefined(all_rows_equal)
    return quantity.measured(compute_isoscore(variances))


def make_z_series(quantity: Quantity, log_z: FloatArray) -> Series:
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


def samples(facts: Facts, rows: int) -> Iterator[IntArray]:
    rng = facts.generator("isotropy runs")
    for _ in range(facts.options.isotropy_runs):
        yield sample_rows(facts.kept, rows, rng)


def measure_samples(facts: Facts, reader: RowReader, rows: int) -> list[Value]:
    """Measure Wang's protocol: isotropy of uniform samples of rows, with E recomputed for each."""
    found: list[tuple[float, float]] = []
    for run, chosen in enumerate(samples(facts, rows), 1):
        reader.announce(f"isotropy of samples, {run} of {facts.options.isotropy_runs}", 2 * rows)
        moments = row_moments(facts, rows)
        reader.fold([moments], chosen)
        mean = moments.mean
        if moments.few:
            eigen = signed_eigen_of_rows(moments.uncentered_factor, mean)
        else:
            eigen = signed_eigen(moments.gram(), mean, reader.eigh)
        partition = LogPartition("run", eigen.vectors)
        reader.fold([partition], chosen)
        found.append(compute_i1_i2(add_null_directions(partition.log_z(), facts.d, rows)))
    runs = np.asarray(found)
    sample = f"{len(runs)} samples of {rows:,} rows"
    values: list[Value] = []
    for at, quantity in enumerate(SAMPLED):
        column = runs[:, at]
        if at == 0 and not column.all():
            values.append(quantity.undefined("in a sample it is too small for a float"))
            continue
        deviation = float(column.std(ddof=1)) if len(runs) > 1 else None
        spread = "" if deviation is None else f"; standard deviation over runs {deviation:.4g}"
        values.append(
            quantity.measured(
                float(column.mean()),
                standard_error=None if deviation is None else deviation / float(np.sqrt(len(runs))),
                error_kind="monte_carlo",
                freedom=len(runs) - 1,
                sample=sample + spread,
                convention=BOTH,
            )
        )
    return values


FAMILY = Family(
    "isotropy",
    compute,
    first=(norms, row_moments),
    second=second,
    rows_read=rows_read,
)
