"""Similarities of two matrices that do not need neighbors, from their joint sums.

Subspace distance, Procrustes residual, the change itself, and linear centered kernel alignment:
biased, debiased, and compared with random pairings. For Gram matrices K and L of centered rows,
Σ_ij K_ij L_ij = ‖XᵀY‖_F² and K_ii = ‖x_i − μ‖²: no array of size N² is formed, unless rows are few.
"""

import numpy as np

from embgeo.comparison.shared import Joint, Shared
from embgeo.core.arrays import FloatArray
from embgeo.core.quantities import compare as q
from embgeo.core.values import Scalar, Series
from embgeo.numerics.sampling import generator, sample_rows
from embgeo.numerics.spectra import compute_effective_rank

#: A relative change below this limit is of the size of rounding errors.
LEAST_CHANGE = 1e-10
#: Tokens that are permuted, at most, and how often.
PERMUTED = 250
PERMUTATIONS = 499
#: Below this, a difference of numbers near 2 has fewer than twelve digits.
CANCELLED = 1e-3
#: The estimator divides by S − 3.
LEAST_TOKENS = 4
#: The remainder of a sum is rounding below this share of it.
ROUNDING = 1e-12

TOO_FEW = f"the unbiased estimate takes {LEAST_TOKENS} shared tokens"
EQUAL_ROWS = "all rows of one side are equal, centering leaves nothing"


def similarities(joint: Joint) -> list[Scalar | Series]:
    """Return every number of two matrices that does not need neighbors."""
    first = [*subspace_values(joint), *cka_values(joint)]
    return [*first, procrustes(joint), *change_values(joint)]


def subspace_values(joint: Joint) -> list[Scalar | Series]:
    """Return the distance and angles of the column spaces; sines are computed from residuals."""
    dimensions, cosines, sines = joint.angles()
    wide = max(dimensions)
    if not min(dimensions):
        return [q.SUBSPACE_DISTANCE.undefined("a matrix of rank 0 spans no subspace")]
    angles = np.degrees(np.arctan2(sines, cosines))
    return [
        q.SUBSPACE_DISTANCE.measured(
            float(np.sqrt(np.mean(np.square(sines)))),
            convention=f"column spaces of dimension {dimensions[0]:,} and {dimensions[1]:,} in "
            f"R^{joint.n:,}; V is the smaller; uncentered",
            reference=float(np.sqrt(max(0.0, 1.0 - wide / joint.n))),
            reference_kind="chance",
            reference_note=f"chance: √(1 − p/N) for random {wide:,}-dimensional subspaces of "
            f"R^{joint.n:,}",
        ),
        Series(
            q.PRINCIPAL_ANGLES,
            np.arange(1, len(angles) + 1, dtype=np.float64),
            {"principal angle": angles},
            "index i",
            "θ_i (°)",
        ),
    ]


def procrustes(joint: Joint) -> Scalar:
    """Get min_Q ‖X/‖X‖ − (Y/‖Y‖)Q‖_F, from the residual; the narrower matrix gets zero columns."""
    width = max(joint.x.shape[1], joint.y.shape[1])
    x, y = (
        np.pad(a, ((0, 0), (0, width - a.shape[1]))) / np.linalg.norm(a) for a in (joint.x, joint.y)
    )
    if len(x) + len(y) < width:  # the best rotation turns nothing outside of their row spaces
        basis = np.linalg.qr(np.vstack([x, y]).T)[0]
        x, y = x @ basis, y @ basis
    product = y.T @ x
    # The square is 2 − 2·Σσ, which cancels where it is small.
    square = 2.0 - 2.0 * float(np.linalg.svd(product, compute_uv=False).sum())
    if square < CANCELLED:
        u, _, vt = np.linalg.svd(product)
        square = float(np.square(x - y @ (u @ vt)).sum())
    rounding = 32.0 * np.sqrt(width) * np.finfo(np.float64).eps  # what it leaves of equal matrices
    padded = "" if joint.x.shape[1] == joint.y.shape[1] else "; the narrower padded with zeros"
    return q.PROCRUSTES.measured(
        float(np.sqrt(square)) if square > rounding**2 else 0.0,
        convention=f"uncentered; reflections allowed; between 0 and √2{padded}",
    )


