"""Mean and scatter matrix of rows, and the triangular factor of their QR decomposition.

Rows stored in float32 or less are summed in float32 at half the cost, if their scatter matrix C is
large. Short runs of blocks are summed in float32 and their sums in float64, of rows without the
mean of their block, so that nothing cancels in a cone. What rounding leaves, E, is measured: CΩ is
also summed in float64, for a few columns Ω of random signs. With f² the mean of E_jk²/(C_jj·C_kk),
the row j of EΩ has variance f²·C_jj·tr C, which gives f. An eigenvalue λ of C errs by vᵀEv, to
first order in E (Weyl's bound ‖E‖ adds up what cancels). Errors of entries that are independent, or
rounded to either side alike (Higham & Mary 2019), give that a standard deviation of at most
√2·f·Σ_j v_j²C_jj.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, Self

import numpy as np

from embgeo.core.arrays import Array, FloatArray, IntArray, WorkingArray
from embgeo.numerics.eigen import eigenvalues
from embgeo.stats.backend.backend import HOST, Backend
from embgeo.stats.block import Block
from embgeo.stats.statistic import Statistic

#: Blocks that are summed in float32 before the sum goes into float64: rounding would add up.
SINGLE_BLOCKS = 256
#: The same where eigenvalues are taken of the sum.
PROBED_BLOCKS = 4
#: Columns of random signs that measure the rounding of float32, …
PROBES = 4
#: … and the multiple of f·Σ_j v_j²C_jj that bounds the error of an eigenvalue: seven standard
#: deviations. Errors of steep spectra, heavy norms, cones and wide coordinates are below a third.
SAFETY = 10.0
#: Entries of the triangle that are widened at a time.
COLUMN_ENTRIES = 2**21
#: Where the mean of the unit rows leaves less than this of their square, they are taken in float64:
#: float32 errs by 1e-7 of the standard deviation of their cosines at 1e-2, by 1e-5 at 1e-3.
NARROW = 0.05


def are_few(rows: int, d: int) -> bool:
    """Tell whether rows are too few for their dimensions for sums of d×d to pay."""
    return 2 * rows <= d


@dataclass(eq=False)
class Moments(Statistic):
    """n, mean and Σ(x−μ)(x−μ)ᵀ, merged in centered form.

    The centered form keeps what ``Σxxᵀ − nμμᵀ`` loses: in a narrow cone the two terms agree in
    their leading digits. Merging is that of Chan, Golub & LeVeque 1979.

    `mean`: shape (d,); always summed in float64.
    """

    STATE = ("n", "mean", "_triangle", "_recent", "_recent_blocks", "_kept", "_rows", "_probes")

    d: int
    #: The rows, in float64, or the rows divided by their norms, in stored precision, because only
    #: the norm of their scatter is used. Blocks of a narrow cone are summed in float64, too.
    of: Literal["rows", "unit"] = "rows"
    #: Whether the rows, too, are summed in stored precision.
    single: bool = False
    #: Whether the centered rows are kept, in float64, in place of their scatter matrix.
    few: bool = False
    #: Whether rows stored in float32 may be summed in float32 on the host, with probes of the
    #: rounding.
    probed: bool = False
    signs: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(0x516)
        self.signs = rng.choice([-1.0, 1.0], (self.d, PROBES if self.probed else 0))
        self.clear()

    def clear(self) -> None:
        # Diagonal, sum of squares, value along the mean row and rounding, after `forget_scatter`.
        self._kept: tuple[FloatArray, float, float, float] | None = None
        self.n: float = 0
        self.mean: FloatArray = np.zeros(self.d)
        # Upper triangles, in the column order of BLAS, which adds to them in place.
        self._triangle: Array = None
        self._recent: Array = None
        self._recent_blocks = 0
        # Rows R with RᵀR = scatter, if they are few.
        self._rows: list[FloatArray] = []
        # Scatter matrix times the signs, from float64, of what was summed in float32.
        self._probes: FloatArray | None = None

    @property
    def name(self) -> str:
        return self.of

    def update(self, block: Block) -> None:
        if not len(block.index):
            return
        n = len(block.index)
        wide = block.wide
        probed = self.probed and block.backend is HOST and block.stored.dtype == np.float32
        x = block.stored if (self.single or probed) and not self.few else block.rows
        if self.of == "rows":
            mean = wide.xp.mean(block.rows, axis=0)
        else:
            mean = _unit_mean(block)
            narrow = 1.0 - float(wide.xp.vecdot(mean, mean)) < NARROW
            x = block.unit if narrow or self.few else block.stored_unit
        mean = wide.to_host(mean)
        backend = wide if x.dtype == wide.xp.float64 else block.backend
        total = self.n + n
        step = mean - self.mean
        centered = backend.xp.empty((len(x) + 1, self.d), dtype=x.dtype, device=x.device)
        backend.xp.subtract(x, backend.put(mean, x.dtype), out=centered[:-1])
        centered[-1] = backend.put(step * np.sqrt(self.n * n / total), x.dtype)
        self._add(backend, centered)
        if probed:
            along = block.rows @ self.signs - mean @ self.signs
            self._probe(block.rows.T @ along, step * np.sqrt(self.n * n / total))
        self.mean = self.mean + step * (n / total)
        self.n = total

    def _probe(self, product: FloatArray, step: FloatArray) -> None:
        """Add a scatter matrix, and that of one row more, to the product with the signs."""
        known = 0.0 if self._probes is None else self._probes
        self._probes = known + product + np.outer(step, step @ self.signs)

    def merge(self, other: Self) -> None:
        if not other.n:
            return
        total = self.n + other.n
        step = (other.mean - self.mean) * np.sqrt(self.n * other.n / total)
        single = self._recent is not None or other._recent is not None
        self._add(HOST, step[None].astype(np.float32 if single else np.float64))
        self._rows += other._rows
        if self._probes is not None or other._probes is not None:
            self._probe(np.zeros_like(self.signs) if other._probes is None else other._probes, step)
        if other._triangle is not None:
            self._triangle = _sum(self._triangle, other._triangle)
        if other._recent is not None:
            self._recent = _sum(self._recent, other._recent)
            self._recent_blocks += other._recent_blocks
        self.mean = self.mean + (other.mean - self.mean) * (other.n / total)
        self.n = total

    def _add(self, backend: Backend, rows: Array) -> None:
        """Add ``rowsᵀ rows`` in place (a symmetric rank-k update, half the work of a product)."""
        if self.few:
            self._rows.append(backend.to_host(rows))
            return
        if rows.dtype == backend.xp.float64:
            if self._triangle is None:
                self._triangle = backend.empty_gram(self.d, rows.dtype)
            backend.add_gram(rows, self._triangle)
            return
        if self._recent_blocks >= (PROBED_BLOCKS if self.probed else SINGLE_BLOCKS):
            self._settle(backend)
        if self._recent is None:
            self._recent = backend.empty_gram(self.d, rows.dtype)
        backend.add_gram(rows, self._recent)
        self._recent_blocks += 1

    def _settle(self, backend: Backend) -> None:
        """Add the float32 sums to the float64 sums."""
        if self._triangle is None:
            self._triangle = backend.wide.empty_gram(self.d, backend.wide.xp.float64)
        self._triangle += backend.to_wide(self._recent)
        self._recent, self._recent_blocks = None, 0

    def to_host(self, backend: Backend) -> None:
        super().to_host(backend)
        for triangle in (self._triangle, self._recent):
            if triangle is not None:
                for column in range(self.d):
                    triangle[column + 1 :, column] = 0.0

    def _columns(self) -> Iterator[tuple[int, FloatArray]]:
        """Yield the upper triangle in float64 in groups of columns, each with its first column."""
        if self._kept:
            raise ValueError("the scatter matrix was forgotten")
        step = max(1, COLUMN_ENTRIES // self.d)
        for start in range(0, self.d, step):
            part = np.zeros((self.d, min(step, self.d - start)))
            for triangle in (self._triangle, self._recent):
                if triangle is not None:
                    part += triangle[:, start : start + step]
            yield start, part

    @property
    def factor(self) -> FloatArray:
        """Rows R with RᵀR = scatter, if rows are few: no more than rows, blocks and merges."""
        if self._kept:
            raise ValueError("the rows were forgotten")
        if len(self._rows) != 1:
            self._rows = [np.concatenate([np.zeros((0, self.d)), *self._rows])]
        return self._rows[0]

    @property
    def uncentered_factor(self) -> FloatArray:
        """Rows R with RᵀR = Σxxᵀ, if rows are few."""
        return np.vstack([self.factor, self.mean * np.sqrt(self.n)])

    def eigenvalues(self, centered: bool = False) -> FloatArray:
        """Return the falling eigenvalues of Σxxᵀ, or of the scatter matrix, shape (d,)."""
        if not self.few:
            return eigenvalues(self.scatter if centered else self.gram())
        rows = self.factor if centered else self.uncentered_factor
        values = np.square(np.linalg.svd(rows, compute_uv=False))
        return np.pad(values, (0, self.d - len(values)))

    @property
    def scatter(self) -> FloatArray:
        """Σ(x−μ)(x−μ)ᵀ, shape (d, d): a new array each time."""
        if self.few:
            return self.factor.T @ self.factor
        lower = np.empty((self.d, self.d))
        for start, part in self._columns():
            lower[start : start + part.shape[1]] = part.T
        return _mirror(lower)

    def diagonal(self) -> FloatArray:
        """Sum of squared deviations of each coordinate, shape (d,)."""
        if self._kept:
            return self._kept[0]
        if self.few:
            return np.asarray(np.einsum("ij,ij->j", self.factor, self.factor))
        diagonal = np.zeros(self.d)
        for triangle in (self._triangle, self._recent):
            if triangle is not None:
                diagonal += np.diagonal(triangle)
        return diagonal

    def trace(self) -> float:
        """Return Σ‖x−μ‖²."""
        return float(self.diagonal().sum())

    def squares(self) -> float:
        """Sum of the squared entries of the scatter matrix."""
        if self._kept:
            return self._kept[1]
        if self.few:
            return float(np.square(self.factor @ self.factor.T).sum())
        upper = sum(float(np.vdot(part, part)) for _, part in self._columns())
        return 2.0 * upper - float(np.square(self.diagonal()).sum())

    def along_mean(self) -> float:
        """Return μᵀCμ of the scatter matrix C and the mean row μ."""
        if self._kept:
            return self._kept[2]
        mean = self.mean
        if self.few:
            return float(np.square(self.factor @ mean).sum())
        upper = sum(
            float(mean @ part @ mean[start : start + part.shape[1]])
            for start, part in self._columns()
        )
        return 2.0 * upper - float(self.diagonal() @ np.square(mean))

    def find_rounding(self) -> float:
        """Find the f of the module's first lines; 0 for sums in float64."""
        if self._kept:
            return self._kept[3]
        diagonal = self.diagonal()
        used = diagonal > 0.0
        if self._probes is None or not used.any():
            return 0.0
        squares = np.square(self.scatter @ self.signs - self._probes).mean(axis=1)[used]
        return float(np.sqrt((squares / diagonal[used]).mean() / diagonal.sum()))

    def bound_errors(self, vectors: FloatArray | None = None) -> FloatArray:
        """Bound the rounding of eigenvalues of the scatter matrix, of these vectors or of any."""
        diagonal = self.diagonal()
        level = diagonal.max() if vectors is None else diagonal @ np.square(vectors)
        return np.asarray(SAFETY * self.find_rounding() * level)

    def forget_scatter(self) -> None:
        """Release the scatter matrix, but for its diagonal and two sums; add no rows afterwards."""
        with np.errstate(over="ignore", invalid="ignore"):  # entries beyond the root of a square
            rounding = self.find_rounding()
            self._kept = self.diagonal(), self.squares(), self.along_mean(), rounding
        self._triangle = self._recent = None
        self._rows = []

    def gram(self) -> FloatArray:
        """Return Σxxᵀ, uncentered, shape (d, d): a sum of two positive semidefinite parts."""
        gram = self.scatter
        gram += np.outer(self.mean, self.n * self.mean)
        return gram


