"""How often rows are nearest neighbors of others, and how unevenly.

N_k(i) is the number of rows that have row i among their k nearest by cosine; its mean is k. Equally
near rows that do not all fit share the remaining places, so that rounding does not choose.
"""

from dataclasses import dataclass

import numpy as np

from embgeo.core.arrays import Array, FloatArray, IntArray, Mask

#: Cosines with a smaller difference are equal.
TIE = 1e-12
#: Cosines in memory at a time.
HELD = 2**22


#: Odd factors of `draw_order`, as 64-bit integers: the first of them is 2^64/φ (Weyl's sequence),
#: the others are those of splitmix64 (Steele, Lea & Flood 2014).
WEYL, FACTORS = -7046029254386353131, (-4658895280553007687, -7723592293110705685)


def draw_order(queries: Array, rows: Array) -> Array:
    """Return a number for each pair of a query and a row; equally near rows are sorted by it.

    It is drawn by a hash: an order by row number would prefer frequent tokens where rows are sorted
    by frequency, and one order for all queries would make hubs of the first rows.

    `queries`, `rows`: int64; row numbers, of shapes that broadcast.
    """
    mixed = queries * WEYL + rows * FACTORS[0]
    for factor in FACTORS:
        mixed = (mixed ^ (mixed >> 32)) * factor
    return mixed ^ (mixed >> 29)


def count_places(cosines: FloatArray, k: int) -> FloatArray:
    """Sum over rows of the places of each column among the k largest cosines.

    Examples
    --------
    >>> count_places(np.array([[0.9, 0.5, 0.5, 0.1]]), k=2).tolist()
    [1.0, 0.5, 0.5, 0.0]
    """
    m = cosines.shape[1]
    least = np.partition(cosines, m - k, axis=1)[:, m - k, None]
    nearer = cosines > least + TIE
    level = cosines >= least - TIE
    level &= ~nearer
    left = k - nearer.sum(axis=1)
    return np.asarray(nearer.sum(axis=0) + (left / level.sum(axis=1)) @ level)


