"""Rows that form a clump, apart from the others, and the scripts of tokens."""

from embgeo.core.values import Quantity

ANGLE_EXCESS = Quantity(
    "tokens.angle_excess",
    "Second mode of angles",
    "The share of the rows that would have to move for their angles to the mean direction to "
    "have a single mode. It is about half the rows of a small group that lies apart; rows with "
    "one mode stay below its chance level. Equal rows count once.",
    "max over λ of E₂(λ) − E₁(λ), with E_k(λ) the largest Σ F(C) − λ|C| over k disjoint intervals",
    "Müller & Sawitzki 1991, §3; twice the dip of Hartigan & Hartigan 1985",
    why="verdict: clump",
)
NORM_EXCESS = Quantity(
    "tokens.norm_excess",
    "Second mode of norms",
    "The share of the rows that would have to move for the logarithms of their norms to have a "
    "single mode. Equal rows count once.",
    "as the second mode of angles, of ln ‖w_i‖",
    "Müller & Sawitzki 1991, §3; twice the dip of Hartigan & Hartigan 1985",
    why="verdict: clump",
)
DENSE_EXCESS = Quantity(
    "tokens.dense_excess",
    "Second mode around the densest direction",
    "The share of the rows that would have to move for their angles to one direction to have a "
    "single mode: the direction that more rows of a sample are near to, and not opposite to, than "
    "to any other. Equal rows count once.",
    "as the second mode of angles, of angle(w_i, c); c: sum of the sampled ŵ_j with cosine ≥ 0.7 "
    "to a row, the mean subtracted, where they outnumber those with ≤ −0.7 most; 0.5 where "
    "there is no such row",
    "Müller & Sawitzki 1991, §3; twice the dip of Hartigan & Hartigan 1985",
    why="verdict: clump",
)
CLUMP_ROWS = Quantity(
    "tokens.clump_rows",
    "Rows of the clump",
    "Rows apart from all others: around the mean direction with norms of "
    "their own, as tokens do that training hardly touched, or else around the densest direction; "
    "0 where there are none.",
    "#{i : angle and norm of w_i on one side of the valleys}, if both have two modes and at least "
    "half of the rows in either group are in both; else #{i : angle(w_i, c) ≤ valley}, if these "
    "are fewer than half and their second mode exceeds chance",
    "two modes: Müller & Sawitzki 1991; why rows gather: Gao et al. 2019, §4",
    better="lower",
    why="verdict: clump",
)
CLUMP_ANGLE = Quantity(
    "tokens.clump_angle",
    "Angle around the clump",
    "The rows of the clump lie within this angle of its direction, which is the mean direction "
    "or the densest one; fewest rows lie near this angle.",
    "valley between both modes of angle(w_i, Σŵ_j) or angle(w_i, c)",
    unit="°",
    why="verdict: clump; chart of angles",
)
CLUMP_TILT = Quantity(
    "tokens.clump_tilt",
    "Angle from the clump to the mean",
    "Angle between the direction that the rows of the clump gather around and the mean direction; "
    "0 where it is the mean direction itself.",
    "angle(c, Σŵ_j)",
    unit="°",
    why="verdict: clump",
)
ANGLE_TO_CLUMP = Quantity(
    "tokens.angle_to_clump",
    "Angle to the clump",
    "Angle between the row and the direction that the rows of the clump gather around.",
    "angle(w_i, c)",
    unit="°",
)
CLUMP_MEAN_COSINE = Quantity(
    "tokens.clump_mean_cosine",
    "Mean cosine inside the clump",
    "Mean cosine of two different rows of the clump, from their angles to its direction: a lower "
    "bound.",
    "((Σ cos angle(w_i, c))² − m) / (m(m − 1)) over the m rows of the clump",
    why="verdict: clump",
)
CLUMP_UNUSED_SHARE = Quantity(
    "tokens.clump_unused_share",
    "Unused tokens in the clump",
    "The share of the tokens known to be unused, by their spelling or by a count of 0, that lie in "
    "the clump: where it is most of them, the others in the clump are hardly trained either.",
    "#{unused tokens in the clump} / #{unused tokens}",
    why="verdict: clump, whether its tokens are under-trained",
)
CLUMP_RARITY = Quantity(
    "tokens.clump_rarity",
    "Rarity of the clump",
    "How often a token outside the clump is more frequent than one in it: 0.5 if counts say "
    "nothing, near 1 if training hardly ever saw the tokens of the clump.",
    "P(count_j > count_i) + ½ P(count_j = count_i) over i in the clump, j outside",
    "Gao et al. 2019, §4 (rows of tokens that hardly occur move together)",
    why="verdict: clump, whether its tokens are under-trained",
)
SCATTERED_ROWS = Quantity(
    "tokens.scattered_rows",
    "Scattered rows",
    "Rows away from the mean direction that most rows share, with norms of their own; 0 where "
    "angles or norms have one mode. Rows that were never trained lie like this around a cone of "
    "trained ones, and make it look wider.",
    "#{i : angle of w_i beyond the valley, its norm on the other side of that of norms}, if both "
    "have two modes, at least half of the rows in either group are in both, and fewer than half of "
    "all rows are",
    "two modes: Müller & Sawitzki 1991",
    better="lower",
    why="verdict: cone",
)
MEAN_COSINE_GATHERED = Quantity(
    "tokens.mean_cosine_gathered",
    "Mean cosine without scattered rows",
    "Mean cosine of two different rows that are not scattered, from their angles to the mean "
    "direction: a lower bound.",
    "((Σ cos angle(w_i, Σŵ_j))² − m) / (m(m − 1)) over the m other rows",
    why="verdict: cone",
)
SCATTERED = Quantity(
    "tokens.scattered",
    "Tokens that lie scattered",
    "Scattered rows, the farthest from the mean direction first, one of each kind in turn.",
    "angle(w_i, Σŵ_j) and ‖w_i‖₂",
)
CLUMP_KINDS = Quantity(
    "tokens.clump_kinds",
    "What the clump consists of",
    "Rows of the clump by kind of token: unused by their spelling, bytes, special, or the script "
    "of the first letter.",
    "#{rows of the clump of this kind}",
)
CLUMP = Quantity(
    "tokens.clump",
    "Tokens of the clump",
    "Rows of the clump, nearest to its direction first, one of each kind in turn.",
    "angle(w_i, c) and ‖w_i‖₂",
)
BY_SCRIPT = Quantity(
    "tokens.by_script",
    "Tokens by script",
    "Tokens by the script of their first letter, with unused, byte and special tokens apart: a "
    "script with short rows near the mean direction is one that training saw little of.",
    "median ‖w_i‖₂ and mean cos(w_i, Σŵ_j) of the tokens of a script",
)
UNREACHABLE_ROWS = Quantity(
    "tokens.unreachable_rows",
    "Unreachable tokens",
    "Tokens that no text leads to: decoded and encoded again, alone or behind another character, "
    "they become other tokens. Their input rows are never used.",
    "#{i : i ∉ encode(decode(i))}",
    "Land & Bartolo 2024, §3.1",
    why="question: which tokens does no text lead to?",
)
UNREACHABLE = Quantity(
    "tokens.unreachable",
    "Unreachable tokens",
    "Tokens that no text leads to, the longest rows first.",
    "‖w_i‖₂",
    "Land & Bartolo 2024, §3.1",
)