def change_values(joint: Joint) -> list[Scalar | Series]:
    """Return the difference Y − X, which needs matrices with the same number of columns."""
    sums = joint.sums
    quantities = q.RELATIVE_CHANGE, q.MATRIX_COSINE, q.TOKEN_COSINE, q.CHANGE_EFFECTIVE_RANK
    if joint.x.shape[1] != joint.y.shape[1]:
        reason = f"{joint.x.shape[1]:,} columns are not {joint.y.shape[1]:,}"
        return [quantity.undefined(reason) for quantity in quantities]
    relative = float(np.sqrt(sums.difference / sums.first))
    return [
        q.RELATIVE_CHANGE.measured(relative),
        q.MATRIX_COSINE.measured(sums.product / float(np.sqrt(sums.first) * np.sqrt(sums.second))),
        q.TOKEN_COSINE.measured(sums.cosines / joint.n),
        *change_spectrum(joint, relative),
    ]


def change_spectrum(joint: Joint, relative: float) -> list[Scalar | Series]:
    if not relative > LEAST_CHANGE:
        reason = "nothing changed" if relative == 0 else "the change is of the size of rounding"
        return [q.CHANGE_EFFECTIVE_RANK.undefined(reason)]
    sigma = np.asarray(np.linalg.svd(joint.y - joint.x, compute_uv=False), dtype=np.float64)
    return [
        q.CHANGE_EFFECTIVE_RANK.measured(
            compute_effective_rank(sigma), convention="σ, not σ²; uncentered"
        ),
    ]


def cka_values(joint: Joint) -> list[Scalar]:
    """Return linear CKA, and its estimate from unbiased HSIC.

    The mean of the former over all ways to pair the tokens of one matrix with those of the other
    is tr(K)·tr(L) / ((N−1)·‖K‖_F·‖L‖_F); that of the latter is 0.
    """
    parts = slice(None, joint.p), slice(joint.p, None)
    spread = np.square(joint.scatter).sum(axis=0) if joint.few else np.diag(joint.scatter)
    level = spread + joint.n * np.square(joint.mean)
    own = [float(spread[part].sum()) for part in parts]
    for part, size in zip(parts, own, strict=True):
        if not size > level[part].sum() * 1e-28:
            return [quantity.undefined(EQUAL_ROWS) for quantity in (q.CKA, q.CKA_DEBIASED)]
    products = gram_products(joint, own)
    lengths = float(np.sqrt(products[0]) * np.sqrt(products[1]))
    biased = q.CKA.measured(
        min(1.0, products[2] / lengths),
        convention="linear, centered, biased",
        reference=min(1.0, 1.0 / ((joint.n - 1) * lengths)),
        reference_kind="chance",
        reference_note="chance: the mean over all pairings of the tokens",
    )
    x, y = (np.square(d / np.sqrt(size)) for d, size in zip(joint.distances, own, strict=True))
    diagonals = [float(x @ x), float(y @ y), float(x @ y)]
    return [biased, debiased_cka(joint.n, products, diagonals)]


def gram_products(joint: Joint, own: list[float]) -> list[float]:
    """Get ΣK_ij², ΣL_ij² and ΣK_ij L_ij of the Gram matrices of X and Y with trace 1.

    `own` are their traces, by which they are scaled first, so that no square overflows.
    """
    p, scatter = joint.p, joint.scatter
    first, second = np.sqrt(own)
    if joint.few:
        x, y = scatter[:, :p] / first, scatter[:, p:] / second
        one, other = x @ x.T, y @ y.T
        pairs = (one, one), (other, other), (one, other)
        return [float(np.vdot(a, b)) for a, b in pairs]
    xx, yy = scatter[:p, :p] / own[0], scatter[p:, p:] / own[1]
    xy = scatter[:p, p:] / first / second
    return [float(np.square(gram).sum()) for gram in (xx, yy, xy)]