def count_occurrences(unit: FloatArray, k: int) -> tuple[FloatArray, IntArray, FloatArray]:
    """Count n_k of each row among unit rows; a row is not its own neighbor.

    Returns
    -------
    float64 array, shape (m,)
    int array, shape (m, k)
        The k nearest of each row, the nearest first.
    float64 array, shape (m, k)
        Their cosines.
    """
    m = len(unit)
    counts, near, nearest = np.zeros(m), np.empty((m, k), np.int64), np.empty((m, k))
    step = max(1, HELD // m)
    for start in range(0, m, step):
        cosines = unit[start : start + step] @ unit.T
        own = np.arange(len(cosines))
        cosines[own, start + own] = -np.inf
        part = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
        least = np.take_along_axis(cosines, part, axis=1).min(axis=1)
        tied = np.flatnonzero((cosines >= least[:, None] - TIE).sum(axis=1) > k)
        if len(tied):
            part[tied] = split_ties(cosines[tied], start + tied, k)
        found = np.take_along_axis(cosines, part, axis=1)
        order = np.argsort(-found, axis=1, kind="stable")
        here = slice(start, start + len(own))
        near[here] = np.take_along_axis(part, order, axis=1)
        nearest[here] = np.take_along_axis(found, order, axis=1)
        counts += count_places(cosines, k)
    return counts, near, nearest


def split_ties(cosines: FloatArray, queries: IntArray, k: int) -> IntArray:
    """Find the columns of the k largest cosines, of equal ones some by chance."""
    drawn = draw_order(queries[:, None], np.arange(cosines.shape[1]))
    # Less than half a step of the grid on which cosines are equal.
    ranks = np.round(cosines / TIE) - (drawn / 2.0**64 + 0.5) / 2.0
    return np.argpartition(-ranks, k - 1, axis=1)[:, :k]


def skewness(values: FloatArray) -> float | None:
    """Return the third standardized moment; None if all values are equal up to rounding."""
    centered = values - values.mean()
    spread = float(np.sqrt(np.mean(centered**2)))
    if spread <= 1e-9 * abs(float(values.mean())):
        return None
    return float(np.mean(centered**3)) / spread**3


@dataclass(frozen=True, slots=True)
class SampledPlaces:
    """Places of rows among the nearest neighbors of a sample of rows, the queries.

    A group of equal rows shares a place; most groups have one row.
    """

    #: Numbers of queries, ascending from 0; shape (p,).
    query: IntArray
    #: Groups with a place; each pair of query and group is unique; shape (p,).
    group: IntArray
    #: Share of each row of the group, except the query itself; shape (p,).
    share: FloatArray
    #: Row of each query; shape (queries,).
    own: IntArray
    #: Group of each row; shape (m,).
    group_of: IntArray

    def sums(self, used: Mask) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return sums of the shares of each row, their squares and cubes over the used queries."""
        chosen = used[self.query]
        group, share, query = self.group[chosen], self.share[chosen], self.query[chosen]
        inside = self.group_of[self.own[query]] == group
        rows = self.own[query[inside]]
        found: list[FloatArray] = []
        for power in (1, 2, 3):
            parts = share**power
            by_group = np.bincount(group, parts, self.group_of.max() + 1)
            by_row = by_group[self.group_of]
            # A query gives no place to itself.
            own = np.bincount(rows, parts[inside], len(self.group_of))
            found.append(np.asarray(by_row - own, dtype=np.float64))
        return found[0], found[1], found[2]

    def skewness(self, used: Mask, k: int) -> float | None:
        """Estimate of the skewness of N_k with all rows as queries; None without a spread.

        N of a row is a sum over m queries, of which n are used. Sums over products of shares of two
        different used queries are scaled by m(m − 1)/(n(n − 1)), of three accordingly: second and
        third moments of N are unbiased for any n (factorial moments under sampling without
        replacement).
        """
        m, n = len(self.group_of), int(used.sum())
        first, second, third = self.sums(used)
        one = m / n
        two = one * (m - 1.0) / (n - 1.0)
        three = two * (m - 2.0) / (n - 2.0)
        squares = two * (first**2 - second) + one * second
        cubes = three * (first**3 - 3.0 * first * second + 2.0 * third)
        cubes += 3.0 * two * (second * first - third) + one * third
        variance = float(squares.mean()) - k**2
        if not variance > 1e-9 * k**2:
            return None
        return float((cubes.mean() - 3.0 * k * squares.mean() + 2.0 * k**3) / variance**1.5)


def share_among_equals(neighbors: IntArray, own: IntArray, group_of: IntArray) -> SampledPlaces:
    """Share the places among the k nearest rows of queries within groups of equal rows.

    `neighbors`: shape (queries, k); nearest rows; any of equal rows. `own`: shape (queries,).
    `group_of`: shape (m,).
    """
    groups = int(group_of.max()) + 1
    number = np.arange(len(own))[:, None] * groups + group_of[neighbors]
    pairs, places = np.unique(number, return_counts=True)
    query, group = np.divmod(pairs, groups)
    size = np.bincount(group_of)[group] - (group_of[own[query]] == group)
    return SampledPlaces(query, group, places / size, own, group_of)


def jackknife_error(places: SampledPlaces, k: int, parts: int) -> float | None:
    """Standard error of the estimated skewness, from leaving out one part of the queries at a time.

    Queries are drawn without replacement; with all rows as queries there is no error. With hardly
    any hubs, the estimate depends on products of three queries and the error is up to 1.7 times too
    large (Efron & Stein 1981: never too small on average).
    """
    n = len(places.own)
    part = np.arange(n) % parts
    found = [places.skewness(part != left, k) for left in range(parts)]
    known = np.array([value for value in found if value is not None])
    if len(known) < parts:
        return None
    rest = 1.0 - n / len(places.group_of)
    return float(np.sqrt(rest * (parts - 1.0) * known.var()))
