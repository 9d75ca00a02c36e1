"""Decide the claims of the papers by the seeds of a study."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from types import MappingProxyType
from typing import Any, get_args

from embgeo.numerics.scores import adjust_holm
from embgeo.training.study import record
from embgeo.training.study.claims import CLAIMS, PERPLEXITY, Claim, PaperClaim
from embgeo.training.study.numbers import is_relative
from embgeo.training.study.outcomes import OutcomesBySeed, bootstrap
from embgeo.training.study.spread import LEAST_SEEDS, SeedDifference, compare_seeds

#: A run is still learning if its validation perplexity falls by this much over its last part.
LAST_PART = 0.25
LEAST_FALL = 0.01
CURVE = "valid.perplexity"
#: The curve of tasks without a perplexity, which is the exponential of it.
CURVE_OF_OTHERS = "valid.loss"
#: The largest p-value after Holm's correction of a decided claim: 0.05, less a margin of a third.
#: Machines round sums differently, which moves a p-value of 0.037 to 0.047.
MOST_P = 0.05 / 1.5
#: Of a control whose folded AUC is lower, a method has nothing to take away.
CHANCE = 0.55
#: The evidence for a verdict, and why a claim is not decided, by its cause.
REASONS: dict[record.Cause | None, str] = {
    None: "{text}",
    "no_reference": "it is about the difference from {against}, which was not trained",
    "no_number": "no two runs of one seed hold this number",
    "same_runs": "its runs are those of {twin}, number by number: here the method is no other one",
    "few_seeds": "{seeds}, where an interval takes at least " + str(LEAST_SEEDS),
    "still_learning": "still learning: the validation perplexity of some run (the exponential of "
    "its loss) fell by 1% or more over the last quarter of its training; {text}",
    "unknown_learning": "nothing says whether the runs were still learning; {text}",
    "at_chance": "the probe is at chance without the method already (AUC {before:.2f}); {text}",
    "interval": "{text}, which leaves {edge} inside the interval",
}
#: Beginnings of the names of scores.
SPLITS = ("valid.", "test.")
#: The largest relative difference of the numbers of parameters of two models that a headline
#: compares: factors and biases are within it, a second matrix is not.
PARAMETER_TOLERANCE = 0.05
NONE: Mapping[str, Any] = MappingProxyType({})


def judge_learning(run: record.Run) -> record.Learning:
    """Tell whether a run had converged.

    It had if early stopping ended it, which looks on for as long again as its patience. Else the
    validation perplexity fell by less than `LEAST_FALL` over the last part.
    """
    if run.stopped_early:
        return "converged"
    perplexity = run.curves.get(CURVE)
    curve = perplexity or run.curves.get(CURVE_OF_OTHERS)
    if curve is None:
        return "unknown"
    edge = (1.0 - LAST_PART) * run.steps
    points = list(zip(curve.steps, curve.values, strict=True))
    before = [value for step, value in points if 0 < step <= edge]
    after = [value for step, value in points if step > edge]
    if not before or not after:
        return "unknown"
    first, last = min(before), min(*before, *after)
    fall = 1.0 - (last / first if perplexity else math.exp(last - first))
    return "converged" if fall < LEAST_FALL else "learning"


def judge_all(runs: Iterable[record.Run]) -> record.Learning:
    """State of several runs: learning if any is, else unknown if any is, else converged."""
    found = {judge_learning(run) for run in runs}
    if "learning" in found:
        return "learning"
    return "unknown" if "unknown" in found or not found else "converged"


def decide_claims(
    runs: Sequence[record.Run],
    claims: Sequence[Claim] = CLAIMS,
    outcomes: Mapping[str, OutcomesBySeed] = NONE,
    trained: tuple[str, str] = ("", ""),
    trials: Mapping[str, int] = NONE,
) -> tuple[record.ClaimOutcome, ...]:
    """Decide every claim about a trained method, in the order of the claims.

    `outcomes`, by method, give intervals over the text or documents. `trained` are the names of
    model and corpus, whose published numbers come first. `trials`: how many settings were tried for
    each method.
    """
    methods, tasks = record.group_runs(runs), {run.task for run in runs}

    def differs(paper: PaperClaim) -> tuple[bool, ...]:
        same = (ours == theirs for ours, theirs in zip(trained, paper.trained, strict=True))
        return (paper.task not in tasks, *(not each for each in same))

    found = []
    for claim in claims:
        papers = sorted(claim.published, key=differs)
        for method in claim.methods:
            if method in methods and method != claim.against and tasks & {*claim.tasks}:
                one = decide_claim(claim, method, runs, papers)
                before, after = (outcomes.get(name, {}) for name in (claim.against, method))
                found.append(
                    replace(
                        one,
                        text_interval=bootstrap(before, after, one.number),
                        trials=trials.get(method, 0),
                        reference_trials=trials.get(claim.against, 0),
                    )
                )
    return adjust_claims(found)


def decide_claim(
    claim: Claim, method: str, runs: Sequence[record.Run], papers: Sequence[PaperClaim]
) -> record.ClaimOutcome:
    """Decide one claim by its own interval.

    A claim about a score of a split needs converged runs: before that, a difference is one of the
    speed of training.
    """
    sides = [[run for run in runs if run.method == name] for name in (claim.against, method)]
    number = score_name(runs, PERPLEXITY) if claim.number == PERPLEXITY else claim.number
    values = [record.select_values(side, number, claim.role) for side in sides]
    if claim.folded:
        values = [{seed: max(v, 0.5) for seed, v in side.items()} for side in values]
    held = compare_seeds(*values, relative=claim.relative)
    scored = number.startswith(SPLITS)
    learning: record.Learning = judge_all(sides[0] + sides[1]) if scored else "converged"
    twin = find_twin(method, claim.against, runs)
    cause: record.Cause | None = None
    verdict: record.Verdict = "not decidable"
    if not sides[0]:
        cause = "no_reference"
    elif twin:
        cause = "same_runs"
    elif held is None:
        cause = "no_number"
    elif held.interval is None:
        cause = "few_seeds"
    elif learning != "converged":
        cause = "still_learning" if learning == "learning" else "unknown_learning"
    elif claim.folded and fmean(values[0].values()) < CHANCE:
        cause = "at_chance"
    elif (side := held.side(claim.limit)) == "open":
        cause = "interval"
    else:
        verdict = "reproduced" if side == claim.change else "not reproduced"
    text = seeds = ""
    if held is not None:
        seeds = f"{held.seeds} seed{'s' if held.seeds > 1 else ''}"
        text = f"{held.text} over {seeds}"
    # Papers may not publish the number that decides.
    shared = held
    if papers and claim.score:
        compared = f"{number.partition('.')[0]}.{claim.score}"
        shared = compare_seeds(
            *(record.select_values(side, compared, claim.role) for side in sides)
        )
    share = None
    if shared is not None and papers and claim.factor == 1.0:
        share = shared.difference / papers[0].difference(relative=claim.relative)
    return record.ClaimOutcome(
        key=claim.key,
        text=claim.text,
        source=claim.source,
        method=method,
        reference=claim.against,
        number=number,
        role=claim.role,
        verdict=verdict,
        alone=verdict,
        contrast=held,
        reason=REASONS[cause].format(
            against=claim.against,
            seeds=seeds,
            text=text,
            edge="0" if claim.factor == 1.0 else f"a factor of {claim.factor:g}",
            twin=twin,
            before=math.nan if held is None else held.before,
        ),
        published="; ".join(paper.text for paper in papers),
        cause=cause,
        sanity=claim.sanity,
        share=share,
        p_value=held.p_value(claim.limit) if held is not None and not twin else None,
    )


def find_twin(method: str, reference: str, runs: Sequence[record.Run]) -> str:
    """Find another method whose runs have the same numbers, but for cost; empty without one.

    RE of a model without an output bias is the tied model itself, for example.
    """
    found: dict[str, dict[int, dict[str, float]]] = {}
    for run in runs:
        numbers = {k: v for k, v in run.numbers.items() if not k.startswith("training.")}
        found.setdefault(run.method, {})[run.seed] = numbers
    own = found.pop(method, {})
    same = (name for name, numbers in found.items() if name != reference and numbers == own)
    return next(same, "") if any(own.values()) else ""


def adjust_claims(outcomes: Sequence[record.ClaimOutcome]) -> tuple[record.ClaimOutcome, ...]:
    """Add p-values after Holm's correction, over all claims but sanity checks, and the verdicts.

    A claim that holds or fails by its own interval is nominal unless the corrected p-value is at
    most `MOST_P`.
    """

    def is_tested(one: record.ClaimOutcome) -> bool:
        return one.p_value is not None and not one.sanity

    adjusted = iter(adjust_holm([one.p_value or 0.0 for one in outcomes if is_tested(one)]))
    found = [
        replace(one, p_adjusted=next(adjusted) if is_tested(one) else None, verdict=one.alone)
        for one in outcomes
    ]
    return tuple(
        replace(one, verdict="nominal")
        if one.cause is None and one.p_adjusted is not None and one.p_adjusted > MOST_P
        else one
        for one in found
    )


def count_verdicts(outcomes: Sequence[record.ClaimOutcome]) -> dict[record.Verdict, int]:
    """Count the claims by verdict, without sanity checks."""
    found: dict[record.Verdict, int] = dict.fromkeys(get_args(record.Verdict), 0)
    for one in outcomes:
        if not one.sanity:
            found[one.verdict] += 1
    return found


def quality_name(runs: Sequence[record.Run]) -> str:
    """Name of the deciding number, of the test split if every run has it: "test.perplexity".

    The validation split chose settings.
    """
    return score_name(runs, runs[0].quality if runs else PERPLEXITY)


def score_name(runs: Sequence[record.Run], score: str) -> str:
    """Return a score of the test split where every run has it, else of the validation split."""
    tested = bool(runs) and all(f"test.{score}" in run.numbers for run in runs)
    return f"{'test' if tested else 'valid'}.{score}"


def unigram_perplexity(runs: Sequence[record.Run], split: str) -> float | None:
    """Return the number of a split, which all runs share; None if no run has it."""
    name = f"{split}.unigram"
    return next((run.numbers[name] for run in runs if name in run.numbers), None)


def compare_with_control(
    study: record.Study, method: record.StudyMethod, name: str, role: record.Role | None = None
) -> SeedDifference | None:
    """Return the difference of a number between a method and its control.

    None if one of both lacks it.
    """
    before, after = (study.values(one, name, role) for one in (method.reference, method.name))
    return compare_seeds(before, after, relative=is_relative(name))


def has_same_size(study: record.Study, method: record.StudyMethod) -> bool:
    """Tell whether a method and its control have as many parameters, within the tolerance."""
    before, after = (study.runs_of(one)[0].parameters for one in (method.reference, method.name))
    if before is None or after is None:
        return True
    return abs(after / before - 1.0) <= PARAMETER_TOLERANCE