def debiased_cka(n: int, products: list[float], diagonals: list[float]) -> Scalar:
    """Return debiased CKA of Gram matrices K and L with centered rows and trace 1.

    `products`: ΣK_ij², ΣL_ij², ΣK_ij L_ij. `diagonals`: ΣK_ii², ΣL_ii², ΣK_ii L_ii.
    """
    if n < LEAST_TOKENS:
        return q.CKA_DEBIASED.undefined(TOO_FEW)
    first, second, both = (
        product - n / (n - 2.0) * diagonal + 1.0 / ((n - 1.0) * (n - 2.0))
        for product, diagonal in zip(products, diagonals, strict=True)
    )
    if not (first > ROUNDING * products[0] and second > ROUNDING * products[1]):
        return q.CKA_DEBIASED.undefined("all pairs of rows of one side are equally far apart")
    return q.CKA_DEBIASED.measured(
        float(np.clip(both / np.sqrt(first * second), -1.0, 1.0)),
        convention="linear, centered, unbiased HSIC",
        reference=0.0,
        reference_kind="chance",
        reference_note="chance: the mean over all pairings of the tokens",
    )


def permutation_p(shared: Shared, seed: int) -> Scalar:
    """Share of random pairings of drawn tokens whose debiased CKA is at least that of the true one.

    The true pairing counts as one of them, so that the test holds its level (Phipson & Smyth 2010).
    """
    if shared.n < LEAST_TOKENS:
        return q.CKA_P.undefined(TOO_FEW)
    rng = generator(seed, "permutations of tokens")
    drawn = sample_rows(np.arange(shared.n, dtype=np.int64), PERMUTED, rng)
    grams = [center_gram(rows) for rows in shared.rows(drawn)]
    first, second = grams
    if first is None or second is None:
        return q.CKA_P.undefined("all pairs of drawn rows of one side are equally far apart")
    # Equal pairings, such as those of equal rows, may differ by rounding.
    least = float(np.vdot(first, second)) - ROUNDING
    reached = 0
    for _ in range(PERMUTATIONS):
        order = rng.permutation(len(drawn))
        paired = second.take(order, axis=0).take(order, axis=1)
        reached += float(np.einsum("ij,ij", first, paired)) >= least
    p = (1.0 + reached) / (1.0 + PERMUTATIONS)
    of = "all" if len(drawn) == shared.n else f"{len(drawn):,} of"
    return q.CKA_P.measured(
        p,
        standard_error=float(np.sqrt(p * (1.0 - p) / PERMUTATIONS)),
        error_kind="monte_carlo",
        sample=f"{PERMUTATIONS} permutations of {of} {shared.n:,} shared tokens",
        convention="one-sided",
    )


def center_gram(rows: FloatArray) -> FloatArray | None:
    """Return the U-centered Gram matrix (Székely & Rizzo 2014, Eq. 2.4), of Frobenius norm 1.

    Its diagonal and the sums of its rows are zero; ΣK_ij L_ij of two of them is HSIC₁ up to a
    factor. None if it is zero up to rounding.
    """
    n = len(rows)
    scale = float(np.abs(rows).max())
    if not scale:
        return None
    rows = rows / scale
    centered = rows - rows.mean(axis=0)
    length = float(np.linalg.norm(centered))
    if not length > 1e-14 * np.linalg.norm(rows):
        return None
    gram = (centered / length) @ (centered / length).T
    total = float(np.linalg.norm(gram))
    np.fill_diagonal(gram, 0.0)
    sums = gram.sum(axis=0)
    gram -= (sums[:, None] + sums) / (n - 2.0)
    gram += sums.sum() / ((n - 1.0) * (n - 2.0))
    np.fill_diagonal(gram, 0.0)
    left = float(np.linalg.norm(gram))
    return np.asarray(gram / left) if left > ROUNDING * total else None
