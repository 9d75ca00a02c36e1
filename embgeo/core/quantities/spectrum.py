"""Singular values, ranks, energy and decay."""

from __future__ import annotations

from embgeo.core.values import Quantity

SINGULAR_VALUES = Quantity(
    "spectrum.singular_values",
    "Singular values",
    "How far the matrix reaches along each of its principal directions, strongest first, as a "
    "share of the strongest. A curve that falls at once means that a few directions hold nearly "
    "everything.",
    "σ₁ ≥ … ≥ σ_d of W (uncentered) and of W − 1μᵀ (centered), divided by σ₁ of W",
    "Gao et al. 2019, Fig. 2b; Wang et al. 2020, Fig. 1b and footnote 1",
)
EFFECTIVE_RANK = Quantity(
    "spectrum.effective_rank",
    "Effective rank",
    "How many directions the matrix effectively uses: d if all singular values are equal, 1 if "
    "one holds everything.",
    "exp(−Σ p_k ln p_k), p_k = σ_k / Σσ",
    "Roy & Vetterli 2007; RankMe, Garrido et al. 2023",
)
EFFECTIVE_RANK_CENTERED = Quantity(
    "spectrum.effective_rank_centered",
    "Effective rank, centered",
    "The effective rank after the mean row is subtracted: what is left of the variety once the "
    "common direction is gone.",
    "exp(−Σ p_k ln p_k), p_k = σ_k / Σσ of W − 1μᵀ",
    "Roy & Vetterli 2007",
)
EFFECTIVE_RANK_UNIT = Quantity(
    "spectrum.effective_rank_unit",
    "Effective rank, unit rows",
    "The effective rank of the directions of the rows: no row counts for more because it is long.",
    "exp(−Σ p_k ln p_k), p_k = σ_k / Σσ of the rows w_i/‖w_i‖",
    "Roy & Vetterli 2007; RankMe, Garrido et al. 2023",
)
STABLE_RANK = Quantity(
    "spectrum.stable_rank",
    "Stable rank",
    "Total energy measured in units of the strongest direction's energy.",
    "‖W‖_F² / σ₁²",
    "Rudelson & Vershynin 2007",
)
PARTICIPATION_RATIO = Quantity(
    "spectrum.participation_ratio",
    "Participation ratio",
    "How many directions share the energy, weighted towards the strong ones.",
    "(Σσ²)² / Σσ⁴",
    "the inverse participation ratio of physics, on the energies σ²",
)
TOP_SHARE = Quantity(
    "spectrum.top_share",
    "Energy of the first direction",
    "Share of the sum of squares that lies along one single direction. It sees a two-sided "
    "collapse, which the mean cosine misses.",
    "σ₁² / Σσ²",
    "Gao et al. 2019, §3.1 (why the rank-2 picture is reasonable)",
)
MEAN_NORM_RATIO = Quantity(
    "spectrum.mean_norm_ratio",
    "Norm of the mean row",
    "Norm of the mean row as a share of the mean norm of the rows: 0 where the rows cancel, 1 "
    "where all rows are equal. It is the offset that centering removes.",
    "‖μ‖ / (Σ‖w_i‖ / M), μ = Σw_i / M",
    "Stollenwerk & Stollenwerk 2025, §4.3 (‖μ‖ʳ)",
)
CONDITION_NUMBER = Quantity(
    "spectrum.condition_number",
    "Condition number",
    "Ratio of the strongest to the weakest direction.",
    "σ₁ / σ_d",
    "standard",
)
NUMERICAL_RANK = Quantity(
    "spectrum.numerical_rank",
    "Numerical rank",
    "Number of singular values above the rounding error of the largest one.",
    "#{k : σ_k > σ₁ · max(M, d) · 2⁻⁵²}",
    "the usual tolerance of numpy.linalg.matrix_rank",
)


def _energy(percent: int) -> Quantity:
    return Quantity(
        f"spectrum.energy_{percent}",
        f"Directions for {percent} % of the energy",
        f"The least number of directions that together hold {percent} % of the sum of squares.",
        f"min k : Σ_(j≤k) σ_j² ≥ {percent / 100} · Σσ²",
        "standard",
    )


