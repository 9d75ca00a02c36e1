"""The partition function over directions, I1, I2 and IsoScore."""

from embgeo.core.values import Quantity

_I1_MEANING = (
    "Smallest over largest value of the partition function. 1: isotropic; near 0: the rows lie to "
    "one side."
)
_I2_MEANING = (
    "Spread of the partition function around its mean. 0: isotropic; larger: less isotropic."
)
_WANG = "Wang et al. 2020, §5.1; Mu & Viswanath 2018; Arora et al. 2016"


def _pair(suffix: str, title: str, note: str, why: str) -> tuple[Quantity, Quantity]:
    return (
        Quantity(
            f"isotropy.i1{suffix}",
            f"I1{title}",
            f"{_I1_MEANING} {note}".strip(),
            "min_E Z(a) / max_E Z(a)",
            _WANG,
            why=why,
        ),
        Quantity(
            f"isotropy.i2{suffix}",
            f"I2{title}",
            f"{_I2_MEANING} {note}".strip(),
            "√( Σ_E (Z(a) − Z̄)² / (|E| Z̄²) )",
            _WANG,
            why=why,
        ),
    )


I1, I2 = _pair(
    "",
    " as stored",
    "Of the rows as stored: smaller norms alone raise I1 and lower I2.",
    "Wang et al. 2020, Table 1; gate; chart of training",
)
I1_MEAN_SIGN, I2_MEAN_SIGN = _pair(
    "_mean_sign",
    ", one-sided",
    "Each eigenvector counts once, not as v and −v, as in published tables.",
    "Wang et al. 2020, Table 1, as published",
)
I1_UNIT, _ = _pair(
    "_unit",
    " at mean norm 1",
    "With W divided by its mean row norm, so that the scale of W has no effect.",
    "gate; charts: comparisons independent of scale",
)
I1_UNIT_ROWS, _ = _pair(
    "_unit_rows",
    " of unit rows",
    "With every row divided by its norm. E stays that of W as stored, so that long rows count only "
    "as far as they turn E. The verdict uses this one.",
    "verdict: isotropy; gate",
)
del _
I1_SAMPLED, I2_SAMPLED = _pair(
    "_sampled",
    ", mean over samples",
    "Mean over samples of the rows.",
    "Wang et al. 2020, §5.1: their protocol for large vocabularies",
)
EIGENGAP = Quantity(
    "isotropy.eigengap",
    "Smallest eigenvalue gap",
    "Where two neighboring eigenvalues nearly coincide, their eigenvectors are an arbitrary "
    "choice of basis, and I1 and I2 depend on that choice.",
    "min_k (λ_k − λ_(k+1)) / λ_k over the numerical rank",
    "standard perturbation argument",
    why="verdict: whether I1 depends on the choice of eigenvectors",
)
ISOSCORE = Quantity(
    "isotropy.isoscore",
    "IsoScore",
    "How evenly the variance is spread over the principal directions, from 0 (one direction) to 1 "
    "(all alike). It looks at the centered rows and does not see a common offset. It is the "
    "IsoScore* of Rudman & Eickhoff 2024 without shrinkage.",
    "(d·φ − 1)/(d − 1), φ = (d − δ²(d − √d))²/d², δ = ‖√d·λ/‖λ‖ − 1‖ / √(2(d − √d))",
    "Rudman et al. 2022",
    why="chart of training; question: how even is the variance, independent of the mean?",
)
Z = Quantity(
    "isotropy.z",
    "Z over the eigenvectors",
    "The partition function at each eigenvector and its negative, relative to its mean. A flat "
    "line at 1 is perfect isotropy.",
    "Z(±v_k) / Z̄",
    _WANG,
)
