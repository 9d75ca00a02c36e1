"""Figure 1 of Gao et al. 2019: numbers of its three matrices, and the claims about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from embgeo.core.quantities import cosine, spectrum
from embgeo.core.values import format_number
from embgeo.io.bounded.records import RecordFormat
from embgeo.training.study.spread import LEAST_SEEDS, fixed, paired, spread
from embgeo.training.study.training import Verdict

NAME = "gao-figure-1"
SOURCE = "Gao et al. 2019, §3.1–3.2 and Fig. 1"
DEVIATIONS = (
    "the paper shows pictures and prints no numbers; it says that cosines of the translation model "
    "are positive “for almost all cases”, for which 95 % stands here",
    "the models are small: captions in place of WMT14, millions of words in place of billions, and "
    "8 × 8 digits in place of MNIST, unless other runs are given",
)
#: Panels in the order of the figure, with their headings.
PANELS = {"translation": "translation", "words": "word2vec", "classes": "classes of a CNN"}
#: Columns of the table, with their headings.
NUMBERS = {
    cosine.MEAN.name: "mean cosine",
    cosine.POSITIVE_SHARE.name: "cosines above 0",
    spectrum.TOP_SHARE.name: "σ₁² / Σσ²",
}
ALMOST_ALL = 0.95


@dataclass(frozen=True, slots=True)
class MatrixNumbers:
    """One matrix of the figure: its panel (a key of `PANELS`), and its numbers by name."""

    panel: str
    seed: int
    folder: str
    rows: int
    columns: int
    numbers: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class LimitClaim:
    """A claim about a number of a panel, compared with a limit or with another panel."""

    text: str
    panel: str
    number: str
    change: Literal["lower", "higher"]
    limit: float | str


CLAIMS = (
    LimitClaim(
        "Rows of a translation model lie in a cone: their mean cosine is above 0",
        "translation",
        cosine.MEAN.name,
        "higher",
        0.0,
    ),
    LimitClaim(
        "“Positive for almost all cases”: at least 95 % of their cosines are above 0",
        "translation",
        cosine.POSITIVE_SHARE.name,
        "higher",
        ALMOST_ALL,
    ),
    LimitClaim(
        "Rows of word2vec are spread: their mean cosine is below that of translation",
        "words",
        cosine.MEAN.name,
        "lower",
        "translation",
    ),
    LimitClaim(
        "Rows of classes are spread around the origin: their mean cosine is not above 0",
        "classes",
        cosine.MEAN.name,
        "lower",
        0.0,
    ),
    LimitClaim(
        "Fewer than half of the cosines of classes are above 0",
        "classes",
        cosine.POSITIVE_SHARE.name,
        "lower",
        0.5,
    ),
)


@dataclass(frozen=True, slots=True)
class LimitOutcome:
    """Outcome of a claim, with the 95 % interval of Student's t over seeds."""

    text: str
    panel: str
    number: str
    verdict: Verdict
    seeds: int
    value: float | None = None
    limit: float | None = None
    interval: tuple[float, float] | None = None

    @property
    def reason(self) -> str:
        """The value with its interval and the limit, or why it cannot be decided."""
        if self.value is None or self.limit is None:
            return "a panel is missing"
        said = f"{format_number(self.value)} against {format_number(self.limit)}"
        if self.interval is None:
            return f"{said}, {self.seeds} of at least {LEAST_SEEDS} seeds"
        low, high = (fixed(self.limit + end, 4) for end in self.interval)
        return f"{said} (95 %: {low} … {high}), {self.seeds} seeds"


@dataclass(frozen=True, slots=True)
class GaoFigure:
    """The content of ``experiment.json``."""

    name: str
    source: str
    deviations: tuple[str, ...]
    settings: Mapping[str, Any]
    seeds: int
    matrices: tuple[MatrixNumbers, ...]
    outcomes: tuple[LimitOutcome, ...]
    command: str
    versions: Mapping[str, str]


GAO_FIGURE = RecordFormat(
    "embgeo.gao-figure",
    1,
    GaoFigure,
    "experiment.json",
    what="a Figure 1 of Gao et al.",
    again="choose another folder",
)


def select(matrices: Sequence[MatrixNumbers], panel: str, number: str) -> dict[int, float]:
    """Values of a number of a panel, by seed."""
    return {
        one.seed: one.numbers[number]
        for one in matrices
        if one.panel == panel and number in one.numbers
    }


def decide_limits(matrices: Sequence[MatrixNumbers]) -> tuple[LimitOutcome, ...]:
    """Decide every claim: the whole interval must lie on one side of the limit."""
    return tuple(decide_limit(claim, matrices) for claim in CLAIMS)


def decide_limit(claim: LimitClaim, matrices: Sequence[MatrixNumbers]) -> LimitOutcome:
    """Decide one claim; two panels are compared over their shared seeds."""
    values = select(matrices, claim.panel, claim.number)
    if isinstance(claim.limit, str):
        limits = select(matrices, claim.limit, claim.number)
    else:
        limits = dict.fromkeys(values, claim.limit)
    held = paired(limits, values)
    verdict: Verdict = "not decidable"
    if held is not None and held.side() != "open":
        verdict = "reproduced" if held.side() == claim.change else "not reproduced"
    numbers = () if held is None else (held.after, held.before, held.interval)
    seeds = 0 if held is None else held.seeds
    return LimitOutcome(claim.text, claim.panel, claim.number, verdict, seeds, *numbers)


def tabulate_panels(matrices: Sequence[MatrixNumbers]) -> list[list[str]]:
    """Header and one row per panel: size, seeds, numbers over seeds."""
    rows = [["", "matrix", "seeds", *NUMBERS.values(), "collapse, −1/(C − 1)"]]
    for panel, title in PANELS.items():
        own = [one for one in matrices if one.panel == panel]
        if not own:
            continue
        found = [spread(list(select(matrices, panel, name).values())) for name in NUMBERS]
        n = own[0].rows
        rows.append(
            [
                title,
                f"{n:,} × {own[0].columns:,}",
                str(len(own)),
                *("–" if one is None else one.text for one in found),
                format_number(-1.0 / (n - 1), 3) if panel == "classes" and n > 1 else "",
            ]
        )
    return rows
