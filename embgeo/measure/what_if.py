"""What if: the geometry of a matrix after each treatment of the literature, by the definitions.

With the mean m and the covariance C of the rows, a treatment makes rows y = A(w − m), whose
covariance is ACAᵀ. Its eigenvalues are those of C without some after directions are removed, equal
ones after whitening, and those of the correlation matrix after coordinates are divided by their
standard deviations. So spectra follow from the moments of the first pass; for rows that are divided
by their norms first, from the moments of unit rows. The mean cosine takes the sum of y/‖y‖, in the
second pass: that the mean of y is zero does not make it zero. What needs every row again, the
partition function, histograms and rows that are divided by their norms afterwards, is estimated
from a sample. Of many columns only those eigenvectors are computed that something is made of, so
that the partition function along all of them is not estimated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, WorkingArray
from embgeo.core.treated import (
    COORDINATES,
    MOST_ASKED_PRODUCTS,
    NO_NEIGHBORS,
    REMOVED,
    UNIT_AFTER,
    UNIT_FIRST,
    Treated,
    TreatedPlaces,
    count_neighbor_products,
)
from embgeo.metrics import Measurement
from embgeo.metrics.isotropy import add_null_directions, compute_i1_i2, measure_eigengap
from embgeo.numerics.eigen import Eigen, eigenvalues, leading_eigen, signed_eigen
from embgeo.numerics.sampling import sample_rows
from embgeo.numerics.spectra import compute_effective_rank
from embgeo.stats import LogPartition, Moments, TreatedRows
from embgeo.stats.all_nearest import AllNearest
from embgeo.stats.backend.backend import HOST

#: Products for the neighbors after the treatments.
MOST_NEIGHBOR_PRODUCTS = 5 * 10**10
#: Sampled rows, and the products up to which all rows are taken: a few seconds.
SAMPLED, MOST_PRODUCTS = 4096, 5 * 10**10
#: Up to this many columns the sample is large enough for spectra of rows divided afterwards. Of
#: more, a full decomposition takes longer than everything else.
MOST_COLUMNS = SAMPLED // 4
#: Rows of which the cosines of all pairs are counted, and the bins.
COUNTED, BINS = 512, 80
#: Shorter rows, and larger entries, have no squares, or no places in float32.
PLAIN = (1e-30, 1e30)
#: Copies of the sampled rows in float64 in memory at one time, and the fewest rows.
COPIES, LEAST_HELD = 5, 64
#: Rows this much shorter than the longest one have no direction left.
LOST, SHORTEST = 1e-12, float(np.finfo(np.float32).tiny)


#: Mean cosine, effective rank, top share and I1.
Numbers: TypeAlias = tuple[float, float | None, float | None, float | None]


@dataclass(frozen=True, slots=True)
class Start:
    """The rows that treatments start from: as stored, or divided by their norms."""

    #: Beginning of the names of treatments.
    name: str
    mean: FloatArray
    #: Standard deviations of the coordinates; 1 for those that do not differ; shape (d,).
    scales: FloatArray
    #: Of the covariance, and of that of the standardized rows; of many columns some vectors alone.
    eigen: Eigen
    standardized: Eigen
    rank: int
    #: L⁻¹ whitens the centered rows, if not all eigenvectors are known; shape (d, d).
    factor: FloatArray | None


@dataclass(frozen=True, slots=True)
class Sampled:
    """What is estimated from sampled rows after a treatment."""

    mean_cosine: float
    i1: float | None
    cosines: FloatArray


def can_be_treated(m: Measurement) -> bool:
    """Tell whether rows are enough and plain enough to be treated."""
    facts = m.facts
    return (
        m.reader.is_local
        and facts.listed is None
        and facts.d > 1
        and facts.m > max(facts.d, facts.options.neighbors)
        and float(m.shared.norms.min()) > PLAIN[0]
        and m.reader.census.largest < PLAIN[1]
        and not m.shared.all_rows_equal
    )


class WhatIf:
    """The treatments of one matrix: made after the first pass, finished after the second."""

    def __init__(self, m: Measurement) -> None:
        self.m, self.n, self.d = m, m.facts.m, m.facts.d
        self.sample, self.counted = self._draw()
        self.pairs = np.triu_indices(len(self.counted), 1)
        rows = np.asarray(m.reader.take(self.sample), dtype=np.float64)
        self.exact = len(self.sample) == self.n
        stored = self._describe("", m.shared.moments, m.shared.eigen_centered)
        unit = self._describe(UNIT_FIRST, m.shared.unit_moments, None)
        lengths = np.linalg.norm(rows, axis=1)[:, None]
        eigen = m.shared.eigen
        values = eigen.values[: eigen.rank(self.n)] / self.n
        along = self._turn(rows, eigen.vectors[:, : len(values)])
        treated = [("none", (along, values, True)), *self._treat(stored, rows)]
        self.sampled = {name: self._estimate(*found) for name, found in treated}
        for name, found in self._treat(unit, rows / lengths):
            self.sampled[UNIT_FIRST + name] = self._estimate(*found)
        self.after: dict[str, tuple[float, float, float | None]] = {}
        if self.d <= MOST_COLUMNS:
            self.after = {name: self._divide(*found[:2]) for name, found in treated}
        self.starts = (stored, unit)
        plane = stored.standardized.vectors[:, :2] / stored.scales[:, None]
        self.axes = np.hstack([stored.eigen.vectors[:, :COORDINATES], plane])
        deviations = np.full(self.d, np.inf)
        deviations[: stored.rank] = np.sqrt(stored.eigen.values[: stored.rank])
        self.statistics = [
            TreatedRows(
                start.name,
                start.mean,
                start is unit,
                self.axes if start is stored else unit.eigen.vectors[:, :COORDINATES].copy(),
                self._removed(start),
                start.scales,
                m.shared.eigen_centered.vectors if start is stored else None,
                deviations,
                m.shared.single_centered,
            )
            for start in self.starts
        ]

    def _draw(self) -> tuple[IntArray, IntArray]:
        """Draw the sampled rows, and the places of those among them whose cosines are counted.

        All rows are in the sample if that is quick and they fit into memory.
        """
        rng = self.m.facts.generator("what if")
        quick = 12 * self.n * self.d**2 <= MOST_PRODUCTS
        room = self.m.reader.resources.room // (8 * self.d * COPIES)
        size = min(self.n if quick else SAMPLED, self.n, max(LEAST_HELD, room))
        sample = np.sort(sample_rows(self.m.facts.kept, size, rng))
        return sample, rng.permutation(size)[:COUNTED]

    def _describe(self, name: str, moments: Moments, eigen: Eigen | None) -> Start:
        """Describe the covariance of the rows, whose eigenvectors may be known."""
        covariance = moments.scatter / moments.n
        variances = np.diagonal(covariance).copy()
        scales = np.sqrt(np.where(variances > 0.0, variances, 1.0))
        standardized = self._decompose(covariance / np.outer(scales, scales), 2)
        if eigen is None:
            eigen = self._decompose(covariance, COORDINATES)
        else:
            eigen = Eigen(eigen.values / moments.n, eigen.vectors)
        rank, factor = eigen.rank(self.n), None
        if rank == self.d > eigen.vectors.shape[1]:
            factor = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
        elif rank > eigen.vectors.shape[1]:
            eigen = signed_eigen(covariance, None)
        return Start(name, moments.mean, scales, eigen, standardized, rank, factor)

    def _decompose(self, gram: FloatArray, count: int) -> Eigen:
        """Decompose a matrix; of many columns only a device computes more than `count` vectors."""
        few, eigh = self.d > MOST_COLUMNS and not self.exact, self.m.reader.eigh
        if few and eigh is None:
            return leading_eigen(gram, count)
        return signed_eigen(gram, None, eigh)

    def _removed(self, start: Start) -> tuple[int, ...]:
        """How many directions are removed: a plane has to be left."""
        return tuple(k for k in REMOVED if k <= start.rank - 2)

    def _list_spectra(self, start: Start) -> dict[str, FloatArray]:
        """List the eigenvalues of the covariance after each treatment."""
        values = start.eigen.values[: start.rank]
        standardized = start.standardized
        return {
            "mean": values,
            "standardize": standardized.values[: standardized.rank(self.n)],
            **{f"top-{k}": values[k:] for k in self._removed(start)},
            "whiten": np.ones(start.rank),
        }

    def _treat(
        self, start: Start, rows: FloatArray
    ) -> Iterator[tuple[str, tuple[WorkingArray, FloatArray, bool]]]:
        """Yield each treatment, the treated sampled rows, and the eigenvalues of all rows.

        And whether the rows are given along the eigenvectors, or in any directions.
        """
        spectra, rows = self._list_spectra(start), rows - start.mean
        vectors, turned = start.eigen.vectors, start.factor is None
        along = self._turn(rows, vectors[:, : start.rank]) if turned else self._narrow(rows)
        yield "mean", (along, spectra["mean"], turned)
        values, standardized = spectra["standardize"], start.standardized.vectors
        if standardized.shape[1] < len(values):
            yield "standardize", (self._narrow(rows / start.scales), values, False)
        else:
            standardized = standardized[:, : len(values)] / start.scales[:, None]
            yield "standardize", (self._turn(rows, standardized), values, True)
        for k in self._removed(start):
            top = self._narrow(vectors[:, :k])
            left = along[:, k:] if turned else along - along @ top @ top.T
            yield f"top-{k}", (left, spectra[f"top-{k}"], turned)
        if start.factor is None:
            whitened = along / np.sqrt(spectra["mean"]).astype(along.dtype)
        else:
            from scipy.linalg import solve_triangular

            whitened = self._narrow(solve_triangular(start.factor, rows.T, lower=True).T)
        yield "whiten", (whitened, spectra["whiten"], turned)

    def _narrow(self, rows: FloatArray) -> WorkingArray:
        """Return sampled rows; for estimates float32 is enough."""
        return rows if self.exact else rows.astype(np.float32)

    def _turn(self, rows: FloatArray, directions: FloatArray) -> WorkingArray:
        return np.asarray(self._narrow(rows) @ self._narrow(directions))

    def _estimate(self, along: WorkingArray, values: FloatArray, turned: bool) -> Sampled:
        """Estimate the numbers of rows; if they are `turned`, given along the eigenvectors."""
        lengths = np.linalg.norm(along, axis=1)[:, None]
        unit = along / np.maximum(lengths, SHORTEST)
        n = len(unit)
        _, unsafe = measure_eigengap(values)
        total = float(np.square(unit.sum(axis=0)).sum())
        counted = unit[self.counted]
        counts = HOST.histogram((counted @ counted.T)[self.pairs], BINS)
        return Sampled(
            (total - n) / (n * (n - 1.0)),
            self._find_i1(unit) if turned and not unsafe else None,
            counts.astype(np.float64),
        )

    def _find_i1(self, unit: WorkingArray) -> float:
        """Find I1 of unit rows, given along eigenvectors."""
        powers = np.exp(unit)
        sums = powers.sum(axis=0, dtype=np.float64)
        np.reciprocal(powers, out=powers)
        log_z = np.log(np.stack([sums, powers.sum(axis=0, dtype=np.float64)]))
        return compute_i1_i2(add_null_directions(log_z, self.d, len(unit)))[0]

    def _divide(self, along: WorkingArray, values: FloatArray) -> tuple[float, float, float | None]:
        """Estimate effective rank and top share of treated rows divided by their norms.

        Given are rows along the eigenvectors of their second moments, and the eigenvalues. What the
        sample errs in these, it errs in those of the divided rows, where norms are about equal: it
        is subtracted. I1, at eigenvectors of its own, is measured of all rows alone.
        """
        n, squares = len(along), np.vecdot(along, along)
        unit = along / np.sqrt(np.maximum(squares, SHORTEST))[:, None]
        moments = along.T @ along / n
        moments[np.diag_indices(len(values))] -= values.astype(moments.dtype)
        share = squares.mean() / np.square(squares).mean()  # of least squares
        moments = unit.T @ unit / n - moments * share
        if not self.exact:
            return *self._compute_numbers(eigenvalues(moments)), None
        eigen = signed_eigen(moments, None)
        _, unsafe = measure_eigengap(eigen.values[: eigen.rank(n)])
        i1 = None if unsafe else self._find_i1(unit @ eigen.vectors)
        return *self._compute_numbers(eigen.values), i1

    def finish(self) -> tuple[tuple[Treated, ...], TreatedPlaces]:
        """Return the matrix after each treatment, with and without unit rows, and its map."""
        shared, found = self.m.shared, list[Treated]()
        partition = shared.find(LogPartition, "eigenvectors")
        stored = self._compute_numbers(np.square(shared.singular_values("uncentered")))
        unit = self._compute_numbers(np.square(shared.singular_values("unit")))
        total = float(np.square(self.n * shared.unit_moments.mean).sum())
        cosine = self._mean_cosine(total)
        sample = self.sampled["none"]
        i1 = None
        if sample.i1 is not None:
            log_z = add_null_directions(partition.log_z_of_unit_rows(), self.d, self.n)
            i1 = compute_i1_i2(log_z)[0]
        of_unit = self.after["none"][2] if self.after else None
        few: tuple[str, ...] = () if self.exact else ("cosines",)
        found.append(Treated("none", cosine, *stored, i1, few, sample.cosines, NO_NEIGHBORS))
        found.append(
            Treated("none" + UNIT_AFTER, cosine, *unit, of_unit, few, sample.cosines, NO_NEIGHBORS)
        )
        for start in self.starts:
            found += self._finish(start)
        kept = shared.find(TreatedRows, "").values()
        axes = self.axes.shape[1]
        deviations = np.sqrt(self.starts[0].eigen.values[: axes - 2])
        mean = self.starts[0].mean @ self.axes
        places = TreatedPlaces(
            len(self.sample), mean, deviations, kept[:, :axes].copy(), kept[:, axes:].copy()
        )
        return tuple(found), places

    def _finish(self, start: Start) -> Iterator[Treated]:
        """Yield the treatments of these rows, but those after which a row has no direction."""
        spectra, searched = self._list_spectra(start), self._search(start)
        sums = self.m.shared.find(TreatedRows, start.name)
        v = start.eigen.vectors
        # Only stored rows are whitened in the pass: unit rows would take a product of their own.
        for at, (name, values) in enumerate(spectra.items()):
            sample = self.sampled[start.name + name]
            cosine, few = sample.mean_cosine, [] if self.exact else ["cosines"]
            if few and sample.i1 is not None:
                few.insert(0, "i1")
            if at < len(sums.least):
                if not sums.least[at] > LOST * sums.most[at]:
                    continue
                total = sums.totals[at]
                if name == "standardize":
                    total = total / start.scales
                elif name == "whiten":
                    total = total @ v[:, : start.rank] / np.sqrt(start.eigen.values[: start.rank])
                elif name != "mean":
                    top = v[:, : int(name.removeprefix("top-"))]
                    total = total - top @ (top.T @ total)
                cosine = self._mean_cosine(float(np.square(total).sum()))
            elif not self.exact:
                few.append("mean_cosine")
            rank, share = self._compute_numbers(values)
            near = searched.get(name, NO_NEIGHBORS)
            numbers: Numbers = (cosine, rank, share, sample.i1)
            yield Treated(start.name + name, *numbers, tuple(few), sample.cosines, near)
            if start.name:
                continue
            few = [] if self.exact else ["effective_rank", "top_share", "cosines"]
            rank_after, share_after, i1 = self.after.get(name, (None, None, None))
            numbers = (cosine, rank_after, share_after, i1)
            yield Treated(name + UNIT_AFTER, *numbers, tuple(few), sample.cosines, NO_NEIGHBORS)

    def _compute_numbers(self, values: FloatArray) -> tuple[float, float]:
        """Compute the effective rank and the top share of eigenvalues."""
        return compute_effective_rank(np.sqrt(values)), float(values[0] / values.sum())

    def _mean_cosine(self, total: float) -> float:
        """Compute the mean cosine of all pairs from the squared length of the sum of unit rows."""
        return (total - self.n) / (self.n * (self.n - 1.0))

    def _search(self, start: Start) -> dict[str, IntArray]:
        """Search the nearest rows after each treatment, where all rows are few."""
        facts, reader = self.m.facts, self.m.reader
        asked = facts.options.neighbors_of == "all"
        most = MOST_ASKED_PRODUCTS if asked else MOST_NEIGHBOR_PRODUCTS
        memory = reader.resources.memory if asked else reader.resources.room
        fits = memory is None or 8 * self.n * self.d * COPIES <= memory
        if start.name or not fits or count_neighbor_products(self.n, self.d) > most:
            return {}
        rows = np.asarray(reader.take_stored(facts.kept), dtype=np.float64)
        found = {}
        for name, (treated, _, _) in self._treat(start, rows):
            if np.abs(treated).max(axis=1).min() > 0.0:
                search = AllNearest(
                    treated.__getitem__, treated.shape, facts.options.neighbors, np.arange(self.n)
                )
                what = "neighbors after treatments"
                found[name] = search.search(reader, what, exact=False)[0]
        return found
