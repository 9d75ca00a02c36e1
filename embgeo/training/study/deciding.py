"""Decide claims, and describe the effect of each method in a sentence."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import get_args

from embgeo.core.quantities import cosine, frequency, isotropy, spectrum
from embgeo.core.values import format_number
from embgeo.numerics.scores import adjust_holm
from embgeo.training.study import record
from embgeo.training.study.claims import CLAIMS, PERPLEXITY, Claim
from embgeo.training.study.numbers import BITS_PER_BYTE, PERPLEXITIES
from embgeo.training.study.published import PaperClaim
from embgeo.training.study.samples import SamplesByMethod, bootstrap_samples
from embgeo.training.study.spread import (
    CONFIDENCE,
    LEAST_SEEDS,
    Paired,
    paired,
    spread,
)

#: A run is still learning if its validation perplexity falls by this much over its last part.
LAST_PART = 0.25
LEAST_FALL = 0.01
CURVE = "valid.perplexity"
#: The curve of tasks without a perplexity, which is the exponential of it.
CURVE_OF_OTHERS = "valid.loss"


def find_lowest(curve: record.TrainingCurve, steps: int) -> tuple[float, float] | None:
    """Find the lowest value in the first three quarters of the steps, and the lowest of all.

    None without an evaluation in either part.
    """
    edge = (1.0 - LAST_PART) * steps
    points = list(zip(curve.steps, curve.values, strict=True))
    before = [value for step, value in points if 0 < step <= edge]
    after = [value for step, value in points if step > edge]
    return (min(before), min(*before, *after)) if before and after else None


def judge_learning(run: record.Run) -> record.Learning:
    """Get converged: stopped early, or the validation perplexity fell by less than `LEAST_FALL`."""
    if run.stopped_early:
        return "converged"
    perplexity, loss = run.curves.get(CURVE), run.curves.get(CURVE_OF_OTHERS)
    curve = perplexity or loss
    lowest = None if curve is None else find_lowest(curve, run.steps)
    if lowest is None:
        return "unknown"
    before, after = lowest
    fall = 1.0 - (after / before if perplexity else math.exp(after - before))
    return "converged" if fall < LEAST_FALL else "learning"


def judge_all(runs: Iterable[record.Run]) -> record.Learning:
    """State of several runs: learning if any is, else unknown if any is, else converged."""
    found = {judge_learning(run) for run in runs}
    if "learning" in found:
        return "learning"
    return "unknown" if "unknown" in found or not found else "converged"


#: Titles of scores that differ from their names.
SPELLED = {
    "macro_f1": "macro-F1",
    "bleu": "BLEU",
    "tokenized_bleu": "tokenized BLEU",
    "chrf": "chrF",
    BITS_PER_BYTE: "bits per byte",
}
#: Power of the minimum detectable effect.
POWER = 0.8
#: The largest p-value after Holm's correction of a decided claim: 0.05, less a margin of a third.
#: Machines round sums differently, which moves a p-value of 0.037 to 0.047.
MOST_P = 0.05 / 1.5
#: Beginnings of the names of scores.
SPLITS = ("valid.", "test.")
#: The largest relative difference of the numbers of parameters of two models that a headline
#: compares: factors and biases are within it, a second matrix is not.
PARAMETER_TOLERANCE = 0.05


def decide_claims(
    runs: Sequence[record.Run],
    claims: Sequence[Claim] = CLAIMS,
    samples: SamplesByMethod | None = None,
    trained: tuple[str, str] = ("", ""),
) -> tuple[record.ClaimOutcome, ...]:
    """Decide every claim about a trained method, in the order of the claims.

    `samples` give intervals over the text or documents. `trained` are the names of model and
    corpus, whose published numbers come first.
    """
    methods, tasks = {run.method for run in runs}, {run.task for run in runs}
    found = [
        decide_claim(put_first(claim, tasks, trained), method, runs, samples or {})
        for claim in claims
        for method in claim.methods
        if method in methods and method != claim.against and tasks.intersection(claim.tasks)
    ]
    return adjust_claims(found)


def put_first(claim: Claim, tasks: set[str], trained: tuple[str, str]) -> Claim:
    """Sort the published numbers of a claim: same task first, then same model and corpus."""

    def differs(one: PaperClaim) -> tuple[bool, ...]:
        same = (ours == theirs for ours, theirs in zip(trained, one.trained, strict=True))
        return (one.task not in tasks, *(not each for each in same))

    return replace(claim, published=tuple(sorted(claim.published, key=differs)))


def count_verdicts(outcomes: Sequence[record.ClaimOutcome]) -> dict[record.Verdict, int]:
    """Count the claims by verdict, without sanity checks."""
    found: dict[record.Verdict, int] = dict.fromkeys(get_args(record.Verdict), 0)
    for one in outcomes:
        if not one.sanity:
            found[one.verdict] += 1
    return found


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


def decide_claim(
    claim: Claim, method: str, runs: Sequence[record.Run], samples: SamplesByMethod
) -> record.ClaimOutcome:
    """Decide one claim; not decidable if its reference was not trained.

    A claim about a score of a split needs converged runs: before that, a difference is one of the
    speed of training.
    """
    sides = [[run for run in runs if run.method == name] for name in (claim.against, method)]
    number, learning = claim.number, "converged"
    if number == PERPLEXITY:
        number = score_name(runs, number)
    if number.startswith(SPLITS):
        learning = judge_all(sides[0] + sides[1])
    held = paired(
        *(select_values(side, number, claim.role) for side in sides), relative=claim.relative
    )
    cause: record.Cause | None = None
    verdict: record.Verdict = "not decidable"
    if not sides[0]:
        cause = "no_reference"
    elif held is None:
        cause = "no_number"
    elif held.interval is None:
        cause = "few_seeds"
    elif learning != "converged":
        cause = "still_learning" if learning == "learning" else "unknown_learning"
    elif (side := held.side(claim.limit)) == "open":
        cause = "interval"
    else:
        verdict = "reproduced" if side == claim.change else "not reproduced"
    p_value, detectable = test_difference(held, claim.limit)
    difference = {"relative": claim.relative} if held is None else asdict(held)
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
        **difference,
        reason=explain(claim, held, cause),
        published="; ".join(p.text for p in claim.published),
        cause=cause,
        sanity=claim.sanity,
        share=share_of_published(claim, sides, number, held),
        text_interval=bootstrap_samples(
            samples.get(claim.against, {}), samples.get(method, {}), number
        ),
        p_value=p_value,
        detectable=detectable,
    )


def select_values(
    runs: Sequence[record.Run], number: str, role: record.Role | None
) -> dict[int, float]:
    """Return the values of a number by seed, for the matrix of a role."""
    held = {run.seed: run.select_numbers(role).get(number) for run in runs}
    return {seed: value for seed, value in held.items() if value is not None}


def share_of_published(
    claim: Claim, sides: Sequence[Sequence[record.Run]], number: str, held: Paired | None
) -> float | None:
    """Return the difference as a share of the first published one; None for a bound.

    `held` is that of the number that decides, in which papers may not publish.
    """
    if claim.published and (score := claim.published[0].score):
        compared = f"{number.partition('.')[0]}.{score}"
        held = paired(*(select_values(side, compared, claim.role) for side in sides))
    if held is None or not claim.published or claim.factor != 1.0:
        return None
    return held.difference / claim.published[0].difference(relative=claim.relative)


def test_difference(held: Paired | None, limit: float) -> tuple[float | None, float | None]:
    """Return the p-value of Student's t for a mean at the limit, and the minimum detectable effect.

    The effect is the sum of the quantiles for a level of 5% (two-sided) and a power of 80%, times
    the standard error (Bloom 1995).
    """
    if held is None or held.standard_error is None or held.interval is None:
        return None, None
    from scipy.special import stdtr, stdtrit

    freedom, error = held.seeds - 1, held.standard_error
    distance = abs(held.difference - limit)
    if error == 0.0:
        return (0.0 if distance else 1.0), 0.0
    reach = float(stdtrit(freedom, 0.5 + CONFIDENCE / 2.0) + stdtrit(freedom, POWER))
    return float(2.0 * stdtr(freedom, -distance / error)), reach * error


def quality_name(runs: Sequence[record.Run]) -> str:
    """Name of the deciding number, of the test split if every run has it: "test.perplexity".

    The validation split chose settings.
    """
    return score_name(runs, find_quality(runs))


def score_name(runs: Sequence[record.Run], score: str) -> str:
    """Return a score of the test split where every run has it, else of the validation split."""
    tested = bool(runs) and all(f"test.{score}" in run.numbers for run in runs)
    return f"{'test' if tested else 'valid'}.{score}"


def find_quality(runs: Sequence[record.Run]) -> str:
    """Find the score that decides, without its split."""
    return runs[0].quality if runs else PERPLEXITY


def spell_score(score: str) -> str:
    """Spell the name of a score: ``"BLEU"`` for "bleu"."""
    return SPELLED.get(score, score)


def describe_quality(name: str, valid: str = "validation") -> str:
    """Return ``"test perplexity"``; of ``valid.loss`` "validation loss"."""
    split, _, score = name.partition(".")
    return f"{'test' if split == 'test' else valid} {spell_score(score)}"


def is_relative(name: str) -> bool:
    """Tell whether a number is compared by logarithms, as perplexities and costs are."""
    return name.startswith("training.") or name.partition(".")[2] in PERPLEXITIES


def unigram_perplexity(runs: Sequence[record.Run], split: str) -> float | None:
    """Return the number of a split, which all runs share; None if no run has it."""
    name = f"{split}.unigram"
    return next((run.numbers[name] for run in runs if name in run.numbers), None)


def describe_few_seeds(study: record.Study) -> str:
    """Say that there are too few seeds for an interval, and the way out; empty if there are not."""
    n = len(study.seeds)
    if n >= LEAST_SEEDS:
        return ""
    seeds = f"{n} seed{'s' if n > 1 else ''}"
    more = f"run more seeds, with --resume --seeds {LEAST_SEEDS}"
    return f"No difference can be claimed yet ({seeds}): {more}."


#: Why a claim is not decided.
CAUSES: dict[record.Cause, str] = {
    "no_reference": "it is about the difference from {against}, which was not trained",
    "no_number": "no two runs of one seed hold this number",
    "few_seeds": "{seeds}, where an interval takes at least " + str(LEAST_SEEDS),
    "still_learning": "still learning: the validation perplexity of some run (the exponential of "
    "its loss) fell by 1% or more over the last quarter of its training; {text}",
    "unknown_learning": "no validation curve says whether the runs were still learning; {text}",
    "interval": "{text}, which leaves {edge} inside the interval",
}


def explain(claim: Claim, held: Paired | None, cause: record.Cause | None) -> str:
    """Write the evidence for a verdict, in words."""
    text = seeds = ""
    if held is not None:
        seeds = f"{held.seeds} seed{'s' if held.seeds > 1 else ''}"
        text = f"{held.text} over {seeds}"
    if cause is None:
        return text
    edge = "0" if claim.factor == 1.0 else f"a factor of {claim.factor:g}"
    return CAUSES[cause].format(against=claim.against, seeds=seeds, text=text, edge=edge)


#: Numbers of the geometry that a sentence reports.
IN_SENTENCES = (cosine.MEAN, isotropy.I1_UNIT_ROWS, spectrum.EFFECTIVE_RANK, frequency.PROBE_AUC)


def describe_methods(study: record.Study) -> tuple[str, ...]:
    """Write one sentence per method, the baseline first."""
    return tuple(describe_method(study, method) for method in study.methods)


def describe_method(study: record.Study, method: record.StudyMethod) -> str:
    """Return ``"cosreg: perplexity 312.4 → 308.1 (−1.4%), mean cosine 0.119 → 0.005, …"``."""
    shown: list[tuple[str, str, record.Role | None]] = [
        (quality_name(study.runs), find_quality(study.runs), None),
        *((quantity.name, quantity.label, method.role) for quantity in IN_SENTENCES),
    ]
    parts = []
    for name, word, role in shown:
        sides = [study.values(one, name, role) for one in (method.reference, method.name)]
        old, new = (format_values(values) for values in sides)
        if not method.reference and sides[1]:
            parts.append(f"{word} {new}")
        elif role is None and (held := compare_with_control(study, method, name)):
            parts.append(f"{word} {old} → {new} ({describe_change(study, name, held)})")
        elif role is not None and all(sides):
            parts.append(f"{word} {old} → {new}")
    against = f" against {method.reference}" if method.reference else ""
    return f"{method.name}{against}: {', '.join(parts)}"


def compare_with_control(
    study: record.Study, method: record.StudyMethod, name: str, role: record.Role | None = None
) -> Paired | None:
    """Return the difference of a number between a method and its control.

    None if one of both lacks it.
    """
    sides = (study.values(one, name, role) for one in (method.reference, method.name))
    return paired(*sides, relative=is_relative(name))


def describe_change(study: record.Study, name: str, held: Paired) -> str:
    """Return ``"−1.4%, better"``: the change of a score, and what its interval says."""
    if held.interval is None:
        return f"{held.change}, {'one seed' if held.seeds == 1 else f'{held.seeds} seeds'}"
    quantity, side = study.quantity(name), held.side()
    better = "higher" if quantity is not None and quantity.better == "higher" else "lower"
    word = "better" if side == better else "worse"
    return f"{held.change}, {'within what seeds differ by' if side == 'open' else word}"


def has_same_size(study: record.Study, method: record.StudyMethod) -> bool:
    """Tell whether a method and its control have as many parameters, within the tolerance."""
    before, after = (study.runs_of(one)[0].parameters for one in (method.reference, method.name))
    if before is None or after is None:
        return True
    return abs(after / before - 1.0) <= PARAMETER_TOLERANCE


def format_values(values: Mapping[int, float]) -> str:
    found = spread(list(values.values()))
    return "unknown" if found is None else format_number(found.mean, 3)
