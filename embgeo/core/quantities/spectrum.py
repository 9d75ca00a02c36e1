"""Singular values, ranks, variance and decay."""

from embgeo.core.values import Quantity

SINGULAR_VALUES = Quantity(
    "spectrum.singular_values",
    "Singular values",
    "How far the matrix reaches along each of its principal directions, largest first, as a "
    "share of the largest. A curve that falls at once means that a few directions carry nearly "
    "all of the variance.",
    "σ₁ ≥ … ≥ σ_d of W (uncentered) and of W − 1μᵀ (centered), divided by σ₁ of W",
    "Gao et al. 2019, Fig. 2b; Wang et al. 2020, Fig. 1b and footnote 1",
)
EFFECTIVE_RANK = Quantity(
    "spectrum.effective_rank",
    "Effective rank",
    "How many directions the matrix effectively uses: d if all singular values are equal, 1 if "
    "only one is not zero.",
    "exp(−Σ p_k ln p_k), p_k = σ_k / Σσ",
    "Roy & Vetterli 2007; RankMe, Garrido et al. 2023",
    why="verdict: collapsed spectrum; gate; chart of training",
)
TOP_SHARE = Quantity(
    "spectrum.top_share",
    "Variance in the top direction",
    "Share of the variance (uncentered: the sum of squares) along a single direction. It sees a "
    "two-sided collapse, which the mean cosine misses.",
    "σ₁² / Σσ²",
    "Gao et al. 2019, §3.1 (why the rank-2 picture is reasonable)",
    why="verdict: collapsed spectrum; chart of training",
)
MEAN_NORM_RATIO = Quantity(
    "spectrum.mean_norm_ratio",
    "Norm of the mean row",
    "Norm of the mean row as a share of the mean norm of the rows: 0 where the rows cancel, 1 "
    "where all rows are equal. It is the offset that centering removes.",
    "‖μ‖ / (Σ‖w_i‖ / M), μ = Σw_i / M",
    "Stollenwerk & Stollenwerk 2025, §4.3 (‖μ‖ʳ)",
    why="Stollenwerk & Stollenwerk 2025; claims of `embgeo train`",
)
CONDITION_NUMBER = Quantity(
    "spectrum.condition_number",
    "Condition number",
    "Ratio of the largest to the smallest singular value.",
    "σ₁ / σ_d",
    "standard",
    why="question: can the matrix be inverted or whitened?",
)
NUMERICAL_RANK = Quantity(
    "spectrum.numerical_rank",
    "Numerical rank",
    "Number of singular values above the rounding error of the largest one.",
    "#{k : σ_k > σ₁ · max(M, d) · 2⁻⁵²}",
    "the usual tolerance of numpy.linalg.matrix_rank",
    why="question: are there directions that no row uses?",
)
ENERGY_90 = Quantity(
    "spectrum.energy_90",
    "Directions for 90% of the variance",
    "The least number of directions that together carry 90% of the variance (uncentered).",
    "min k : Σ_(j≤k) σ_j² ≥ 0.9 · Σσ²",
    "standard",
    why="headline table of a comparison; question: how far can the matrix be cut?",
)
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
LARGEST_P = Quantity(
    "spectrum.largest_p",
    "Chance of the largest eigenvalue",
    "Probability that isotropic rows have an eigenvalue at least this large, independent of norms.",
    "P(TW₁ ≥ (d·λ₁(ŴᵀŴ) − μ)/σ), μ = (√(n − ½) + √(d − ½))², "
    "σ = √μ·(1/√(n − ½) + 1/√(d − ½))^(1/3)",
    "Johnstone 2001; Johnstone & Ma 2012, Theorem 2; the law after Chiani 2014",
    why="verdict: rows like those of an initialization",
)
