"""The partition function over directions, I1, I2 and IsoScore."""

from __future__ import annotations

from embgeo.core.values import Quantity

_I1_MEANING = (
    "Smallest over largest value of the partition function. 1: every direction looks alike; near "
    "0: the rows lie to one side."
)
_I2_MEANING = (
    "Spread of the partition function around its mean. 0: every direction looks alike; larger: "
    "less isotropic."
)
_WANG = "Wang et al. 2020, §5.1; Mu & Viswanath 2018; Arora et al. 2016"
_UNIT_NOTE = "With W divided by its mean row norm, so that shrinking all rows cannot change it."
_SIGN_NOTE = "One sign for each eigenvector, as published tables have it."


def _pair(suffix: str, title: str, note: str) -> tuple[Quantity, Quantity]:
    return (
        Quantity(
            f"isotropy.i1{suffix}",
            f"I1{title}",
            f"{_I1_MEANING} {note}".strip(),
            "min_E Z(a) / max_E Z(a)",
            _WANG,
        ),
        Quantity(
            f"isotropy.i2{suffix}",
            f"I2{title}",
            f"{_I2_MEANING} {note}".strip(),
            "√( Σ_E (Z(a) − Z̄)² / (|E| Z̄²) )",
            _WANG,
        ),
    )


I1, I2 = _pair("", "", "")
I1_MEAN_SIGN, I2_MEAN_SIGN = _pair("_mean_sign", ", one sign", _SIGN_NOTE)
I1_UNIT, I2_UNIT = _pair("_unit", ", unit scale", _UNIT_NOTE)
I1_UNIT_MEAN_SIGN, I2_UNIT_MEAN_SIGN = _pair(
    "_unit_mean_sign", ", unit scale, one sign", f"{_UNIT_NOTE} {_SIGN_NOTE}"
)
I1_UNIT_ROWS, I2_UNIT_ROWS = _pair(
    "_unit_rows",
    ", unit rows",
    "With every row divided by its norm; E stays that of W as stored, so that long rows count only "
    "as far as they turn E.",
)
I1_CENTERED, I2_CENTERED = _pair("_centered", ", centered", "After the mean row is subtracted.")
I1_SAMPLED, I2_SAMPLED = _pair("_sampled", ", mean over samples", "Mean over samples of the rows.")
I1_SAMPLED_MEAN_SIGN, I2_SAMPLED_MEAN_SIGN = _pair(
    "_sampled_mean_sign", ", mean over samples, one sign", f"Mean over samples. {_SIGN_NOTE}"
)
LOG_I1 = Quantity(
    "isotropy.log_i1",
    "log I1",
    "Natural logarithm of I1, which says how small it is where I1 itself is too small for a "
    "floating-point number.",
    "min_E ℓ(a) − max_E ℓ(a), ℓ = log Z",
    _WANG,
)
EIGENGAP = Quantity(
    "isotropy.eigengap",
    "Smallest eigenvalue gap",
    "Where two neighboring eigenvalues nearly coincide, their eigenvectors are an arbitrary "
    "choice of basis, and I1 and I2 depend on that choice.",
    "min_k (λ_k − λ_(k+1)) / λ_k over the numerical rank",
    "standard perturbation argument",
)
Z_RANDOM_STD = Quantity(
    "isotropy.z_random_std",
    "Z over random directions, standard deviation",
    "How much the partition function varies over random directions, relative to its mean. 0 if "
    "it is constant, the self-normalization of Arora et al.",
    "std of Z(a)/Z̄ over 1,000 uniform random unit vectors a (500 and their negatives)",
    "Arora et al. 2016, Lemma 2.1",
)
Z_RANDOM_MIN = Quantity(
    "isotropy.z_random_min",
    "Z over random directions, smallest",
    "Smallest value of the mean-normalized partition function over random directions.",
    "min of Z(a)/Z̄ over 1,000 uniform random unit vectors a (500 and their negatives)",
    "Arora et al. 2016, Lemma 2.1",
)
Z_RANDOM_MAX = Quantity(
    "isotropy.z_random_max",
    "Z over random directions, largest",
    "Largest value of the mean-normalized partition function over random directions.",
    "max of Z(a)/Z̄ over 1,000 uniform random unit vectors a (500 and their negatives)",
    "Arora et al. 2016, Lemma 2.1",
)
ISOSCORE = Quantity(
    "isotropy.isoscore",
    "IsoScore",
    "How evenly the variance is spread over the principal directions, from 0 (one direction) to 1 "
    "(all alike). It looks at the centered rows and does not see a common offset. It is the "
    "IsoScore* of Rudman & Eickhoff 2024 without shrinkage.",
    "(d·φ − 1)/(d − 1), φ = (d − δ²(d − √d))²/d², δ = ‖√d·λ/‖λ‖ − 1‖ / √(2(d − √d))",
    "Rudman et al. 2022",
)
Z = Quantity(
    "isotropy.z",
    "Z over the eigenvectors",
    "The partition function at each eigenvector and its negative, relative to its mean. A flat "
    "line at 1 is perfect isotropy.",
    "Z(±v_k) / Z̄",
    _WANG,
)
Z_UNIT = Quantity(
    "isotropy.z_unit",
    "Z over the eigenvectors, unit scale",
    "The same after W is divided by its mean row norm.",
    "Z(±v_k) / Z̄ of W / mean‖w‖",
    _WANG,
)
RUNS = Quantity(
    "isotropy.runs",
    "I1 and I2 by sample",
    "Isotropy of uniform samples of the rows without replacement; E is recomputed for each.",
    "I1, I2 of the sampled rows",
    "Wang et al. 2020, §5.1 (40,000 words, 10 runs)",
)
I_SPHERE = Quantity(
    "isotropy.i_sphere",
    "I1 over the whole sphere",
    "Smallest over largest value of the partition function over all directions, not only "
    "eigenvectors, as Arora et al. state it. Never above I1.",
    "min_‖a‖=1 Z(a) / max_‖a‖=1 Z(a)",
    "Arora et al. 2016, §2",
)
I_SPHERE_DIRECTIONS = Quantity(
    "isotropy.i_sphere_directions",
    "Directions of smallest and largest Z",
    "The coordinates that weigh most in the two extreme directions found.",
    "argmin Z, argmax Z over the sphere",
    "Arora et al. 2016, §2",
)
SYMMETRY_FIRST = Quantity(
    "isotropy.symmetry_first",
    "Symmetry, first moment",
    "How well the rows are centered: 1 if their mean is the origin, 0 if they are all equal.",
    "1 − ‖E w‖ / E ‖w‖",
    "Yokoi et al. 2024 (degree of centrality)",
)
SYMMETRY_SECOND = Quantity(
    "isotropy.symmetry_second",
    "Symmetry, second moment",
    "How evenly the variance is spread over directions: 1 if all have the same, 0 if one has all.",
    "−Σ p_k ln p_k / ln d, p_k = λ_k / Σλ of the covariance",
    "Yokoi et al. 2024 (degree of isotropy)",
)