ENERGY_50 = _energy(50)
ENERGY_90 = _energy(90)
ENERGY_95 = _energy(95)
ENERGY_99 = _energy(99)
DECAY = Quantity(
    "spectrum.decay",
    "Decay of the spectrum",
    "Which of the two decays that spectrum control prescribes describes this spectrum better, "
    "with its parameters. Residual: root mean square over k.",
    "least squares over k = 1 … d of σ_k/σ₁ against c₁·exp(−c₂·k^γ) and c₁·k^(−γ)",
    "Wang et al. 2020, §4.2",
)
DECAY_FIT = Quantity(
    "spectrum.decay_fit",
    "Spectrum and fitted priors",
    "The normalized singular values next to both fitted decays.",
    "σ_k/σ₁, c₁·exp(−c₂·k^γ), c₁·k^(−γ)",
    "Wang et al. 2020, §4.2",
)
NESUM = Quantity(
    "spectrum.nesum",
    "Normalized eigenvalue sum",
    "Total variance measured in units of the strongest direction's: d if all directions hold the "
    "same, 1 if one holds everything. The stable rank of the centered matrix.",
    "Σλ_k / λ₁, λ_k the eigenvalues of the covariance",
    "NESum, He & Ozay 2022",
)
DECAY_SLOPE = Quantity(
    "spectrum.decay_slope",
    "Slope of the eigenvalues",
    "How steeply the variance falls over the directions, if it falls like a power: about 1 for "
    "representations that generalize well, 0 if all directions hold the same.",
    "α of λ_k ∝ k^(−α), least squares of ln λ_k on ln k with weights 1/k",
    "α-ReQ, Agrawal et al. 2022; the fit is that of Stringer et al. 2019",
)
ABOVE_EDGE = Quantity(
    "spectrum.above_edge",
    "Directions above chance",
    "How many directions hold more variance than any would if the rows were isotropic noise of "
    "the level that the median direction shows.",
    "#{k : λ_k > s²(√n + √d)²}, n = M − 1, s² = median λ / median of the Marchenko–Pastur law",
    "Marchenko & Pastur 1967; level after Gavish & Donoho 2014",
)
LARGEST_P = Quantity(
    "spectrum.largest_p",
    "Chance of the largest eigenvalue",
    "How probable so strong a first direction is in isotropic noise of the same level.",
    "P(TW₁ ≥ (λ₁/s² − μ)/σ), μ = (√n + √d)², σ = (√n + √d)(1/√n + 1/√d)^(1/3)",
    "Johnstone 2001, Theorem 1.1; the law after Chiani 2014",
)
TAIL_EXPONENT = Quantity(
    "spectrum.tail_exponent",
    "Exponent of the tail",
    "If the largest eigenvalues follow a power law, its exponent; the smaller, the heavier the "
    "tail.",
    "1 + n / Σ ln(λ_k/λ_n) over the n largest, n by the least Kolmogorov–Smirnov distance",
    "Clauset, Shalizi & Newman 2009, Eq. 3.1 and §3.3",
)
TAIL_DISTANCE = Quantity(
    "spectrum.tail_distance",
    "Distance of the tail from a power law",
    "Largest difference of the tail's distribution from that of the fitted power law.",
    "Kolmogorov–Smirnov distance of the n largest eigenvalues from (λ/λ_n)^(1−α)",
    "Clauset, Shalizi & Newman 2009, Eq. 3.9",
)
TAIL_P = Quantity(
    "spectrum.tail_p",
    "Chance of that distance",
    "Share of samples of the fitted power law that lie farther from their own fit. Below 0.1: the "
    "tail is not a power law.",
    "semi-parametric bootstrap",
    "Clauset, Shalizi & Newman 2009, §4.1",
)
SINGULAR_ENTROPY = Quantity(
    "spectrum.singular_entropy",
    "Singular entropy",
    "How far the singular values are from all being equal: 0 if they are, ln d if one holds "
    "everything. It rises where an output layer saturates.",
    "Σ p_k ln(d·p_k) = ln d − ln(effective rank), p_k = σ_k / Σσ",
    "Godey, de la Clergerie & Sagot 2024 (divergence of the singular values from equal ones)",
    unit="nats",
)
