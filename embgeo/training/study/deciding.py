"""From runs to conclusions: claims decided, and what each method did in a sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from embgeo.core.quantities import cosine, frequency, isotropy, spectrum
from embgeo.core.values import format_number
from embgeo.numerics.multiple_tests import adjust_holm
from embgeo.training.study.claims import CLAIMS, PERPLEXITY, Claim
from embgeo.training.study.spread import (
    CONFIDENCE,
    Paired,
    in_percent,
    paired,
    percent_text,
    spread,
)
from embgeo.training.study.training import ClaimOutcome, Run, StudyMethod, Training, Verdict

#: Seeds without which nothing is known of the spread between them.
LEAST_SEEDS = 2
#: Of the minimum detectable effect.
POWER = 0.8


def decide_claims(
    runs: Sequence[Run], claims: Sequence[Claim] = CLAIMS
) -> tuple[ClaimOutcome, ...]:
    """Every claim about a method that was trained, in the order of the claims."""
    trained = {run.method for run in runs}
    found = []
    for claim in claims:
        reference = next((name for name in claim.against if name in trained), "")
        for method in claim.methods:
            if method in trained and method != reference:
                found.append(decide_claim(claim, method, reference, runs))
    adjusted = iter(adjust_holm([one.p_value for one in found if one.p_value is not None]))
    return tuple(
        one if one.p_value is None else replace(one, p_adjusted=next(adjusted)) for one in found
    )


def decide_claim(claim: Claim, method: str, reference: str, runs: Sequence[Run]) -> ClaimOutcome:
    """One claim, decided; without a reference it cannot be."""
    number = perplexity_name(runs) if claim.number == PERPLEXITY else claim.number
    before, after = (
        {
            run.seed: value
            for run in runs
            if run.method == name
            and (value := run.select_numbers(claim.role).get(number)) is not None
        }
        for name in (reference, method)
    )
    held = paired(before, after, relative=claim.relative)
    verdict, reason = decide(claim, held)
    p_value, detectable = test_difference(held, limit_of(claim))
    if not reference:
        reason = f"the paper holds it against {claim.against[0]}, which was not trained"
    return ClaimOutcome(
        key=claim.key,
        text=claim.text,
        source=claim.source,
        method=method,
        reference=reference or claim.against[0],
        number=number,
        role=claim.role,
        relative=claim.relative,
        verdict=verdict,
        before=None if held is None else held.before,
        after=None if held is None else held.after,
        difference=None if held is None else held.difference,
        standard_error=None if held is None else held.standard_error,
        interval=None if held is None else held.interval,
        seeds=0 if held is None else held.n,
        reason=reason,
        published="; ".join(p.text for p in claim.published),
        p_value=p_value,
        detectable=detectable,
    )


def limit_of(claim: Claim) -> float:
    """The difference on whose sides the claim holds or does not."""
    return math.log(claim.factor) if claim.relative else 0.0


def test_difference(held: Paired | None, limit: float) -> tuple[float | None, float | None]:
    """p-value of Student's t for a mean at the limit, and the minimum detectable effect.

    The effect is the sum of the quantiles for a level of 5 % (two-sided) and a power of 80 %, times
    the standard error (Bloom 1995).
    """
    if held is None or held.standard_error is None:
        return None, None
    from scipy.special import stdtr, stdtrit

    freedom, error = held.n - 1, held.standard_error
    distance = abs(held.difference - limit)
    if error == 0.0:
        return (0.0 if distance else 1.0), 0.0
    reach = float(stdtrit(freedom, 0.5 + CONFIDENCE / 2.0) + stdtrit(freedom, POWER))
    return float(2.0 * stdtr(freedom, -distance / error)), reach * error


def perplexity_name(runs: Sequence[Run]) -> str:
    """That of the test split where every run has one: the validation split chose settings."""
    return (
        "test.perplexity"
        if runs and all("test.perplexity" in run.numbers for run in runs)
        else "valid.perplexity"
    )


def unigram_perplexity(runs: Sequence[Run], split: str) -> float | None:
    """That of a split, which is the same for all runs; None where none of them has it."""
    name = f"{split}.unigram"
    return next((run.numbers[name] for run in runs if name in run.numbers), None)


def decide(claim: Claim, held: Paired | None) -> tuple[Verdict, str]:
    """The verdict, and what it rests on.

    Reproduced: the whole 95 % interval of the paired difference lies on the side that is claimed.
    Not reproduced: all of it lies on the other one. Otherwise, and of fewer than two seeds, the
    runs do not decide.
    """
    if held is None:
        return "not decidable", "no two runs of one seed hold this number"
    if held.n < LEAST_SEEDS or held.interval is None:
        return "not decidable", "one seed says nothing of the spread between seeds"
    limit = limit_of(claim)
    low, high = held.interval
    below, above = high < limit, low > limit
    text = f"{difference_text(held, relative=claim.relative)} over {held.n} seeds"
    if not (below or above):
        edge = "0" if claim.factor == 1.0 else f"a factor of {claim.factor:g}"
        return "not decidable", f"{text}, which leaves {edge} inside the interval"
    if below == (claim.change == "lower"):
        return "reproduced", text
    return "not reproduced", text


def difference_text(held: Paired, *, relative: bool) -> str:
    """``"−1.3 % (95 %: −1.9 to −0.7)"``."""
    unit = " %" if relative else ""
    values = [held.difference, *(held.interval or ())]
    if relative:
        values = [in_percent(value) for value in values]
    first, *ends = (signed(value) for value in values)
    return f"{first}{unit} (95 %: {ends[0]} to {ends[1]})" if ends else f"{first}{unit}"


def signed(value: float) -> str:
    """Three digits, with the sign."""
    text = format_number(value, 3)
    return text if value <= 0 else f"+{text}"


#: Numbers of the geometry that a sentence tells, with their names in it.
TOLD = (
    (cosine.MEAN.name, "mean cosine"),
    (isotropy.I1_UNIT.name, "I1 (mean norm 1)"),
    (spectrum.EFFECTIVE_RANK.name, "effective rank"),
    (frequency.PROBE_AUC.name, "probe AUC"),
)


def describe_methods(training: Training) -> tuple[str, ...]:
    """One a method, the baseline first."""
    return tuple(describe_method(training, method) for method in training.methods)


def describe_method(training: Training, method: StudyMethod) -> str:
    """``"cosreg: perplexity 312.4 → 308.1 (−1.4 %), mean cosine 0.119 → 0.005, …"``."""
    parts = []
    name = perplexity_name(training.runs)
    own = training.values(method.name, name)
    if not method.reference:
        told = [("perplexity", own)]
        told += [(word, training.values(method.name, key, method.role)) for key, word in TOLD]
        parts = [f"{word} {format_values(values)}" for word, values in told if values]
        return f"{method.name}: {', '.join(parts)}"
    before = training.values(method.reference, name)
    parts.append(perplexity_part(before, own))
    for key, word in TOLD:
        old, new = (
            training.values(name, key, method.role) for name in (method.reference, method.name)
        )
        if old and new:
            parts.append(f"{word} {format_values(old)} → {format_values(new)}")
    return f"{method.name} against {method.reference}: {', '.join(part for part in parts if part)}"


def perplexity_part(before: Mapping[int, float], after: Mapping[int, float]) -> str:
    held = paired(before, after, relative=True)
    if held is None:
        return ""
    text = f"perplexity {format_values(before)} → {format_values(after)}"
    change = percent_text(held.difference)
    if held.interval is None:
        return f"{text} ({change}, one seed)"
    low, high = held.interval
    word = "better" if high < 0 else "worse" if low > 0 else "within what seeds differ by"
    return f"{text} ({change}, {word})"


def format_values(values: Mapping[int, float]) -> str:
    found = spread(list(values.values()))
    return "unknown" if found is None else format_number(found.mean, 3)
