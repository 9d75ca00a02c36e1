"""The isotropic reference: Gaussian rows of the same N, d and norms.

Each kept row is replaced by a row of uniformly random direction and the same norm. The metrics of
that matrix are the reference column of the report; a closed form of the expectation takes their
place if there is one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.matrix import Matrix, Origin
from embgeo.core.quantities import cosine, frequency, isotropy, spectrum
from embgeo.core.values import Scalar, Series
from embgeo.measure.passes import Passes, open_rows
from embgeo.metrics.frequency import find_weights
from embgeo.stats import Norms

#: Geometry that isotropic rows give no value for, and why; docs/metrics.md shows it.
NO_REFERENCE: dict[str, str] = {
    cosine.CONE_APERTURE.name: "the largest angle grows with the number of pairs",
    spectrum.LARGEST_P.name: "a p-value: two draws of isotropic rows can give 0.1 and 0.9",
    isotropy.EIGENGAP.name: "a gap between two draws of eigenvalues is chance",
}
#: Above this many entries the d×d sums of reference rows are made in float32, which is faster.
SINGLE_ENTRIES = 20_000_000
#: Up to this many entries the rows are held; beyond, they are drawn again whenever they are read.
HELD_ENTRIES = 40_000_000
NOTE = "isotropic Gaussian rows, same N, d and norms"

#: Rows that are drawn together.
CHUNK = 1024
#: Norms of which expectations are computed at a time.
STEP = 2**18
#: Chunks that are kept for the next block, of each thread that reads some.
RECENT_CHUNKS = 4

Spread = Callable[[Callable[[int], npt.NDArray[Any]], int], Iterator[npt.NDArray[Any]]]


class GaussianRows:
    """Rows of given norms and uniformly random directions, drawn when they are read.

    Indexed like an array by slices or row numbers; the same index gives the same rows.
    """

    def __init__(self, norms: FloatArray, d: int, seed: int) -> None:
        self.norms = norms
        self.seed = seed
        self.shape = (len(norms), d)
        ordinary = norms.min() > 1e-30 and norms.max() < 1e30
        self.dtype = np.dtype(np.float32 if ordinary else np.float64)
        # Blocks of rows end within chunks: without these each chunk would be drawn several times.
        self.chunk = lru_cache(RECENT_CHUNKS)(self.draw_chunk)

    def __getitem__(self, rows: slice | IntArray) -> npt.NDArray[Any]:
        if not isinstance(rows, slice):
            return self._pick(rows)
        start, stop, _ = rows.indices(self.shape[0])
        first = start // CHUNK
        chunks = [self.chunk(number) for number in range(first, (stop - 1) // CHUNK + 1)]
        offset = first * CHUNK
        return np.concatenate(chunks)[start - offset : stop - offset]

    def _pick(self, rows: IntArray) -> npt.NDArray[Any]:
        """Draw single rows; each chunk that holds some is drawn once."""
        picked = np.empty((len(rows), self.shape[1]), self.dtype)
        numbers = rows // CHUNK
        for number in np.unique(numbers):
            here = numbers == number
            picked[here] = self.chunk(int(number))[rows[here] - number * CHUNK]
        return picked

    def draw_chunk(self, number: int) -> npt.NDArray[Any]:
        """Draw the rows ``CHUNK·number`` to ``CHUNK·(number + 1) − 1``."""
        norms = self.norms[number * CHUNK : (number + 1) * CHUNK]
        drawn = np.random.default_rng([self.seed, 0x150, number]).standard_normal(
            (len(norms), self.shape[1]), dtype=np.float32
        )
        lengths = np.sqrt(np.einsum("ij,ij->i", drawn, drawn, dtype=np.float64))
        return np.asarray(drawn * (norms / lengths).astype(self.dtype)[:, None])


def measure_reference(measurement: Passes, sections: Sequence[str]) -> dict[str, Scalar | Series]:
    """Measure isotropic rows of the same N, d and norms as a matrix after both passes, by name."""
    reader, norms, d = measurement.reader, measurement.shared.norms, measurement.facts.d
    facts = measurement.facts
    twin = isotropic_twin(norms, d, measurement.options.seed, reader.spread)
    if facts.frequency is not None:
        counts = facts.frequency.counts[facts.kept]
        twin = replace(twin, frequency=replace(facts.frequency, counts=counts))
    plain = replace(
        measurement.options,
        isotropy_rows=None, show_neighbors=(), pairs=0, random=False,
        row_errors=False, neighbors_of="sample",
    )  # fmt: skip
    if len(norms) * d > SINGLE_ENTRIES:
        plain = replace(plain, precision="float32")
    # Norms that float32 does not hold are kept off devices, which may have nothing wider.
    single = twin.working is np.float32
    resources = reader.resources if single else replace(reader.resources, device="cpu")
    other = Passes(open_rows(twin, plain, resources), plain, sections)
    other.families = [family for family in other.families if family.isotropic]
    with other.quiet():
        # Its norms are known, and those of healthy rows.
        statistics = [one for one in other.request_first() if not isinstance(one, Norms)]
        other.reader.sift(statistics)
        other.shared.add([*statistics, measurement.shared.find(Norms)])
        other.know_rows()
        if len(facts.kept) == facts.n:  # eight bytes a row that are the same
            other.facts = replace(other.facts, kept=facts.kept)
        other.second_pass()
        values = [value for family in other.families for value in other.compute(family)]
    return {value.name: value for value in values if isinstance(value, Scalar | Series)}


def isotropic_twin(norms: FloatArray, d: int, seed: int, spread: Spread) -> Matrix:
    """Build the reference matrix, in memory if it is small; `spread` works on all threads."""
    rows = GaussianRows(norms, d, seed)
    data = cast(npt.NDArray[Any], rows)
    if len(norms) * d <= HELD_ENTRIES:
        data = np.empty(rows.shape, rows.dtype)
        chunks = spread(rows.draw_chunk, -(-len(norms) // CHUNK))
        for number, chunk in enumerate(chunks):
            data[number * CHUNK : (number + 1) * CHUNK] = chunk
    return Matrix(data, name="isotropic reference", origin=Origin(format="array"))


def find_expected(measurement: Passes) -> dict[str, float]:
    """Find reference values that have a closed form, by name."""
    facts, norms = measurement.facts, measurement.shared.norms
    weights = find_weights(facts)
    known = expected(norms, facts.d)
    if weights is None:
        return known
    return known | expect_weighted(norms, facts.d, weights[facts.kept])


def expected(norms: FloatArray, d: int) -> dict[str, float]:
    """Return expectations over independent uniformly random directions in d dimensions.

    The cosine of two of them has mean 0 and variance 1/d, and E exp(t·cos) = ₀F₁(; d/2; t²/4).
    The mean of Z over directions is the same for all rows of given norms, Σ E exp(‖w‖·cos), and
    its variance over directions is expected to be Σ (E exp(2‖w‖·cos) − (E exp(‖w‖·cos))²).
    """
    from scipy.special import hyp0f1

    found = {
        cosine.MEAN.name: 0.0,
        cosine.STD.name: float(1.0 / np.sqrt(d)),
        cosine.POSITIVE_SHARE.name: 0.5,
        cosine.UNIFORMITY.name: float(np.log(hyp0f1(d / 2.0, 4.0)) - 4.0),
    }
    if d > 1:
        found[isotropy.ISOSCORE.name] = expect_isoscore(norms, d)
    total = variance = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for squares in (norms[at : at + STEP] ** 2 for at in range(0, len(norms), STEP)):
            mean, square = hyp0f1(d / 2.0, squares / 4.0), hyp0f1(d / 2.0, squares)
            total += mean.sum()
            variance += np.maximum(square - mean**2, 0.0).sum()
        spread = float(np.sqrt(variance) / total)
    return found | ({isotropy.Z_RANDOM_STD.name: spread} if np.isfinite(spread) else {})


def expect_isoscore(norms: FloatArray, d: int) -> float:
    """Return IsoScore is (r − 1)/(d − 1), r = (Σλ)²/Σλ² of the covariance's eigenvalues.

    Of rows of norms n_i, Σλ = Σn_i² and E Σλ² = Σn_i⁴ + Σ_(i≠j) n_i²n_j²/d, so that fewer rows, and
    rows of unequal norms, score lower. Centering takes one degree of freedom, which is neglected.
    """
    share = np.square(norms / norms.max())
    share /= share.sum()
    same = float(share @ share)
    return (1.0 / (same + (1.0 - same) / d) - 1.0) / (d - 1.0)


def expect_weighted(norms: FloatArray, d: int, weights: FloatArray) -> dict[str, float]:
    """Return IsoScore where each row has a weight; the weights sum to 1.

    With a_i = p_i²n_i² and c_i = p_i n_i², the mean row m has E‖m‖² = Σa_i and, as directions are
    independent, Var ‖m‖² = (2/d)·Σ_(i≠j) a_i a_j. The covariance is C = S − mmᵀ, S = Σp_i w_i w_iᵀ,
    with tr C = Σc_i − ‖m‖² and E tr C² = E tr S² − 2·E mᵀSm + E‖m‖⁴, the first as in
    `expect_isoscore` and E mᵀSm = Σ_i a_i (c_i + Σ_(k≠i) c_k/d).
    """
    if d < 2:
        return {}
    scale = float(norms.max())
    lengths = norms / scale
    a, c = np.square(weights * lengths), weights * np.square(lengths)
    mean, total = float(a.sum()), float(c.sum())
    spread = 2.0 * (mean**2 - float(a @ a)) / d
    same = float(c @ c)
    along = float(a @ (c + (total - c) / d))
    square = (total - mean) ** 2 + spread
    squares = same + (total**2 - same) / d - 2.0 * along + mean**2 + spread
    return {frequency.WEIGHTED_ISOSCORE.name: (square / squares - 1.0) / (d - 1.0)}
