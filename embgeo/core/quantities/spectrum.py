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
    "The normalized singular values beside both fitted decays.",
    "σ_k/σ₁, c₁·exp(−c₂·k^γ), c₁·k^(−γ)",
    "Wang et al. 2020, §4.2",
)
