"""Suspects: how many rows stand out, by reason."""

from embgeo.core.suspects import Reason
from embgeo.core.values import Quantity

_ON_EITHER_SIDE = "Serious ones only, on either side of an untied model."


def _count(reason: Reason, title: str, meaning: str, formula: str, source: str = "") -> Quantity:
    return Quantity(
        f"suspects.{reason}",
        title,
        f"{meaning} {_ON_EITHER_SIDE}",
        formula,
        source,
        better="lower",
        why="verdict: suspects; gate preset finetune-ready",
    )


NONFINITE = _count(
    "nonfinite",
    "Rows not finite",
    "Rows with an infinite or NaN entry, left out of every other number.",
    "#{i : w_i has an entry that is not finite}",
)
ZERO = _count(
    "zero",
    "Zero rows",
    "Rows that are exactly zero, left out of every other number; the zero row of a padding token "
    "is intended.",
    "#{i : w_i = 0}",
)
DAMAGED = _count(
    "damaged",
    "Damaged rows",
    "Rows far shorter than all others: below a gap between norms of a factor of 100 or more "
    "whatever their share, or of 10 or more with at most 5% of the rows below it, or below "
    "--min-norm. They are left out of every other number.",
    "#{i : ‖w_i‖ below the gap}",
)
CONSTANT = _count(
    "constant",
    "Constant rows",
    "Rows whose entries are all alike. 0 where entries take so few values that rows are constant "
    "by chance.",
    "#{i : standard deviation of the entries of w_i < 1e-8·‖w_i‖}, if more than E + 3√E, "
    "E = M·p^(d−1), p the share of w_ik = w_j(k+1) over pairs i, j of a sample of other rows",
)
UNTRAINED = _count(
    "untrained",
    "Rows never trained",
    "Rows that look as an initialization leaves them: with the norms that word2vec and fastText "
    "begin with, below a gap; or the shorter of two modes of norms, if a sample of them has a mean "
    "cosine and a top eigenvalue within chance and norms no more varied than normal entries give. "
    "Modes are not looked for where norms lie on a lattice, as those of rounded rows do.",
    "ln ‖w_i‖ below the valley between two modes, or at most x_(k), x_(k+1) − x_(k) ≥ "
    "s·max(1, ln(1000·M)/k), 5 ≤ k ≤ M/4",
    "two modes: Müller & Sawitzki 1991; top eigenvalue: Johnstone 2001",
)
MEAN = _count(
    "mean",
    "Rows at the mean",
    "Rows that equal the mean of the other rows, within rounding or the spread that "
    "resize_token_embeddings of transformers leaves (a factor of 1e-9 of the covariance).",
    "#{i : ‖w_i − μ‖ ≤ max(ε·√(mean ‖w_j‖²), min(3D/1000, ‖μ‖/4))}, D the median distance; groups "
    "of equal or near-identical rows within min(D/20, ‖μ‖/4); d ≥ 3",
    "Hewitt 2021",
)
DUPLICATE = _count(
    "duplicate",
    "Duplicates",
    "Rows that equal an earlier row exactly.",
    "#{i : w_i = w_j for some j < i}",
)
NEAR_IDENTICAL = _count(
    "near_identical",
    "Near-identical rows",
    "Rows with another one at a cosine above 0.999, found among all rows, in groups with a gap "
    "around them. Not defined where such rows are ordinary: in very narrow cones and in few "
    "dimensions.",
    "#{i : max_(j≠i) cos_ij > 0.999}",
)
SPECIAL = _count(
    "special",
    "Special tokens that look untrained",
    "Tokens that the tokenizer or the chat template names, with a row that is much shorter than "
    "the others, or that lies among the rows of tokens known to be unused, apart from all others.",
    "#{special i : ‖w_i‖ much shorter, or angle(w_i, ū) and ‖w_i‖ within those of unused tokens}",
    "Land & Bartolo 2024, §3",
)
MEAN_COSINE_OTHERS = Quantity(
    "suspects.mean_cosine_others",
    "Mean cosine without suspects",
    "The mean cosine of the rows that are no suspects, with one row of each group: what is left of "
    "a cone without them.",
    "(‖Σŵ_i‖² − M) / (M(M−1)) over these M rows",
    "Gao et al. 2019, §4",
    why="verdict: cone",
)

#: By reason, the most serious first.
COUNTS: dict[Reason, Quantity] = {
    "nonfinite": NONFINITE,
    "zero": ZERO,
    "damaged": DAMAGED,
    "constant": CONSTANT,
    "untrained": UNTRAINED,
    "mean": MEAN,
    "duplicate": DUPLICATE,
    "near_identical": NEAR_IDENTICAL,
    "special": SPECIAL,
}