def _sum(mine: WorkingArray | None, other: WorkingArray) -> WorkingArray:
    if mine is None:
        return other.copy(order="F")
    mine += other
    return mine


def _mirror(lower: FloatArray) -> FloatArray:
    """Return the symmetric matrix of a lower triangle, filled in place by square tiles."""
    d, tile = len(lower), 512
    for i in range(0, d, tile):
        corner = lower[i : i + tile, i : i + tile]
        corner += np.tril(corner, -1).T
        for j in range(i + tile, d, tile):
            lower[i : i + tile, j : j + tile] = lower[j : j + tile, i : i + tile].T
    return lower


def _unit_mean(block: Block) -> Array:
    """Return the mean of the unit rows, in float64."""
    if block.stored.dtype == block.backend.xp.float64:
        return block.wide.xp.mean(block.unit, axis=0)
    return (1.0 / block.norms) @ block.rows / len(block.index)


@dataclass(eq=False)
class StackedQR(Statistic):
    """R of the QR decomposition of the rows seen so far.

    The factor of stacked factors is the factor of the stacked rows (Demmel et al. 2012), so R is
    a monoid. Unlike a Gram matrix it does not square the condition number: singular values come
    out with an error of about ε·σ_1 instead of ε·σ_1²/σ_k.
    """

    STATE = ("n", "r")

    name: str
    width: int
    #: The rows, the rows divided by their norms, or each token's row and its output row side by
    #: side, ``[x | y]``; tokens whose output row is zero or non-finite are left out.
    of: Literal["rows", "unit", "paired"] = "rows"
    #: Subtracted from every row; shape (width,).
    shift: FloatArray | None = None
    #: Further tokens that are left out of paired rows.
    without: IntArray | None = None

    def clear(self) -> None:
        self.n = 0
        self.r: Array = np.zeros((0, self.width))

    def update(self, block: Block) -> None:
        rows, xp = block.unit if self.of == "unit" else block.rows, block.wide.xp
        if self.of == "paired":
            usable = xp.all(xp.isfinite(block.paired), axis=1) & xp.any(block.paired != 0, axis=1)
            if self.without is not None:
                usable &= block.wide.put(~np.isin(block.index, self.without))
            rows = xp.concat([rows, block.paired], axis=1)[usable]
        if self.shift is not None:
            rows = rows - block.wide.put(self.shift)
        self._stack(block.wide, rows, rows.shape[0])

    def merge(self, other: Self) -> None:
        self._stack(HOST, other.r, other.n)

    def _stack(self, wide: Backend, rows: Array, n: int) -> None:
        if n:
            self.r = wide.stack_rows(wide.put(self.r), rows)
            self.n += n
