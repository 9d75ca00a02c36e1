"""What independent, uniformly random directions give: closed forms, quadratures and two tables.

The tables are printed by ``python benchmarks/chance_tables.py``, with the spread of what they are
averages of.
"""

import numpy as np

from embgeo.core.arrays import FloatArray

#: Middles of equal parts of a distribution, over which expectations are averaged.
PARTS = 15
#: Dimensions of the tables.
DIMENSIONS = (2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256, 512, 1024, 4096)
#: Skewness of N_k in units of that of a binomial number, smoothed: good to a skewness of 0.05.
HUBNESS = (0.0, 0.22, 0.32, 0.45, 0.58, 0.73, 0.8, 0.88, 0.92, 0.94, 0.95, 0.97, 0.98, 0.99)
#: Mean silhouette of the best clusters among `SILHOUETTE_ROWS` rows, good to 5% of itself.
SILHOUETTE = (
    0.549, 0.337, 0.237, 0.147, 0.107, 0.071, 0.0543, 0.0292, 0.0159, 0.0089, 0.00507, 0.00284,
    0.00141, 0.000262,
)  # fmt: skip
SILHOUETTE_ROWS = 600
#: Fewest rows for each neighbor of the table of hubness.
ROWS_PER_NEIGHBOR = 20


def expect_cone_angles(n: int, d: int) -> tuple[float, float]:
    """Return the median and the largest angle of n directions to that of their sum, in degrees.

    A direction u and the sum r of the others are independent: with the cosine y of u to r, that to
    u + r is (1 + |r|y)/√(1 + 2|r|y + |r|²). |r|² is (n − 1)/d times a χ²_d, and the largest of n
    angles to r has half of its chance beyond a cap that holds 1 − 2^(−1/n) of the sphere.
    """
    from scipy.special import betaincinv, gammaincinv

    levels = (np.arange(PARTS) + 0.5) / PARTS
    length = np.sqrt((n - 1.0) / d * 2.0 * gammaincinv(d / 2.0, levels))
    cap = -np.expm1(-np.log(2.0) / n)
    far = -np.sqrt(1.0 - betaincinv((d - 1) / 2.0, 0.5, 2.0 * cap))
    found = []
    for y in (0.0, far):
        cosines = (1.0 + length * y) / np.sqrt(1.0 + 2.0 * length * y + length**2)
        found.append(float(np.degrees(np.arccos(np.clip(cosines, -1.0, 1.0))).mean()))
    return found[0], found[1]


def expect_largest_share(d: int) -> float:
    """Return the expectation of the largest squared coordinate of a direction.

    Of a normal vector, length and direction are independent: it is E max g²/d.
    """
    from scipy.special import erf

    x = np.linspace(0.0, 2.0 * np.log(d) + 50.0, 4001)
    largest = np.trapezoid(1.0 - erf(np.sqrt(x / 2.0)) ** d, x)
    return float(min(largest / d, 1.0))


def expect_variance_ratio(energies: FloatArray, d: int) -> float:
    """Return the largest over the median variance of a coordinate.

    Σ n_i² u_ik² is a multiple of χ² with as many degrees of freedom as its relative variance
    2(d − 1)/(d + 2)·Σn⁴/(Σn²)² says; the largest of d has Blom's (1958) rank.
    """
    from scipy.special import gammaincinv

    total = float(energies.sum())
    spread = 2.0 * (d - 1.0) / (d + 2.0) * float(energies @ energies) / total**2
    half = 1.0 / spread
    largest, median = gammaincinv(half, [(d - 0.375) / (d + 0.25), 0.5]) / half
    return float(largest / median)


def expect_mean_length(energies: FloatArray, d: int) -> float:
    """Return the expected length of the mean of rows with these squared norms."""
    from scipy.special import gammaln

    n = len(energies)
    length = np.sqrt(2.0) * np.exp(gammaln((d + 1) / 2.0) - gammaln(d / 2.0))
    return float(length * np.sqrt(energies.sum() / d) / n)


def expect_dimension(norms: FloatArray, d: int) -> float | None:
    """Return the TwoNN of isotropic rows: one over the expectation of ln(r₂/r₁).

    From a row of norm a, the distances r to the n − 1 others are independent with a distribution
    G(r), the share of cosines above (a² + b² − r²)/(2ab), averaged over their norms b. As
    r₁ ≤ r < r₂ has the probability (n − 1)·G·(1 − G)^(n − 2), its integral over ln r is the
    expectation.
    """
    n = len(norms)
    ordered = np.sort(np.maximum(norms / norms.max(), 1e-12))
    asked = np.quantile(ordered, (np.arange(PARTS) + 0.5) / PARTS)
    # In many dimensions the shortest rows are neighbors of all others, in few the nearest in norm.
    edges = np.unique(np.geomspace(1, n + 1, 128 if d > 16 else 512).astype(np.int64)) - 1
    weights = np.diff(edges)
    others = np.add.reduceat(ordered, edges[:-1]) / weights
    weights = weights / n
    means = []
    for a in asked:
        r = np.exp(np.linspace(np.log(a) - 14.0, np.log(2.0 * a), 80))
        inside = (n - 1.0) * _measure_share(a, others, weights, r, d)
        low = r[max(int(np.searchsorted(inside, 1e-4)) - 1, 0)]
        high = r[min(int(np.searchsorted(inside, 30.0)), len(r) - 1)]
        if not low < high:
            return None
        logs = np.linspace(np.log(low), np.log(high), 60)
        share = _measure_share(a, others, weights, np.exp(logs), d)
        chance = (n - 1.0) * share * np.exp((n - 2.0) * np.log1p(-np.minimum(share, 1.0 - 1e-16)))
        means.append(float(np.trapezoid(chance, logs)))
    mean = float(np.mean(means))
    return 1.0 / mean if mean > 0 else None


def _measure_share(
    a: float, others: FloatArray, weights: FloatArray, r: FloatArray, d: int
) -> FloatArray:
    """Measure the share of rows of the norms `others` within each distance r of a row of norm a."""
    from scipy.special import betainc

    cosine = (a**2 + others**2 - r[:, None] ** 2) / (2.0 * a * others)
    cap = 0.5 * betainc((d - 1) / 2.0, 0.5, np.clip(1.0 - cosine**2, 0.0, 1.0))
    share = np.where(cosine >= 1.0, 0.0, np.where(cosine >= 0, cap, 1.0 - cap))
    return np.asarray(np.where(cosine <= -1.0, 1.0, share) @ weights)


def expect_hubness(n: int, d: int, k: int) -> float | None:
    """Return the skewness of N_k among n directions; None for fewer rows than the table is for.

    In many dimensions rows are neighbors independently of each other, and N_k is binomial with the
    chance k/(n − 1); in few, neighbors share the room around a row and N_k is more even.
    """
    if d < DIMENSIONS[0] or n < ROWS_PER_NEIGHBOR * k:
        return None
    p = k / (n - 1.0)
    return float((1.0 - 2.0 * p) / np.sqrt(k * (1.0 - p)) * interpolate(HUBNESS, d))


def expect_silhouette(n: int, d: int) -> float | None:
    """Return the mean silhouette of clusters of directions; None for few rows."""
    if d < DIMENSIONS[0] or n < SILHOUETTE_ROWS:
        return None
    return float(np.exp(interpolate(np.log(SILHOUETTE), d)))


def interpolate(table: tuple[float, ...] | FloatArray, d: int) -> float:
    """Interpolate a table at d dimensions, linear in ln d; beyond its end, the last."""
    return float(np.interp(np.log(d), np.log(DIMENSIONS), table))
