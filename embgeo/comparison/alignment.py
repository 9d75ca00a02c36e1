"""Linear centered kernel alignment: biased, debiased, and compared with random pairings.

For Gram matrices K and L of centered rows, Σ_ij K_ij L_ij = ‖XᵀY‖_F² and K_ii = ‖x_i − μ‖²: no
array of size N² is formed.
"""

from __future__ import annotations

import numpy as np

from embgeo.comparison.joint import Joint
from embgeo.comparison.shared import Shared
from embgeo.core.arrays import FloatArray
from embgeo.core.quantities import compare as q
from embgeo.core.values import Scalar
from embgeo.numerics.sampling import generator, sample_rows

#: Tokens that are permuted, at most, and how often.
PERMUTED = 250
PERMUTATIONS = 499
#: The estimator divides by S − 3.
LEAST_TOKENS = 4
#: The remainder of a sum is rounding below this share of it.
ROUNDING = 1e-12

TOO_FEW = f"the unbiased estimate takes {LEAST_TOKENS} shared tokens"
EQUAL_ROWS = "all rows of one side are equal, centering leaves nothing"


def cka_values(joint: Joint) -> list[Scalar]:
    """Linear CKA, and the same from unbiased estimates.

    The mean of the former over all ways to pair the tokens of one matrix with those of the other
    is tr(K)·tr(L) / ((N−1)·‖K‖_F·‖L‖_F); that of the latter is 0.
    """
    scatter, p = joint.moments.scatter, joint.p
    level = np.diag(joint.moments.gram())
    parts = (slice(None, p), slice(p, None))
    # Scaled by their traces first, so that no square overflows.
    own = [float(np.trace(scatter[part, part])) for part in parts]
    for part, size in zip(parts, own, strict=True):
        if not size > level[part].sum() * 1e-28:
            return [quantity.undefined(EQUAL_ROWS) for quantity in (q.CKA, q.CKA_DEBIASED)]
    xx, yy = (scatter[part, part] / size for part, size in zip(parts, own, strict=True))
    xy = scatter[parts[0], parts[1]] / np.sqrt(own[0]) / np.sqrt(own[1])
    lengths = float(np.linalg.norm(xx) * np.linalg.norm(yy))
    biased = q.CKA.measured(
        min(1.0, float(np.square(xy).sum()) / lengths),
        convention="linear, centered, biased",
        reference=min(1.0, 1.0 / ((joint.n - 1) * lengths)),
        reference_kind="chance",
        reference_note="chance: the mean over all pairings of the tokens",
    )
    x, y = (np.square(d / np.sqrt(size)) for d, size in zip(joint.distances, own, strict=True))
    products = [float(np.square(gram).sum()) for gram in (xx, yy, xy)]
    diagonals = [float(x @ x), float(y @ y), float(x @ y)]
    return [biased, debiased_cka(joint.n, products, diagonals)]


def debiased_cka(n: int, products: list[float], diagonals: list[float]) -> Scalar:
    """Debiased CKA of Gram matrices K and L with centered rows and trace 1.

    Parameters
    ----------
    products : list of float
        ΣK_ij², ΣL_ij², ΣK_ij L_ij.
    diagonals : list of float
        ΣK_ii², ΣL_ii², ΣK_ii L_ii.
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
    """The U-centered Gram matrix (Székely & Rizzo 2014, Eq. 2.4), of Frobenius norm 1.

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
