"""Is there a two-sided collapse? By squared cosines, which do not cancel."""

from embgeo.core.quantities import cosine
from embgeo.diagnosis import finding
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.question import Answer, Question


def answer(a: finding.Numbers) -> Answer:
    mean, std = finding.need(a, cosine.MEAN), finding.need(a, cosine.STD)
    squared = float(mean) ** 2 + float(std) ** 2
    if limits.CONE.state(float(mean)) != "healthy":
        raise finding.Undecided("the rows lie on one side of the origin: the mean cosine shows it")
    numbers: list[finding.Part] = [
        "the mean cosine is ",
        finding.quote(mean),
        ", the mean squared cosine ",
        finding.quote(std, finding.format_short(squared)),
        f" (isotropic rows: {finding.format_short(1.0 / finding.dimensions(a))})",
    ]
    state = finding.milder(
        limits.LINE.state(squared),
        limits.LINE_ODDS.state(finding.relative_odds(squared, finding.ordinary_squares(a))),
    )
    if state == "healthy":
        return state, ["No two-sided collapse: ", *numbers, "."]
    where = "a line" if squared >= limits.LINE_ALONE else "few directions"
    lead = {
        "degenerate": f"Two-sided collapse onto {where} through the origin: ",
        "mild": "The rows gather along few directions, on both sides of the origin: ",
    }[state]
    return state, [lead, *numbers, ". The mean cosine alone would miss it."]


ADVICE = (
    "Look at the map first: two groups are often two matrices in one file, such as input "
    "and output vectors. --rows takes one of them. In training, spectrum control sets "
    "how singular values fall (Wang et al. 2020): embgeo train --data TEXT --compare "
    "mle,sc-exp,sc-poly."
)


QUESTION = Question(
    "two-sided",
    "Is there a two-sided collapse?",
    answer,
    geometry=True,
    fault=lambda _, state: (
        "two-sided collapse" if state == "degenerate" else "rows along few directions"
    ),
    shown="decided",
    why="Tokens then differ by little more than a sign and a length, which the mean cosine "
    "cannot show.",
    advice=ADVICE,
)
