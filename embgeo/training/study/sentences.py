"""What each method did to perplexity and geometry, in one sentence each."""

from __future__ import annotations

from collections.abc import Mapping

from embgeo.core.quantities import cosine, frequency, isotropy, spectrum
from embgeo.core.values import format_number
from embgeo.training.study.deciding import perplexity_name
from embgeo.training.study.spread import paired, percent_text, spread
from embgeo.training.study.training import StudyMethod, Training

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
        told += [(word, training.values(method.name, key)) for key, word in TOLD]
        parts = [f"{word} {format_values(values)}" for word, values in told if values]
        return f"{method.name}: {', '.join(parts)}"
    before = training.values(method.reference, name)
    parts.append(perplexity_part(before, own))
    for key, word in TOLD:
        old, new = training.values(method.reference, key), training.values(method.name, key)
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
